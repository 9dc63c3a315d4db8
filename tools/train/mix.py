#!/usr/bin/python3
"""Writes the weighed mean of networks that were trained on from the same weights, and so much of its residual.

Such means are as good as either, or better, and lie between them where they differ (M. Wortsman et al.: Model soups, ICML
2022)."""
import argparse
import sys
from pathlib import Path

import torch

import export
import restore


def weighed(text: str) -> tuple[Path, float]:
    path, _, weight = text.rpartition("=")
    return Path(path), float(weight)


def layers(network: export.Graph) -> dict:
    """All that weights depend on."""
    return {key: value for key, value in network.description.items() if key != "temporal_mean"}


def mean(networks: list[tuple[export.Graph, float]]) -> export.Graph:
    """With the first one's mean in time."""
    first, total = networks[0][0], sum(weight for _, weight in networks)
    if any(layers(network) != layers(first) for network, _ in networks):
        raise ValueError("expected networks of one description")
    states = [(network.state_dict(), weight / total) for network, weight in networks]
    first.load_state_dict({name: sum(state[name] * weight for state, weight in states) for name in states[0][0]})
    return first


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT.safetensors")
    parser.add_argument("networks", type=weighed, nargs="+", metavar="FILE.safetensors=WEIGHT")
    parser.add_argument("--share", type=float, default=1, help="of the residual that is saved")
    parser.add_argument("--metadata", nargs="*", default=[], metavar="KEY=TEXT", help="where the weights come from")
    options = parser.parse_args()
    try:
        with torch.no_grad():
            mixed = mean([(export.load(path), weight) for path, weight in options.networks])
        export.save(restore.plain(mixed, options.share), options.out, dict(entry.split("=", 1) for entry in options.metadata))
    except (OSError, ValueError) as error:
        sys.exit(f"mix.py: {error}")
