#!/usr/bin/python3
"""Writes the network without learned weights: the Gaussian non-local mean of patches, as window attention.

Each block of 2x2 samples becomes the mean of its window's blocks, 16x16 of them, weighted with exp(-d²/h²) (A. Buades et
al.: A non-local algorithm for image denoising, CVPR 2005), where d² is the mean squared difference of the patches of 6x6
samples around the blocks, in 8-bit code values. As -d² = 2 <x, y> - |x|² - |y|² and softmax does not see |x|², which is one
for all of a query's keys, attention with the queries [2 x, 1] and the keys [y, -|y|²] / h² computes it."""
import argparse
import math
from pathlib import Path

import torch

import export

BLOCK, PATCH, WINDOW = 2, 6, 16
SAMPLES = PATCH**2
WIDTH = SAMPLES + 1  # of a key: the patch, and its length


def description() -> dict:
    condition = {"name": "h", "minimum": 0.5, "maximum": 255, "default": 10, "power": -2}
    layers = [
        {"name": "blocks", "type": "pixel_unshuffle", "factor": BLOCK},
        {"name": "patch", "type": "convolution", "channels": SAMPLES, "kernel": 3, "bias": False},
        {"name": "squares", "type": "multiply", "inputs": ["patch", "patch"]},
        {"name": "length", "type": "convolution", "channels": 1, "kernel": 1, "bias": False},
        {"name": "key", "type": "concatenate", "inputs": ["patch", "length"]},
        {"name": "told", "type": "concatenate", "inputs": ["key", "condition"]},
        {"name": "scale", "type": "convolution", "channels": WIDTH, "kernel": 1, "bias": False},
        {"name": "scaled_key", "type": "multiply", "inputs": ["key", "scale"]},
        {"name": "both", "type": "concatenate", "inputs": ["scaled_key", "patch"]},
        {"name": "mean", "type": "window_attention", "window": WINDOW, "channels": WIDTH, "residual": False},
        {"name": "mean_block", "type": "convolution", "channels": BLOCK**2, "kernel": 1, "bias": False},
        {"name": "out", "type": "pixel_shuffle", "factor": BLOCK},
    ]
    # Mid-gray is 0, as what convolutions see beyond the frame.
    return {"input": {"channels": 1, "range": [-127.5, 127.5], "condition": condition}, "precision": "f32", "layers": layers}


def block_channel(y: int, x: int) -> tuple[int, int, int]:
    """Of a patch's sample: the channel, and the block among 3x3 that has it."""
    return (y % BLOCK) * BLOCK + x % BLOCK, y // BLOCK, x // BLOCK


@torch.no_grad()
def filled() -> export.Graph:
    graph = export.Graph(description())
    by_name = dict(zip((layer["name"] for layer in graph.description["layers"]), graph.layers))
    for parameter in graph.parameters():
        parameter.zero_()
    for i in range(SAMPLES):
        channel, row, column = block_channel(i // PATCH, i % PATCH)
        by_name["patch"].weight[i, channel, row, column] = 1
    by_name["length"].weight.fill_(-1 / SAMPLES)
    by_name["scale"].weight[:, WIDTH] = 1
    attention = by_name["mean"]
    root = math.sqrt(WIDTH)  # by which attention divides
    for i in range(SAMPLES):
        attention.query.weight[i, WIDTH + i] = 2 * root / SAMPLES
        attention.key.weight[i, i] = 1
    attention.query.bias[SAMPLES] = root
    attention.key.weight[SAMPLES, SAMPLES] = 1
    middle = (PATCH - BLOCK) // 2
    for i in range(BLOCK**2):
        sample = (middle + i // BLOCK) * PATCH + middle + i % BLOCK
        attention.value.weight[i, WIDTH + sample] = 1
        attention.out.weight[i, i] = 1
        by_name["mean_block"].weight[i, i] = 1
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="FILE.safetensors")
    metadata = {
        "name": "gaussian",
        "purpose": "luma, or R, G and B each: the Gaussian non-local mean",
        "trained_by": "nothing: tools/train/gaussian.py writes its weights from the formula",
    }
    export.save(filled(), parser.parse_args().out, metadata)


if __name__ == "__main__":
    main()
