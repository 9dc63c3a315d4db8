"""What a clause of an instruction does to a colour, in closed form: what the bundled model `grade` learns to do.

An edit is a row of numbers, all 0 for nothing at all: amounts of a fixed sequence of operations, and where they act.
Exposure and white balance are gains of linear light; tone, saturation and tints act in Oklab (B. Ottosson: A perceptual
color space for image processing, 2020). Edits are smooth, and colours outside sRGB are drawn towards grey, not clipped.
"""
import math

import numpy as np
import torch
from torch import Tensor

AMOUNTS = (
    "exposure",  # stops; what brightens leaves white where it is
    "temperature",  # logarithm of red's gain, of blue's downwards
    "magenta",  # logarithm of green's gain downwards
    "contrast", "shadows", "highlights", "fade",  # of Oklab's L
    "saturation", "vibrance",  # logarithms of chroma's gain, the latter's of pale colours
    "mono",  # 0 .. 1: without colour
    "tint_a", "tint_b",  # added to a and b, most to middle tones,
    "shadow_a", "shadow_b", "light_a", "light_b",  # to dark ones, to light ones
)
REGION = ("place", "tone", "hue", "hue_a", "hue_b")  # number of a place, of a tone; hue: 1 that hue, -1 all others, 0 all
COLUMNS = {name: i for i, name in enumerate(AMOUNTS + REGION)}
PLACES = ("all", "edges", "corners", "centre", "top", "bottom", "left", "right", "sides", "middle", "top left", "top right",
          "bottom left", "bottom right")
TONES = ("all", "shadows", "midtones", "highlights")

TO_LMS = torch.tensor([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                       [0.0883024619, 0.2817188376, 0.6299787005]])
TO_LAB = torch.tensor([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                       [0.0259040371, 0.7827717662, -0.8086757660]])
FROM_LAB, FROM_LMS = torch.linalg.inv(TO_LAB), torch.linalg.inv(TO_LMS)
DARKEST = 1e-4  # of linear light, where the cube root is steep


def linear(srgb: Tensor) -> Tensor:
    return torch.where(srgb <= 0.04045, srgb / 12.92, ((srgb.clamp(min=0.04) + 0.055) / 1.055) ** 2.4)


def gamma(light: Tensor) -> Tensor:
    return torch.where(light <= 0.0031308, light * 12.92, 1.055 * light.clamp(min=0.003) ** (1 / 2.4) - 0.055)


def oklab(light: Tensor) -> Tensor:
    """Of linear sRGB, [..., 3]."""
    lms = (light @ TO_LMS.T + DARKEST).clamp(min=DARKEST) ** (1 / 3) - DARKEST ** (1 / 3)
    return lms @ TO_LAB.T


def light_of(lab: Tensor) -> Tensor:
    return ((lab @ FROM_LAB.T + DARKEST ** (1 / 3)) ** 3 - DARKEST) @ FROM_LMS.T


def step(x: Tensor, begin: float, end: float) -> Tensor:
    t = ((x - begin) / (end - begin)).clamp(0, 1)
    return t * t * (3 - 2 * t)


def place_weights(places: Tensor) -> Tensor:
    """[..., 2] to [..., len(PLACES)]"""
    sx, sy = (places * (math.pi / 2)).sin().unbind(-1)
    cx, cy = (places * (math.pi / 2)).cos().unbind(-1)
    left, right, top, bottom = ((1 + s) / 2 for s in (-sx, sx, -sy, sy))
    middle, edges = cx * cy, 1 - cx * cy
    weights = [torch.ones_like(sx), edges**1.5, (1 - cx) * (1 - cy) * 1.2, middle**1.5, top**1.5, bottom**1.5, left**1.5,
               right**1.5, (1 - cx) ** 1.2, cy**1.5, top * left, top * right, bottom * left, bottom * right]
    return torch.stack(weights, -1).clamp(0, 1)


def tone_weights(lightness: Tensor) -> Tensor:
    """[...] to [..., len(TONES)]"""
    dark, light = step(lightness, 0.75, 0.15), step(lightness, 0.4, 0.95)
    return torch.stack([torch.ones_like(dark), dark, 1 - step(lightness, 0.5, 0.1) - step(lightness, 0.6, 1.0), light], -1)


def hue_weight(lab: Tensor, hue: Tensor, a: Tensor, b: Tensor) -> Tensor:
    chroma = (lab[..., 1] ** 2 + lab[..., 2] ** 2 + 1e-6).sqrt()
    near = (lab[..., 1] * a + lab[..., 2] * b) / chroma
    weight = (4 * (near - 1)).exp() * chroma**2 / (chroma**2 + 0.04**2)
    return torch.where(hue > 0, weight, torch.where(hue < 0, 1 - weight, torch.ones_like(weight)))


