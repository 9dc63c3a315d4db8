"""Instructions with the edits that they ask for: what the bundled model `grade` learns from.

    grammar = Grammar(random.Random(1), other_words)
    text, edits = grammar.sentence()    # "a bit warmer, with darker edges", two rows of grade_edits.py
"""
import random
import re
from collections.abc import Iterable
from itertools import accumulate

import grade_contexts
import grade_edits
import grade_sayings
from grade_contexts import WordNet
from grade_edits import COLUMNS, row, scaled
from grade_images import IMAGES as ALL_IMAGES
from grade_off_topic import PLAIN, OffTopic
from grade_phrases import NAMED_LOOKS, PHRASES
from grade_requests import COMBINED
from grade_requests import REQUESTS as ALL_REQUESTS
from grade_sayings import told
from grade_scenes import ALL_LOOKS, EDITS_BY_NAME, STORYLESS, STORYLESS_LOOKS, STUFF_LOOKS
from grade_words import ADJECTIVES, COLOURS, COMPARATIVES, CONCEPTS, EDGES, HOW_MUCH, HUES, KINDS, PICTURES, REGIONS, away_from, hue, tint, words

Edits = list[list[float]]
Clause = tuple[str, Edits]


def is_colourless(edits: Edits) -> bool:
    return any(edit[grade_edits.COLUMNS["mono"]] > 0.9 for edit in edits)


def weight_of(names: list[str], edits: Edits) -> float:
    """The more names, the more often."""
    is_harder = names[0] == "teal and orange" or is_colourless(edits)  # its words are taken for two tints; colour that is left is seen
    return len(names) ** 0.6 * (5 if is_harder else 1)


LOOK_WEIGHTS = list(accumulate(weight_of(names, edits) for names, edits in ALL_LOOKS))
COLOUR_NAMES = {" ".join(entry.split()[:-1]): entry.split()[-1] for entry in words(COLOURS)}
NAMES = {name for names, _ in ALL_LOOKS for name in names} | COLOUR_NAMES.keys()
USUAL_NAMES = {names[0]: len(names) for names, _ in NAMED_LOOKS}  # how many of a look's names are asked for most often, the first ones
# Of colour, all of it: "no colour" is black and white.
REMOVING_FORMS = {"no {n}", "without {n}", "remove {n}", "remove the {n}", "get rid of the {n}", "lose the {n}", "take away {n}", "strip out the {n}", "kill the {n}", "zero {n}",
                  "strip it of {n}", "empty it of {n}", "drain the {n}"}
# What is the name of a look or a colour asks for that, whatever else it could mean.
IMAGES = {look: [text for text in texts if text not in NAMES] for look, texts in ALL_IMAGES.items()}
REQUESTS = [([text for text in texts if text not in NAMES], edits) for texts, edits in ALL_REQUESTS]
IMAGE_WEIGHTS = [5 if is_colourless(EDITS_BY_NAME[name]) else 1 for name in IMAGES]
REQUEST_WEIGHTS = [len(requests) ** 0.85 * (3 if is_colourless(edits) else 1) for requests, edits in REQUESTS]
PLAIN_COLOURS = words("red, green, blue, yellow, orange, purple, pink, magenta, cyan, teal, turquoise, brown, violet, gold, golden")
SATURATION = next(concept for concept in CONCEPTS if "saturation" in concept.nouns)
VIGNETTES = next(names for names, _ in NAMED_LOOKS if names[0] == "vignette") + words("darker edges, dark edges, dark corners, darker corners, the edges darker, darkened borders")
DEEP = row(exposure=-0.55, saturation=0.4)
SEPARATORS = [", ", ", ", ", ", " and ", " and ", ", and ", " then ", ", then ", " but ", ", but ", " with ", "; ", " plus ", " & ", ". ", " also ",
              " while ", ", yet ", " as well as ", " together with ", " "]

ADJECTIVE_FORMS = ["{a}", "{a}", "make it {a}", "make the {p} {a}", "a {a} {k}", "{a} {k}", "{a} {k}", "give it a {a} {k}", "give the {p} a {a} {k}",
                   "i want it {a}", "it should be {a}", "the {p} should look {a}", "turn it {a}", "let it be {a}", "i would like a {a} {k}", "go {a}",
                   "with a {a} {k}", "{a} {p}", "it needs a {a} {k}", "render it {a}", "in a {a} {k}", "let's have a {a} {k}", "keep it {a}",
                   "a {k} that is {a}", "should feel {a}", "something {a}", "as {a} as possible", "i'm after a {a} {k}", "{a} and nice", "all {a}",
                   "make everything {a}", "how about a {a} {k}", "have it look {a}", "show it {a}", "a {a} one", "{a} please", "try {a}",
                   "a {k} that feels {a}", "go for a {a} {k}", "{k}: {a}", "grade it {a}", "make this {p} feel {a}", "i need a {a} {k}"]
BASIC_FORMS = ["{a}", "make it {a}", "a {a} look", "a {a} {k}", "{a} look", "give it a {a} look", "give the {p} a {a} {k}", "make the {p} {a}", "turn it {a}", "it should be {a}", "it should look {a}"]
BASIC_COMPARATIVE_FORMS = ["{c}", "{c}", "make it {c}", "make the {p} {c}", "please make the {p} {c}", "please make it {c}", "the {p} should be {c}", "a {c} look", "a {c} {k}"]
COMPARATIVE_FORMS = ["{c}", "{c}", "{c}", "make it {c}", "make it {c}", "make the {p} {c}", "it should be {c}", "could it be {c}", "i'd like it {c}",
                     "needs to be {c}", "{c} than this", "{c} {k}", "{c} {p}", "a {c} {k}", "make everything {c}", "i want the {p} {c}", "turn it {c}",
                     "get it {c}", "{c} overall", "have it {c}", "it could be {c}", "let it look {c}", "would look better {c}", "render it {c}",
                     "the {p} must be {c}", "go {c}", "push it {c}", "can we go {c}", "make this {c}", "a {k} that is {c}", "i prefer it {c}"]
VERB_FORMS = ["{v} it", "{v} the {p}", "{v} the {p}", "{v}", "{v} this {p}", "{v} everything", "try to {v} it", "you should {v} it", "{v} that {p}",
              "i want to {v} the {p}", "let's {v} it", "we need to {v} this", "{v} my {p}", "just {v} it"]
NOUN_FORMS = ["more {n}", "more {n}", "add {n}", "add some {n}", "add more {n}", "increase the {n}", "boost the {n}", "raise the {n}", "with more {n}",
              "give it {n}", "give it more {n}", "needs more {n}", "some {n}", "extra {n}", "turn up the {n}", "crank up the {n}", "increase {n}", "boost {n}",
              "{n} up", "push the {n}", "bring in some {n}", "bring out the {n}", "enhance the {n}", "put more {n} into it", "with added {n}", "higher {n}",
              "strengthen the {n}", "max out the {n}", "infuse it with {n}", "pump up the {n}", "bring up the {n}", "it lacks {n}", "not enough {n}",
              "raise {n}", "it wants more {n}", "crank those {n} up", "a splash more {n}", "a notch more {n}", "bump the {n}", "{n} to the max", "+ {n}", "{n} +", "{n} plus", "bring back {n}", "a shot of {n}",
              "a splash of {n}", "{n}", "{n}!", "maximum {n}", "full of {n}", "with {n}", "throw in some {n}", "i want {n}", "where is the {n}", "dial up the {n}", "high {n}", "{n}: more", "{n} please", "give the {p} some {n}", "stronger {n}", "let there be {n}", "amp up the {n}", "increase in {n}"]
NOUN_LESS_FORMS = ["less {n}", "less {n}", "reduce the {n}", "lower the {n}", "decrease the {n}", "cut the {n}", "remove the {n}", "without {n}", "no {n}",
                   "take out some {n}", "tone down the {n}", "turn down the {n}", "too much {n}", "drop the {n}", "{n} down", "reduce {n}", "lower {n}",
                   "with less {n}", "get rid of the {n}", "it has too much {n}", "decrease {n}", "minus {n}", "lose the {n}", "pull back the {n}",
                   "bring down the {n}", "dial back the {n}", "diminish the {n}", "weaken the {n}", "take away {n}", "strip out the {n}", "kill the {n}", "- {n}", "{n} -", "drain the {n}", "suck out the {n}", "not much {n}", "barely any {n}", "a notch less {n}", "zero {n}", "half the {n}",
                   "fewer {n}", "low {n}", "minimum {n}", "hardly any {n}", "{n}: less", "much less {n}", "strip it of {n}", "empty it of {n}", "ease off the {n}", "less of the {n}", "cut back on {n}", "remove {n}", "lessen the {n}"]
