#!/usr/bin/python3
"""Makes a network's file ready for 8 bits: tells what lies between its layers, each channel's smallest and largest value
("NAME.range"), and if asked for moves its weights to where rounding them and those values costs less.

The frames are bytes, [..., H, W] in .npy files such as compressed.py's coded.npy, with the planes of several channels
before H. What the network itself makes of them, unrounded, is what it learns from, rounded and not: what it does stays
what it is, and nothing else has to be known of its training.

Ranges are those with the least squared error for each channel (what lies beyond is clamped). Training rounds forwards and
goes straight through backwards (B. Jacob et al., CVPR 2018)."""
import argparse
import copy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

import export
from description import inputs_of

ACTIVATIONS = ("relu", "leaky_relu")
FOLLOWING = (*ACTIVATIONS, "batch_norm")  # a convolution
SHUFFLES = ("pixel_shuffle", "pixel_unshuffle")
ATTENTIONS = ("attention", "window_attention")
KNOWN = ("convolution", "add", *FOLLOWING, *SHUFFLES, *ATTENTIONS)
MEANS = ".value"  # behind an attention's name: the means of the values, which are projected
MOST_BYTE, MOST_WEIGHT = 255, 127
LEAST_SHARE = 1e-3  # as lib/network/quantisation.cpp
SHRUNK = np.linspace(0.2, 1, 41)  # ranges that are tried, as shares of the whole


