"""Training samples: crops of pictures, noisy as a camera or a temporal filter leaves them, and their estimate."""
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from estimate import Estimate

SETS = ("bsd400_gray", "live1", "mcmaster", "set14")

# 19 of LIVE1's 29 pictures are photographs of the Kodak set, which is for evaluation (found by matching SIFT
# features: 370 to 1100 agree on one similarity transform, between other pictures less than 80).
KODAK_IN_LIVE1 = """
    bikes buildings caps house lighthouse2 lighthouse3 ocean paintedhouse parrots plane rapids
    sailing1 sailing2 sailing3 sailing4 statue stream woman womanhat
""".split()

# For choosing between networks. LIVE1's monarch is in Set14 too.
HELD_OUT = {
    "bsd400_gray": [f"test_{i}" for i in range(393, 401)],
    "live1": ["coinsinfountain", "dancers", "manfishing"],
    "mcmaster": ["5", "12"],
    "set14": [],
}

LEAST_SIGMA, MOST_SIGMA = 0.5, 55.0
FUSED_SHARE = 0.4  # of the samples: what a temporal filter leaves
SMALL_SHARE = 0.1  # of the samples: sigma below 5, log-uniform


def read_luma(path: Path) -> np.ndarray:
    picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if picture is None:
        raise ValueError(f"{path}: expected a picture, OpenCV cannot read it")
    return cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)


def picture_files(folder: Path) -> list[Path]:
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".png", ".bmp", ".tif", ".jpg"))
    if not files:
        raise FileNotFoundError(f"{folder}: expected pictures, found none")
    return files


def training_pictures(data: Path) -> dict[str, list[np.ndarray]]:
    """By set, without what is held out and what belongs to the evaluation."""
    left_out = HELD_OUT | {"live1": HELD_OUT["live1"] + KODAK_IN_LIVE1}

    def pictures(name: str) -> list[np.ndarray]:
        return [read_luma(p) for p in picture_files(data / name) if p.stem not in left_out[name]]

    return {name: pictures(name) for name in SETS}


