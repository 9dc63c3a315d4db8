"""The words of instructions, and what they mean: tables for grade_grammar.py. Lists are texts with commas between."""
from dataclasses import dataclass, field
from functools import cache

import torch

import grade_edits
from grade_edits import row


@cache
def words(text: str) -> list[str]:
    return [word for word in (" ".join(part.split()) for part in text.split(",")) if word]


@dataclass
class Concept:
    """Something that there can be more or less of."""
    more: list[list[float]]  # edits
    less: list[list[float]]
    adjectives: list[str]  # "warm"
    comparatives: list[str]  # "warmer"
    verbs: list[str]  # "warm up"
    nouns: list[str]  # "warmth"
    below: list[str] = field(default_factory=list)  # adjectives of less, which have comparatives and verbs elsewhere


def axis(amounts: dict[str, float], adjectives: str, comparatives: str, verbs: str, nouns: str, less: float = -0.7, also: list[list[float]] = []) -> Concept:
    more = [row(**amounts), *also]
    return Concept(more, [grade_edits.scaled(edit, less) for edit in more], words(adjectives), words(comparatives), words(verbs), words(nouns))


CONCEPTS = [
    axis({"exposure": 0.75}, "bright, light, luminous, well lit, radiant, illuminated, brilliant, lit up, high brightness, sunlit, "
         "glowing, shiny, brightening, sunnier looking, well exposed, gleamingly bright, bright as day, strongly lit, lightish, very well lit, lighted, full of light, amply lit, light flooded", "brighter, lighter, more exposed, better lit, more luminous, more radiant, clearer",
         "brighten, lighten, brighten up, lighten up, light up, illuminate, expose up, bump up, relight, lift, shine light on, throw light on, flood with light, raise the exposure of, turn up the lights in, bring light into",
         "brightness, light, exposure, luminosity, illumination, lightness, luminance, radiance"),
    axis({"exposure": -0.8}, "dark, dim, underexposed, shadowy, gloomy, low light, darkened, dimmed, unlit, pitch dark, inky, dusky, "
         "murky, shady, darkish, darkening, sombre and dark, poorly lit, barely lit, nearly black, tenebrous, obscure, shadowed, badly lit, ill lit, starved of light, light starved", "darker, dimmer, less exposed, duller, more shadowy, gloomier, more underexposed",
         "darken, dim, dim down, underexpose, darken down, black out, make dim, shade, blacken, cast into shadow, shroud, turn down the lights in, take light out of, dull the light of, cloud over, lower the exposure of", "darkness, gloom, dimness, murk"),
    axis({"contrast": 0.6}, "contrasty, punchy, high contrast, crisp, bold, hard, stark, snappy, strong contrast, graphic, defined, "
         "harsh, contrasted, strong, edgy, sharply contrasted, high in contrast, dynamic, hard edged, heavily contrasted, meaty, vigorous, biting, clear cut, well defined, forceful, contrasting", "more contrasty, punchier, crisper, bolder, harsher, snappier, starker, higher in contrast, harder",
         "punch up, add punch to, increase the contrast of, boost the contrast of, contrast, beef up, harden, sharpen the tones of, drive apart the tones of", "contrast, punch, contrasts, "
         "dynamic range, depth, tonal contrast, bite, definition"),
    axis({"contrast": -0.6}, "flat, soft, low contrast, gentle, smooth, even, flattened, mellow, softened, delicate, low in contrast, softish, contrastless, diffuse, tender, subtle, level, uniform, even toned, muffled, velvety soft",
         "flatter, softer, less contrasty, gentler, smoother, mellower, lower in contrast", "flatten, soften, "
         "lower the contrast of, reduce the contrast of, decrease the contrast of, even out, mellow, level, ease the contrast of, take the edge off", "softness, flatness, "
         "smoothness, gentleness"),
    axis({"saturation": 0.45, "vibrance": 0.2}, "saturated, colourful, colorful, vivid, rich, intense, lively, juicy, lush, "
         "highly saturated, bold coloured, brightly coloured, richly coloured, full of colour, candy coloured, chromatic, deeply coloured, strongly coloured, intensely coloured, multicoloured, flamboyant, exuberant, ripe, fruity, opulent in colour, full bodied, showy, richly pigmented, deeply pigmented, full blooded, loudly coloured",
         "more saturated, more colourful, more colorful, richer, more vivid, livelier, more intense, lusher",
         "saturate, intensify, enrich, boost the saturation of, boost the colours of, increase the saturation of, enliven, "
         "pump up the colours of, colour up, juice up, turn up the colours of, feed the colours of, beef up the colours of, strengthen the colours of", "saturation, colour, color, colours, colors, colour intensity, chroma, colourfulness, "
         "vividness, richness, intensity, color saturation, pigment, colour strength, hue intensity, colour power"),
    axis({"saturation": -0.6}, "desaturated, colourless, washed out, muted, dull, subdued, drab, pale, undersaturated, bland, "
         "understated, low saturation, drained, lifeless, bleak, ashen, desaturating, low in saturation, discoloured, weakly coloured, toned down, insipid, faint, sallow, colour drained, sober, modest, reserved, demure, thin, watery, feeble, weak in colour, poor in colour, colour starved", "less saturated, duller, paler, more muted, "
         "less colourful, less colorful, less vivid, drabber, more subdued, blander, more desaturated",
         "desaturate, mute, wash out, tone down, drain, drain the colour from, subdue, bleach, tone down the colours of, "
         "take the colour out of, calm down, dull, grey out, water down, dilute, weaken the colours of, silence the colours of, quieten, thin the colours of", "desaturation, paleness, dullness, drabness"),
    axis({"vibrance": 0.55, "saturation": 0.06}, "vibrant, poppy, popping, zingy, energetic, eye catching, dazzlingly colourful, sparkling with colour, bursting, spirited, peppy",
         "more vibrant, poppier, zingier", "pop, make pop, pep up, perk up, jazz up", "vibrance, vibrancy, pop, zing, pep, zest, oomph"),
    axis({"temperature": 0.16}, "warm, toasty, cosy, cozy, heated, tungsten, warm toned, hot, warmish, sun kissed, balmy, lukewarm, "
         "sultry, warm tinted, warming, warmly lit, warmly toned, warm lit, snug and warm, mellow and warm, summery warm, glowing warm, steamy warm, baking hot, pleasantly warm, tepid", "warmer, cosier, cozier, hotter, toastier, less cold, less cool, less chilly",
         "warm, warm up, heat up, heat, toast, thaw, take the chill off, add warmth to, increase the temperature of, raise the temperature of, raise the colour temperature of",
         "warmth, heat, warmness, colour temperature, temperature, cosiness, coziness, color temperature, hotness, glow"),
    axis({"temperature": -0.17}, "cool, cold, chilly, cool toned, chilled, coldish, coolish, clinical, cold tinted, freezing, frigid, "
         "nippy, crisp and cold, cooling, cool lit, coldly lit, bitterly cold, ice cold, bluish cold, cool tinted, unheated, wintry cold, cold toned, frosted, refrigerated, bracing, stone cold", "cooler, colder, chillier, less warm, less hot, icier, frostier",
         "cool, cool down, chill, cool off, decrease the temperature of, lower the temperature of, lower the colour temperature of, "
         "make cold, refrigerate, ice, take the heat out of", "coldness, coolness, chill, cold, frost, cool"),
    axis({"magenta": 0.1}, "tinted magenta, magenta shifted", "less green tinted, more magenta", "shift to magenta, push to magenta",
         "magenta shift"),
    axis({"magenta": -0.1}, "tinted green, green shifted", "less magenta", "shift to green, push to green", "green shift"),
    axis({"shadows": 0.45}, "open in the shadows, with lifted shadows, with open shadows, with detailed shadows", "more open in the shadows, "
         "brighter in the shadows", "lift the shadows of, open the shadows of, raise the shadows of, open up the shadows of, "
         "brighten the shadows of, recover the shadows of", "shadow detail, fill light, detail in the shadows, shadow recovery"),
    axis({"shadows": -0.36}, "with crushed blacks, with deep shadows, with deep blacks, inky black, with dark shadows",
         "deeper in the shadows, darker in the shadows, blacker", "crush the blacks of, deepen the shadows of, crush the shadows of, "
         "darken the shadows of, deepen the blacks of, crush", "crushed blacks, deep blacks, deep shadows, black point, darker shadows, "
         "heavy shadows, black levels"),
    axis({"highlights": 0.36}, "with bright highlights, with sparkling highlights, sparkling, gleaming", "brighter in the highlights",
         "boost the highlights of, raise the highlights of, brighten the highlights of, lift the highlights of, push the highlights of",
         "brighter highlights, sparkle, brilliance, whites, highlight brightness"),
    axis({"highlights": -0.25}, "with soft highlights, with recovered highlights, with dark highlights", "darker in the highlights, "
         "softer in the highlights", "recover the highlights of, tame the highlights of, pull down the highlights of, "
         "lower the highlights of, darken the highlights of, reduce the highlights of, bring down the highlights of, "
         "compress the highlights of", "highlight recovery, highlight detail, darker highlights, softer highlights, detail in the highlights",
         also=[row(tone="highlights", exposure=-0.45)]),  # the curve alone leaves white as it is
    axis({"fade": 0.13, "contrast": -0.2, "saturation": -0.15}, "faded, matte, milky, hazy, foggy, misty, lifted, smoky, foglike",
         "more faded, hazier, foggier, mistier, milkier, more matte", "fade, fade out, haze, fog up, lift the blacks of, raise the blacks of",
         "fade, haze, mist, fog, lifted blacks, a matte finish, smoke, faded blacks"),
]

