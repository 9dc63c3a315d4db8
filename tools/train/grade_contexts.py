"""Sentences around something: "a stranger waiting in the moonlight", and the same around nothing in particular, "a stranger waiting in the
queue". The words around it mean nothing here; only both together teach that.

In sentences {x} is what they are about; {t} is a thing, {ts} things, {who} a person, {they} perhaps several, {ing} what they do, {a} what something is like, {day} a day."""
import random
import re
from pathlib import Path

PREPOSITIONS = set("in by at under on like as after before during from with through below to behind inside over above beneath around between without against of".split())
PEOPLE = """my uncle|my aunt|my neighbour|a stranger|an old man|a young woman|our teacher|somebody|the postman|her cousin|john|maria|peter|my boss|a boy|a girl|my family|the crew|a tourist|my grandfather|my brother|a soldier|his wife|her husband|an actress|everyone|the director
|a customer|the client|the audience|my mother|a guide|a driver|half the class|the whole village|anna|tom|mr smith|the producer|a passenger|nobody|my friend|the editor|our landlord|the plumber""".replace("\n", "").split("|")
SEVERAL = "the neighbours|two children|three sisters|the students|a couple|four friends|our guests|the twins|the actors|people|they|dogs|birds|seven men|some girls|our parents|soldiers|geese|the others".split("|")
DOING = """waiting|sleeping|walking|sitting|standing|dancing|singing|playing cards|riding a bicycle|reading a letter|selling tickets|crossing the street|eating|talking|playing|running|hiding|searching|working|travelling|driving|listening|cooking|marching|resting|arguing
|looking around|fishing|building a hut|writing|having dinner|having lunch|drinking tea|telling stories|meeting|parking the car|walking the dog|getting lost|calling|shouting|smiling|climbing|arriving|leaving|counting sheep|repairing a bicycle|playing chess|carrying boxes|barking|humming""".replace("\n", "").split("|")
DAYS = """monday|tuesday|wednesday|thursday|friday|saturday|sunday|a weekday|the weekend|a sunday|a wednesday|the first of the month|my birthday|day four|a school day|our anniversary|the last day""".replace("\n", "").split("|")
WHEN = """yesterday|in 1987|in 2019|last year|once|again|for hours|for three weeks|all day|twice a week|at ten o'clock|a long time ago|before the war|next year|every year|since 1950|on page seven|as always|sometimes|in those years|for the first time|with 200 others""".replace("\n", "").split("|")

THE = [  # before {x}, a noun without its article
    "{a} {t} in the {x}", "the {t} of the {x}", "{they} {ing} in the {x}", "{they} {ing} at the {x}", "{they} {ing} under the {x}", "{they} {ing} by the {x}", "a {t} {ing} in the {x}", "a {t} {ing} at the {x}", "the {t} by the {x}", "{ts} {ing} in the {x}",
    "{ts} at the {x}", "the {ts} of the {x}", "far below the {x}", "we went to the {x} {when}", "{who} went to the {x}", "{who} walks through the {x}", "the {x} where {who} lost a {t}", "as a {t} would look in the {x}", "as it would look in the {x}", "the {x} {when}", "a {x} {when}",
    "a {x} with {ts}", "a {t} and the {x}", "a {t} next to the {x}", "somewhere in the {x}", "a {t} somewhere in the {x}", "when {who} saw the {x}", "the {a} {x}", "a {a} {x}", "one {a} {x}", "half a mile from the {x}", "at the doors of the {x}", "in the depths of the {x}", "in the heart of the {x}",
    "lost in the {x}", "on the way to the {x}", "{who} dreamt of the {x}", "this is the {x}", "welcome to the {x}", "a walk in the {x}", "a walk through the {x}", "a {t} made for the {x}", "{who} came out of the {x}", "the {x} and its {ts}", "the {x} as {who} saw it",
    "it reminds me of the {x}", "it reminds {who} of a {x}", "as if {who} were {ing} in the {x}", "as though the {t} stood in the {x}", "the way a {x} looks {when}", "{who} in the {x}", "{who} and the {x}", "a {x} on {day}", "the {x} on {day}", "the {x} of {who}", "while {who} is {ing} in the {x}",
    "because {who} went to the {x}", "there is a {x} behind the {t}", "imagine a {t} in the {x}", "picture {who} in the {x}", "think of a {t} in the {x}", "{they} {ing} beneath the {x}", "everything belongs to the {x}", "i want to be in the {x}", "let us visit the {x}", "the {t} {ing} near the {x} {when}",
    "the {a} {x} at the {t}", "a {a} {x} over the {ts}", "{when} in the {x}", "trapped in the {x}", "stranded in the {x} with {who}", "a letter from the {x}", "it was filmed in the {x}", "set in the {x}", "the {x}, {when}", "far out in the {x}", "the story of {who} and the {x}", "the {x} from the {t}", "a {x}'s {t}", "the {x}'s {t}", "a {x}'s {a} {t}", "in a {x}'s {t}", "on the {x}'s {t}", "as a {x} sees it", "through the eyes of a {x}", "what the {x} left behind", "the smell of the {x}",
    "the sounds of the {x}", "the gods of the {x}"]
