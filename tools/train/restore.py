#!/usr/bin/python3
"""Trains the network that cleans up compressed and noisy video, and writes it as a file of nonlocal's general format.

It learns from compressed.py's pairs. The loss is the mean of the logarithms of the crops' squared errors: as PSNR is
averaged over frames, so that every crop counts, whatever it has lost. It is stopped and resumed at any time: --resume
continues from the checkpoint."""
import argparse
import time
from pathlib import Path

import numpy as np
import torch

import export
from compressed import TILE

LEAST_ERROR = 1e-5  # of values in [0, 1]: below 50 dB nothing is to be gained


def description(channels: int, layers: int, attention: bool) -> dict:
    """Blocks of 4x4 samples as channels; convolutions 3x3, and after the first, if asked for, attention in windows of
    8x8 blocks: 32x32 samples. Of 16x16 they would take too long: 96 ms of cores a 1080p frame in place of 70."""
    net = [{"name": "unshuffle", "type": "pixel_unshuffle", "factor": 4}]
    for i in range(layers):
        net.append({"name": f"convolution{i}", "type": "convolution", "channels": channels, "kernel": 3})
        net.append({"name": f"relu{i}", "type": "relu"})
        if attention and i == 1:
            net.append({"name": "attention", "type": "window_attention", "window": 8, "heads": 2, "channels": 32})
    net.append({"name": "tail", "type": "convolution", "channels": 16, "kernel": 3})
    net.append({"name": "shuffle", "type": "pixel_shuffle", "factor": 4})
    return {"input": {"channels": 1, "range": [-0.5, 0.5]}, "residual": True, "layers": net}


class Pairs:
    """Crops of the clips in some folders, coded and clean, in [-0.5, 0.5]."""

    def __init__(self, folders: list[Path], seed: int):
        self.clips = [tuple(np.load(f / f"{name}.npy", mmap_mode="r") for name in ("coded", "clean")) for f in folders]
        self.rng = np.random.default_rng(seed)

    def batch(self, count: int, side: int) -> tuple[torch.Tensor, torch.Tensor]:
        crops = np.array([self.crop(side) for _ in range(count)])  # [count, coded or clean, y, x]
        both = torch.from_numpy(crops).float() / 255 - 0.5
        return both[:, :1], both[:, 1:]

    def crop(self, side: int) -> np.ndarray:
        coded, clean = self.clips[self.rng.integers(len(self.clips))]
        clip, frame = (self.rng.integers(n) for n in coded.shape[:2])
        # Within a tile; on any grid of even numbers, for decoded frames may be cut.
        top, left = (
            TILE * self.rng.integers(length // TILE) + 2 * self.rng.integers((TILE - side) // 2 + 1)
            for length in coded.shape[2:]
        )
        place = (clip, frame, slice(top, top + side), slice(left, left + side))
        pair = np.stack([coded[place], clean[place]])
        if self.rng.random() < 0.5:
            pair = pair[:, ::-1]
        if self.rng.random() < 0.5:
            pair = pair[:, :, ::-1]
        return pair.transpose(0, 2, 1) if self.rng.random() < 0.5 else pair


def squared_errors(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ((a - b) ** 2).mean((1, 2, 3)) + LEAST_ERROR


class Training:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        torch.manual_seed(options.seed)
        torch.set_num_threads(options.threads)
        self.graph = export.Graph(description(options.channels, options.layers, options.attention))
        self.graph.to(memory_format=torch.channels_last)
        tail = next(m for m, layer in zip(self.graph.layers, self.graph.description["layers"]) if layer["name"] == "tail")
        torch.nn.init.zeros_(tail.weight)  # to begin with the frame comes out as it is
        torch.nn.init.zeros_(tail.bias)
        self.optimizer = torch.optim.Adam(self.graph.parameters(), lr=options.rate)
        self.steps, self.seconds, self.history = 0, 0.0, []
        if options.resume:
            self.load(options.resume)
        self.pairs = Pairs(options.pairs, options.seed + self.steps)
        self.held_out = Pairs([options.held_out], 1).batch(160, 128)

    def load(self, path: Path) -> None:
        state = torch.load(path)
        self.graph.load_state_dict(state["graph"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps, self.seconds, self.history = state["steps"], state["seconds"], state["history"]

    def save(self) -> None:
        out = self.options.out
        state = {"graph": self.graph.state_dict(), "optimizer": self.optimizer.state_dict()}
        state |= {"steps": self.steps, "seconds": self.seconds, "history": self.history}
        partial = out.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(out.with_suffix(".checkpoint"))
        export.save(self.graph.eval(), out, self.provenance())
        self.graph.train()

    def provenance(self) -> dict[str, str]:
        o = self.options
        return {
            "name": o.out.stem,
            "purpose": "luma of compressed, noisy or slightly blurred video",
            "trained_by": "tools/train/restore.py, on the pairs of tools/train/compressed.py",
            "trained_on": "BSD400 (gray crops), McMaster, Set14, LIVE1 without the Kodak set's photographs",
            "training": f"{self.steps} steps of {o.batch} crops of {o.crop}x{o.crop}, Adam {o.rate:g}, seed {o.seed}",
            "held_out": self.history[-1] if self.history else "",
        }

    def progress(self) -> float:
        return min(1.0, self.seconds / (60 * self.options.minutes))

    def step(self) -> float:
        o = self.options
        rate = o.rate * min(1, (self.steps + 1) / 200) * (1 + np.cos(np.pi * self.progress())) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = max(rate, o.rate / 100)
        coded, clean = self.pairs.batch(o.batch, o.crop)
        with torch.cpu.amp.autocast(enabled=o.bf16, dtype=torch.bfloat16):
            residual = self.graph(coded.contiguous(memory_format=torch.channels_last))
        loss = torch.log(squared_errors(coded + residual.float(), clean)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return float(10 * torch.log10(squared_errors(coded, clean)).mean() - 10 / np.log(10) * loss.detach())

    def held_out_gain(self) -> float:
        """In dB, over the crops."""
        coded, clean = self.held_out
        with torch.no_grad():
            out = torch.cat([part + self.graph(part) for part in coded.split(16)])
        out = torch.round((out + 0.5).clamp(0, 1) * 255) / 255 - 0.5
        return float(10 * torch.log10(squared_errors(coded, clean) / squared_errors(out, clean)).mean())

    def report(self, gains: list[float]) -> None:
        line = (
            f"{100 * self.progress():.0f} %, step {self.steps}, {self.seconds / 60:.1f} min, "
            f"gain {np.mean(gains) if gains else 0:.3f} dB, held out {self.held_out_gain():.3f} dB"
        )
        print(f"{time.strftime('%H:%M:%S')} {self.options.out.stem}: {line}", flush=True)
        self.history.append(line)
        self.save()

    def run(self) -> None:
        gains, last_report = [], self.seconds
        self.report(gains)
        while self.progress() < 1:
            before = time.monotonic()
            gains.append(self.step())
            self.seconds += time.monotonic() - before
            if self.seconds - last_report > 60 * self.options.report:
                self.report(gains)
                gains, last_report = [], self.seconds
        self.report(gains)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="FILE.safetensors")
    parser.add_argument("--pairs", type=Path, nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--held-out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=60, help="of training, those before --resume included")
    parser.add_argument("--channels", type=int, default=48)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--attention", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--crop", type=int, default=128, help="a multiple of 32, the attention's window")
    parser.add_argument("--rate", type=float, default=7e-4)
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report", type=float, default=2, help="minutes between reports")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", type=Path, metavar="FILE.checkpoint")
    Training(parser.parse_args()).run()