# Names of colours, as CSS and painters have them.
COLOURS = """red e01010, green 10a020, blue 1030e0, yellow f0e010, orange ff8c00, purple 800090, violet 8a2be2, pink ff80b0,
magenta ff00d0, cyan 00dddd, teal 008080, turquoise 40e0d0, aqua 10e0e0, crimson dc143c, scarlet ff2400, lavender b090f0,
lilac c8a2c8, mauve c090e0, indigo 4b0082, navy 000080, azure 3090ff, cobalt 0047ab, cerulean 2a80c0, sapphire 0f52ba, brown 8b4513,
chocolate 7b3f00, coffee 6f4e37, beige f0e0b8, cream fff4c8, ivory fffae0, tan d2b48c, khaki c3b070, olive 808000, lime 90ff20,
mint 98ffc0, emerald 40c060, jade 00a86b, gold ffc810, golden ffc820, amber ffb000, bronze cd7f32, copper b87333, rust b7410e,
maroon 800020, burgundy 800028, wine 722f37, ruby e0115f, cherry de3163, rose ff4080, salmon fa8072, coral ff7f50, peach ffc090,
apricot fbceb1, fuchsia ff00c0, plum 8e4585, orchid da70d6, aubergine 472c4c, chartreuse 80ff00, ochre cc7722, mustard e8c030,
sand e0c890, honey eba010, caramel c68e17, terracotta e2725b, brick b22222, vermilion e34234, cyan blue 10b0e0, sky blue 80c8f0,
baby blue 90c8f4, royal blue 4060e0, navy blue 000080, steel blue 4682b4, midnight blue 191970, electric blue 2060ff, forest green 208020,
sea green 2e8b57, lime green 50d020, mint green 98ff98, moss 708040, grass green 50b030, olive green 70802a, hot pink ff40b0,
baby pink f8b8d0, blood red 900808, ruby red c01030, lemon fff040, lemon yellow fff030, canary ffef20, tangerine f28500, pumpkin ff7518,
dark red 8b0000, dark green 006400, dark blue 00008b, light blue a0d0f0, light green 90ee90, pale yellow fff8a0, pale blue a0d0ff,
pale green 98fb98, pale pink fad0e0, blush f0b0b0, magenta pink e030a0, periwinkle a0a0ff, ultramarine 3010c0, denim 3060b0, cinnamon c06020,
sienna a0522d, umber 735020, buttery fff0a0, strawberry fc4060, raspberry e30b5c, blueberry 4060b0, mahogany c04000, viridian 408070"""
ADJECTIVES = {"red": "reddish, ruddy, rosy red, red tinted", "green": "greenish, green tinted", "blue": "bluish, blueish, blue tinted, blue toned",
              "yellow": "yellowish, yellowy, yellow tinted", "orange": "orangey, orangish, orange toned", "pink": "pinkish, pinky, pink tinted",
              "purple": "purplish, purply, purple tinted", "brown": "brownish, earthy, browny", "violet": "violet tinted",
              "gold": "gilded", "rose": "rosy, rosey", "cyan": "cyan tinted", "teal": "tealish", "cream": "creamy", "peach": "peachy"}