class Grid:
    """Of bytes, as the library takes it from a range [2, C]."""

    def __init__(self, limits: np.ndarray):
        low, high = torch.from_numpy(limits).float()
        low, high = low.clamp(max=0), high.clamp(min=0)
        shares = (-low / (high - low).clamp(min=1e-20)).sort().values
        signed = bool((low < 0).any())
        self.zero = float(torch.round(MOST_BYTE * shares[len(shares) // 2]).clamp(16, 240)) if signed else 0.0
        scale = torch.maximum(-low / self.zero if signed else low, high / (MOST_BYTE - self.zero))
        self.scale = torch.maximum(scale, LEAST_SHARE * scale.max()).clamp(min=1e-20)

    def rounded(self, values: torch.Tensor, channels: int = 1) -> torch.Tensor:
        """With the gradient of the values themselves, where they are not clamped."""
        zeros = torch.full(self.scale.shape, int(self.zero), dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(values, self.scale, zeros, channels, 0, MOST_BYTE)


class Rounding(nn.Module):
    """What a parameter or a layer's output is while `is_on`; itself otherwise."""

    is_on = True

    def __init__(self, rounded):
        super().__init__()
        self.rounded = rounded

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.rounded(values) if Rounding.is_on else values


def rounded_weights(weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """As bytes of `scale` are multiplied by them: whole steps, of each output channel's own."""
    scale = scale.reshape(1, -1, 1, 1)
    scaled = weight * scale
    step = (scaled.detach().abs().flatten(1).max(1).values / MOST_WEIGHT).clamp(min=1e-20).reshape(-1, 1, 1, 1)
    return (scaled + (torch.round(scaled / step) * step - scaled).detach()) / scale


@torch.no_grad()
def rounded_together(weight: torch.Tensor) -> torch.Tensor:
    """What multiplies the frame's samples: each takes up what rounding left of those before it, tap by tap."""
    rows = weight.flatten(2).transpose(1, 2).flatten(1)
    step = rows.abs().max(1).values / MOST_WEIGHT
    left, rounded = torch.zeros(len(rows)), torch.zeros_like(rows)
    for i in range(rows.shape[1]):
        wanted = rows[:, i] / step + left
        rounded[:, i] = torch.round(wanted).clamp(-MOST_WEIGHT, MOST_WEIGHT)
        left = wanted - rounded[:, i]
    taps = weight.shape[2] * weight.shape[3]
    return (rounded * step[:, None]).reshape(len(rows), taps, -1).transpose(1, 2).reshape(weight.shape)


class Tensors:
    """What of a graph may be bytes, and who multiplies it: the rules of lib/network/quantisation.cpp for the layers of
    KNOWN."""

    def __init__(self, graph: export.Graph):
        self.layers = {layer["name"]: layer for layer in graph.description["layers"]}
        self.modules = dict(zip(self.layers, graph.layers))
        self.inputs = {name: inputs_of(layer, before) for (name, layer), before in zip(self.layers.items(), ["input", *self.layers])}
        self.readers = {name: [n for n in self.layers if name in self.inputs[n]] for name in ["input", *self.layers]}
        self.frame = {"input"}
        for name in self.layers:
            if self.type(name) == "pixel_unshuffle" and self.inputs[name][0] in self.frame:
                self.frame.add(name)
        self.may = set(self.layers) - self.frame - {graph.output}
        while refused := {n for n in self.may if not self.can_write(n) or not all(map(self.can_read, self.readers[n]))}:
            self.may -= refused

    def type(self, name: str) -> str:
        return self.layers[name]["type"]

    def is_byte(self, name: str) -> bool:
        return name in self.may or name in self.frame

    def chain(self, name: str) -> list[str]:
        """The layers that are one with a convolution, up to this; none where it is by itself."""
        if name == "input" or self.type(name) == "convolution":
            return [name][: name != "input"]
        order = list(self.layers).index
        for source in sorted(self.inputs[name], key=lambda n: order(n) if n in self.layers else -1, reverse=True):
            before = self.chain(source)
            if before and self.readers[source] == [name] and self.goes_on([self.type(n) for n in before], self.type(name)):
                return [*before, name]
        return []

    @staticmethod
    def goes_on(before: list[str], kind: str) -> bool:
        if kind in ACTIVATIONS:
            return not any(a in before for a in ACTIVATIONS)
        return "add" not in before if kind == "add" else kind == "batch_norm" and before == ["convolution"]

    def can_write(self, name: str) -> bool:
        chain = self.chain(name)
        sources = {source for n in chain or [name] for source in self.inputs[n]} - set(chain)
        is_known = self.type(name) in KNOWN and (chain or self.type(name) not in FOLLOWING)
        return is_known and all(map(self.is_byte, sources)) and (not chain or self.layers[chain[0]].get("groups", 1) == 1)

    def can_read(self, name: str) -> bool:
        """Convolutions may write floating point, the others what they read."""
        return name in self.may or (self.type(name) == "convolution" and self.layers[name].get("groups", 1) == 1)

    def rounded(self) -> list[str]:
        """Those that are written: not what is within a chain, or shuffled afterwards."""
        def is_taken_up(name: str) -> bool:
            readers = self.readers[name]
            return len(readers) == 1 and (self.type(readers[0]) in SHUFFLES or name in self.chain(readers[0]))

        return [name for name in self.layers if name in self.may and not is_taken_up(name)]

    def attentions(self) -> list[str]:
        return [name for name in self.layers if self.type(name) in ATTENTIONS and name in self.may]

    def added(self) -> list[tuple[str, str]]:
        """Where a convolution adds to what is there, that and its output: they lie in one grid."""
        pairs = [(self.inputs[name][0], name) for name in self.attentions() if self.layers[name].get("residual", True)]
        for name in self.rounded():
            chain = self.chain(name)
            pairs += [(source, name) for n in chain if self.type(n) == "add" for source in self.inputs[n] if source not in chain]
        return pairs

    def convolutions(self) -> list[tuple[nn.Conv2d, str]]:
        """With the tensor of bytes that each reads, the frame's apart."""
        found = []
        for name, module in self.modules.items():
            source = self.inputs[name][0]
            if isinstance(module, nn.Conv2d) and source in self.may and module.groups == 1:
                found.append((module, source))
        for name in self.attentions():
            module = self.modules[name]
            found += [(part, self.inputs[name][0]) for part in (module.query, module.key, module.value)]
            found.append((module.out, name + MEANS))
        return found

    def of_frame(self) -> list[nn.Conv2d]:
        return [m for name, m in self.modules.items() if isinstance(m, nn.Conv2d) and self.inputs[name][0] in self.frame and m.groups == 1]

    def hook(self, name: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> torch.utils.hooks.RemovableHandle:
        """Calls `change` for the tensor; what it returns, if anything, is in its place."""
        if name.endswith(MEANS):
            out = self.modules[name.removesuffix(MEANS)].out
            return out.register_forward_pre_hook(lambda _m, inputs: change(inputs[0]))
        return self.modules[name].register_forward_hook(lambda _m, _i, output: change(output))

    def all(self) -> list[str]:
        return self.rounded() + [name + MEANS for name in self.attentions()]


@torch.no_grad()
def least_error_range(values: torch.Tensor) -> np.ndarray:
    """[2, C] for values [C, N]."""
    whole = torch.stack([values.min(1).values.clamp(max=0), values.max(1).values.clamp(min=0)]).numpy()
    best, least = whole.copy(), np.full(len(values), np.inf)
    zero = Grid(whole).zero
    for share in SHRUNK:
        grid = Grid(whole)
        grid.zero, grid.scale = zero, grid.scale * share
        error = (grid.rounded(values, 0) - values).square().mean(1).numpy()
        scale = grid.scale.numpy()
        limits = np.stack([-scale * zero, scale * (MOST_BYTE - zero)]).astype(np.float32)
        best = np.where(error < least, limits, best)
        least = np.minimum(error, least)
    return best


@torch.no_grad()
def measure_ranges(graph: export.Graph, tensors: Tensors, crops: list[torch.Tensor]) -> dict[str, np.ndarray]:
    seen: dict[str, list[torch.Tensor]] = {name: [] for name in tensors.all()}
    hooks = [tensors.hook(name, lambda values, name=name: seen[name].append(values.transpose(0, 1).flatten(1))) for name in seen]
    for crop in crops:
        graph(crop)
    for hook in hooks:
        hook.remove()
    ranges = {name: least_error_range(torch.cat(parts, 1)) for name, parts in seen.items()}
    while True:
        before = dict(ranges)
        for a, b in tensors.added():
            both = np.stack([ranges[a], ranges[b]])
            ranges[a] = ranges[b] = np.stack([both[:, 0].min(0), both[:, 1].max(0)])
        if all(np.array_equal(before[name], ranges[name]) for name in ranges):
            return ranges


class Crops:
    def __init__(self, files: list[Path], graph: export.Graph, side: int, seed: int):
        self.frames = [np.load(file, mmap_mode="r") for file in files]
        self.channels, self.side = graph.description["input"]["channels"], side
        self.low, self.high = graph.description["input"].get("range", [0, 1])
        self.rng = np.random.default_rng(seed)

    def batch(self, count: int) -> torch.Tensor:
        return torch.cat([self.one() for _ in range(count)])

    def one(self) -> torch.Tensor:
        frames = self.frames[self.rng.integers(len(self.frames))]
        height, width = frames.shape[-2:]
        place = tuple(self.rng.integers(n) for n in frames.shape[: -2 if self.channels == 1 else -3])
        top, left = (2 * self.rng.integers((n - self.side) // 2 + 1) for n in (height, width))
        crop = frames[place][..., top : top + self.side, left : left + self.side].reshape(1, self.channels, self.side, self.side)
        return torch.from_numpy(crop.astype(np.float32) / 255 * (self.high - self.low) + self.low)


def round_frame_weights(tensors: Tensors) -> None:
    """They stay as they are: there training has a gradient that says nothing."""
    for convolution in tensors.of_frame():
        convolution.weight.requires_grad_(False)
        parametrize.register_parametrization(convolution, "weight", Rounding(rounded_together), unsafe=True)


def round_between_layers(tensors: Tensors, ranges: dict[str, np.ndarray]) -> None:
    grids = {name: Grid(limits) for name, limits in ranges.items()}
    for name, grid in grids.items():
        tensors.hook(name, Rounding(grid.rounded))
    for convolution, source in tensors.convolutions():
        rounding = Rounding(partial(rounded_weights, scale=grids[source].scale))
        parametrize.register_parametrization(convolution, "weight", rounding, unsafe=True)


@torch.no_grad()
def error(student: nn.Module, teacher: nn.Module, batch: torch.Tensor) -> float:
    """Root mean square, in 8-bit code values of a range of 1."""
    parts = [(student(part) - teacher(part)).square().mean().item() for part in batch.split(8)]
    return 255 * float(np.mean(parts)) ** 0.5


def train(student: export.Graph, teacher: export.Graph, crops: Crops, held: torch.Tensor, options: argparse.Namespace) -> None:
    parameters = [p for p in student.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=options.rate)
    for step in range(options.steps):
        if step % 200 == 0:
            print(f"{100 * step // options.steps} %, step {step}, rms error {error(student, teacher, held):.4f}", flush=True)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * (1 + np.cos(np.pi * step / options.steps)) / 2
        batch = crops.batch(options.batch)
        with torch.no_grad():
            wanted = teacher(batch)
        optimizer.zero_grad()
        for Rounding.is_on in (False, True):
            (student(batch) - wanted).square().mean().backward()
        optimizer.step()


def unparametrized(graph: export.Graph) -> list[nn.Module]:
    """Its modules without those that parametrizing added."""
    return [module for name, module in graph.named_modules() if "parametrizations" not in name.split(".")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="IN.safetensors")
    parser.add_argument("out", type=Path, metavar="OUT.safetensors")
    parser.add_argument("--frames", type=Path, nargs="+", required=True, metavar="FILE.npy")
    parser.add_argument("--side", type=int, default=160, help="of a crop; a multiple of the network's")
    parser.add_argument("--crops", type=int, default=96, help="for the ranges")
    parser.add_argument("--steps", type=int, default=0, help="of training; 0: ranges alone, the weights stay as they are")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    teacher = export.load(options.file).eval()
    student = copy.deepcopy(teacher)
    crops = Crops(options.frames, teacher, options.side, options.seed)
    tensors = Tensors(student)
    some = list(crops.batch(options.crops).split(1))
    round_frame_weights(tensors)
    held = crops.batch(32)
    print(f"rms error of the frame's convolutions: {error(student, teacher, held):.4f}", flush=True)
    ranges = measure_ranges(student, tensors, some)
    round_between_layers(tensors, ranges)
    train(student, teacher, crops, held, options)
    last = error(student, teacher, held)
    print(f"rms error {last:.4f}", flush=True)
    Rounding.is_on = False
    made = copy.deepcopy(teacher)
    with torch.no_grad():
        for module, learned in zip(made.modules(), unparametrized(student)):
            for name, parameter in module.named_parameters(recurse=False):
                parameter.copy_(getattr(learned, name))
    made.ranges = {name + export.RANGE: limits for name, limits in ranges.items()}
    told = f"tools/train/quantise.py, {options.steps} steps of {options.batch} crops, rms error {last:.3f} code values"
    export.save(made, options.out, export.provenance(options.file) | {"quantised_by": told})


if __name__ == "__main__":
    sys.exit(main())