def tone_curve(lightness: Tensor, contrast: Tensor, shadows: Tensor, highlights: Tensor, fade: Tensor) -> Tensor:
    """Each step increases everywhere; all but `fade` leave black and white where they are."""
    x = lightness.clamp(0, 1)
    x = x + 2 * contrast.clamp(-0.85, 0.85) * (x - 0.55) * x * (1 - x)
    x = x + 2.4 * shadows.clamp(-0.4, 0.8) * x * (1 - x) ** 3
    x = x + 2.4 * highlights.clamp(-0.8, 0.4) * x**3 * (1 - x)
    fade = fade.clamp(0, 0.35)
    return fade + (1 - 1.5 * fade) * x


def into_gamut(light: Tensor) -> Tensor:
    """Draws colours towards the grey of their luminance, as far as they are outside."""
    grey = (light @ torch.tensor([0.2126, 0.7152, 0.0722]))[..., None].clamp(0.0, 1.0)
    away = light - grey
    room = torch.where(away > 0, 1 - grey, grey)
    share = (room / away.abs().clamp(min=1e-6)).amin(-1, keepdim=True).clamp(max=1)
    return (grey + share * away).clamp(0, 1)


def apply(edits: Tensor, colours: Tensor, places: Tensor) -> Tensor:
    """edits [B, len(COLUMNS)], sRGB colours [B, N, 3] at places [B, N, 2]."""
    p = {name: edits[:, i, None] for name, i in COLUMNS.items()}
    light = linear(colours)
    before = oklab(light)
    gains = torch.cat([p["temperature"] + p["magenta"] / 2, -p["magenta"], p["magenta"] / 2 - p["temperature"]], -1).exp()
    gains = gains / (gains @ torch.tensor([0.2126, 0.7152, 0.0722]))[:, None]
    stops = (2 ** p["exposure"])[..., None]
    light = light * gains[:, None]
    light = light * stops / (1 + (stops - 1).clamp(min=0) * light)
    lightness, a, b = oklab(light).unbind(-1)
    lightness = tone_curve(lightness, p["contrast"], p["shadows"], p["highlights"], p["fade"])
    chroma = (a**2 + b**2 + 1e-8).sqrt()
    gain = (p["saturation"] + p["vibrance"] * (-chroma / 0.08).exp()).exp() * (1 - p["mono"].clamp(0, 1))
    x = lightness.clamp(0, 1)
    middle, dark, bright = 0.3 + 2.8 * x * (1 - x), (1 - x) ** 2, x**2
    a = a * gain + p["tint_a"] * middle + p["shadow_a"] * dark + p["light_a"] * bright
    b = b * gain + p["tint_b"] * middle + p["shadow_b"] * dark + p["light_b"] * bright
    edited = gamma(into_gamut(light_of(torch.stack([lightness, a, b], -1))))
    rows = torch.arange(len(edits))
    weight = place_weights(places)[rows, :, edits[:, COLUMNS["place"]].long()]
    weight = weight * tone_weights(before[..., 0])[rows, :, edits[:, COLUMNS["tone"]].long()]
    weight = weight * hue_weight(before, p["hue"], p["hue_a"], p["hue_b"])
    neutral = (edits == 0).all(-1)[:, None, None]
    return torch.where(neutral, colours, colours + weight[..., None] * (edited - colours))


def in_order(rows: list[list[float]]) -> list[list[float]]:
    """Colours are made paler before any is added: "warmer but less saturated" is to be both."""
    return sorted(rows, key=lambda edit: edit[COLUMNS["saturation"]] >= 0)


def apply_all(clauses: list[list[list[float]]], colours: Tensor, places: Tensor) -> Tensor:
    """One clause's edit after the other: clauses[b] is a list of rows, perhaps empty."""
    clauses = [in_order(rows) for rows in clauses]
    for i in range(max(map(len, clauses), default=0)):
        some = torch.tensor([b for b, rows in enumerate(clauses) if len(rows) > i])
        edits = torch.from_numpy(np.array([rows[i] for rows in clauses if len(rows) > i], np.float32))
        colours = colours.index_copy(0, some, apply(edits, colours[some], places[some]))
    return colours


def row(place: str = "all", tone: str = "all", **amounts: float) -> list[float]:
    edit = [0.0] * len(COLUMNS)
    for name, amount in amounts.items():
        edit[COLUMNS[name]] = amount
    edit[COLUMNS["place"]], edit[COLUMNS["tone"]] = PLACES.index(place), TONES.index(tone)
    return edit


def scaled(edit: list[float], factor: float) -> list[float]:
    return [x * factor for x in edit[: len(AMOUNTS)]] + edit[len(AMOUNTS) :]


def in_region(edit: list[float], region: dict[str, float]) -> list[float]:
    edit = list(edit)
    for name, value in region.items():
        if not edit[COLUMNS[name]]:  # what a look says itself stays
            edit[COLUMNS[name]] = value
    return edit