COMPARATIVES = {"red": "redder", "green": "greener", "blue": "bluer", "yellow": "yellower", "orange": "oranger", "pink": "pinker",
                "purple": "purpler", "brown": "browner", "rose": "rosier"}
HUES = {  # single hues that pictures have: words of them, and a colour of theirs
    "e02020": "reds, red tones, red colours, red hues, red areas, red parts", "208a30": "greens, green tones, green colours, green hues, grass, foliage, "
    "leaves, trees, plants, vegetation, greenery, lawn, green areas, green parts", "3060d0": "blues, blue tones, blue colours, blue hues, "
    "blue areas, blue parts, jeans", "e8d820": "yellows, yellow tones, yellow colours, yellow hues, yellow areas, yellow parts",
    "f08820": "oranges, orange tones, orange colours, orange hues", "40b8c0": "cyans, teals, aquas, cyan tones, teal tones, turquoises, "
    "water, sea, ocean", "9040c0": "purples, violets, purple tones, violet tones", "e060b0": "pinks, magentas, pink tones, magenta tones",
    "d89070": "skin, skin tones, faces, skin colours"}
REGIONS = {  # places and tones: words of them
    ("place", "edges"): "edges, borders, rim, frame edges, outer parts, periphery, outside, margins, edge, border, outskirts, background, outer edge, outer edges, outer areas, fringes, fringe, perimeter, surroundings, boundary, outermost parts",
    ("place", "corners"): "corners, four corners, corner areas, image corners",
    ("place", "centre"): "centre, center, middle, middle part, subject, central area, heart, central part, centre part, core, very middle, midpoint, inner part, inner area, main subject, focal point, middle area, inside",
    ("place", "top"): "top, upper part, upper half, top half, sky, top edge, top part, heavens, upper area, top third, upper third, upper portion, uppermost part, top portion, upper region, top area, upper side",
    ("place", "bottom"): "bottom, lower part, lower half, bottom half, ground, bottom edge, bottom part, floor, foreground, lower area, lower third, bottom third, lower portion, lowest part, bottom portion, lower region, bottom area, lower side",
    ("place", "left"): "left, left side, left half, left edge, left hand side, left part, left third, left portion, left margin, left border, far left, left area",
    ("place", "right"): "right, right side, right half, right edge, right hand side, right part, right third, right portion, right margin, right border, far right, right area",
    ("place", "sides"): "sides, left and right, both sides, left and right edges", ("place", "middle"): "horizon, horizontal middle, middle band",
    ("place", "top left"): "top left, upper left, top left corner, upper left corner",
    ("place", "top right"): "top right, upper right, top right corner, upper right corner",
    ("place", "bottom left"): "bottom left, lower left, bottom left corner, lower left corner",
    ("place", "bottom right"): "bottom right, lower right, bottom right corner, lower right corner",
    ("tone", "shadows"): "shadows, blacks, dark parts, darks, dark areas, dark tones, shadow areas, darkest parts, darker parts, darker areas, darker tones, shaded areas, shaded parts, black parts, unlit parts, deep tones, dark zones, darkest areas, dark end, low tones, lower tones",
    ("tone", "midtones"): "midtones, mid tones, middle tones, mids, medium tones, midrange, mid range, middle greys, mid greys, medium greys, tones in between",
    ("tone", "highlights"): "highlights, whites, bright parts, lights, bright areas, light areas, bright tones, clouds, snow, brightest parts, light parts, brighter parts, brighter areas, lighter parts, lighter areas, lit areas, bright zones, white parts, light tones, high tones, upper tones, bright end, brightest areas, brights",
}