ADJECTIVE_LESS_FORMS = ["less {a}", "less {a}", "make it less {a}", "not so {a}", "not too {a}", "not as {a}", "too {a}", "it is too {a}", "the {p} is too {a}",
                        "it's too {a}", "make the {p} less {a}", "less {a} {k}", "this is far too {a}", "the {p} looks too {a}", "should be less {a}",
                        "a less {a} {k}", "not that {a}", "a bit too {a}", "reduce how {a} it is"]
ENOUGH_FORMS = ["not {a} enough", "it is not {a} enough", "the {p} isn't {a} enough", "it could be more {a}", "more {a}", "more {a}", "make it more {a}", "be more {a}"]
NOTHING_FORMS = ["don't make it {c}", "do not {v} it", "don't {v} the {p}", "never {v} it", "not {a}", "not {c}", "do not make it {a}", "no need to {v} it",
                 "it should not be {c}", "don't {v}", "i don't want it {c}", "no {a} {k}", "dont make it {a}", "please don't {v} the {p}", "do not go {c}",
                 "without making it {c}", "it must not get {c}", "no change in {n}", "leave the {n} as it is", "avoid making it {c}", "keep the {n}",
                 "never make it {a}", "do not add {n}", "don't add any {n}", "don't touch the {n}", "don't change the {n}", "keep the {n} the same"]
UNCHANGED = words("""leave it as it is, no change, keep it as it is, do nothing, unchanged, leave it alone, don't change anything, original, nothing,
    as it was, keep the original, no effect, identity, no grading, reset, off, neutral, untouched, just leave it, normal, do not change the picture,
    it is fine, as is, leave everything as it is, looks good already, no filter, none, undo, keep the original colours, stay the same, same as before""")
COLOUR_FORMS = ["tint it {o}", "colour it {o}", "color it {o}", "paint it {o}", "turn it {o}", "tint the {p} {o}", "push it towards {o}", "shift to {o}",
                "bathe it in {o}", "bathe the {p} in {o} light", "wash it with {o}", "dye it {o}", "lean {o}", "add {o}", "add some {o}", "add a {o} tint",
                "add a {o} cast", "with a {o} tint", "give it a {o} cast", "a {o} wash", "a wash of {o}", "{o} tint", "{o} overlay", "{o} glow", "{o} tinge",
                "{o} hue", "{o} light", "{o} tones", "{o} colours", "more {o} tones", "more {o}", "more {o}", "shift the {p} towards {o}", "{o} filter",
                "push {o}", "everything {o}", "make everything {o}", "flood it with {o}", "{o} colour cast", "light it {o}", "drench it in {o}", "tint {o}",
                "towards {o}", "go for {o}", "tinted {o}", "{o} lighting", "in {o}", "shades of {o}", "shade it {o}", "make the colours {o}", "tint of {o}",
                "as seen through {o} glasses", "lit by a {o} lamp", "through a {o} filter", "splash of {o}", "{o} dominates", "a dominant {o}", "{o} everywhere",
                "stain it {o}", "drown it in {o}", "colour the {p} {o}", "tone it {o}", "colourise it {o}", "{o} toned", "cast {o} over it",
                "{o} coloured", "{o}-coloured", "{o} colored", "{o}-tinted", "{o}ish", "{o}-ish", "{o} hued", "{o} shade", "{o} lens", "{o} gel", "a {o} gel", "a {o} shade", "{o} haze", "a {o} haze",
                "through {o} glasses", "seen through {o} glass", "{o} sunglasses", "a layer of {o}", "a veil of {o}", "a sheen of {o}", "{o} sheen", "{o} atmosphere", "{o} mood", "{o} world", "{o} palette",
                "soak it in {o}", "soaked in {o}", "bathed in {o}", "drenched in {o}", "washed in {o}", "dipped in {o}", "dip it in {o}", "steeped in {o}", "glowing {o}", "a {o} shimmer", "turn up the {o}",
                "boost the {o}", "boost {o}", "increase the {o}", "increase {o}", "raise the {o}", "push the {o}", "push it to {o}", "shift it to {o}", "shift towards {o}", "skew it {o}", "lean it towards {o}",
                "emphasise {o}", "make it feel {o}", "i want {o}", "i like {o}", "give me {o}", "give it a {o} look", "give it some {o}", "paint everything {o}", "paint it all {o}", "the world in {o}", "think {o}",
                "the colour of {o}", "let {o} dominate", "throw {o} at it", "throw some {o} at it", "all in {o}", "cover it in {o}", "cover it with {o}", "blend in {o}", "mix in some {o}", "inject some {o}", "suffused with {o}",
                "everything in {o}", "someone spilt {o} paint over it", "as if {o} paint were spilt over it", "dreaming in {o}", "the whole world is {o}", "a {o} dream", "a world of {o}", "{o} as far as the eye can see", "{o} from head to toe", "nothing but {o}", "{o} lamps in the {t}", "the {t} is lit by {o} lamps",
                "in the {o} light of the {t}", "{o} smoke over the {t}", "{o} smoke everywhere", "a {o} gel on the lamp", "put a {o} gel on the lamp", "through a {o} bottle", "through a {o} window", "a {o} curtain in front of the window", "{o} neon lights", "a {o} sun", "under a {o} sun", "someone painted it {o}",
                "i'm feeling {o}", "i love {o}", "can we have it in {o}", "a {o} twist", "a {o} bias", "a {o} undertone", "{o} undertones", "a {o} note", "notes of {o}", "rinse it with {o}", "infuse it with {o}", "it could be a bit {o}", "a {o} touch", "touches of {o}", "an overall {o}", "an impression of {o}",
                "fill it with {o}", "a spell of {o}", "spray it {o}", "{o} spray paint", "ink it {o}", "add {o} to everything", "let it drift into {o}", "let it shift towards {o}", "pull it towards {o}", "drag it towards {o}", "move it towards {o}", "nudge it towards {o}", "closer to {o}", "the {t} in {o} light"]
LOOKS_BY_VERB = {"winter": "freeze, freeze over, turn to ice", "fire": "burn, go up in flames, smoulder, catch fire, blaze", "heatwave": "boil, melt, sizzle, sweat, bake, roast", "toxic": "rot, decay, go mouldy", "bloody": "bleed, bleed to death, drip with blood", "underwater": "drown, sink to the sea bed, submerge, go under water",
                 "horror": "scream, haunt me, terrify me, scare me, frighten me, give me nightmares", "moody": "weep, mourn, cry, grieve, break my heart", "happy": "laugh, smile, rejoice, make me happy, cheer me up, celebrate", "dreamy": "dream, float on clouds, take me to heaven", "spring": "blossom, bloom, burst into bloom",
                 "storm": "rain, pour with rain, get wet", "moonlight": "turn into night, sleep under the stars", "romantic": "fall in love, flirt", "calm": "rest, relax, calm me down, meditate", "ghost": "die, turn into a ghost, lose all its blood", "london fog": "vanish in fog, steam, disappear in smoke", "desert": "dry out, die of thirst, turn to dust",
                 "sunset": "glow like the evening sun", "black and white": "lose all colour, turn black and white, forget its colours", "vintage": "age, look aged, grow old, age by fifty years", "dramatic": "thunder, overwhelm me, keep me on the edge of my seat", "sci fi": "take me to the future, fly to another planet, fly into space"}
VERB_LOOK_FORMS = ["everything should {v}", "let it {v}", "make it {v}", "it should {v}", "i want it to {v}", "the {p} should {v}", "let the {p} {v}", "as if it were about to {v}", "watch it {v}", "see it {v}", "make everything {v}", "it must {v}", "have it {v}", "may it {v}", "let everything {v}", "the {p} is about to {v}", "{who} wants it to {v}"]
STUFF_FORMS = ["the colour of {s}", "the colour of {s}", "coloured like {s}", "like {s}", "like {s}", "as {o} as {s}", "as {o} as {s}", "{o} like {s}", "the {o} of {s}", "a {o} like that of {s}", "the hue of {s}", "the shade of {s}", "a tone like {s}", "make it look like {s}",
               "make the {p} the colour of {s}", "it should have the colour of {s}", "matching {s}", "to go with {s}", "tint it like {s}", "paint it like {s}", "let it remind me of {s}"]
MASS_FORMS = ["{s}", "{s}", "{s} colour", "{s} tones", "as if made of {s}", "as if painted with {s}", "covered in {s}", "coated with {s}", "dipped in {s}", "drenched in {s}", "stained with {s}", "seen through {s}", "a layer of {s}", "a coat of {s}", "pour {s} over it",
              "smear {s} on it", "turn it into {s}", "the light of {s}", "made of {s}", "{s} all over it"]
