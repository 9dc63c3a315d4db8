#!/usr/bin/python3
"""Fits the constants of filter_h and chroma_parameters (lib/denoise/non_local_means.cpp) to the highest mean PSNR.

For each patch size, search size and sigma it looks for the h of the highest mean PSNR over the training pictures:
uphill in equal steps of log h, then the peak of the parabola through the highest and its neighbours. The parabola's
curvature says what missing the peak costs; the formula's constants are those that cost least. Their gain on the
library's is then measured with the filter itself, also on pictures held out.

Pictures are those that the networks learn from (see samples.py; none is of the Kodak set): the middle 256x256 of each,
of BSD400 every fourth. Noise is Gaussian, seeded, clipped and rounded to 8 bits. Chroma is what YCbCr 4:2:0 has, with
noise of its own."""
import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from estimate import BUILD, Estimate, chroma_estimate, filter_h
from samples import HELD_OUT, KODAK_IN_LIVE1, SETS, camera_noise, picture_files, psnr

SIGMAS = (5, 10, 15, 25, 35, 50)
PATCHES = (3, 5, 7, 9)
SEARCHES = (11, 21)
BSD_EVERY = 4
SIDE = 256
STEP = 0.12  # of log h
SMALLEST_SIGMA, LARGEST_SIGMA = 3, 50  # between which the formula for h changes with sigma


@dataclass(frozen=True)
class Cell:
    patch: int
    search: int
    sigma: float
    planes: int = 1

    @property
    def terms(self) -> int:
        return self.patch**2 * self.planes

    @property
    def window(self) -> float:
        return (15 / self.search) ** 0.25


@dataclass(frozen=True)
class Peak:
    ratio: float  # h / sigma
    psnr: float
    curvature: float  # psnr falls by curvature * (log ratio - log of the peak's)^2


@dataclass(frozen=True)
class LumaLaw:
    """h / sigma = (a + b / terms - max(0, c + d / terms) * log(sigma / 10)) * (15 / search)^0.25, as in filter_h."""

    a: float
    b: float
    c: float
    d: float

    def ratio(self, cell: Cell) -> float:
        decades = np.log(np.clip(cell.sigma, SMALLEST_SIGMA, LARGEST_SIGMA) / 10)
        return cell.window * (self.a + self.b / cell.terms - max(0, self.c + self.d / cell.terms) * decades)

    @staticmethod
    def fit(peaks: dict[Cell, Peak]) -> "LumaLaw":
        """Weighted least squares, which takes log ratio for linear near the peaks."""
        rows = [(1, 1 / c.terms, -np.log(c.sigma / 10), -np.log(c.sigma / 10) / c.terms) for c in peaks]
        ratios = np.array([peak.ratio / cell.window for cell, peak in peaks.items()])
        weights = np.sqrt([peak.curvature for peak in peaks.values()]) / ratios
        constants = np.linalg.lstsq(np.array(rows) * weights[:, None], ratios * weights, rcond=None)[0]
        return LumaLaw(*(round(float(value), 2) for value in constants))

    def __str__(self) -> str:
        return f"at_sigma_10 = {self.a:g} + {self.b:g} / terms, fall = max(0, {self.c:g} + {self.d:g} / terms)"


@dataclass(frozen=True)
class ChromaLaw:
    """Luma's h times min(a + b * sigma, most), as in chroma_parameters."""

    luma: LumaLaw
    a: float
    b: float
    most: float

    def ratio(self, cell: Cell) -> float:
        return self.luma.ratio(cell) * min(self.a + self.b * cell.sigma, self.most)

    @staticmethod
    def fit(luma: LumaLaw, peaks: dict[Cell, Peak]) -> "ChromaLaw":
        """The best of a grid."""
        grid = np.meshgrid(np.arange(0.3, 1.5, 0.05), np.arange(0, 0.1, 0.0025), np.arange(1, 4, 0.05))
        cost = np.zeros_like(grid[0])
        for cell, peak in peaks.items():
            factor = np.minimum(grid[0] + grid[1] * cell.sigma, grid[2])
            cost += peak.curvature * np.log(factor * luma.ratio(cell) / peak.ratio) ** 2
        best = cost.argmin()
        return ChromaLaw(luma, *(round(float(axis.flat[best]), 4) for axis in grid))

    def __str__(self) -> str:
        return f"strength = luma.strength * min({self.a:g} + {self.b:g} * luma.sigma, {self.most:g})"


def middle(picture: np.ndarray) -> np.ndarray:
    top, left = ((size - min(size, SIDE)) // 2 // 2 * 2 for size in picture.shape[:2])
    return picture[top : top + SIDE, left : left + SIDE]


def luma_of(picture: np.ndarray) -> np.ndarray:
    return cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)


