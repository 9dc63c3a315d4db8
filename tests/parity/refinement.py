#!/usr/bin/python3
"""Makes the fixtures of the refinement network: small random networks, planes, and what PyTorch makes of them.

Each file is a network's file (see tools/train/network.py) that also holds "input.f", "input.g", "input.s" and
"expected", [height, width] each, in 8-bit code values. Sizes that are no multiple of the unshuffling are mirrored
further to the right and the bottom.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "train"))
import network as refinement  # noqa: E402
import safetensors  # noqa: E402

# name, unshuffle, layers, channels, height, width
FIXTURES = [
    ("refinement_r2", 2, 3, 16, 29, 37),
    ("refinement_r2_even", 2, 4, 16, 32, 24),
    ("refinement_r4", 4, 3, 16, 29, 37),
    ("refinement_r4_odd", 4, 3, 16, 31, 42),
]


def planes(rng: np.random.Generator, height: int, width: int) -> list[np.ndarray]:
    """A noisy picture of waves and an edge, another with less noise for its estimate, a noise map that varies."""
    y, x = np.mgrid[:height, :width]
    clean = 128 + 60 * np.sin(0.3 * x + 0.1 * y) + 40 * (x + 2 * y > height)
    s = 2 + 30 * (x + y) / (height + width) + 10 * (y > height // 2)
    f = clean + s * rng.standard_normal((height, width))
    g = clean + 0.2 * s * rng.standard_normal((height, width))
    return [np.clip(p, 0, 255).astype(np.float32) for p in (f, g)] + [s.astype(np.float32)]


def make(seed: int, unshuffle: int, layers: int, channels: int, height: int, width: int) -> tuple[dict, dict]:
    """Random weights, biases too, such that the network moves g by several code values."""
    torch.manual_seed(seed)
    network = refinement.Refinement(unshuffle, layers, channels)
    for i in range(layers):
        convolution = getattr(network, f"conv{i}")
        torch.nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        torch.nn.init.normal_(convolution.bias, std=0.05)
    with torch.no_grad():
        convolution.weight.mul_(0.1)
    f, g, s = planes(np.random.default_rng(seed), height, width)
    # In double precision: the fixture's own error is that of rounding to F32.
    expected = network.double().refine(f, g, s).astype(np.float32)
    network.float()
    moved = np.abs(expected - g).mean()
    if not 2 < moved < 60:
        raise RuntimeError(f"expected a network that moves g by 2 to 60 code values, found {moved:.1f}")
    tensors = refinement.weights(network) | {"input.f": f, "input.g": g, "input.s": s}
    return tensors | {"expected": expected}, refinement.shape_metadata(network)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    folder = parser.parse_args().folder
    for seed, (name, *shape) in enumerate(FIXTURES):
        tensors, metadata = make(seed, *shape)
        safetensors.save(folder / f"{name}.safetensors", tensors, metadata)
        print(f"{name}: mean |expected - g| {np.abs(tensors['expected'] - tensors['input.g']).mean():.2f}")


if __name__ == "__main__":
    main()
