#!/usr/bin/python3
"""Trains the network that cleans up compressed and noisy video, and writes it as a file of nonlocal's general format.

It learns from compressed.py's pairs. The loss is the mean of the logarithms of the crops' squared errors: as PSNR is
averaged over frames, so that every crop counts, whatever it has lost; and what a crop loses counts more than what it
gains, in PSNR and in SSIM, so that texture is left alone where it may be noise. It is stopped and resumed at any time:
--resume continues from the checkpoint.

Neighbouring samples are nearly equal, and a first convolution on them is learned slowly. It is learned on whitened
patches in their place, and folded into plain weights when it is saved: in three minutes that gains 0.48 dB on what is held
out, in place of 0.03."""
import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

import export
from compressed import TILE

DATA = "BSD400 (gray crops), McMaster, Set14, LIVE1 without the Kodak set's photographs"
LEAST_ERROR = 1e-5  # of values in [0, 1]: below 50 dB nothing is to be gained
SLOPE = 0.1  # of leaky ReLU
LIKELY_RESIDUAL = 0.02  # of values in [0, 1]: the last convolution is learned in this unit
LEAST_DISSIMILARITY = 0.005  # of 1 - SSIM: what is so much alike has nothing to lose
LEAST_DEVIATION = 1 / 255  # that whitening tells from none
BLOCK, ALIGNED = 4, 0.75  # the part of the crops on the grid of x264's blocks: decoded frames may be cut