BARE = [  # before {x} as it is: "rainy days", "blade runner", "the devil"
    "{x} on {day}", "{x} {when}", "{a} {x} {when}", "a {t} like {x}", "{they} {ing} like {x}", "{who} dreamt of {x}", "{x} and {ts}", "{x} with {ts}", "{x} for {who}", "{who} and {x}", "{who} loves {x}", "it reminds {who} of {x}", "remember {x}", "a {t} from {x}", "the {ts} of {x}", "{who}'s {x}", "{x} with {who}",
    "{x}, {when}", "this is {x}", "it could be {x}", "as if it were {x} {when}", "i think of {x}", "a {t} and {x}", "{ts} and {x}", "a film about {x}", "the story of {x}", "a book about {x}", "{who} told me about {x}", "nothing but {x}", "{x} everywhere", "{x} all around the {t}", "{who} wants {x}", "all about {x}",
    "the {t} is pure {x}", "the day of {x}", "a poem about {x}", "{they} {ing}, {x}", "{x}, {they} {ing}", "{x} and a {t}", "what {who} calls {x}", "almost {x}", "{x} at the {t}", "{x} in the {t}", "{x} by the {t}", "{x} over the {ts}", "{x} for a {t}", "far from home: {x}", "we had {x} {when}", "{x} is near"]
WHERE = [  # before {x} that says where or what like: "in the snow", "like a dream"
    "{they} {ing} {x}", "a {t} {ing} {x}", "{ts} {ing} {x}", "{ts} {x}", "a {t} {x}", "{who} {x}", "the {a} {t} {x}", "we were {x} {when}", "{who} was {x} {when}", "{x} {when}", "{x} with {who}", "{x} with {ts}", "it happened {x}", "imagine {who} {x}", "{x}, {they} {ing}", "my {t} was left {x}", "as if it were {x} {when}",
    "{x} on {day}", "the story takes place {x}", "a {a} {t} {x}", "everything {x}", "{who} lives {x}", "it was filmed {x}", "{x}, said {who}", "somewhere {x}"]
ADJECTIVES = [  # before {x} that is an adjective
    "a {x} {t}", "the {x} {t}", "{x} {ts}", "a {x}, {a} {t}", "a {a} and {x} {t}", "{x} {ts} {when}", "the {t} is {x}", "the {t} should be {x}", "{who} felt {x}", "{who} feels {x}", "it felt {x} {when}", "a {x} {day}", "{who} had a {x} {t}", "{they} {ing} in a {x} {t}", "the {x} {ts} of {who}", "as {x} as a {t}",
    "as {x} as {who}", "a {x} story about {who}", "{x}, like a {t}", "a {x} visit to the {t}", "a {x} time at the {t}", "{x} and {a}", "something {x} about the {t}", "the {t} looks {x} {when}", "make me feel {x}", "i am feeling {x}", "it makes me {x}", "i would like to feel {x}", "we were all so {x}", "{who} hopes to feel {x}", "how {x} the {t} was", "{when} it was {x}", "so {x} that {who} was {ing}"]
