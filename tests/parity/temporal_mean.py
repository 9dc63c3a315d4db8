#!/usr/bin/python3
"""Makes the fixture of the mean with the frame before: frames, vectors, and what PyTorch makes of them.

temporal_mean.safetensors holds for each case "NAME.before" and "NAME.now", [C, H, W] in 8-bit code values of 128ths,
"NAME.vectors", [rows, columns, x and y] of squares of 8x8 samples in 16ths of one, "NAME.h", and "NAME.expected". The
formula is in lib/network/temporal_mean.h.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "train"))
import safetensors  # noqa: E402

SQUARE, UNITS, STEPS = 8, 16, 128
MOST = 32767 / STEPS  # of 15 bits
# name, channels, height, width, h, how far vectors go
CASES = [("gray", 1, 50, 61, 6.0, 40), ("colours", 3, 37, 44, 12.0, 20), ("beyond", 1, 19, 23, 30.0, 900), ("still", 1, 34, 40, 4.0, 0)]


def cubic(t: torch.Tensor) -> torch.Tensor:
    """R. Keys' kernel of a = -1/2."""
    t = t.abs()
    inner = 1.5 * t**3 - 2.5 * t**2 + 1
    outer = -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
    return torch.where(t < 1, inner, torch.where(t < 2, outer, torch.zeros_like(t)))


def moved(before: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """[C, H, W], each sample from where its square's vector says."""
    _, height, width = before.shape
    samples = vectors.repeat_interleave(SQUARE, 0).repeat_interleave(SQUARE, 1)[:height, :width] / UNITS
    y, x = torch.meshgrid(torch.arange(height).double(), torch.arange(width).double(), indexing="ij")
    x, y = x + samples[..., 0], y + samples[..., 1]
    out = torch.zeros_like(before)
    for row in range(-1, 3):
        for column in range(-1, 3):
            u, v = x.floor() + column, y.floor() + row
            taken = before[:, v.clamp(0, height - 1).long(), u.clamp(0, width - 1).long()]
            out += cubic(x - u) * cubic(y - v) * taken
    return out.clamp(0, MOST)


def mean(now: torch.Tensor, before: torch.Tensor, vectors: torch.Tensor, h: float) -> torch.Tensor:
    there = moved(before, vectors)
    _, height, width = now.shape
    squares = (now - there).square().mean(0)[None, None]
    even = functional.pad(squares, (0, width % 2, 0, height % 2), mode="replicate")
    cells = functional.avg_pool2d(even, 2)
    around = functional.avg_pool2d(functional.pad(cells, (1, 1, 1, 1), mode="replicate"), 3, 1)
    weights = torch.exp(-torch.maximum(around, cells / 2) / h**2)
    weights = functional.interpolate(weights, scale_factor=2)[0, 0, :height, :width]
    return (now + weights * there) / (1 + weights)


def make(channels: int, height: int, width: int, h: float, reach: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Waves that are alike in both frames for the most part, so that weights are of all sizes."""
    y, x = np.mgrid[:height, :width]
    waves = np.array([120 + 50 * np.sin(0.3 * x + c) * np.cos(0.2 * y) for c in range(channels)])
    noise = rng.normal(0, 1, (2, *waves.shape)) * np.linspace(0, 2 * h, width)
    before, now = (np.round(np.clip(waves + n, 0, 255) * STEPS) / STEPS for n in noise)
    vectors = rng.integers(-reach, reach + 1, (-(-height // SQUARE), -(-width // SQUARE), 2))
    expected = mean(*(torch.from_numpy(a) for a in (now, before, vectors)), h)
    return {"before": before, "now": now, "vectors": vectors, "h": np.array([h]), "expected": expected.numpy()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    generator = np.random.default_rng(7)
    tensors = {
        f"{name}.{part}": values.astype(np.float32)
        for name, *case in CASES
        for part, values in make(*case, generator).items()
    }
    safetensors.save(parser.parse_args().out / "temporal_mean.safetensors", tensors, {"made_by": "tests/parity/temporal_mean.py"})
