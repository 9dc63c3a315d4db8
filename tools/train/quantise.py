#!/usr/bin/python3
"""Makes a network's file ready for 8 bits: tells what its layers' outputs lie between, as the smallest and the largest
value of each channel ("NAME.range"). The weights stay as they are.

The frames are bytes, [..., H, W] in .npy files such as compressed.py's coded.npy, with the planes of several channels
before H. In bytes the network is to make of them what it makes in floating point; nothing has to be known of its training.

It begins with the ranges whose values have the least squared error for each channel (what lies beyond is clamped), and
learns each by its gradient, through rounding as if that were nothing (S. Esser et al.: Learned Step Size Quantization, ICLR
2020). --share makes them narrower still: finer steps for all that is usual, and what is rare is clamped sooner."""
import argparse
import copy
import sys
from collections.abc import Callable
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
LEAST_ERROR = 1e-3  # in squared code values
HELD_OUT = 96  # crops, to tell how far it is
SHRUNK = np.linspace(0.2, 1, 41)  # ranges that are tried, as shares of the whole


class Grid(nn.Module):
    """Of bytes, as the library takes it from a range [2, C]."""

    def __init__(self, limits: np.ndarray):
        super().__init__()
        low, high = torch.from_numpy(limits.copy()).float()
        low, high = low.clamp(max=0), high.clamp(min=0)
        shares = (-low / (high - low).clamp(min=1e-20)).sort().values
        signed = bool((low < 0).any())
        self.zero = float(torch.round(MOST_BYTE * shares[len(shares) // 2]).clamp(16, 240)) if signed else 0.0
        scale = torch.maximum(-low / self.zero if signed else low, high / (MOST_BYTE - self.zero))
        # In double precision it gives back the very scale that the library has: a bit decides how weights are rounded.
        self.logarithm = nn.Parameter(torch.maximum(scale, LEAST_SHARE * scale.max()).clamp(min=1e-20).double().log())

    @property
    def scale(self) -> torch.Tensor:
        return self.logarithm.exp().float()

    def range(self) -> np.ndarray:
        scale = self.scale.detach().numpy()
        return np.stack([-scale * self.zero, scale * (MOST_BYTE - self.zero)]).astype(np.float32)

    def forward(self, values: torch.Tensor, axis: int = 1) -> torch.Tensor:
        scale = self.scale.reshape([-1] + [1] * (values.dim() - axis - 1))
        steps = straight_through(torch.round, values / scale + self.zero).clamp(0, MOST_BYTE)
        return (steps - self.zero) * scale


def straight_through(change: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor) -> torch.Tensor:
    return values + (change(values) - values).detach()


class RoundedWeights(nn.Module):
    """As bytes of the grid are multiplied by them; without one, as the frame's are."""

    def __init__(self, grid: Grid | None = None):
        super().__init__()
        self.grids = [grid]  # not among the parameters of the network

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        scale = torch.ones(1) if self.grids[0] is None else self.grids[0].scale.reshape(1, -1, 1, 1)
        return straight_through(rounded_together, weight.double() * scale).to(weight.dtype) / scale


@torch.no_grad()
def rounded_together(weight: torch.Tensor) -> torch.Tensor:
    """Whole steps, of each output channel's own. Each takes up what rounding left of those before it, tap by tap."""
    rows = weight.flatten(2).transpose(1, 2).flatten(1)
    step = (rows.abs().max(1).values / MOST_WEIGHT).clamp(min=1e-20)
    left, rounded = torch.zeros_like(step), torch.zeros_like(rows)
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
            if self.type(name) in SHUFFLES and self.inputs[name][0] in self.frame:
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

    def groups(self) -> list[list[str]]:
        """Those in one grid: what a convolution adds to, and its output."""
        groups = {name: [name] for name in self.all()}

        def join(a: str, b: str) -> None:
            both = list(dict.fromkeys(groups[a] + groups[b]))
            groups.update(dict.fromkeys(both, both))

        for name in self.attentions():
            if self.layers[name].get("residual", True):
                join(self.inputs[name][0], name)
        for name in self.rounded():
            chain = self.chain(name)
            for source in {source for n in chain if self.type(n) == "add" for source in self.inputs[n]} - set(chain):
                join(source, name)
        return list({id(group): group for group in groups.values()}.values())

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
    whole = np.stack([values.min(1).values.clamp(max=0).numpy(), values.max(1).values.clamp(min=0).numpy()])
    best, least = whole, np.full(len(values), np.inf)
    for share in SHRUNK:
        grid = Grid(whole)
        grid.logarithm += np.log(share)
        error = (grid(values, 0) - values).square().mean(1).numpy()
        best = np.where(error < least, grid.range(), best)
        least = np.minimum(error, least)
    return best


@torch.no_grad()
def grids_of(graph: export.Graph, tensors: Tensors, crops: list[torch.Tensor]) -> dict[str, Grid]:
    seen: dict[str, list[torch.Tensor]] = {name: [] for name in tensors.all()}
    hooks = [tensors.hook(name, lambda values, name=name: seen[name].append(values.transpose(0, 1).flatten(1))) for name in seen]
    for crop in crops:
        graph(crop)
    for hook in hooks:
        hook.remove()
    ranges = {name: least_error_range(torch.cat(parts, 1)) for name, parts in seen.items()}
    grids = {}
    for group in tensors.groups():
        limits = np.stack([ranges[name] for name in group])
        grids |= dict.fromkeys(group, Grid(np.stack([limits[:, 0].min(0), limits[:, 1].max(0)])))
    return grids


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
        return torch.from_numpy(crop.astype(np.float32) / MOST_BYTE * (self.high - self.low) + self.low)


def in_bytes(graph: export.Graph) -> export.Graph:
    """A copy that calculates what comes out of bytes by the graph's own ranges."""
    rounded = copy.deepcopy(graph)
    tensors = Tensors(rounded)
    round_graph(tensors, {name: Grid(graph.ranges[name + export.RANGE]) for name in tensors.all()})
    return rounded


def round_graph(tensors: Tensors, grids: dict[str, Grid]) -> None:
    """What its graph calculates from now on is what comes out of bytes."""
    for convolution in tensors.of_frame():
        parametrize.register_parametrization(convolution, "weight", RoundedWeights(), unsafe=True)
    for name, grid in grids.items():
        tensors.hook(name, grid)
    for convolution, source in tensors.convolutions():
        parametrize.register_parametrization(convolution, "weight", RoundedWeights(grids[source]), unsafe=True)


def errors(rounded: export.Graph, graph: export.Graph, crops: torch.Tensor) -> torch.Tensor:
    """Each crop's squared error in code values, as a logarithm: every crop counts, whatever there is in it."""
    low, high = graph.description["input"].get("range", [0, 1])
    with torch.no_grad():
        wanted = graph(crops)
    return ((MOST_BYTE / (high - low) * (rounded(crops) - wanted)).square().mean((1, 2, 3)) + LEAST_ERROR).log()


@torch.no_grad()
def typical_error(rounded: export.Graph, graph: export.Graph, crops: torch.Tensor) -> float:
    """In code values."""
    return float(torch.cat([errors(rounded, graph, part) for part in crops.split(8)]).mean().exp().sqrt())


def learn(rounded: export.Graph, grids: list[Grid], graph: export.Graph, crops: Crops, options: argparse.Namespace) -> None:
    held = crops.batch(HELD_OUT)
    optimizer = torch.optim.Adam([grid.logarithm for grid in grids], lr=options.rate)
    for step in range(options.steps + 1):
        if step % 100 == 0 or step == options.steps:
            done = 100 * step // max(options.steps, 1)
            print(f"{done} %, step {step}, error {typical_error(rounded, graph, held):.4f} code values", flush=True)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * (1 + np.cos(np.pi * step / max(options.steps, 1))) / 2
        optimizer.zero_grad()
        errors(rounded, graph, crops.batch(options.batch)).mean().backward()
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="IN.safetensors")
    parser.add_argument("out", type=Path, metavar="OUT.safetensors")
    parser.add_argument("--frames", type=Path, nargs="+", required=True, metavar="FILE.npy")
    parser.add_argument("--side", type=int, default=128, help="of a crop; a multiple of the network's")
    parser.add_argument("--crops", type=int, default=96, help="for the ranges to begin with")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--rate", type=float, default=0.02, help="of the ranges' logarithms")
    parser.add_argument("--share", type=float, default=1, help="of the learned ranges that is kept")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    graph = export.load(options.file).eval().requires_grad_(False)
    rounded = copy.deepcopy(graph)
    crops = Crops(options.frames, graph, options.side, options.seed)
    tensors = Tensors(rounded)
    if graph.frames > 1:
        sys.exit(f"quantise.py: {options.file}: expected a network of single frames, found one of {graph.frames}")
    if not tensors.all():
        sys.exit(f"quantise.py: {options.file}: expected a layer that may be of bytes, found none")
    grids = grids_of(rounded, tensors, crops.batch(options.crops).split(1))
    round_graph(tensors, grids)
    learn(rounded, list(dict.fromkeys(grids.values())), graph, crops, options)
    graph.ranges = {name + export.RANGE: options.share * grid.range() for name, grid in grids.items()}
    told = f"tools/train/quantise.py, {options.steps} steps of {options.batch} crops of {options.side}x{options.side}, {options.share:g} of the ranges"
    export.save(graph, options.out, export.provenance(options.file) | {"ranges": told})


if __name__ == "__main__":
    sys.exit(main())