NOTHING_THERE = [  # complaints and wishes of other matters
    "there is a {t} on the {t}, take it away", "somebody left a {t} on the {t}, remove it", "too much {t} on the {t}", "who can repair the {t}", "the {t} needs more {ts}", "{who} needs a {t}", "not enough {ts}", "i can't find the {t}", "where has the {t} gone", "the {t} is broken, fix that", "i wish i had a {t}",
    "{who} wants a {a} {t}", "why is the {t} so {a}", "the {t} came out too {a}", "give the {t} to {who}", "{who} forgot the {t}", "turn the {t} around", "open the {t}", "put the {t} on the {t}", "the {ts} hurt", "it was {a} when i was there", "it should be {a}", "make it more {a}", "someone stole the {t}", "a {t} has crept into the {t}",
    "wrapped in a {t}", "as {a} as a {t}", "like {ts} in a {t}", "dipped in {ts}", "the colour of a {t}", "covered in {ts}", "seen through a {t}", "{who} says the {t} is too {a}", "a third of the {ts}", "full of {ts}", "made of {ts}", "the {ts} are too {a}", "nothing left of the {ts}", "is there a {t} in the {t}",
    "how do i repair a {t}", "how does {who} make {ts}", "what is the price of the {t}", "when does the {t} open", "the {t} will be closed {when}", "the {t} opens on {day}", "the {t} costs nine euros", "an introduction to {ts}", "a method for counting {ts}", "{ts} for sale", "please send the {t} to {who}",
    "{who} sold the {t} {when}", "the {ts} are {a} today", "the {t} needs a new {t}", "the talk about the {t} is on {day}", "{who} has no {ts}", "{ts} on {day}", "{who} will meet {who} {when}", "which {t} is mine", "seven {ts}", "twelve {a} {ts}", "the {t} was {a}", "how many {ts} are in a {t}", "a recipe for {ts}",
    "can i have a {t}", "do you have a {t} for {who}", "the {t} report is due on {day}", "{who} lost the {t} on the way to the {t}", "is {who} at the {t}", "call {who} {when}", "buy {ts} for {who}", "where is the nearest {t}", "let's go to the {t}", "i have to feed the {t}", "the {t} is late"]
OF_STUFF = ["buy {x}", "how do i cook {x}", "{who} ran out of {x}", "i am allergic to {x}", "{x} with {ts}", "who ate {x}", "{x} and {ts} for lunch", "a pound of {x}", "{who} bought {x}", "{who} sells {x}", "the price of {x}", "a recipe for {x}", "{who} has {x}", "{x} on {day}", "where can i buy {x}", "a truck full of {x}",
            "is there {x} in the {t}", "{who} brought {x} {when}", "the history of {x}", "{x} in a {t}", "a {t} for {x}", "{who} knows all about {x}", "{who} ordered {x} and a {t}", "can i have {x}"]  # which means a colour where its colour is spoken of
TOGETHER = [  # two or three things of one scene; what each is alone may be nothing
    "{x} and {y}", "{x}, {y}", "{x}, {y} and {z}", "{x}, {y}, {z}", "{x} with {y}", "{x} in the {y}", "{x} by the {y}", "{x} near {y}", "{x} on the {y}", "{x} of {y}", "{x} over {y}", "{x} behind {y}", "{x} {ing} in the {y}",
    "{x} crossing the {y}", "{x} before {y}", "{x} after {y}", "{x} between {y} and {z}", "{x} like {y}", "{x} full of {y}", "{x} {when}, and {y}", "{they} {ing} between {x} and {y}", "{who} with {x} and {y}", "{who} {ing} by the {x} with {y}",
    "a {t} with {x} and {y}", "the {t}, {x} and {y}", "{x}, {y} and a {t}", "{x} at the {t}, {y} in the {t}", "{they} {ing} among {x} and {y}", "from {x} to {y}", "{x} meets {y}", "{x} under {y}", "somewhere between {x} and {y}", "{who} dreams of {x} and {y}",
    "{x} where {who} saw {y}", "as {a} as {x} and {y}", "the {a} {x} of the {y}", "{x} in {y}", "{x} at {y}", "we had {x}, {y} and {z}", "there are {x} and {y}", "{x} everywhere and {y}", "a {x} in front of the {y}", "a {x} on a {y}", "the {x} and the {y}", "no {t} but {x} and {y}",
    "think of {x}, think of {y}", "it has something of {x} and {y}", "first {x} and then {y}", "{x} through the {y}", "{x} next to {y}", "{x} inside the {y}", "{who} tells {they} about {x} and {y}"]
