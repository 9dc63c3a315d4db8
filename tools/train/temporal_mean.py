#!/usr/bin/python3
"""Gives a network's file a mean with the frame before (lib/network/README.md), or another one; all else stays as it is.

temporal_mean.py IN.safetensors OUT.safetensors --h 4"""
import argparse
import json
import sys
from pathlib import Path

import safetensors
from description import check
from export import FORMAT, VERSION


def with_mean(metadata: dict[str, str], h: float) -> dict[str, str]:
    """`h` in 8-bit code values; 0: none."""
    if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"expected {FORMAT} {VERSION}, found {metadata.get('format')} {metadata.get('version')}")
    description = json.loads(metadata["network"])
    layers = description.pop("layers")
    description.pop("temporal_mean", None)
    description |= ({"temporal_mean": {"h": h}} if h else {}) | {"layers": layers}
    check(description)
    return metadata | {"network": json.dumps(description, separators=(",", ":"))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="IN.safetensors")
    parser.add_argument("out", type=Path, metavar="OUT.safetensors")
    parser.add_argument("--h", type=float, required=True, help="width of the weights, in 8-bit code values; 0: no mean")
    options = parser.parse_args()
    try:
        tensors, metadata = safetensors.load(options.source)
        safetensors.save(options.out, tensors, with_mean(metadata, options.h))
    except (OSError, ValueError) as error:
        sys.exit(f"temporal_mean.py: {options.source}: {error}")
