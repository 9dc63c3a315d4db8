"""Texts that ask for no grade: the picture stays as it is. grade_grammar.py mixes them in."""
import random
from pathlib import Path

from grade_contexts import Contexts

# Files of WordNet's lexicographers whose words may well ask for something: attributes, feelings, phenomena, and verbs of weather and
# of emotion (https://wordnet.princeton.edu/documentation/lexnames5wn).
MEANINGFUL = {"07", "12", "19", "37", "43"}

THINGS = """dog cat car house tree bird computer keyboard table chair river mountain friend city street train plane guitar piano phone bottle window
door book letter paper kitchen garden horse cow sheep mouse elephant tiger lion shark whale boat ship bridge tower castle school teacher student doctor
nurse baker farmer engineer king queen soldier child boy girl man woman mother father brother sister uncle aunt baby cup plate spoon fork knife bread cheese
butter milk water tea coffee beer juice sugar salt pepper potato tomato onion carrot apple banana pear grape melon bus bicycle motorbike truck tractor
rocket engine wheel tyre battery camera lens tripod radio television screen printer desk lamp bed pillow blanket towel soap brush comb mirror shirt
trousers jacket coat hat shoe sock glove scarf belt watch ring wallet key lock hammer nail screw saw drill ladder bucket rope fence gate wall roof
chimney stair lift hospital church museum library theatre market shop bank office factory station airport harbour island lake hill valley road path
field stone rock cloud wind number question answer story song game ball goal team player referee match ticket price money coin tax law judge
bicycle umbrella suitcase passport map compass calendar meeting report invoice contract server database function variable loop string array
accountant agenda airline algebra ankle antenna apartment apron auction avenue backpack ballot bandage barber bargain barrel basket bathtub biscuit bookshelf briefcase broom budget bulletin bundle button cabinet cable calculator campus cannon cargo carpet
cashier certificate charity cheque chemist clerk closet coach collar college colleague comma company concert conference contest cook corporation council counter cousin credit crossword cupboard curriculum customer dealer deadline debt degree delivery
deposit dictionary dinner diploma discount dispute district divorce drawer driver economy editor election elbow embassy employee envelope essay exam exchange exercise expert extension fabric ferry festival folder footnote formula freight fund
furniture gadget garment gate geography goose grammar grandmother guest guitarist gym handbook handle headache hobby homework hotel household husband idea index industry inspector insurance interview jar jury kettle kilometre knee landlord language
lawyer league lecture lesson licence lodger lorry luggage machine maintenance manager manual mathematics mattress mayor meal meeting member merchant microphone minister minute mistake motor nephew newsletter niece nose notebook nurse oar opinion
organ owner package page pan parcel parking partner passenger pencil pension petition physics pilot pipe plan plot plug pocket poet policy politician postcode president priest prize professor profit project proposal protein province puzzle
quarter queue quiz rabbit racket railway rehearsal rent repair reporter restaurant resume ribbon route rule sailor salary sandwich sausage schedule scissors secretary seminar senator sentence sequence shelf shoulder signature sister socket software
spreadsheet stadium stamp statistics stomach store strategy stool summary surgeon syllable tailor tap tape taxpayer tenant tennis theorem throat thumb timetable toe tongue tool toothbrush tournament trade trainer tram treaty trophy tunnel tutor
uniform union university valve van vehicle verb vicar village volunteer vote voucher wage waiter waitress warehouse wedding weekday whistle widow winner workshop wrench wrist yoghurt zip""".split()
VERBS = """runs jumps eats sleeps drives flies reads writes sings dances plays works walks talks opens closes buys sells finds loses builds breaks
carries throws catches follows watches hears sees knows thinks likes hates loves wants needs gives takes sends brings keeps leaves meets calls
helps stops starts ends grows falls rises moves waits sits stands lies crossed jumped over drove went came said told asked bought found""".split()
PLAIN = """big small old new young long short tall fast slow good bad quick lazy blind deaf clever stupid tired hungry brave shy busy rude polite early late fat thin bald married foreign local previous heavy wide narrow round square empty full clean broken
cheap expensive famous lost wooden plastic wet dry loud quiet strong weak brown red white black green blue yellow grey golden pink""".split()
ASKED = """what time is it|how are you|hello|hello world|hi there|good morning|where is the station|who are you|what is your name|tell me a joke|write a poem
about cats|the quick fox jumps over the dog|once upon a time there was a king|to be or not to be|lorem ipsum dolor sit amet|see you tomorrow
|what is the capital of france|two plus two is four|i had eggs for breakfast|the train leaves at nine|please call me back|buy milk and eggs|happy birthday to you
|how do i install this|the stock market fell today|he scored three goals|my flight was delayed|open the window please|the meeting is on monday|thank you very much
|yes|no|ok|maybe|test|testing one two three|foo bar baz|asdf|qwerty|abc|xyz|undefined|null|none of your business|i love you|where are my keys|long live the king
|can you help me|what should i do|who won the game|how much does it cost|is anyone here|the answer is forty two|we are going to the cinema|do you speak english
|crop the picture|rotate it by ninety degrees|flip it|zoom in|slow it down|speed up|remove the background|add a dog|remove the person|sharpen it|blur it
|denoise|stabilise the video|make it bigger|resize to full hd|cut the first minute|mute the sound|add subtitles|louder|add music|crop|mirror it|replay
|save the file|open settings|delete everything|turn left at the corner|stand on the left|go to the top of the page|the bottom line is clear|the centre of town
|the right answer|the edge of the table|left or right|he left early|top ten songs|guten morgen|bonjour tout le monde|hola que tal|ciao bella|danke schoen
|je ne sais pas|wo ist der bahnhof|el perro come|merci beaucoup|la casa es grande|das ist ein haus|c'est la vie|to whom it may concern|best regards
|breaking news|terms and conditions apply|all rights reserved|click here to subscribe|error 404 not found|segmentation fault|out of memory|press any key
|the red car is fast|a brown dog|the blue house on the hill|she wore a green dress|red wine and white bread|a yellow submarine came|black cat|white rabbit|orange juice
|the white house said|a black hole|green tea with milk|blue jeans and a shirt|the pink panther|a golden retriever|the red cross|the green party|silver medal
|how warm is it outside|it is cold today|the water is too hot to drink|turn on the light|the light is on|she has dark hair|a bright student|contrast this with that
|the weather is warm in may|my soup is cold|dark matter|light music|he is cool|a cool guy|warm regards""".replace("\n", " ").split("|")
CODE = ["for (int i = 0; i < n; ++i)", "x = {n};", "def {w}(self): return {n}", "SELECT * FROM {w} WHERE id = {n}", "#include <{w}.h>", "git push origin {w}", "http://www.{w}.com/{n}",
        "{w}@{w}.org", "sudo apt install {w}", "<div class=\"{w}\">", "{w}.{w}({n})", "if ({w} == {n}) return;", "0x{n}", "C:\\{w}\\{w}.txt", "{n} + {n} = {n}", "{n}", "{n}.{n}", "{n}/{n}/{n}",
        "+{n} {n} {n}", "${n}.99", "{w}_{w}", "import {w}", "while True: pass", "{{\"{w}\": {n}}}", "printf(\"{w}\\n\");", "const {w} = () => {n};", "ls -la /{w}/{w}", "{n}:{n}"]