COLOUR_LESS_FORMS = ["less {o}", "less {o}", "no {o}", "without {o}", "remove the {o} cast", "get rid of the {o} tint", "reduce the {o}", "too {o}",
                     "not so {o}", "take out the {o}", "fewer {o} tones", "neutralise the {o} cast", "make it less {o}", "it is too {o}", "remove {o}",
                     "remove the {o}", "too much {o}", "cut the {o}", "take the {o} out", "away from {o}", "no more {o}", "kill the {o} cast", "lower the {o}",
                     "the {p} is too {o}", "reduce {o}", "not too {o}", "decrease {o}", "correct the {o} cast", "drop the {o}", "with less {o}", "tone down the {o}",
                     "fix the {o} tint", "less of the {o}", "take some {o} out", "it has a {o} cast", "there is a {o} cast", "fix the {o} cast", "the {o} is too strong", "the {o} is too much", "too much of {o}", "not so much {o}",
                     "looks too {o}", "it looks too {o}", "a bit too {o}", "way too {o}", "less of a {o} cast", "less of a {o} tint", "less {o}ish", "remove the {o} tint", "counteract the {o}", "tame the {o}",
                     "neutralise the {o}", "suppress the {o}", "filter out the {o}", "minus {o}", "{o} down", "pull the {o} down", "dial back the {o}", "turn down the {o}", "i don't like the {o}", "i don't want so much {o}"]
LOOK_FORMS = ["{l}", "{l}", "{l}", "{l} {k}", "{l} {k}", "make it {l}", "make it look like {l}", "like {l}", "like a {l} {k}", "in the style of {l}", "{l} style", "a {l} {k}",
              "a {l}", "give it a {l} {k}", "turn it into {l}", "apply {l}", "as if it was {l}", "think {l}", "shot at {l}", "inspired by {l}", "the {l} {k}",
              "give the {p} a {l} {k}", "looks like {l}", "as in {l}", "i want a {l} {k}", "{l} please", "do {l}", "add a {l} {k}", "it should look like {l}",
              "{l} scene", "it feels like {l}", "set it in {l}", "with a {l} {k}", "{l} vibes", "reminiscent of {l}", "evoke {l}", "as though it were {l}",
              "like a {l}", "like the {l}", "like in a {l}", "like in the {l}", "a {l} {d}", "{l} on a {d}", "{l} {f}", "a {l} {f}", "like {l} {f}", "it is {l}", "at {l}", "during {l}",
              "by {l}", "as if in {l}", "as if it were {l}", "as if we were in {l}", "as though it was a {l}", "feels like {l}", "like something from {l}", "something from {l}", "{l} feeling",
              "{l} colours", "{l} colors", "{l} light", "{l} mood", "the colours of {l}", "the light of {l}", "in {l} light", "the atmosphere of {l}", "a hint of {l}", "give it the {l} treatment",
              "channel {l}", "a scene from {l}", "{l} it", "very {l}", "{l} kind of {k}", "that {l} {k}", "those {l} vibes", "some {l} vibes", "give me {l}", "give me that {l} {k}",
              "we are in {l}", "it's {l}", "put us in {l}", "take me to {l}", "make me think of {l}", "lit by {l}", "lit like {l}", "graded like {l}", "colours like {l}",
              "i'd love a {l} {k}", "i would love {l}", "let's go for {l}", "could this be {l}", "what about {l}", "how about {l}", "can it be {l}", "can you make it {l}", "with the {l} {k}",
              "straight out of {l}", "transport us to {l}", "make it feel like {l}", "remind me of {l}", "imagine {l}", "make the {p} look like {l}", "more {l}",
              "full of {l}", "filmed during {l}", "taken in {l}", "something like {l}", "this should feel {l}", "go {l}", "turn the {p} {l}", "as {l}", "{l}-like", "{l} inspired", "{l} themed", "{l}-esque", "a {l} aesthetic", "a {l} kind of day", "make me feel {l}", "let me feel {l}", "i want to be in {l}", "bring me to {l}", "let us go to {l}", "smells like {l}", "i see {l} in it", "as one would see it in {l}", "it has to be {l}", "i dream of {l}"]
LOOK_LESS_FORMS = ["no {l}", "not {l}", "without the {l} {k}", "less {l}", "don't make it {l}", "do not use a {l} {k}", "not a {l} {k}", "anything but {l}", "please no {l}", "don't go for {l}", "nothing {l}",
                   "no {l} {k}", "don't make it look like {l}"]
REGION_FORMS = ["{c} {r}", "{c} {r}", "{a} {r}", "make the {r} {c}", "make the {r} {a}", "{v} the {r}", "{v} the {r}", "{c} in the {r}", "{c} at the {r}", "the {r} should be {c}", "{r} {c}",
                "{c} around the {r}", "{c} towards the {r}", "more {n} in the {r}", "{v} only the {r}", "a {c} {r}", "the {r} {c}", "{v} {r}", "with {c} {r}",
                "add {n} to the {r}", "make {r} {c}", "turn the {r} {c}", "{c} near the {r}", "{c} on the {r}", "have the {r} {c}", "let the {r} be {c}",
                "i want {c} {r}", "only the {r} {c}", "give the {r} more {n}", "get the {r} {c}", "{n} in the {r}", "the {r} needs to be {c}", "the {r} could be {c}",
                "{r} that are {c}", "keep the {r} {a}", "{a} {r} please", "can the {r} be {c}", "is there a way to get the {r} {c}", "i need the {r} {c}", "see that the {r} gets {c}", "the {r} deserves to be {c}", "what if the {r} were {c}", "could somebody {v} the {r}",
                "the {r} {c} than the rest", "i would like the {r} {c}", "i wish the {r} were {c}", "please {v} the {r}", "{v} the {r} for {who}", "the {r} should get {c}", "{who} wants the {r} {c}", "why not {v} the {r}", "where the {r} is make it {c}", "{v} at the {r}"]
REGION_LESS_FORMS = ["less {n} in the {r}", "make the {r} less {a}", "less {a} {r}", "reduce the {n} in the {r}", "the {r} are too {a}", "too {a} {r}",
                     "the {r} is too {a}", "remove {n} from the {r}", "take {n} out of the {r}", "why is the {r} so {a}", "the {r} came out too {a}", "i find the {r} too {a}", "there is too much {n} in the {r}", "the {r} got too {a}",
                     "i don't like the {r} so {a}", "{who} finds the {r} too {a}", "the {n} in the {r} is too much", "the {r} should not be so {a}", "spare the {r} the {n}", "too much {n} in the {r}"]
COLOUR_REGION_FORMS = ["{o} {r}", "{o} {r}", "make the {r} {o}", "tint the {r} {o}", "add {o} to the {r}", "{o} in the {r}", "colour the {r} {o}", "push {o} into the {r}",
                       "{o} at the {r}", "{o} tint in the {r}", "the {r} should be {o}", "paint the {r} {o}", "turn the {r} {o}", "{r} {o}", "with {o} {r}",
                       "{d} {r}", "make the {r} {d}", "a {d} {r}", "a {o} {r}", "the {r} {d}", "more {o} in the {r}", "{o} towards the {r}"]
KEEP_FORMS = ["everything black and white but the {h}", "black and white except the {h}", "keep only the {h} in colour", "only the {h} in colour",
              "everything grey except {h}", "selective colour {h}", "desaturate everything but the {h}", "leave only the {h} coloured", "monochrome except for {h}"]
EVERYTHING_BUT_FORMS = ["{v} everything but the {r}", "{v} everything except the {r}", "make everything but the {r} {c}", "{c} except for the {r}", "{c} everywhere except the {r}",
                        "{v} all except the {r}", "{c} all around the {r}", "{v} everything around the {r}", "{c} outside the {r}", "everything but the {r} {c}", "leave the {r}, {v} the rest"]
OPPOSITES = {"edges": "centre", "centre": "edges", "corners": "centre", "top": "bottom", "bottom": "top", "left": "right", "right": "left", "sides": "centre",
             "shadows": "highlights", "highlights": "shadows"}
VERBS_FORMS = ["{a} the {r}, {b} the {s}", "{a} the {r} and {b} the {s}", "{a} the {r} but {b} the {s}", "{a} {r}, {b} {s}", "{a} {r} and {b} {s}", "please {a} the {r} and {b} the {s}", "{a} the {r} while you {b} the {s}", "{a} the {r}, and then {b} the {s}"]
GRADIENT_FORMS = ["from {a} {r} to {b} {s}", "{a} {r} to {b} {s}", "{a} {r} and {b} {s}", "{a} {r}, {b} {s}", "{a} {r} {b} {s}", "gradient from {a} {r} to {b} {s}", "{a} on the {r}, {b} on the {s}",
                  "{a} at the {r} and {b} at the {s}", "{a} in the {r}, {b} in the {s}", "the {r} {a}, the {s} {b}", "the {r} {a} and the {s} {b}", "make the {r} {a} and the {s} {b}", "{r} {a}, {s} {b}",
                  "{r} {a} and {s} {b}", "{r} towards {a}, {s} towards {b}", "{r} to {a} and {s} to {b}", "push {r} to {a} and {s} to {b}", "push the {r} towards {a} and the {s} towards {b}",
                  "tint the {r} {a} and the {s} {b}", "{a} in the {r} and {b} in the {s}", "{a} {r} with {b} {s}", "{a} {r} but {b} {s}", "{a} into the {r}, {b} into the {s}"]