def description(fine: int, coarse: int, layers: int, attention: bool) -> dict:
    """Two scales: blocks of 2x2 samples as `fine` channels, which keep what is sharp, and of 4x4 as `coarse` ones, which see
    further; convolutions 3x3. After the second of the coarse ones, if asked for, attention in windows of 8x8 blocks: 32x32
    samples."""
    net = [{"name": "unshuffle", "type": "pixel_unshuffle", "factor": BLOCK // 2}]

    def convolution(name: str, channels: int, activation: bool = True, **fields) -> str:
        net.append({"name": name, "type": "convolution", "channels": channels, "kernel": 3} | fields)
        if not activation:
            return name
        net.append({"name": f"{name}_relu", "type": "leaky_relu", "slope": SLOPE})
        return f"{name}_relu"

    head = convolution("head", fine)
    convolution("down", coarse, stride=2)
    for i in range(layers):
        if attention and i == 1:
            net.append({"name": "attention", "type": "window_attention", "window": 8, "heads": 2, "channels": 32})
        convolution(f"coarse{i}", coarse)
    convolution("up", 4 * fine, False, kernel=1)
    net.append({"name": "shuffle_up", "type": "pixel_shuffle", "factor": 2})
    net.append({"name": "both", "type": "add", "inputs": ["shuffle_up", head]})
    convolution("fine", fine)
    convolution("tail", (BLOCK // 2) ** 2, False)
    net.append({"name": "shuffle", "type": "pixel_shuffle", "factor": BLOCK // 2})
    return {"input": {"channels": 1, "range": [-0.5, 0.5], "border": "mirror"}, "residual": True, "layers": net}


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
        step = BLOCK if self.rng.random() < ALIGNED else 2
        top, left = (  # within a tile
            TILE * self.rng.integers(length // TILE) + step * self.rng.integers((TILE - side) // step + 1)
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


def loss_of(errors: torch.Tensor, before: torch.Tensor, harm: float) -> torch.Tensor:
    """Of the crops' squared errors, and those that they had. What a crop loses counts 1 + harm times."""
    worse = torch.log(errors) - torch.log(before)
    return (worse + harm * nn.functional.relu(worse)).mean()


def dissimilarities(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """1 - SSIM of crops (Z. Wang et al.: Image quality assessment, IEEE TIP 2004) over blocks of 8x8 samples, of which every
    fourth is taken down and across."""
    def mean(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.avg_pool2d(x, 8, 4)

    a, b = a + 0.5, b + 0.5
    of_a, of_b = mean(a), mean(b)
    variances = mean(a * a) - of_a**2 + mean(b * b) - of_b**2
    luminance = (2 * of_a * of_b + 0.01**2) / (of_a**2 + of_b**2 + 0.01**2)
    structure = (2 * (mean(a * b) - of_a * of_b) + 0.03**2) / (variances + 0.03**2)
    return 1 - (luminance * structure).mean((1, 2, 3)) + LEAST_DISSIMILARITY


class Whitened(nn.Module):
    """Weights [O, C, k, k] for patches whose C k² values have no covariance and one deviation. The sum of each is zero:
    what they see is as bright as it may be."""

    def __init__(self, planes: torch.Tensor, kernel: int):
        super().__init__()
        middle = planes[:, :, 2:-2, 2:-2]  # unfolding pads
        patches = nn.functional.unfold(middle, kernel)[:, :, ::3].transpose(1, 2).flatten(0, 1).double()
        values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
        scale = torch.rsqrt(values.clamp(min=0) + LEAST_DEVIATION**2)
        self.register_buffer("whitening", ((vectors * scale) @ vectors.T).float())

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        with torch.cpu.amp.autocast(enabled=False):
            flat = weight.float().flatten(1) @ self.whitening
            return (flat - flat.mean(1, keepdim=True)).reshape(weight.shape)


class Scaled(nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight * self.factor


def prepared(graph: export.Graph, crops: torch.Tensor) -> export.Graph:
    """With weights to begin with, and in the units that they are learned in. The frame comes out as it is."""
    convolutions = [m for m in graph.layers if isinstance(m, nn.Conv2d)]
    for convolution in convolutions:
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        nn.init.zeros_(convolution.bias)
    nn.init.zeros_(convolutions[-1].weight)
    whitened = Whitened(nn.functional.pixel_unshuffle(crops, BLOCK // 2), convolutions[0].kernel_size[0])
    # "unsafe": whether a weight of this form stays as it is, which it does not, is not checked.
    parametrize.register_parametrization(convolutions[0], "weight", whitened, unsafe=True)
    for name in ("weight", "bias"):
        parametrize.register_parametrization(convolutions[-1], name, Scaled(LIKELY_RESIDUAL), unsafe=True)
    return graph.to(memory_format=torch.channels_last)


@torch.no_grad()
def plain(graph: export.Graph, share: float) -> export.Graph:
    """The same with weights as they multiply, and `share` of the residual."""
    folded = export.Graph(graph.description)
    for module, learned in zip(folded.layers, graph.layers):
        if parametrize.is_parametrized(learned):
            module.load_state_dict({name: getattr(learned, name) for name in module.state_dict()})
        else:
            module.load_state_dict(learned.state_dict())
    last = [m for m in folded.layers if isinstance(m, nn.Conv2d)][-1]
    last.weight *= share
    last.bias *= share
    return folded


class Training:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        torch.manual_seed(options.seed)
        torch.set_num_threads(options.threads)
        crops, _ = Pairs(options.pairs, 0).batch(400, 96)
        if options.weights:
            self.graph = export.load(options.weights).to(memory_format=torch.channels_last)
        else:
            network = export.Graph(description(options.fine, options.coarse, options.layers, options.attention))
            self.graph = prepared(network, crops)
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
        export.save(plain(self.graph, self.options.share), out, self.provenance())

    def provenance(self) -> dict[str, str]:
        o = self.options
        return {
            "name": o.out.stem,
            "purpose": "luma of compressed, noisy or slightly blurred video",
            "trained_by": "tools/train/restore.py, on the pairs of tools/train/compressed.py",
            "trained_on": o.trained_on,
            "training": f"{self.steps} steps of {o.batch} crops of {o.crop}x{o.crop}, Adam from {o.rate:g}, harm {o.harm:g}, structure {o.structure:g}, seed {o.seed}, {o.share:g} of the residual",
            "held_out": self.history[-1] if self.history else "",
        }

    def progress(self) -> float:
        return min(1.0, self.steps / self.options.steps)

    def step(self) -> float:
        o = self.options
        rate = o.rate * min(1, (self.steps + 1) / 200) * (1 + np.cos(np.pi * self.progress())) / 2
        for group in self.optimizer.param_groups:
            group["lr"] = max(rate, o.rate / 100)
        coded, clean = self.pairs.batch(o.batch, o.crop)
        with torch.cpu.amp.autocast(enabled=o.bf16, dtype=torch.bfloat16):
            residual = self.graph(coded.contiguous(memory_format=torch.channels_last))
        restored = coded + residual.float()
        errors, before = squared_errors(restored, clean), squared_errors(coded, clean)
        loss = loss_of(errors, before, o.harm)
        if o.structure:
            worse = torch.log(dissimilarities(restored, clean)) - torch.log(dissimilarities(coded, clean))
            loss = loss + o.structure * nn.functional.relu(worse).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.graph.parameters(), 1.0)
        self.optimizer.step()
        self.steps += 1
        return float(10 * torch.log10(before / errors.detach()).mean())

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
    parser.add_argument("--steps", type=int, default=120_000, help="of training, those before --resume included")
    parser.add_argument("--fine", type=int, default=16)
    parser.add_argument("--coarse", type=int, default=48)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--attention", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--crop", type=int, default=128, help="a multiple of 32, the attention's window")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--harm", type=float, default=1, help="how much more what a crop loses counts than what it gains")
    parser.add_argument("--structure", type=float, default=0, help="how much it counts where a crop's SSIM falls")
    parser.add_argument("--share", type=float, default=1, help="of the learned residual that is saved: less is safer for texture")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report", type=float, default=2, help="minutes between reports")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trained-on", default=DATA, metavar="TEXT", help="which pictures, as the file tells it")
    parser.add_argument("--resume", type=Path, metavar="FILE.checkpoint")
    parser.add_argument("--weights", type=Path, metavar="FILE.safetensors", help="of a network to go on from, on other pairs")
    Training(parser.parse_args()).run()