def chroma_of(picture: np.ndarray) -> np.ndarray:
    """[2, height / 2, width / 2]"""
    planes = cv2.cvtColor(picture, cv2.COLOR_BGR2YCrCb)[..., 1:]
    return np.stack([cv2.resize(planes[..., i], None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for i in (1, 0)])


def read_pictures(data: Path, sets: Iterable[str], held_out: bool) -> list[np.ndarray]:
    """Their middle, [height, width, 3], without those of the Kodak set."""
    pictures = []
    for name in sets:
        files = [path for path in picture_files(data / name) if (path.stem in HELD_OUT[name]) == held_out]
        if name == "live1":
            files = [path for path in files if path.stem not in KODAK_IN_LIVE1]
        if name == "bsd400_gray" and not held_out:
            files = files[::BSD_EVERY]
        pictures += [middle(cv2.imread(str(path), cv2.IMREAD_COLOR)) for path in files]
    return pictures


class Pictures:
    """Clean planes and their noisy ones at every sigma."""

    def __init__(self, clean: list[np.ndarray]):
        self.clean = clean
        self.noisy = {
            sigma: [camera_noise(p, sigma, np.random.default_rng([i, sigma])) for i, p in enumerate(clean)]
            for sigma in SIGMAS
        }

    def psnr(self, cell: Cell, ratio: float, build: Path) -> float:
        """Mean over the pictures, filtered with h = ratio * sigma."""
        strength = ratio * cell.sigma / filter_h(cell.patch, cell.search, cell.sigma, cell.planes, build)
        estimate = Estimate(cell.patch, cell.search, strength, build)
        pairs = zip(self.clean, self.noisy[cell.sigma])
        return float(np.mean([psnr(estimate.filter(noisy, cell.sigma), clean) for clean, noisy in pairs]))


def find_peak(psnr_at: Callable[[float], float], start: float) -> Peak:
    """Of a function of the ratio, uphill from `start`."""
    known: dict[int, float] = {}

    def value(i: int) -> float:
        if i not in known:
            known[i] = psnr_at(start * np.exp(i * STEP))
        return known[i]

    top = 0
    while (best := max((top, top - 1, top + 1), key=value)) != top:
        top = best
    low, high = value(top - 1) - value(top), value(top + 1) - value(top)
    bend = -(low + high) / 2
    shift = (high - low) / 4 / bend
    return Peak(start * np.exp((top + shift) * STEP), value(top) + bend * shift**2, bend / STEP**2)


def with_progress(cells: list[Cell], what: str) -> Iterator[Cell]:
    begin = time.monotonic()
    for i, cell in enumerate(cells):
        left = f"{(time.monotonic() - begin) / i * (len(cells) - i):.0f} s left" if i else ""
        print(f"\r{what}: {i / len(cells):4.0%}  {left:<12}", end="", file=sys.stderr, flush=True)
        yield cell
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)


def report(law, present, peaks: dict[Cell, Peak], sets: dict[str, Pictures], build: Path, what: str) -> None:
    """One line for each cell: h / sigma at the peak, of the library and of `law`, and the law's gain in dB."""
    lines, gains = [], []
    for cell in with_progress(list(peaks), f"{what}, gain"):
        now, then = present(cell), law.ratio(cell)
        gains.append([s.psnr(cell, then, build) - s.psnr(cell, now, build) for s in sets.values()])
        ratios = f"{peaks[cell].ratio:5.2f} {now:7.2f} {then:6.2f}"
        lines.append(f"{cell.patch:5} {cell.search:6} {cell.sigma:5} | {ratios} | {peaks[cell].psnr:7.2f} | ")
        lines[-1] += " ".join(f"{gain:+8.3f}" for gain in gains[-1])
    print(f"{what}: {law}\npatch search sigma | h / sigma: peak, library, fit | PSNR at the peak | fit - library, dB")
    print("\n".join(lines))
    for (name, pictures), gain in zip(sets.items(), np.mean(gains, 0)):
        print(f"mean, {name} ({len(pictures.clean)} pictures): {gain:+.4f} dB")
    print(flush=True)


def fit(law_of, present, cells: list[Cell], sets: dict[str, Pictures], build: Path, what: str):
    peaks = {
        cell: find_peak(lambda ratio: sets["training"].psnr(cell, ratio, build), present(cell))
        for cell in with_progress(cells, what)
    }
    law = law_of(peaks)
    report(law, present, peaks, sets, build, what)
    return law


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds " + ", ".join(SETS))
    parser.add_argument("--build", type=Path, default=BUILD, help="build folder that has the target train_estimate")
    options = parser.parse_args()
    build, held_out = options.build, {"training": False, "held out": True}

    def luma_ratio(cell: Cell) -> float:
        return filter_h(cell.patch, cell.search, cell.sigma, cell.planes, build) / cell.sigma

    def chroma_ratio(cell: Cell) -> float:
        return luma_ratio(cell) * chroma_estimate(Estimate(cell.patch, cell.search, 1, build), cell.sigma).strength

    def pictures(sets: Iterable[str], planes_of) -> dict[str, Pictures]:
        return {
            name: Pictures([planes_of(p) for p in read_pictures(options.data, sets, held)])
            for name, held in held_out.items()
        }

    cells = [Cell(patch, search, sigma) for patch in PATCHES for search in SEARCHES for sigma in SIGMAS]
    luma = fit(LumaLaw.fit, luma_ratio, cells, pictures(SETS, luma_of), build, "luma")
    searches = {chroma_estimate(Estimate(PATCHES[0], size, 1, build), SIGMAS[0]).search_size for size in SEARCHES}
    cells = [Cell(patch, search, sigma, 2) for patch in PATCHES[:2] for search in sorted(searches) for sigma in SIGMAS]
    colour = pictures([name for name in SETS if name != "bsd400_gray"], chroma_of)
    fit(partial(ChromaLaw.fit, luma), chroma_ratio, cells, colour, build, "chroma")


if __name__ == "__main__":
    main()