NUMBER_WORDS = {"ten": 10, "twenty": 20, "thirty": 30, "forty": 40, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "a hundred": 100}
NUMBER_FORMS = ["{n} {s}{p}{e}", "{s}{p}{e} {n}", "{n}: {s}{p}{e}", "{n} {s}{p}", "{n} by {s}{p}{e}", "change {n} by {s}{p}{e}", "set {n} to {s}{p}", "{n}={s}{p}"]
TIMES_MORE_FORMS = ["twice as {a}", "two times as {a}", "double the {n}", "double {n}", "{n} doubled", "three times the {n}", "twice the {n}", "{n} x 2", "twice as much {n}", "triple the {n}"]
TIMES_LESS_FORMS = ["half as {a}", "half the {n}", "halve the {n}", "{n} halved", "only half the {n}", "half as much {n}", "cut the {n} in half", "{n} at half", "a third of the {n}"]
CONTRARY_FORMS = ["{c} but less {a}", "{c} but less {a}", "{c} and less {a}", "{c}, less {a}", "{c} yet less {a}", "{c} but not so {a}", "{c} but not as {a}", "less {a} but {c}", "less {a} and {c}", "less {a}, {c}", "less {a} yet {c}", "more {n} but less {m}", "more {n}, less {m}", "more {n} and less {m}",
                  "less {m}, more {n}", "less {m} but more {n}", "less {m} and more {n}", "{c} with less {m}", "{c} but with less {m}", "{c}, but with less {m}", "with more {n} but less {m}", "make it {c} but less {a}", "make the {p} {c} but less {a}", "a {c} but less {a} {k}", "{c} and also less {a}",
                  "make it {c} and less {a}", "it should be {c} but less {a}", "not so {a} but {c}", "not as {a} and {c}", "too {a}, make it {c}", "too {a} and not {b} enough", "less {a} and more {b}", "more {b}, less {a}", "more {b} but less {a}"]
RATHER_FORMS = ["not {b} but {a}", "{a} instead of {b}", "{a}, not {b}", "{a} rather than {b}", "rather {a} than {b}", "don't make it {b}, make it {a}", "it should be {a}, not {b}", "instead of {b} make it {a}",
                "i said {a}, not {b}", "more {a} than {b}", "{a} but not {b}", "{a} without being {b}", "{c}, not {d}", "{c} but not {d}", "{c} instead of {d}", "make it {c}, not {d}", "{c} rather than {d}", "not {d} but {c}", "not {d}, {c}", "not {d}, just {c}",
                "{c} without making it {d}", "{c} without getting {d}", "just {c}, not {d}", "only {c}, not {d}", "{c} but don't make it {d}", "don't make it {d}, make it {c}"]
DAYS = ["day", "night", "morning", "evening", "afternoon", "monday", "tuesday", "sunday", "friday night", "saturday morning", "weekend", "monday morning", "sunday afternoon", "day in town"]
FILLERS = ["in the city", "by the window", "on a monday", "in a small town", "with friends", "of my childhood", "somewhere far away", "from a movie", "in a film", "at home", "by the sea", "on the road", "like in the movies",
           "in the street", "out there", "in the old town", "for a music video", "for my channel", "for a wedding", "for instagram", "vibes only", "all over", "all the way", "right now", "through and through", "everywhere",
           "to the max", "kind of thing", "or something", "or so", "sort of", "i guess", "you know", "would be nice", "would be great", "wouldn't hurt", "if you can", "as usual", "of sorts"]
SPELLINGS = [("colour", "color"), ("grey", "gray"), ("centre", "center"), ("neutralise", "neutralize"), ("emphasise", "emphasize"), ("cosy", "cozy"), ("cosier", "cozier"), ("technicolour", "technicolor"),
             ("it is ", "it's "), ("do not ", "don't "), ("don't ", "dont "), (" and ", " & "), ("very ", "v "), ("tones", "tone"), ("vivid", "vibrant"), (" look", " looks"), ("picture", "pic")]
BEFORE = ["please ", "can you ", "could you please ", "i want you to ", "now ", "ok, ", "hey ", "could you ", "would you ", "i'd like you to ", "just ", "let's ", "maybe ", "go and ",
          "hi, ", "so ", "and ", "then ", "please, "]
AFTER = [" please", " thanks", " for me", ".", ".", "!", " ...", " now", " if possible", " thank you", "!!", " :)", " here", " ok?", "?", " today", " this time", " a notch"]
NEIGHBOURS = {c: near for c, near in zip("qwertyuiopasdfghjklzxcvbnm", "wa qeas wrsd etdf ryfg tugh yihj uojk ipkl ol qwsz adwx sfec dgrv fhtb gjyn hkum jlin kop "
                                         "xas zcsd xvdf cbfg vngh bmhj njk".split())}


LOOKS_LIKE_FORMS = ["it looks like {l}", "this looks like {l}", "it feels like {l}", "too much {l}", "this is too {l}", "it is too {l}", "why does it look like {l}", "everybody looks like {l}", "they look like {l}", "it reminds {who} of {l}", "it looks as in {l}",
                    "the {p} looks like {l}", "right now it is {l}", "at the moment it looks like {l}", "it has become {l}", "it came out like {l}", "it looks a bit like {l}", "it seems {l}", "{who} says it looks like {l}", "i don't want {l}", "it is all {l}", "looks {l}", "feels {l}"]
CURES = [", fix it", ", fix that", ", please fix", ", take that away", ", help", ", save it", ", rescue it", ", cure it", ", undo that", ", correct that", ", make it look normal", ", make it normal again", ", get rid of that", ", can you change that", ", i want the opposite", ", the opposite please",
         ", which is wrong", ", do something about it", ", that must change", ", bring it back to normal", ", repair it", ", tone it down", ", make it natural"]
WISH_FORMS = [", make it {a}", ", i want it {a}", ", it should be {a}", ", turn it {a}", ", can it be {a}", ", please make it {a}", ", it must get {a}", " but should be {a}", " but i want it {a}", ", go {a} instead", ", make it {a} instead"]
NEGATIONS = set("not no never without don't dont isn't can't won't less off out too but nothing nobody".split())
MANY_SENSES = 6  # of a word that by itself does not say what a story is about
SAID_OTHERWISE = 0.45  # of instructions: sentences of the tables, which are many and of which each is seen seldom
UNDONE = 0.7  # how much of a look is taken back where it is complained of


def undone(edits: Edits) -> Edits:
    """Against what a look has done, as far as that can be: colour that is lost comes back a little."""
    opposite = [scaled(edit, -UNDONE) for edit in edits]
    for edit in opposite:
        lost, fade = (-edit[COLUMNS[name]] for name in ("mono", "fade"))
        edit[COLUMNS["mono"]] = edit[COLUMNS["fade"]] = 0.0
        edit[COLUMNS["saturation"]] += lost
        edit[COLUMNS["contrast"]] += 4 * fade
    return opposite