@cache
def lab_of(colour: str) -> tuple[float, float, float]:
    srgb = torch.tensor([int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)])
    return tuple(grade_edits.oklab(grade_edits.linear(srgb)).tolist())


def tint(colour: str, most: float = 0.062) -> dict[str, float]:
    """Amounts that push towards a colour."""
    lightness, a, b = lab_of(colour)
    chroma = (a * a + b * b) ** 0.5
    amount = min(most, max(0.6 * most, 0.4 * chroma)) / chroma
    return {"tint_a": a * amount, "tint_b": b * amount, "exposure": max(-0.3, min(0.25, lightness - 0.6))}


def hue(colour: str, others: bool = False) -> dict[str, float]:
    _, a, b = lab_of(colour)
    chroma = (a * a + b * b) ** 0.5
    return {"hue": -1.0 if others else 1.0, "hue_a": a / chroma, "hue_b": b / chroma}


def away_from(colour: str) -> list[list[float]]:
    """ "less orange": its cast is taken off, and what is orange gets paler. More of the opposite tints greys and faces."""
    opposite = {name: -0.35 * amount for name, amount in tint(colour).items() if name != "exposure"}
    return [row(**opposite), row(saturation=-0.5, **hue(colour))]


def split(dark: str, light: str, amount: float = 0.05, of_lights: float | None = None) -> dict[str, float]:
    """Amounts of a split tone."""
    shadows, lights = tint(dark, amount), tint(light, amount if of_lights is None else of_lights)
    return {"shadow_a": shadows["tint_a"], "shadow_b": shadows["tint_b"], "light_a": lights["tint_a"], "light_b": lights["tint_b"]}


EDGES = row(place="edges", exposure=-0.9)


def look(names: str, *edits: list[float]) -> tuple[list[str], list[list[float]]]:
    return words(names), list(edits)


