#!/usr/bin/python3
"""Networks of nonlocal's general format: one description builds the PyTorch module and the file.

    graph = Graph(description)      # a dict, or JSON; lib/network/README.md says what it may hold
    ... train graph: graph(x) is N(x), graph.run(frame) the whole formula on a frame of any size ...
    save(graph, "mine.safetensors", {"trained_on": "..."})

As a program: writes the file of a description with the weights of a checkpoint (torch.save of the graph's
state_dict), or with the weights that PyTorch begins with.
"""
import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import safetensors
from blocks import LayerNorm2d, NonLocalBlock, SelfAttention2d, TransformerBlock, WindowAttention
from description import check, inputs_of

FORMAT, VERSION = "nonlocal.network", "2"
RANGE = ".range"  # behind a layer's name


class Combine(nn.Module):
    def __init__(self, combine):
        super().__init__()
        self.combine = combine

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.combine(inputs)


def convolution(c: int, channels: int, kernel: int, stride: int = 1, dilation: int = 1, padding: int | None = None,
                groups: int = 1, bias: bool = True) -> nn.Module:
    padding = (kernel - 1) * dilation // 2 if padding is None else padding
    return nn.Conv2d(c, channels, kernel, stride, padding, dilation, groups, bias)


def up_sample(c: int, factor: int, mode: str = "nearest") -> nn.Module:
    return nn.Upsample(scale_factor=factor, mode=mode, **({"align_corners": False} if mode == "bilinear" else {}))


def average_pool(c: int, kernel: int, stride: int | None = None, padding: int = 0, count_padding: bool = True) -> nn.Module:
    return nn.AvgPool2d(kernel, stride, padding, count_include_pad=count_padding)


# What makes a layer of a type, from the channels of its first input and its other fields.
LAYERS = {
    "convolution": convolution,
    "batch_norm": lambda c, epsilon=1e-5: nn.BatchNorm2d(c, epsilon),
    "layer_norm": LayerNorm2d,
    "group_norm": lambda c, groups, epsilon=1e-5: nn.GroupNorm(groups, c, epsilon),
    "relu": lambda c: nn.ReLU(),
    "leaky_relu": lambda c, slope=0.01: nn.LeakyReLU(slope),
    "prelu": lambda c: nn.PReLU(c),
    "gelu": lambda c: nn.GELU(),
    "silu": lambda c: nn.SiLU(),
    "sigmoid": lambda c: nn.Sigmoid(),
    "tanh": lambda c: nn.Tanh(),
    "pixel_shuffle": lambda c, factor: nn.PixelShuffle(factor),
    "pixel_unshuffle": lambda c, factor: nn.PixelUnshuffle(factor),
    "max_pool": lambda c, kernel, stride=None, padding=0: nn.MaxPool2d(kernel, stride, padding),
    "average_pool": average_pool,
    "up_sample": up_sample,
    "add": lambda c: Combine(lambda inputs: inputs[0] + inputs[1]),
    "multiply": lambda c: Combine(lambda inputs: inputs[0] * inputs[1]),
    "concatenate": lambda c: Combine(lambda inputs: torch.cat(inputs, 1)),
    "non_local": NonLocalBlock,
    "self_attention": SelfAttention2d,
    "attention": TransformerBlock,
    "window_attention": WindowAttention,
}