def held_out_pictures(data: Path, most: int = 256) -> list[np.ndarray]:
    """Their middle, at most `most` pixels wide and high."""
    pictures = []
    for name in SETS:
        for picture in (read_luma(p) for p in picture_files(data / name) if p.stem in HELD_OUT[name]):
            top, left = ((size - min(size, most)) // 2 for size in picture.shape)
            pictures.append(picture[top : top + most, left : left + most])
    return pictures


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    """Of planes in 8-bit code values."""
    return float(10 * np.log10(255**2 / np.mean((np.float64(a) - b) ** 2)))


def to_8_bit(plane: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(plane), 0, 255).astype(np.uint8)


def camera_noise(clean: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    return to_8_bit(clean + sigma * rng.standard_normal(clean.shape, np.float32))


def uneven_map(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Values in 0.15 to 1: smooth, in blocks, or smooth with another level inside a region of sharp border."""
    cells = int(rng.integers(2, 7))
    coarse = rng.uniform(0.15, 1, (cells, cells)).astype(np.float32)
    kind = rng.integers(3)
    interpolation = cv2.INTER_NEAREST if kind == 0 else cv2.INTER_LINEAR
    m = cv2.resize(coarse, (width, height), interpolation=interpolation)
    if kind == 2:
        corners = rng.uniform(0, (width, height), (int(rng.integers(3, 7)), 2)).astype(np.int32)
        region = cv2.fillPoly(np.zeros((height, width), np.uint8), [cv2.convexHull(corners)], 1)
        m[region > 0] = rng.uniform(0.5, 1)
    return m


def estimate_of_uneven(f: np.ndarray, s: np.ndarray, estimate: Estimate) -> np.ndarray:
    """Non-local means where the noise varies: estimates at three levels, between which each pixel interpolates."""
    deep = np.clip(np.rint(f * 256), 0, 65535).astype(np.uint16)
    levels = np.quantile(s, (0.1, 0.5, 0.9)) + (0, 1e-3, 2e-3)
    planes = [estimate.filter(deep, level).astype(np.float32) / 256 for level in levels]
    low = np.clip((s - levels[0]) / (levels[1] - levels[0]), 0, 1)
    high = np.clip((s - levels[1]) / (levels[2] - levels[1]), 0, 1)
    return planes[0] + low * (planes[1] - planes[0]) + high * (planes[2] - planes[1])


@dataclass
class Source:
    """Draws samples; one of each seed gives the same samples."""

    pictures: dict[str, list[np.ndarray]]
    estimate: Estimate
    rng: np.random.Generator

    def _picture(self) -> np.ndarray:
        """Half of the draws from BSD400, the others by area: few pictures, but large ones."""
        bsd = self.pictures["bsd400_gray"]
        if self.rng.random() < 0.5:
            return bsd[self.rng.integers(len(bsd))]
        others = [picture for name in SETS[1:] for picture in self.pictures[name]]
        areas = np.array([picture.size for picture in others], float)
        return others[self.rng.choice(len(others), p=areas / areas.sum())]

    def clean(self, least: int, most: int) -> np.ndarray:
        """A crop of `least` to `most` pixels a side of a picture, often scaled down, turned or mirrored."""
        picture = self._picture()
        smallest = max(0.6, least / min(picture.shape))
        if self.rng.random() < 0.6 and smallest < 1:
            scale = self.rng.uniform(smallest, 1)
            size = [max(least, round(scale * side)) for side in picture.shape[::-1]]
            picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
        sides = [min(most, side) for side in picture.shape]
        top, left = (int(self.rng.integers(a - b + 1)) for a, b in zip(picture.shape, sides))
        crop = picture[top : top + sides[0], left : left + sides[1]]
        crop = np.rot90(crop, self.rng.integers(4))
        return np.ascontiguousarray(crop[::-1] if self.rng.random() < 0.5 else crop, np.float32)

    def sigma(self) -> float:
        if self.rng.random() < SMALL_SHARE:
            return float(np.exp(self.rng.uniform(np.log(LEAST_SIGMA), np.log(5))))
        return float(self.rng.uniform(2, MOST_SIGMA))

    def planes(self, least: int, most: int) -> np.ndarray:
        """f, g, s and clean, [4, height, width]."""
        clean, sigma = self.clean(least, most), self.sigma()
        if self.rng.random() < FUSED_SHARE:
            s = sigma * uneven_map(self.rng, *clean.shape)
            f = np.clip(clean + s * self.rng.standard_normal(clean.shape, np.float32), 0, 255)
            return np.stack([f, estimate_of_uneven(f, s, self.estimate), s, clean])
        noisy = camera_noise(clean, sigma, self.rng)
        s = np.full(clean.shape, sigma)
        return np.stack([noisy, self.estimate.filter(noisy, sigma), s, clean]).astype(np.float32)


class Pool:
    """Patches [4, side, side] to draw batches from; `renew` replaces the oldest, each drawn a few times before."""

    def __init__(self, source: Source, side: int, size: int):
        self.source, self.side = source, side
        self.patches = np.empty((size, 4, side, side), np.float32)
        self.next = self.filled = 0

    def renew(self, count: int) -> None:
        """Several patches come from one crop, so that less of the estimate's work is thrown away."""
        done = 0
        while done < count:
            planes = self.source.planes(self.side, max(180, self.side * 3 // 2))
            height, width = planes.shape[1:]
            share = max(1, round(height * width / self.side**2))
            for _ in range(min(share, count - done)):
                top = self.source.rng.integers(height - self.side + 1)
                left = self.source.rng.integers(width - self.side + 1)
                self.patches[self.next] = planes[:, top : top + self.side, left : left + self.side]
                self.next = (self.next + 1) % len(self.patches)
                self.filled = min(self.filled + 1, len(self.patches))
                done += 1

    def batch(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """[size, 4, side, side], all turned and mirrored alike, another way each time."""
        patches = self.patches[rng.integers(self.filled, size=size)]
        patches = np.rot90(patches, rng.integers(4), (2, 3))
        return np.ascontiguousarray(patches[..., ::-1] if rng.random() < 0.5 else patches)