SUNSET = {"temperature": 0.2, "magenta": 0.03, "contrast": 0.2, "saturation": 0.15, "exposure": -0.15, **split("803060", "ffa030", 0.045)}
LOOKS = [
    look("sunset, sundown, setting sun, sunset glow, evening sun, evening glow, sunset light, sunsetty, sunset like, dusk sunlight, "
         "afterglow, late afternoon, sunset colours, end of the day", row(**SUNSET)),
    look("golden hour, magic hour, late sun, low sun, golden light, golden sunlight, sunlight, evening light, golden sunshine",
         row(temperature=0.16, exposure=0.15, contrast=0.1, saturation=0.12, light_b=0.06, light_a=0.012, shadow_b=0.015)),
    look("sunrise, dawn, morning light, daybreak, early morning, morning sun, first light, breaking dawn",
         row(temperature=0.08, exposure=0.15, contrast=-0.1, fade=0.03, **split("b080c0", "ffc8a0", 0.035))),
    look("dusk, twilight, blue hour, nightfall, gloaming", row(exposure=-0.7, saturation=-0.1, contrast=0.1, **split("2030a0", "b080d0", 0.05))),
    look("moonlight, moonlit, moonlit night, night, night time, nighttime, at night, day for night, midnight, starlight, full moon, "
         "starry night, nocturnal, moon, moonshine, nightly, nocturne, late night",
         row(exposure=-1.2, saturation=-0.55, contrast=0.15, **split("1030b0", "90b0f0", 0.06))),
    look("vintage, retro, nostalgic, old photo, seventies, 70s, sixties, 60s, polaroid, old fashioned, antique, old school, aged, "
         "analog, analogue, old film, super 8, yesteryear, old timey, instagram, memories, bygone, throwback, old photograph, photo album",
         row(temperature=0.07, magenta=0.015, saturation=-0.65, contrast=-0.1, fade=0.1, **split("5a4050", "ffc880", 0.03))),
    look("noir, film noir, detective movie, hard boiled, gangster movie, german expressionism, 1940s detective, 40s crime movie",
         row(mono=1.0, contrast=0.7, exposure=-0.35), row(place="edges", exposure=-0.6)),
    look("black and white, monochrome, greyscale, grayscale, b&w, bw, b / w, without colour, without color, no colour, no color, no colours, "
         "colour free, silver print, monochromatic, grey only, black & white, ansel adams, gray scale, without any colour, no colors, black white",
         row(mono=1.0, contrast=0.15)),
    look("grey, gray, greyish, grayish, ashen grey, grey toned, slate", row(saturation=-1.1)),
    look("white, whitish, snow white, whiter", row(exposure=0.6, saturation=-0.5, fade=0.03)),
    look("black, blackish, jet black", row(exposure=-1.1, saturation=-0.2)),
    look("sepia, sepia toned, sepia tone, victorian, daguerreotype, tintype, brown toned photo, 19th century photograph, old west photograph",
         row(mono=1.0, fade=0.03, tint_a=0.014, tint_b=0.055)),
    look("teal and orange, orange and teal, blockbuster, hollywood, teal orange, action movie, michael bay, teal & orange, orange teal, "
         "big budget movie", row(contrast=0.3, saturation=0.1, **split("005a70", "ffa050", 0.075, of_lights=0.05))),
    look("cinematic, filmic, movie, film, like a movie, movie like, cinema, film look, motion picture, film stock, kodak film, cinematography, "
         "like a film, theatrical, cinematic grade", row(contrast=0.3, saturation=-0.12, fade=0.02, **split("104858", "ffc080", 0.035))),
    look("bleach bypass, silver retention, saving private ryan, war movie, bleached, skip bleach, war film",
         row(saturation=-0.7, contrast=0.7)),
    look("pastel, pastels, pastel coloured, pastel tones, soft pastel, wes anderson, macaron, candyfloss, pastel colours, powdery",
         row(exposure=0.6, saturation=-0.25, vibrance=0.35, contrast=-0.35, shadows=0.35, fade=0.05, tint_a=0.006, tint_b=-0.002)),
    look("cyberpunk, neon, synthwave, vaporwave, blade runner, neon lights, neon noir, futuristic city, neon city, retrowave, outrun, nightclub, "
         "disco, neon glow, tron, neon signs, rave, night club",
         row(exposure=-0.25, contrast=0.3, saturation=0.35, **split("2010d0", "ff40c0", 0.075))),
    look("winter, cold winter, wintry, wintery, icy, frosty, arctic, snowy, nordic, frozen, polar, glacial, ice cold, ice, antarctic, icelandic, "
         "siberian, glacier, winter day, scandinavian, alaska, frost covered, december, january, blizzard",
         row(temperature=-0.17, saturation=-0.25, exposure=0.15, light_b=-0.02)),
    look("summer, sunny, sunshine, beach, summery, tropical, summertime, mediterranean, hot summer, sunny day, summer day, vacation, holiday, "
         "caribbean, hawaiian, california, july, august, seaside, miami, sun drenched, sun soaked, bright sun",
         row(temperature=0.1, exposure=0.35, saturation=0.25, contrast=0.1)),
    look("autumn, autumnal, fall colours, fall foliage, october, autumn leaves, indian summer, november, harvest, thanksgiving, autumn day, fall colors",
         row(temperature=0.12, saturation=0.12, exposure=-0.08, tint_a=0.012, tint_b=0.018), row(exposure=-0.15, tint_a=0.055, **hue("208a30"))),
    look("spring, springtime, april, spring day, springlike, fresh, blossom, may morning, fresh spring", row(exposure=0.3, vibrance=0.3, saturation=0.05, tint_a=-0.01, tint_b=0.006)),
    look("horror, scary, spooky, creepy, haunted, eerie, sinister, nightmare, terrifying, ghostly, ghost story, halloween, dracula, zombie, "
         "frightening, macabre, ominous, menacing, vampire, gothic, nightmarish, evil, thriller, haunted house, unsettling",
         row(exposure=-0.7, saturation=-0.5, contrast=0.4, **split("103830", "a0c0a8", 0.04)), row(place="edges", exposure=-0.5)),
    look("dreamy, ethereal, fairy tale, fairytale, heavenly, angelic, dreamlike, magical, otherworldly, surreal, dream, fantasy, soft focus, "
         "soft dream, fairy, enchanted, magic, whimsical, dreaming, angels", row(exposure=0.45, contrast=-0.3, shadows=0.15, fade=0.045, saturation=0.05, tint_a=0.007, tint_b=-0.002, light_a=0.012)),
    look("matrix, the matrix, hacker, green code, night vision, like the matrix, terminal green, matrix code, matrix green, cyber green, computer screen",
         row(exposure=-0.25, saturation=-0.45, contrast=0.25, tint_a=-0.06, tint_b=0.04)),
    look("underwater, deep sea, submarine, aquatic, aquarium, under the sea, oceanic, undersea, diving, below the surface, atlantis, deep ocean",
         row(exposure=-0.35, saturation=-0.2, contrast=-0.1, tint_a=-0.045, tint_b=-0.045)),
    look("desert, mars, martian, sahara, dune, dusty desert, egypt, mad max, arizona, sandstorm, sandy, wasteland, egyptian, arid, scorched",
         row(temperature=0.16, tint_a=0.018, tint_b=0.04, contrast=0.2)),
    look("forest, jungle, rainforest, woodland, mossy, amazon rainforest, elven, woods, leafy, deep forest, verdant", row(exposure=-0.2, tint_a=-0.035, tint_b=0.026, saturation=0.1)),
    look("fire, firelight, fireside, campfire, candlelight, candlelit, lava, flames, fireplace, fiery, inferno, hell, volcanic, candle light, "
         "candles, burning, flaming, blazing, torchlight, ember, embers, hellish, bonfire, volcano, lamplight",
         row(temperature=0.22, exposure=-0.3, contrast=0.25, tint_a=0.03, tint_b=0.035)),
    look("storm, stormy, overcast, cloudy, rainy, gloomy weather, rain, thunderstorm, grey day, rainy day, bad weather, british weather, drizzle, "
         "dreary, dreary weather, thunder, tempest, november rain, wet day",
         row(exposure=-0.45, saturation=-0.5, temperature=-0.09, contrast=-0.05)),
    look("moody, sad, melancholic, melancholy, sombre, somber, depressing, lonely, brooding, mournful, sorrowful, depressed, tragic, wistful, "
         "grief, bleak mood, forlorn, funeral, sadness, despair, grim, hopeless, serious, mysterious, mystery, lonesome, heartbroken, emotional",
         row(exposure=-0.5, saturation=-0.4, temperature=-0.07, contrast=0.15)),
    look("happy, cheerful, joyful, joyous, merry, upbeat, optimistic, playful, fun, festive, bubbly, uplifting, jolly, gleeful, party, joy, "
         "happiness, cheery, positive, hopeful, delightful, carnival, childlike, friendly, exciting, celebration",
         row(exposure=0.4, saturation=0.3, vibrance=0.2, temperature=0.05)),
    look("apocalyptic, post apocalyptic, dystopian, apocalypse, end of the world, post apocalypse, doomsday, the last of us, nuclear, wasted, dystopia",
         row(exposure=-0.35, saturation=-0.5, contrast=0.4, tint_a=0.012, tint_b=0.04)),
    look("western, cowboy, spaghetti western, wild west, mexico, mexican, clint eastwood, breaking bad, texas, old west, sergio leone",
         row(temperature=0.15, contrast=0.3, saturation=-0.1, tint_b=0.03)),
    look("romantic, rose tinted, valentine, love story, lovely, in love, love, valentines day, wedding, sensual, tender, romance, affectionate, "
         "honeymoon, passionate, loving, paris in love, sweet, rom com", row(temperature=0.07, exposure=0.15, contrast=-0.15, tint_a=0.035, tint_b=0.004)),
    look("hdr, high dynamic range, hdr like, tone mapped, hyperreal", row(shadows=0.6, highlights=-0.45, saturation=0.25, contrast=0.1)),
    look("high key, airy, light and airy, fresh and bright, bright and airy, clean and bright, weightless, clean, minimal, white studio",
         row(exposure=0.65, contrast=-0.15, shadows=0.3, fade=0.02)),
    look("low key, chiaroscuro, rembrandt, caravaggio, dark and moody, baroque, dim candle, dark moody", row(exposure=-0.7, contrast=0.5, temperature=0.05)),
    look("dramatic, intense drama, epic, powerful, theatrical drama, thrilling, drama, heroic, dramatically lit, tense, monumental, striking",
         row(contrast=0.65, exposure=-0.3), row(place="edges", exposure=-0.4)),
    look("gritty, grungy, rough, raw, street, grunge, dirty, urban, industrial, rugged, fight club, tough, metallic, grimy, concrete, steel, steely",
         row(contrast=0.5, saturation=-0.45, exposure=-0.1, temperature=-0.03)),
    look("cross processed, cross process, lomo, lomography, toy camera, crossprocessed, holga, lo fi, expired film",
         row(contrast=0.4, saturation=0.2, **split("104060", "e0e060", 0.06)), row(place="edges", exposure=-0.5)),
    look("technicolor, technicolour, velvia, slide film, wizard of oz, fifties, 50s, kodachrome, pop art, comic book, comic, andy warhol, cartoon, "
         "anime, ghibli, bollywood, bold colours, comics, toon, studio ghibli, psychedelic, rainbow, lollipop, candy",
         row(saturation=0.6, contrast=0.35, temperature=0.03)),
    look("portra, kodak gold, kodak portra, portra 400, kodak portra 400, portra 160, portra 800, warm film, 35mm film, kodak, gold 200, portrait film, analog film", row(temperature=0.09, fade=0.04, saturation=-0.05, exposure=0.1, contrast=-0.05)),
    look("sci fi, science fiction, futuristic, alien, spaceship, space, outer space, cosmic, interstellar, robot, high tech, tech, technology, star wars, galaxy, android",
         row(temperature=-0.16, contrast=0.35, saturation=-0.15, **split("003060", "a0e0ff", 0.03))),
    look("hospital, sterile, fluorescent, office light, fluorescent light, laboratory, lab, medical, dentist, supermarket light",
         row(temperature=-0.06, magenta=-0.06, exposure=0.25, saturation=-0.3)),
    look("toxic, poisonous, radioactive, sickly, acid, venomous, slimy, nauseous, swamp, swampy, acidic, poison, queasy, sick", row(tint_a=-0.045, tint_b=0.055, contrast=0.15)),
    look("bloody, blood, murderous, gory, murder, gore, blood soaked, angry, rage, fury, furious, danger, darkroom, violent, anger", row(exposure=-0.35, tint_a=0.065, tint_b=0.025, contrast=0.25)),
    look("natural, realistic, true to life, documentary, honest, neutral colours, naturalistic", row(saturation=-0.08, contrast=-0.05)),
    look("vignette, vignetting, a vignette, vignetted, edge darkening, dark vignette, darkened edges, spotlight, shaded edges, burned edges, burnt edges, dark frame, black vignette", EDGES),
    look("white vignette, light vignette, bright vignette, glowing edges", row(place="edges", exposure=0.9)),
    look("luxurious, luxury, elegant, expensive, sophisticated, classy, premium, royal, opulent, glamorous, glamour, chic, stylish", row(contrast=0.3, temperature=0.06, exposure=-0.1, light_b=0.025)),
    look("calm, peaceful, serene, tranquil, relaxing, zen, quiet, relaxed, soothing, meditative, spa, restful", row(contrast=-0.25, saturation=-0.1, temperature=-0.04, exposure=0.1)),
    look("earthy tones, earth tones, rustic, autumn earth, muddy, wooden, countryside, farm, leathery, leather, clay, earthen, farmhouse, wood", row(temperature=0.08, saturation=-0.2, tint_a=0.018, tint_b=0.032)),
]

