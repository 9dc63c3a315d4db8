#!/usr/bin/python3
"""PSNR on luma of pictures: noisy, estimated, refined. The noise is Gaussian, seeded, clipped and rounded to 8 bits."""
import argparse
import sys
from pathlib import Path

import cv2
import numpy as np
import torch

import safetensors
from estimate import BUILD, Estimate
from network import Refinement, load_network
from samples import camera_noise, picture_files, psnr, read_luma, to_8_bit

COLUMNS = ("noisy", "estimate", "refined")


def evaluate(path: Path, sigma: float, network: Refinement, estimate: Estimate, options) -> list[float]:
    """One picture's PSNR by column; the noise depends on the picture's name and sigma alone."""
    clean = read_luma(path)
    noisy = camera_noise(clean, sigma, np.random.default_rng([*path.stem.encode(), round(10 * sigma)]))
    g = estimate.filter(noisy, sigma, options.threads)
    refined = to_8_bit(network.refine(noisy, g, np.full(clean.shape, sigma, np.float32)))
    if options.pictures:
        for name, plane in zip(("clean", *COLUMNS), (clean, noisy, g, refined)):
            cv2.imwrite(str(options.pictures / f"{path.stem}_{sigma:g}_{name}.png"), plane)
    return [psnr(plane, clean) for plane in (noisy, g, refined)]


def main() -> None:
    formatter = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    add = parser.add_argument
    add("folder", type=Path, help="pictures")
    add("model", type=Path, help="weights, .safetensors")
    add("--sigma", type=float, nargs="+", default=[10, 25, 50])
    add("--build", type=Path, default=BUILD, help="build folder that has the target train_estimate")
    add("--threads", type=int, default=2)
    add("--pictures", type=Path, help="folder to write the planes to, as PNG")
    add("--each", action="store_true", help="a line for each picture")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    network = load_network(options.model)
    estimate = Estimate.from_text(safetensors.load(options.model)[1]["estimate"], options.build)
    files = picture_files(options.folder)
    cost = f"{network.flops / 1000:.1f} kFLOP a pixel"
    print(f"{options.model.name}: {cost}, estimate of {estimate}, {len(files)} pictures")
    print(f"{'sigma':>5} " + " ".join(f"{name:>9}" for name in COLUMNS))
    for sigma in options.sigma:
        rows = []
        for i, path in enumerate(files):
            if sys.stderr.isatty():
                print(f"\rsigma {sigma:g}: {i + 1} of {len(files)} ", end="", file=sys.stderr)
            rows.append(evaluate(path, sigma, network, estimate, options))
            if options.each:
                print(f"{path.stem:>12} " + " ".join(f"{value:9.2f}" for value in rows[-1]))
        if sys.stderr.isatty():
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
        print(f"{sigma:>5g} " + " ".join(f"{value:9.2f}" for value in np.mean(rows, 0)), flush=True)


if __name__ == "__main__":
    main()