class Graph(nn.Module):
    """The network of a description. Raises ValueError for one that the library would not read."""

    def __init__(self, description: dict | str):
        super().__init__()
        self.description = json.loads(description) if isinstance(description, str) else description
        planes, before = check(self.description), "input"
        self.frames = self.description["input"].get("frames", 1)
        self.layers = nn.ModuleList()  # by number: PyTorch's modules have names of their own
        for layer in self.description["layers"]:
            place = next(i for i in inputs_of(layer, before) if i != "condition")
            self.layers.append(self.make(layer, planes[place].channels))
            before = layer["name"]
        self.multiple = planes[before].multiple
        self.output = self.description.get("output", before)
        self.margin = self.mirrored_margin() if self.description["input"].get("border", "zero") == "mirror" else 0
        self.ranges: dict[str, np.ndarray] = {}  # "NAME.range": each channel's smallest and largest value, [2, C]

    def mirrored_margin(self) -> int:
        """Samples beyond the frame that convolutions read. They are mirrored, so that these pad no zeros."""
        self.blocks, margin, before = {"input": 1}, 0, "input"
        for layer, module in zip(self.description["layers"], self.layers):
            block = self.blocks.get(inputs_of(layer, before)[0])
            if block and layer["type"] == "pixel_unshuffle":
                self.blocks[layer["name"]] = block * layer["factor"]
            elif block:
                module.taken, module.padding = module.padding[0], (0, 0)
                margin = max(margin, block * module.taken)
            before = layer["name"]
        together = math.lcm(*self.blocks.values())
        return -(-margin // together) * together

    def make(self, layer: dict, channels: int) -> nn.Module:
        fields = {key: value for key, value in layer.items() if key not in ("name", "type", "inputs")}
        if layer["type"] == "non_local":
            fields["frames"] = self.frames
        return LAYERS[layer["type"]](channels, **fields)

    def forward(self, x: torch.Tensor, condition: float | torch.Tensor | None = None) -> torch.Tensor:
        """N(x): [N, C, H, W] with sides of multiples of `multiple`; the condition is a number, or one a picture."""
        return self.compute(nn.functional.pad(x, [self.margin] * 4, "reflect") if self.margin else x, condition)

    def compute(self, x: torch.Tensor, condition: float | torch.Tensor | None) -> torch.Tensor:
        """N of a frame with `margin` samples more on each side."""
        values, before = {"input": x}, "input"
        for layer, module in zip(self.description["layers"], self.layers):
            inputs = inputs_of(layer, before)
            if hasattr(module, "taken"):
                beyond = self.margin // self.blocks[inputs[0]] - module.taken
                height, width = values[inputs[0]].shape[2:]
                values[layer["name"]] = module(values[inputs[0]][..., beyond : height - beyond, beyond : width - beyond])
                before = layer["name"]
                continue
            if "condition" in inputs:
                like = values[next(i for i in inputs if i != "condition")]
                values["condition"] = self.condition_plane(condition, like)
            values[layer["name"]] = module(*(values[i] for i in inputs))
            before = layer["name"]
        return values[self.output]

    def condition_plane(self, condition: float | torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
        known = self.description["input"]["condition"]
        value = known.get("default", known["minimum"] if "minimum" in known else 0) if condition is None else condition
        value = (torch.as_tensor(value, dtype=like.dtype) * known.get("scale", 1)) ** known.get("power", 1)
        return value.reshape(-1, 1, 1, 1).expand(len(like), 1, *like.shape[2:])

    @torch.no_grad()
    def run(self, frames: np.ndarray, condition: float | None = None) -> np.ndarray:
        """What Network makes of frames [N, C, H, W] of any size, but for a "temporal_mean", which is the library's."""
        height, width = frames.shape[2:]
        m = self.margin
        rows, columns = (mirrored(n, m, m + -n % self.multiple) for n in (height, width))
        x = torch.from_numpy(np.ascontiguousarray(frames[:, :, rows][..., columns]))
        out = self.compute(x, condition)
        x = x[..., m : x.shape[2] - m, m : x.shape[3] - m]
        if self.description.get("residual", False):
            out = out + x
        rows, columns = (-(-n * out.shape[i] // x.shape[i]) for i, n in ((2, height), (3, width)))
        return out[..., :rows, :columns].numpy()


def mirrored(count: int, before: int, behind: int) -> np.ndarray:
    """Indices of `count` samples and of those mirrored beside them, however many (numpy's pad errs where both sides are padded by far more)."""
    i = np.arange(-before, count + behind) % max(1, 2 * (count - 1))
    return np.where(i < count, i, 2 * (count - 1) - i)


def tensor_names(graph: Graph) -> dict[str, str]:
    """What the file calls each tensor of the state_dict: "layers.0.weight" is "head.weight"."""
    names = [layer["name"] for layer in graph.description["layers"]]
    split = {key: key.split(".", 2) for key in graph.state_dict() if not key.endswith("num_batches_tracked")}
    return {key: f"{names[int(number)]}.{rest}" for key, (_, number, rest) in split.items()}


def check_tensor(name: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f'tensor "{name}": expected finite values, found {values[~np.isfinite(values)][0]}')
    if name.endswith("running_var") and (values < 0).any():
        raise ValueError(f'tensor "{name}": expected values of 0 or more, found {values.min()}')


def save(graph: Graph, path: str | Path, metadata: dict[str, str] | None = None) -> None:
    """Writes the file. `metadata` says where the weights come from; `nonlocal inspect` shows it.

    Raises ValueError for weights that are not finite, and metadata that the format needs itself.
    """
    state = graph.state_dict()
    tensors = {name: state[key].detach().float().contiguous().numpy() for key, name in tensor_names(graph).items()}
    tensors |= graph.ranges
    for name, values in tensors.items():
        check_tensor(name, values)
    own = {"format": FORMAT, "version": VERSION, "network": json.dumps(graph.description, separators=(",", ":"))}
    for key, text in (metadata or {}).items():
        if key in own or not isinstance(text, str):
            raise ValueError(f'metadata "{key}": expected a string of another name than {", ".join(own)}, found {text!r}')
    safetensors.save(path, tensors, own | (metadata or {}))


def provenance(path: str | Path) -> dict[str, str]:
    """The metadata of a file that are not the format's own."""
    _, metadata = safetensors.load(path)
    return {key: text for key, text in metadata.items() if key not in ("format", "version", "network")}


def load(path: str | Path) -> Graph:
    tensors, metadata = safetensors.load(path)
    if (metadata.get("format"), metadata.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"{path}: expected {FORMAT} {VERSION}, found {metadata.get('format')} {metadata.get('version')}")
    graph = Graph(metadata["network"])
    names = tensor_names(graph)
    graph.ranges = {name: values for name, values in tensors.items() if name.endswith(RANGE)}
    if set(names.values()) != set(tensors) - set(graph.ranges):
        raise ValueError(f"{path}: expected the tensors {sorted(names.values())}, found {sorted(tensors)}")
    graph.load_state_dict({key: torch.from_numpy(tensors[name].copy()) for key, name in names.items()}, strict=False)
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("description", type=Path, help="JSON file")
    parser.add_argument("out", type=Path, help="safetensors file")
    parser.add_argument("--checkpoint", type=Path, help="torch.save of the state_dict")
    parser.add_argument("--metadata", nargs="*", default=[], metavar="KEY=TEXT", help="where the weights come from")
    options = parser.parse_args()
    try:
        graph = Graph(options.description.read_text())
        if options.checkpoint:
            graph.load_state_dict(torch.load(options.checkpoint, map_location="cpu"))
        save(graph, options.out, dict(entry.split("=", 1) for entry in options.metadata))
    except ValueError as error:
        sys.exit(f"{options.description}: {error}")


if __name__ == "__main__":
    main()