LOOKS += [
    look("christmas, christmas eve, santa claus, festive season, xmas, yuletide, mulled wine", row(temperature=0.1, saturation=0.15, exposure=-0.15, **split("502020", "ffc060", 0.045))),
    look("tokyo at night, las vegas, times square, shibuya, arcade, laser, lasers, electric, electric city, city nights, hong kong nights, video game, gamer",
         row(exposure=-0.25, contrast=0.3, saturation=0.35, **split("2010d0", "ff40c0", 0.075))),
    look("safari, savanna, savannah, africa, african, lion king, serengeti, outback, australian outback, bollywood dust", row(temperature=0.15, exposure=0.1, tint_b=0.03, saturation=0.1)),
    look("london fog, fog, mist, misty morning, foggy morning, smog, steam, in the clouds, pea soup", row(fade=0.13, contrast=-0.35, saturation=-0.4, temperature=-0.03)),
    look("oil painting, renaissance painting, old master, museum painting, vermeer, dutch master", row(temperature=0.08, contrast=0.2, saturation=0.05, exposure=-0.25, light_b=0.03)),
    look("watercolour, watercolor, aquarelle, water colour painting, chalk, monet, impressionist", row(exposure=0.3, contrast=-0.3, saturation=-0.05, fade=0.05, tint_b=-0.008)),
    look("cave, basement, dungeon, cellar, prison, tunnel, crypt, tomb, grave, graveyard, bunker, mine shaft", row(exposure=-0.9, saturation=-0.4, contrast=0.15)),
    look("heatwave, heat wave, scorching, sweltering, blistering heat, furnace, boiling hot, roasting, hot as hell, sauna, red hot, melting", row(temperature=0.2, exposure=0.1, tint_a=0.02, tint_b=0.02, contrast=0.1)),
    look("ghost, phantom, spectre, corpse, undead, skeleton, bone, pale death, sick pale", row(saturation=-0.8, exposure=0.1, contrast=0.15, tint_a=-0.01)),
    look("glamour shot, magazine cover, fashion, vogue, editorial, advertising, commercial, beauty shot", row(contrast=0.35, exposure=0.2, saturation=0.1)),
    look("newspaper, newsreel, old newsreel, silent movie, silent film, charlie chaplin, photocopy, pencil drawing, charcoal, ink, x ray", row(mono=1.0, contrast=0.45)),
    look("vhs, old tv, camcorder, eighties, 80s, nineties, 90s home video, 90s, video tape, webcam", row(saturation=-0.1, contrast=-0.2, fade=0.07, tint_a=0.015, tint_b=-0.015)),
]