EMPTY = ["", "make it", "please", "very", "a bit", "more", "less", "the picture", "can you", "make the image", "a look", "the", "much more", "a touch of", "add", "remove", "increase",
         "give it a", "and", "it should be", "turn it", "style", "the video please", "slightly", "some", "in the", "with", "not", "without", "look", "mood", "effect", "a filter", "i want", "i want it",
         "make the picture look", "grade it", "change the colours", "do something", "fix it", "improve it", "edges", "the corners", "top", "bottom left", "the sky", "left side", "centre", "on the right",
         "the background", "subject", "faces", "skin", "grass", "the trees", "water", "shadows", "highlights", "midtones", "make the edges", "make the sky", "at the top", "trees", "sky", "the sea"]
FORMS = ["the {a} {t} {v} the {t}", "a {t} {v}", "my {t} {v} a {a} {t}", "{t}", "{t} {t}", "the {t} and the {t}", "{t} {v} {t}", "where is the {t}", "{a} {t}", "i saw a {a} {t}", "the {t} is {w}",
         "a {a} {a} {t}", "{w}", "{w}", "{w} {w}", "{w} {t}", "the {w} {t}", "a {w} of {w}", "{w} {w} {w}", "{w} {w} {w} {w}", "{w} {v} {w}", "make a {t}", "make me a {t}", "add a {t}", "remove the {t}", "more {t}",
         "a {t} with a {t}", "give me the {t}", "give it a {t}", "the {a} {t} {v} over the {a} {t}", "two {t}s", "make it {w}", "{w} look", "more {w}", "a {w} {t}", "put a {t} in the {t}", "the {t} of {w}", "no {t}",
         "turn it into a {t}", "like a {t}", "less {w}", "{w} the {t}", "i want a {t}", "{w} the picture", "the {w} should be {w}", "without {w}", "very {w}", "make the {t} {w}", "a {w} {w}"]