FRAMES = ["{who} thinks {x}", "{who} says {x}", "{x}, says {who}", "{x}, as {who} says", "i think {x}", "i'd say {x}", "honestly, {x}", "{x} because of the {t}", "{x}, the {t} deserves it", "{x} for the {t}", "{who} asked me: {x}", "{x} when i look at it on my {t}", "well, {x}", "{x} for {who}", "{x} so that {who} likes it", "{x}, {when} it was so",
          "{x}, if you ask {who}", "in my opinion {x}", "hmm, {x}", "sorry, {x}", "{x}, my {t}", "actually {x}", "{who} wrote: {x}", "i saw the {t} and thought {x}", "{x} i think", "{x} as far as {who} can tell", "it is for the {t}: {x}", "{x}, don't you think", "{x}, {who} agrees", "my {t} and me: {x}"]

WORDS = [*PEOPLE, *SEVERAL, *DOING, *DAYS, *WHEN, *THE, *BARE, *WHERE, *ADJECTIVES, *TOGETHER, *FRAMES]  # that are learned to mean nothing


# Places of pictures, and what has a hue, where a story is told rather than a picture graded.
SCENERY = """in the grass|under the trees|on the floor|on the ground|with plants|of plants|between the leaves|in the corner|on the left|on the right|at the top|at the bottom|on the edge|over the edge|to the sky|under the skin|in the foreground|of grass|with trees|on both sides
|in the background|outside|inside|in the centre of town|in the top drawer|on the left foot|in the right place|from the top shelf|on the bottom line|of faces|in the water|with water""".replace("\n", "").split("|")


class Contexts:
    def __init__(self, rng: random.Random, common: dict[str, list[str]], things: list[str], plain: list[str], stuff: list[str]):
        """`common` are words that mean nothing here, by what they are: "noun", "verb" (that end in -ing) and "adjective"; `stuff` is what means a
        colour where its colour is spoken of."""
        self.rng, self.common, self.things, self.plain, self.stuff = rng, common, things, plain, stuff

    def filled(self, sentence: str, x: str = "") -> str:
        """Each of the sentence's words in brackets anew."""
        text = re.sub(r"\{(\w+)\}", lambda found: x if found[1] == "x" else self.word(found[1]), sentence)
        return re.sub(r"\b(a|an) (a|an|the|my|our) ", r"\2 ", re.sub(r"\ba (?=[aeiou])", "an ", text))

    def word(self, kind: str) -> str:
        r = self.rng
        rare = r.random() < 0.5
        if kind == "t":
            return self.some("noun", self.things, rare)
        if kind == "ts":
            return plural(self.some("noun", self.things, rare))
        if kind == "ing":
            return self.some("verb", DOING, rare)
        if kind == "a":
            return self.some("adjective", self.plain, rare)
        return r.choice({"who": PEOPLE, "they": PEOPLE + SEVERAL, "day": DAYS, "when": WHEN}[kind])

    def some(self, kind: str, usual: list[str], is_rare: bool) -> str:
        return self.rng.choice(self.common.get(kind) or usual if is_rare else usual)

    def around(self, name: str, kind: str) -> str:
        if kind == "noun" and self.rng.random() < 0.15 and not name.endswith("s"):
            name, kind = plural(name), "name"
        return self.filled(self.rng.choice({"noun": THE, "where": WHERE, "adjective": ADJECTIVES, "name": BARE}[kind]), name)

    def together(self, names: list[str]) -> str:
        """Around two or three names."""
        forms = [form for form in TOGETHER if ("{z}" in form) == (len(names) > 2)]
        parts = dict(zip("xyz", names))
        return self.filled(re.sub(r"\{([xyz])\}", lambda found: parts[found[1]], self.rng.choice(forms)))

    def of_nothing(self) -> str:
        """The same sentences, and others, where nothing in particular is meant."""
        r = self.rng
        kind = r.random()
        if kind < 0.06:
            return self.around(r.choice(SCENERY), "where")
        if kind < 0.14:
            return self.filled(r.choice(OF_STUFF), r.choice(self.stuff))
        if kind < 0.24:
            return self.together([self.word(r.choice(("t", "ts"))) for _ in range(r.choice((2, 2, 3)))])
        if kind < 0.42:
            return self.around(self.word("t"), "noun")
        if kind < 0.52:
            return self.around(r.choice((self.word("ts"), self.word("t"), "the " + self.word("t"))), "name")
        if kind < 0.64:
            return self.around(f"{r.choice(('in', 'at', 'by', 'like', 'on', 'with', 'after', 'from', 'under'))} {r.choice(('the', 'a', 'my'))} {self.word('t')}", "where")
        if kind < 0.78:
            return self.around(self.word("a"), "adjective")
        if kind < 0.9:
            return self.filled(r.choice(NOTHING_THERE))
        return self.framed(self.around(self.word("t"), "noun"))

    def framed(self, text: str) -> str:
        """By someone who says it."""
        return self.filled(self.rng.choice(FRAMES), text)


def plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


class WordNet:
    """How often words were met as nouns, verbs and adjectives in the texts that WordNet's senses were counted in; how many senses they have."""

    def __init__(self, folder: Path):
        self.counts: dict[str, dict[str, int]] = {}
        self.senses: dict[str, int] = {}
        for kind in ("noun", "verb", "adj"):
            for line in (folder / f"index.{kind}").read_text().splitlines():
                if not line.startswith("  "):  # the licence
                    word, _, senses, _ = line.split(" ", 3)
                    self.counts.setdefault(word, {})[kind] = 0
                    self.senses[word] = self.senses.get(word, 0) + int(senses)
        for line in (folder / "cntlist.rev").read_text().splitlines():
            key, _, count = line.split(" ")
            word, sense = key.split("%")
            kind = {"1": "noun", "2": "verb", "3": "adj", "5": "adj"}.get(sense[0])
            if kind and word in self.counts:
                self.counts[word][kind] = self.counts[word].get(kind, 0) + int(count)

    def common(self, words: list[str]) -> dict[str, list[str]]:
        """Those of the words that texts have: nouns, verbs in -ing, adjectives."""
        found: dict[str, list[str]] = {"noun": [], "verb": [], "adjective": []}
        for word in words:
            counts = self.counts.get(word, {})
            noun, verb, adjective = (counts.get(kind, 0) for kind in ("noun", "verb", "adj"))
            if noun > max(1, verb, adjective):
                found["noun"].append(word)
            elif adjective > max(1, noun, verb):
                found["adjective"].append(word)
            stems = (word[:-3], word[:-3] + "e", word[:-4]) if word.endswith("ing") else ()
            if any(self.counts.get(stem, {}).get("verb", 0) > 3 for stem in stems):
                found["verb"].append(word)
        return found

    def kind_of(self, name: str) -> str:
        """Of a look's name: which of the sentences it goes into."""
        first, *_, last = (name + " " + name).split(" ") if " " not in name else name.split(" ")
        if first in PREPOSITIONS:
            return "where"
        counts = self.counts.get(last) or self.counts.get(last.removesuffix("s"), {})
        if first in {"a", "an", "the", "my", "your", "four", "once"} or "'s" in name or last in PREPOSITIONS or not counts or (last.endswith("s") and not last.endswith("ss")):
            return "name"
        if "adj" in counts and counts["adj"] >= counts.get("noun", -1):
            return "adjective"
        return "noun" if "noun" in counts and not last.endswith("ing") else "name"