HOW_MUCH = {  # before what they say of
    0.4: "slightly, a touch, a bit, a little, subtly, faintly, a tad, a little bit, gently, a hair, a smidge, lightly, ever so slightly, "
         "just a bit, a tiny bit, just a touch, just a little, mildly, minimally, a wee bit, a trifle, barely, a shade, marginally, vaguely, a notch, one notch, a whisker, a dash, a drop, ever so gently, almost imperceptibly, discreetly, cautiously, sparingly, carefully, a nuance",
    0.7: "somewhat, fairly, kind of, moderately, sort of, half, reasonably, partly, halfway, not quite as, kinda, partially, modestly",
    1.0: "noticeably, clearly, visibly, simply, generally, overall, just, nicely",
    1.5: "very, much, really, a lot, strongly, heavily, considerably, far, significantly, way, lots, so, distinctly, truly, deeply, substantially, "
         "pretty, quite a bit, markedly, seriously, a good deal, very much, rather a lot, loads, miles, decidedly, notably, properly, thoroughly, vigorously, boldly",
    2.0: "extremely, super, ultra, insanely, incredibly, totally, completely, absolutely, way too, hugely, massively, wildly, very very, "
         "extraordinarily, drastically, exceptionally, terribly, crazy, radically, as much as possible, mega, intensely, unbelievably, enormously, outrageously, immensely, ridiculously, absurdly",
}
PICTURES = words("picture, image, video, shot, footage, photo, scene, clip, frame, film, photograph, movie, pic, it, it all, everything, this, the whole thing, "
                 "whole picture, whole image, colours, tones, stream, material, recording, vid, entire image, entire scene")
KINDS = words("look, feel, mood, atmosphere, vibe, style, tone, grade, colour grade, color grade, colour grading, filter, aesthetic, lighting, light, ambience, "
              "effect, touch, treatment, appearance, colours, colors, tones, feeling, colour palette, palette, picture, image, video, scene, "
              "shot, footage, character, impression, finish, theme, flavour, setting, air, preset, lut, hues, shades, tint")