class OffTopic:
    def __init__(self, rng: random.Random, dictionary: list[str], asked_for: set[str], common: dict[str, list[str]], stuff: list[str]):
        """`asked_for` are names that things may not have: those of looks and colours; `common` and `stuff`: see Contexts."""
        self.rng, self.dictionary = rng, dictionary
        self.things = [thing for thing in THINGS if thing not in asked_for | {"lamp", "light"}]
        self.contexts = Contexts(rng, common, self.things, [word for word in PLAIN if word not in asked_for], stuff)

    def thing(self) -> str:
        """ "my dog" """
        return f"{self.rng.choice(('my', 'the', 'a', 'this', 'our'))} {self.rng.choice(self.things)}"

    def word(self) -> str:
        return self.rng.choice(self.dictionary)

    def letters(self) -> str:
        r = self.rng
        alphabet = r.choice((r.choice("abcdefghijklmnopqrstuvwxyz.-"), "abcdefghijklmnopqrstuvwxyz", "bcdfghjklmnpqrstvwxz", "aeiourstln", "abcdefghijklmnopqrstuvwxyz0123456789", "asdfghjkl", "!?#$%&*()-_=+;:,./<>@", "äöüßéèñçøåж漢字ひらअب"))
        return " ".join("".join(r.choice(alphabet) for _ in range(r.randint(1, 12))) for _ in range(r.randint(1, 4)))

    def sentence(self) -> tuple[str, list]:
        r = self.rng
        kind = r.random()
        if kind < 0.34:
            return self.contexts.of_nothing(), []
        if kind < 0.5:
            return " ".join(self.word() for _ in range(r.choice((1, 1, 1, 2, 3, 4, 6, 9)))), []
        if kind < 0.72:
            out = " ".join(self.filled(part) for part in r.choice(FORMS).split(" "))
            return out, []
        if kind < 0.82:
            return self.letters(), []
        if kind < 0.88:
            return " ".join(r.choice(CODE).format(w=self.word(), n=r.randint(0, 9999)) for _ in range(r.choice((1, 1, 2)))), []
        return (r.choice(EMPTY), []) if kind < 0.92 else (r.choice(ASKED).strip(), [])

    def filled(self, part: str) -> str:
        lists = {"{a}": PLAIN, "{t}": self.things, "{t}s": self.things, "{v}": VERBS}
        return self.rng.choice(lists[part]) if part in lists else part.replace("{w}", self.word())


def related_words(wordnet: Path, known: set[str]) -> set[str]:
    """Synonyms of known words, and words of what pictures may be like: they are not learned, but not as words that mean nothing either."""
    related = set()
    for path in sorted(wordnet.glob("data.*")):
        for line in path.read_text().splitlines():
            if line.startswith("  "):  # the licence
                continue
            fields = line.split(" ")
            synonyms = {word.lower().split("(")[0] for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]}
            if fields[1] in MEANINGFUL or synonyms & known:
                related |= synonyms
    return related


def other_words(path: str, wordnet: Path, known: set[str]) -> list[str]:
    """Words of a dictionary that are not known, nor made of words that are ("warmly"), nor near them in meaning."""
    stems = tuple(word for word in known if len(word) > 3)
    found = {line.strip().lower() for line in open(path, encoding="utf-8")} - known - related_words(wordnet, known)
    return sorted(w for w in found if w.isalpha() and len(w) > 2 and not w.startswith(stems))