class Grammar:
    def __init__(self, rng: random.Random, other_words: list[str], off_topic: float = 0.2, typos: float = 0.2, wordnet: WordNet | None = None):
        """Without WordNet stories have fewer words, and names of looks go into the same ones."""
        self.rng, self.off_topic, self.typos = rng, off_topic, typos
        self.places = 0.0  # share of instructions that say no more than how light or warm a place is to be
        self.basic = 0.15  # share of those that nearly everybody begins with
        self.several = 1.0  # 0: instructions have one clause; 1: as many as they will
        stuff = {name for _, names, _ in STUFF_LOOKS for name in names}
        asked_for = NAMES | {name.removeprefix("a ").removeprefix("an ") for name in stuff}
        self.other = OffTopic(rng, other_words, asked_for, wordnet.common(other_words) if wordnet else {}, sorted(stuff - NAMES))
        self.stories = self.other.contexts
        self.storyless = STORYLESS | ({name for name in NAMES if wordnet.senses.get(name, 0) >= MANY_SENSES} if wordnet else set())
        self.kinds = {name: wordnet.kind_of(name) if wordnet else "name" for name in asked_for}

    def sentence(self) -> Clause:
        text, edits = self.other.sentence() if self.rng.random() < self.off_topic else self.instruction()
        return self.misspelt(self.respelt(text)), edits

    def instruction(self) -> Clause:
        r = self.rng
        if r.random() < self.places:
            return self.of_place()
        if r.random() < self.basic:
            return self.of_basic()
        if r.random() < SAID_OTHERWISE:
            return r.choices((self.of_request, self.of_image, self.of_phrase, self.combined, self.complaint), (60, 22, 10, 5, 3))[0]()
        kind = r.random()
        if kind < 0.32:
            return self.short()
        if kind < 0.5:
            return self.story()
        if kind < 0.54:
            text, edits = self.clause()
            return self.stories.framed(text), edits
        clauses = [self.clause() for _ in range(r.choices((1, 2, 3, 4), (46, 36, 13, 5))[0] if r.random() < self.several else 1)]
        text = clauses[0][0]
        for more, _ in clauses[1:]:
            text += r.choice(SEPARATORS) + more
        if r.random() < 0.12:
            text = r.choice(BEFORE) + text
        if r.random() < 0.12:
            text += r.choice(AFTER)
        return text, [edit for _, edits in clauses for edit in edits]

    def short(self) -> Clause:
        """A word or two: texts of other topics are as short, too."""
        r = self.rng
        kind = r.random()
        if kind < 0.15:
            return self.of_region()
        if kind < 0.5:
            return self.some_look()
        if kind < 0.6:
            name, colour = self.some_colour()
            if r.random() < 0.5:
                return name, [row(**tint(colour))]
            return r.choice(("less ", "no ", "less ", "not so ", "too ")) + name, away_from(colour)
        concept = self.some_concept()
        if kind < 0.63:
            return self.fill(r.choice(("not {c}", "not {a}", "don't {v} it", "don't make it {c}", "never {v} it")), c=self.comparative_of(concept), a=r.choice(concept.adjectives), v=r.choice(concept.verbs)), []
        if kind < 0.81:
            return self.comparative_of(concept) if r.random() < 0.5 else r.choice(concept.adjectives), concept.more
        less = r.choice(("less {a}", "not so {a}", "not too {a}", "too {a}", "less {n}", "reduce the {n}", "no {n}", "less {n}", "it's too {a}", "the {p} is too {a}"))
        return self.fill(less, a=r.choice(concept.adjectives), n=r.choice(concept.nouns)), self.lessened(concept, less)

    def lessened(self, concept, form: str) -> Edits:
        return EDITS_BY_NAME["black and white"] if concept is SATURATION and form in REMOVING_FORMS else concept.less

    def of_basic(self) -> Clause:
        """ "much darker", "a red look": who does not know yet what is understood says it so. Other texts have these forms, too
        ("a spanish cow"), so that the rest of the grammar has too few of them."""
        r = self.rng
        how, factor = self.amount()
        kind = r.random()
        if kind < 0.4:
            concept = self.some_concept()
            text, edits = self.fill(r.choice(BASIC_COMPARATIVE_FORMS), c=how + self.comparative_of(concept)), concept.more
        elif kind < 0.6:
            concept = self.some_concept()
            text, edits = self.fill(r.choice(BASIC_FORMS), a=how + r.choice(concept.adjectives)), concept.more
        elif kind < 0.78:
            name, colour = self.some_colour()
            text, edits = self.fill(r.choice(BASIC_FORMS), a=how + name), [row(**tint(colour))]
        else:
            names, edits = self.look()
            how, factor = (how, factor) if r.random() < 0.4 else ("", 1.0)
            text = self.fill(r.choice(BASIC_FORMS), a=how + r.choice(names[: USUAL_NAMES.get(names[0], 6)]))
        return text, [scaled(e, min(factor, 1.6) if kind >= 0.78 else factor) for e in edits]

    def story(self) -> Clause:
        """ "a stranger waiting in the moonlight": what a look is to be like, in a sentence of words that mean nothing here."""
        r = self.rng
        if r.random() < 0.35:
            names, edits = self.look()
            if names[0] not in STORYLESS_LOOKS:
                return self.stories.together(r.sample(names, r.choice((2, 2, 3)))), edits
        name, edits = self.some_scene()
        kind = r.random()
        if kind < 0.1:
            second, more = self.some_scene()
            between = (" in the ", " and the ", " during the ", " by the ", " with a ") if self.kinds[second] == "noun" else (", ", " and ", " ... ")
            return self.stories.around(name, self.kinds[name]) + r.choice(between) + second, [scaled(e, 0.8) for e in edits + more]
        if kind < 0.17:
            colour, value = self.some_colour()
            where = r.choice((f"in {colour} light", f"in a {colour} light", f"under {colour} lamps", f"with {colour} light", f"bathed in {colour}", f"in {colour} haze"))
            return self.stories.around(where, "where"), [row(**tint(value))]
        if kind < 0.22:
            _, stuff, more = r.choice(STUFF_LOOKS)
            return self.stories.around(f"the colour of {r.choice(stuff)}", "name"), more
        text = self.stories.around(name, self.kinds[name])
        return (self.stories.framed(text) if kind < 0.3 else text), edits

    def clause(self) -> Clause:
        kinds = (self.of_concept, self.of_colour, self.of_look, self.of_region, self.of_colour_region, self.stacked, self.nothing, self.keep_hue, self.of_phrase,
                 self.everything_but, self.gradient, self.by_number, self.rather, self.coordinated, self.contrary, self.of_stuff, self.by_verb, self.of_image, self.of_request,
                 self.combined, self.complaint)
        return self.rng.choices(kinds, (24, 13, 20, 23, 9, 8, 4, 4, 18, 1.5, 13, 2.5, 2, 9, 4, 5, 2, 40, 54, 13, 8))[0]()

    # ---- parts

    def fill(self, form: str, **parts: str) -> str:
        r = self.rng
        text = self.stories.filled(form.format(**{"p": self.picture(), "k": r.choice(KINDS), "d": r.choice(DAYS), "f": r.choice(FILLERS), "t": "{t}", "who": "{who}", **parts}))
        text = re.sub(r"\b(?:the|this|that|my|a) (it all|it|this|everything|the whole thing)\b", r"\1", text)
        return text if r.random() < 0.8 else re.sub(r"\ban (?=[aeiou])", "a ", text)

    def picture(self) -> str:
        picture = self.rng.choice(PICTURES[:14]) if self.rng.random() < 0.7 else self.rng.choice(PICTURES)
        return f"{picture} of {self.other.thing()}" if self.rng.random() < 0.06 else picture

    def amount(self) -> tuple[str, float]:
        """Such as "much ", how much."""
        if self.rng.random() < 0.58:
            return "", 1.0
        factor = self.rng.choice(list(HOW_MUCH))
        return self.rng.choice(words(HOW_MUCH[factor])) + " ", factor

    def with_amount(self, text: str, at_front: bool) -> tuple[str, float]:
        """Of a whole clause: "darken it slightly", "by half"."""
        how, factor = self.amount()
        if not how:
            return text, factor
        if self.rng.random() < 0.1:
            percent = self.rng.choice((10, 20, 25, 30, 40, 50, 60, 75, 80, 100))
            sign = self.rng.choice(("%", " %", " percent"))
            return f"{text} by {percent}{sign}", max(0.3, percent / 50)
        if at_front and self.rng.random() < 0.5:
            return how + text, factor
        return f"{text}{self.rng.choice((' ', ' ', ', ', ', but only ', ', just ')) if factor < 1 else ' '}{how.strip()}", factor

    def comparative_of(self, concept) -> str:
        r = self.rng
        return f"more {r.choice(concept.adjectives)}" if r.random() < 0.2 else r.choice(concept.comparatives)

    def look(self) -> tuple[list[str], Edits]:
        return self.rng.choices(ALL_LOOKS, cum_weights=LOOK_WEIGHTS)[0]

    def some_look(self) -> Clause:
        names, edits = self.look()
        usual = USUAL_NAMES.get(names[0])
        return self.rng.choice(names[: self.rng.choice((6, 6, usual, None))]), edits

    def some_scene(self) -> Clause:
        """A look that a story may be told around."""
        name, edits = self.some_look()
        return (name, edits) if name not in self.storyless else self.some_scene()

    def adjective_of(self, concept, how: str) -> str:
        return how + self.rng.choice(concept.adjectives)

    # ---- clauses

    def of_concept(self) -> Clause:
        r = self.rng
        concept = self.some_concept()
        how, factor = self.amount()
        kind = r.random()
        if r.random() < 0.2:
            return self.in_a_saying(concept)
        if kind < 0.24:
            text, edits = self.fill(r.choice(ADJECTIVE_FORMS), a=self.adjective_of(concept, how)), concept.more
        elif kind < 0.45:
            text, edits = self.fill(r.choice(COMPARATIVE_FORMS), c=how + self.comparative_of(concept)), concept.more
        elif kind < 0.62:
            text, factor = self.with_amount(self.fill(r.choice(VERB_FORMS), v=r.choice(concept.verbs)), False)
            edits = concept.more
        elif kind < 0.76:
            text, factor = self.with_amount(self.fill(r.choice(NOUN_FORMS), n=r.choice(concept.nouns)), False)
            if r.random() < 0.2:
                text, factor = self.measured(r.choice(concept.nouns))
            edits = concept.more
        elif kind < 0.8:
            text, factor, edits = self.fill(r.choice(ENOUGH_FORMS), a=r.choice(concept.adjectives)), 1.0, concept.more
        elif kind < 0.9:
            text, edits = self.fill(how + r.choice(ADJECTIVE_LESS_FORMS[:2]) if how else r.choice(ADJECTIVE_LESS_FORMS), a=r.choice(concept.adjectives)), concept.less
        else:
            form = r.choice(NOUN_LESS_FORMS)
            text, factor = self.with_amount(self.fill(form, n=r.choice(concept.nouns)), False)
            edits = self.lessened(concept, form)
        return text, [scaled(e, factor) for e in edits]

    def in_a_saying(self, concept) -> Clause:
        r = self.rng
        sayings, edits = r.choices([(grade_sayings.MORE_OF_NOUN, concept.more), (grade_sayings.LESS_OF_NOUN, concept.less), (grade_sayings.MORE_OF_ADJECTIVE, concept.more),
                                    (grade_sayings.LESS_OF_ADJECTIVE, concept.less), (grade_sayings.OF_VERB, concept.more)], (4, 4, 3, 3, 2))[0]
        return self.fill(told(r.choice(sayings), r), c=self.comparative_of(concept), a=r.choice(concept.adjectives), n=r.choice(concept.nouns), v=r.choice(concept.verbs)), edits

    def some_concept(self):
        return self.rng.choices(CONCEPTS, [2, 2, 1.5, 1.2, 1.7, 1.5, 1, 2, 2, 0.3, 0.3, 0.8, 0.8, 0.6, 0.6, 0.8])[0]

    def measured(self, noun: str) -> tuple[str, float]:
        how, factor = self.rng.choice([("a touch of", 0.4), ("a hint of", 0.4), ("a bit of", 0.4), ("a little", 0.4), ("lots of", 1.5), ("plenty of", 1.5), ("a dash of", 0.4),
                                       ("tons of", 2.0), ("a lot more", 1.5), ("much more", 1.5), ("slightly more", 0.4), ("a bit more", 0.4), ("loads of", 1.5), ("a pinch of", 0.4)])
        return f"{self.rng.choice(('', '', 'add ', 'with ', 'give it '))}{how} {noun}", factor

    def some_colour(self) -> tuple[str, str]:
        name = self.rng.choice(PLAIN_COLOURS) if self.rng.random() < 0.55 else self.rng.choice(list(COLOUR_NAMES))
        return name, COLOUR_NAMES[name]

    def of_colour(self) -> Clause:
        r = self.rng
        name, colour = self.some_colour()
        more = [row(**tint(colour))]
        how, factor = self.amount()
        kind = r.random()
        if kind < 0.3:
            text = self.fill(r.choice(ADJECTIVE_FORMS), a=how + name)
        elif kind < 0.42 and name in COMPARATIVES:
            text = self.fill(r.choice(COMPARATIVE_FORMS), c=how + COMPARATIVES[name])
        elif kind < 0.5 and name in ADJECTIVES:
            text, factor = self.fill(r.choice(ADJECTIVE_FORMS), a=how + r.choice(words(ADJECTIVES[name]))), factor * 0.7
        elif kind < 0.74:
            text, factor = self.with_amount(self.fill(r.choice(COLOUR_FORMS), o=name), False)
            if r.random() < 0.15:
                text, factor = self.measured(name)
        else:
            text, factor = self.with_amount(self.fill(r.choice(COLOUR_LESS_FORMS), o=name), False) if r.random() < 0.55 else (self.cast(name), 1.0)
            more = away_from(colour)
        return text, [scaled(e, factor) for e in more]

    def cast(self, colour: str) -> str:
        """ "the lamp gave it a green tinge, take it off" """
        r = self.rng
        if r.random() < 0.4:
            return self.fill(told(r.choice(grade_sayings.COLOUR_COMPLAINTS), r), o=colour)
        form = f"{r.choice(grade_sayings.WHO_CAST)} {r.choice(grade_sayings.CASTS)}{r.choice(grade_sayings.WHERE_CAST)}{r.choice(grade_sayings.UNDO)}"
        return self.fill(form, o=colour)

    def of_image(self) -> Clause:
        """ "a row of boats turning to copper as the day ends" """
        name, images = self.rng.choices(list(IMAGES.items()), IMAGE_WEIGHTS)[0]
        return self.shortened(self.rng.choice(images)), EDITS_BY_NAME[name]

    def of_request(self) -> Clause:
        requests, edits = self.rng.choices(REQUESTS, REQUEST_WEIGHTS)[0]
        return self.shortened(self.rng.choice(requests)), edits

    def combined(self) -> Clause:
        return self.rng.choice(COMBINED)

    def shortened(self, sentence: str) -> str:
        """At times without a word or two, so that it is not known by all of them together."""
        r = self.rng
        parts = sentence.split(" ")
        if len(parts) < 6 or r.random() < 0.6:
            return sentence
        left_out = r.sample(range(len(parts)), r.choice((1, 1, 2)))
        return " ".join(part for i, part in enumerate(parts) if i not in left_out or part in NEGATIONS)

    def complaint(self) -> Clause:
        """ "it looks like a hospital, make it cosy": what it looks like is not asked for."""
        r = self.rng
        name, look = self.some_look()
        text = self.fill(r.choice(LOOKS_LIKE_FORMS), l=name)
        if r.random() < 0.35:
            return text + r.choice(CURES), undone(look)
        concept, (second, more) = self.some_concept(), self.some_look()
        wish, edits = r.choice(((r.choice(WISH_FORMS).format(a=self.comparative_of(concept)), concept.more), (r.choice(WISH_FORMS).format(a=r.choice(concept.adjectives)), concept.more),
                                (f", give it {r.choice(('some', 'more', 'a bit of'))} {r.choice(concept.nouns)}", concept.more), (r.choice(WISH_FORMS[:4]).format(a=second), more)))
        return text + wish, edits

    def of_stuff(self) -> Clause:
        colour, names, edits = self.rng.choice(STUFF_LOOKS)
        name = self.rng.choice(names)
        is_one = name.startswith(("a ", "an "))  # nothing is covered in a cat
        return self.fill(self.rng.choice(STUFF_FORMS if is_one or self.rng.random() < 0.5 else MASS_FORMS), o=colour, s=name), edits

    def by_verb(self) -> Clause:
        """ "everything should freeze" """
        name, verbs = self.rng.choice(list(LOOKS_BY_VERB.items()))
        return self.fill(self.rng.choice(VERB_LOOK_FORMS), v=self.rng.choice(words(verbs))), EDITS_BY_NAME[name]

    def contrary(self) -> Clause:
        """ "warmer but less saturated": what is asked for more of comes out of it as more, though the other may take from it."""
        r = self.rng
        one, other = r.sample([CONCEPTS[i] for i in (0, 2, 4, 6, 7, 8, 1, 5)], 2)
        text = self.fill(r.choice(CONTRARY_FORMS), c=self.comparative_of(one), b=r.choice(one.adjectives), n=r.choice(one.nouns), a=r.choice(other.adjectives), m=r.choice(other.nouns))
        return text, [scaled(e, 0.65) for e in other.less] + [scaled(e, 1.4) for e in one.more]

    def of_look(self) -> Clause:
        r = self.rng
        name, edits = self.some_look()
        kind = r.random()
        if kind < 0.06:
            return self.fill(r.choice(LOOK_LESS_FORMS), l=name), []
        if kind < 0.22:  # "dark vintage"
            concept = r.choice(CONCEPTS[:9])
            text = self.fill(r.choice(LOOK_FORMS), l=f"{self.adjective_of(concept, '')} {name}")
            return text, edits + [scaled(e, 0.7) for e in concept.more]
        if kind < 0.3:  # "green cyberpunk"
            colour, value = self.some_colour()
            return self.fill(r.choice(LOOK_FORMS), l=f"{colour} {name}"), edits + [scaled(row(**tint(value)), 0.7)]
        how, factor = self.amount()
        if kind < 0.35:
            second, more = self.some_look()
            return self.fill(r.choice(LOOK_FORMS), l=name + r.choice((", ", " ", " and ", " meets ", " with a hint of ")) + second), edits + more
        text, edits = self.fill(r.choice(LOOK_FORMS), l=how + name), [scaled(e, min(factor, 1.6)) for e in edits]
        if kind < 0.45:  # "moonlight with a vignette", "warm sunset, darker edges"
            place, more = (r.choice(VIGNETTES), [EDGES]) if r.random() < 0.5 else self.of_region()
            return text + r.choice((", ", " and ", " with ", ", with ", " plus ")) + place, edits + more
        return text, edits

    def of_region(self) -> Clause:
        """A concept at a place, of a tone, or of a hue."""
        r = self.rng
        if r.random() < 0.3:
            where, region, strength = self.some_hue()
            concept = r.choice([c for i, c in enumerate(CONCEPTS) if i in (0, 1, 4, 5, 6, 7, 8)])
            if r.random() < 0.25:
                return self.deep(where, region)
            strength = 2.2 if concept in CONCEPTS[:2] else strength  # few colours show it
        else:
            where, region, strength = self.place_or_tone()
            concept = r.choice([CONCEPTS[0], CONCEPTS[1], *CONCEPTS[:9]])
        how, factor = self.amount()
        if r.random() < 0.15:
            text, edits = self.fill(r.choice(REGION_LESS_FORMS), a=r.choice(concept.adjectives), n=r.choice(concept.nouns), r=where), concept.less
            factor = 1.0
        else:
            form = r.choice(REGION_FORMS)
            text = self.fill(form, c=how + r.choice(concept.comparatives), a=how + r.choice(concept.adjectives), v=r.choice(concept.verbs).removesuffix(" of"),
                             n=r.choice(concept.nouns), r=where)
            edits, factor = concept.more, factor if "{c}" in form or "{a}" in form else 1.0
        return text, [grade_edits.in_region(scaled(e, factor * strength), region) for e in edits]

    def some_hue(self) -> tuple[str, dict[str, float], float]:
        r = self.rng
        if r.random() < 0.3:
            name = r.choice(PLAIN_COLOURS)
            return r.choice((f"{name} parts", f"{name} tones", f"{name} areas", f"{name} colours", f"{name} things", f"{name} hues")), hue(COLOUR_NAMES[name]), 1.5
        colour = r.choice(list(HUES))
        names = words(HUES[colour])
        return names[0] if r.random() < 0.3 else r.choice(names), hue(colour), 1.5

    def everything_but(self) -> Clause:
        """ "darken everything except the middle" """
        r = self.rng
        concept = r.choice(CONCEPTS[:9])
        where, region, _ = self.some_hue() if r.random() < 0.3 else self.place_or_tone()
        if "hue" in region:
            region["hue"] = -1.0
        else:
            (kind, number), = region.items()
            names = grade_edits.PLACES if kind == "place" else grade_edits.TONES
            opposite = OPPOSITES.get(names[int(number)])
            if opposite is None:
                return self.of_region()
            region = {kind: float(names.index(opposite))}
        text = self.fill(r.choice(EVERYTHING_BUT_FORMS), v=r.choice(concept.verbs).removesuffix(" of"), c=self.comparative_of(concept), r=where)
        return text, [grade_edits.in_region(scaled(e, 1.2), region) for e in concept.more]

    def gradient(self) -> Clause:
        """ "warm left, cold right" """
        r = self.rng
        pair = r.choice((("top", "bottom"), ("left", "right"), ("top", "bottom"), ("left", "right"), ("left", "right"), ("edges", "centre"), ("shadows", "highlights"), ("shadows", "highlights"), ("shadows", "highlights"), ("corners", "centre")))
        kind = "tone" if pair[0] == "shadows" else "place"
        names = grade_edits.PLACES if kind == "place" else grade_edits.TONES
        pair = pair if r.random() < 0.5 else pair[::-1]
        wheres = [r.choice(words(REGIONS[kind, name])) for name in pair]
        whats, edits = [], []
        are_warm_and_cold = kind == "tone" and r.random() < 0.25  # in both orders: the names of looks have cold shadows alone
        are_colours, are_verbs = not are_warm_and_cold and r.random() < 0.65, r.random() < 0.3
        concepts = r.sample((7, 8), 2) if are_warm_and_cold else r.choices((0, 1, 4, 5, 7, 8), k=2)
        if kind == "tone" and r.random() < 0.2:  # "the dark parts darker, the lighter ones warmer"
            first, second = ("dark", "light") if pair[0] == "shadows" else ("light", "dark")
            wheres = [f"{first} {r.choice(('parts', 'tones', 'areas'))}", f"{second}{r.choice(('', 'er'))} ones"]
        for name, concept in zip(pair, (CONCEPTS[i] for i in concepts)):
            if are_colours:
                what, colour = self.some_colour()
                more = [row(**tint(colour))]
            else:
                what, more = r.choice([verb.removesuffix(" of") for verb in concept.verbs] if are_verbs else concept.adjectives + concept.comparatives), concept.more
            whats.append(what)
            edits += [grade_edits.in_region(scaled(e, 1.25), {kind: float(names.index(name))}) for e in more]
        return r.choice(VERBS_FORMS if are_verbs and not are_colours else GRADIENT_FORMS).format(a=whats[0], b=whats[1], r=wheres[0], s=wheres[1]), edits

    def coordinated(self) -> Clause:
        """ "more contrast and saturation", "brighter and bluer edges", "darken the top and the corners" """
        r = self.rng
        both = r.choice((" and ", " and ", ", ", " & ", " and "))
        one, other = r.sample(CONCEPTS[:9], 2)
        kind = r.random()
        if kind < 0.4:
            more = r.random() < 0.6
            text = self.fill(r.choice(NOUN_FORMS if more else NOUN_LESS_FORMS), n=r.choice(one.nouns) + both + r.choice(other.nouns))
            return text, one.more + other.more if more else one.less + other.less
        if kind < 0.55:
            text = self.fill(r.choice(ADJECTIVE_LESS_FORMS), a=r.choice(one.adjectives) + r.choice((both, " and less ", " or ")) + r.choice(other.adjectives))
            return text, one.less + other.less
        if kind < 0.75:
            what, edits = self.comparative_of(other), other.more
            if r.random() < 0.4:
                name = r.choice(list(COMPARATIVES))
                what, edits = COMPARATIVES[name], [row(**tint(COLOUR_NAMES[name]))]
            where, region, _ = self.place_or_tone() if r.random() < 0.5 else ("", {}, 1.0)
            text = f"{self.comparative_of(one)}{both}{what}"
            text = f"{text} {where}" if where else self.fill(r.choice(COMPARATIVE_FORMS), c=text)
            return text, [grade_edits.in_region(e, region) for e in one.more + edits]
        (where, region, _), (there, second, _) = self.place_or_tone(), self.place_or_tone()
        what = f"{r.choice(one.verbs).removesuffix(' of')} the" if r.random() < 0.5 else self.comparative_of(one)
        return f"{what} {where}{both}{there}", [grade_edits.in_region(scaled(e, 1.2), at) for at in (region, second) for e in one.more]

    def by_number(self) -> Clause:
        """ "saturation +20 %", "half the contrast" """
        r = self.rng
        concept = r.choice([CONCEPTS[i] for i in (0, 2, 4, 6, 7)])
        noun, adjective = r.choice(concept.nouns), r.choice(concept.adjectives)
        kind = r.random()
        if kind < 0.3:
            more = r.random() < 0.5
            text = r.choice(TIMES_MORE_FORMS if more else TIMES_LESS_FORMS).format(a=adjective, n=noun)
            return text, [scaled(e, 1.3) for e in (concept.more if more else concept.less)]
        spelt, number = r.choice(list(NUMBER_WORDS.items())) if r.random() < 0.3 else ("", r.choice((5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100)))
        edits, factor = concept.more, max(0.3, min(2.0, number / 45))
        if kind < 0.5 or spelt:
            more = r.random() < 0.5
            name = r.choice((self.comparative_of(concept), f"more {noun}") if more else (f"less {adjective}", f"less {noun}"))
            return f"{spelt or number}{r.choice((' percent', ' per cent') if spelt else ('%', ' %', ' percent', ' per cent'))} {name}", [scaled(e, factor) for e in (edits if more else concept.less)]
        less = r.random() < 0.5
        text = r.choice(NUMBER_FORMS[:6]).format(n=noun, s="-" if less else "+", p=number, e=r.choice(("", "", "%", " %")))
        return text, [scaled(e, factor) for e in (concept.less if less else edits)]

    def rather(self) -> Clause:
        """ "warm, not cold" """
        r = self.rng
        a, b = r.sample(range(9), 2)
        one, other = CONCEPTS[a], CONCEPTS[b]
        text = r.choice(RATHER_FORMS).format(a=r.choice(one.adjectives), b=r.choice(other.adjectives), c=self.comparative_of(one), d=self.comparative_of(other))
        return text, CONCEPTS[a].more

    def of_place(self) -> Clause:
        r = self.rng
        number, concept = r.randrange(1, 8), CONCEPTS[r.choice((0, 1, 1, 0, 7, 8))]
        where = r.choice(words(REGIONS["place", grade_edits.PLACES[number]]))
        form = r.choice(("{c} {r}", "{v} the {r}", "make the {r} {c}", "{r} {c}", "{c} {r}", "{a} {r}"))
        text = form.format(c=r.choice(concept.comparatives), a=r.choice(concept.adjectives), v=r.choice(concept.verbs).removesuffix(" of"), r=where)
        return text, [grade_edits.in_region(scaled(e, 1.25), {"place": float(number)}) for e in concept.more]

    def deep(self, where: str, region: dict[str, float]) -> Clause:
        how, factor = self.amount()
        form = self.rng.choice(["deeper {r}", "{h}deeper {r}", "deep {r}", "make the {r} {h}deeper", "deepen the {r}", "{h}richer and deeper {r}", "with deeper {r}"])
        if "{h}" not in form:
            factor = 1.0
        return form.format(r=where, h=how), [grade_edits.in_region(scaled(DEEP, factor), region)]

    def place_or_tone(self) -> tuple[str, dict[str, float], float]:
        kinds = list(REGIONS)
        kind = self.rng.choices(kinds, [3, 1, 3, 3, 2, 2, 2, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 2.5, 1, 2.5])[0]
        numbers = grade_edits.PLACES if kind[0] == "place" else grade_edits.TONES
        return self.rng.choice(words(REGIONS[kind])), {kind[0]: float(numbers.index(kind[1]))}, 1.25

    def of_colour_region(self) -> Clause:
        name, colour = self.some_colour()
        where, region, strength = self.place_or_tone() if self.rng.random() < 0.8 else self.some_hue()
        more = self.rng.random() < 0.9
        away = scaled(row(**{k: v for k, v in tint(colour).items() if k != "exposure"}), strength if more else -0.6 * strength)
        form = self.rng.choice(COLOUR_REGION_FORMS if more else ["less {o} in the {r}", "less {o} {r}", "remove the {o} from the {r}", "make the {r} less {o}"])
        text = self.fill(form, o=name, d=COMPARATIVES.get(name, f"more {name}"), r=where)
        if self.rng.random() < 0.25 and more:  # "blue shadows and orange highlights"
            other, other_colour = self.some_colour()
            second, second_region, _ = self.place_or_tone()
            text += f"{self.rng.choice((' and ', ', ', ' with '))}{other} {second}"
            return text, [grade_edits.in_region(away, region), grade_edits.in_region(scaled(row(**tint(other_colour)), strength), second_region)]
        return text, [grade_edits.in_region(away, region)]

    def stacked(self) -> Clause:
        """ "a warm, faded, slightly red look" """
        r = self.rng
        parts, edits = [], []
        for _ in range(r.choice((2, 2, 3))):
            how, factor = self.amount() if r.random() < 0.3 else ("", 1.0)
            if r.random() < 0.7:
                concept = self.some_concept()
                parts.append(self.adjective_of(concept, how))
                edits += [scaled(e, 0.9 * factor) for e in concept.more]
            elif r.random() < 0.5:
                name, colour = self.some_colour()
                parts.append(how + name)
                edits.append(scaled(row(**tint(colour)), 0.9 * factor))
            else:
                name, look = self.some_look()
                parts.append(name)
                edits += look
        text = r.choice((", ", " and ", " ", " but ")).join(parts[:-1]) + r.choice((" and ", ", ", " ", " but ")) + parts[-1]
        return self.fill(r.choice(ADJECTIVE_FORMS), a=text), edits

    def nothing(self) -> Clause:
        r = self.rng
        concept = self.some_concept()
        if r.random() < 0.3:
            return r.choice(UNCHANGED), []
        if r.random() < 0.25:
            name, _ = self.some_colour()
            return self.fill(r.choice(["don't make it {o}", "not {o}", "do not tint it {o}", "never {o}", "it should not be {o}", "don't add {o}"]), o=name), []
        return self.fill(r.choice(NOTHING_FORMS), c=r.choice(concept.comparatives), a=r.choice(concept.adjectives), v=r.choice(concept.verbs).removesuffix(" of"),
                         n=r.choice(concept.nouns)), []

    def of_phrase(self) -> Clause:
        table = PHRASES if self.rng.random() < 0.45 else grade_sayings.MORE_PHRASES
        phrases, edits = self.rng.choices(table, [len(phrases) ** 0.5 for phrases, _ in table])[0]
        return self.fill(told(self.rng.choice(phrases), self.rng)).strip(), edits

    def keep_hue(self) -> Clause:
        colour = self.rng.choice(list(HUES))
        return self.rng.choice(KEEP_FORMS).format(h=self.rng.choice(words(HUES[colour]))), [row(mono=1.0, **hue(colour, others=True))]

    # ---- spelling

    def respelt(self, text: str) -> str:
        """American, with hyphens, without a space."""
        r = self.rng
        for one, other in r.sample(SPELLINGS[:8], 8) if r.random() < 0.35 else ():
            text = text.replace(one, other)
        if r.random() < 0.06:
            one, other = r.choice(SPELLINGS[8:])
            text = text.replace(one, other)
        kind = r.random()
        spaces = [i for i, letter in enumerate(text) if letter == " "]
        if kind < 0.06 and spaces:
            i = r.choice(spaces)
            text = text[:i] + ("-" if kind < 0.03 else "") + text[i + 1 :]
        return text

    def misspelt(self, text: str) -> str:
        if self.rng.random() > self.typos:
            return text
        parts = text.split(" ")
        for _ in range(self.rng.choice((1, 1, 2))):
            long = [i for i, part in enumerate(parts) if len(part) > 3 and part.isalpha()]
            if long:
                at = self.rng.choice(long)
                parts[at] = self.with_slip(parts[at])
        return " ".join(parts)

    def with_slip(self, word: str) -> str:
        r = self.rng
        i = r.randrange(1, len(word))
        kind = r.randrange(5)
        if kind == 0:
            return word[:i] + word[i + 1 :]
        if kind == 1:
            return word[:i] + word[i] + word[i:]
        if kind == 2:
            return word[: i - 1] + word[i] + word[i - 1] + word[i + 1 :]
        near = r.choice(NEIGHBOURS.get(word[i], "e"))
        return word[:i] + near + word[i + (kind == 3) :]


