#!/usr/bin/python3
"""Writes the weighed mean of two states of `grade` on one path of training, with the second's metadata.

The mean forgets less of what the first knew than the second did (see mix.py, which does the same to networks)."""
import argparse
from pathlib import Path

import safetensors

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.safetensors")
    parser.add_argument("first", type=Path, metavar="FIRST.safetensors")
    parser.add_argument("second", type=Path, metavar="SECOND.safetensors")
    parser.add_argument("--share", type=float, default=0.5, help="of the second")
    parser.add_argument("--training", help="metadata: how the weights came about")
    options = parser.parse_args()
    (first, _), (second, metadata) = safetensors.load(options.first), safetensors.load(options.second)
    if {name: t.shape for name, t in first.items()} != {name: t.shape for name, t in second.items()}:
        raise SystemExit("grade_mix.py: expected models of the same tensors")
    mixed = {name: (first[name] * (1 - options.share) + second[name] * options.share).astype(first[name].dtype) for name in first}
    safetensors.save(options.out, mixed, metadata | {"name": "grade"} | ({"training": options.training} if options.training else {}))