def known_words() -> set[str]:
    """All words that instructions are made of, those of the stories around them too."""
    told = [sentence for _, images in IMAGES.items() for sentence in images] + [sentence for requests, _ in REQUESTS for sentence in requests]
    return meaningful_words() | set(letters_of([*grade_contexts.WORDS, *PLAIN, *told, *(sentence for sentence, _ in COMBINED)]))


def usual_words() -> set[str]:
    """Those of them that most instructions are made of: what a misspelt word was more likely to be."""
    texts = [COLOURS, *HUES.values(), *REGIONS.values(), *HOW_MUCH.values(), *KINDS, *COMPARATIVES.values(), *(names[0] for names, _ in ALL_LOOKS)]
    for concept in CONCEPTS:
        texts += concept.adjectives + concept.comparatives + concept.verbs + concept.nouns
    return set(letters_of(texts))


def letters_of(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in re.findall(r"[^\W\d_]+", re.sub(r"\{\w+\}", " ", text.lower()))]


def meaningful_words() -> set[str]:
    """Those that may ask for something."""
    texts = [COLOURS, *(t for t in HUES.values()), *REGIONS.values(), *HOW_MUCH.values(), *KINDS, *PICTURES, *UNCHANGED, *BEFORE, *AFTER, *SEPARATORS]
    texts += [*ADJECTIVES.values(), *COMPARATIVES.values(), "deeper deep deepen richer touch hint bit lots plenty dash tons loads pinch percent by only"]
    for concept in CONCEPTS:
        texts += concept.adjectives + concept.comparatives + concept.verbs + concept.nouns
    texts += [*DAYS, *FILLERS]
    for names, _ in ALL_LOOKS + PHRASES + grade_sayings.MORE_PHRASES:
        texts += names
    for _, names, _ in STUFF_LOOKS:
        texts += names
    texts += [saying for table in (grade_sayings.MORE_OF_NOUN, grade_sayings.LESS_OF_NOUN, grade_sayings.MORE_OF_ADJECTIVE, grade_sayings.LESS_OF_ADJECTIVE, grade_sayings.OF_VERB,
                                   grade_sayings.COLOUR_COMPLAINTS, grade_sayings.CASTS, grade_sayings.WHO_CAST, grade_sayings.WHERE_CAST, grade_sayings.UNDO) for saying in table]
    texts += [*LOOKS_BY_VERB.values(), *NUMBER_WORDS]
    for forms in (value for name, value in globals().items() if name.endswith("_FORMS")):
        texts += forms
    return set(letters_of(texts))
