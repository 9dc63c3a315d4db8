#!/usr/bin/python3
"""Makes the fixtures of Network: a small file for each kind of layer, and what PyTorch makes of a few frames.

"network_NAME.safetensors" is a network's file as tools/train/export.py writes it; "network_frames.safetensors" has
"NAME.input" [frames, channels, height, width] and "NAME.expected", the last of those frames' output in double
precision. "NAME.condition" is there where the network has one.
"""
import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "train"))
import export  # noqa: E402
import quantise  # noqa: E402
import safetensors  # noqa: E402


def layer(kind: str, name: str, inputs: str | list[str] | None = None, **fields) -> dict:
    entry = {"name": name, "type": kind} | fields
    return entry | ({"inputs": inputs} if inputs else {})


def conv(name: str, channels: int, kernel: int = 3, inputs: str | None = None, **fields) -> dict:
    return layer("convolution", name, inputs, channels=channels, kernel=kernel, **fields)


def network(channels: int, *layers: dict, **rest) -> dict:
    source = {"channels": channels} | rest.pop("input", {})
    return {"input": source, "layers": list(layers)} | rest


def between(block: dict, channels: int = 8, **rest) -> dict:
    """A block amidst convolutions."""
    return network(3, conv("head", channels), block, conv("tail", 3, inputs=block["name"]), **rest)


def residual_block(name: str, channels: int, before: str, stride: int = 1) -> list[dict]:
    """Of a ResNet (K. He et al., CVPR 2016)."""
    layers = [conv(f"{name}_conv1", channels, inputs=before, stride=stride, bias=False), layer("batch_norm", f"{name}_norm1"),
              layer("relu", f"{name}_relu1"), conv(f"{name}_conv2", channels, bias=False),
              layer("batch_norm", f"{name}_norm2")]
    skip = before
    if stride != 1:
        skip = f"{name}_skip_norm"
        layers += [conv(f"{name}_skip", channels, 1, before, stride=stride, bias=False), layer("batch_norm", skip)]
    return layers + [layer("add", f"{name}_sum", [f"{name}_norm2", skip]), layer("relu", name)]


def resnet() -> dict:
    """Slim, with a non-local block in its second stage."""
    return network(3, conv("stem", 6, 7, stride=2, bias=False), layer("batch_norm", "stem_norm"), layer("relu", "stem_relu"),
                   layer("max_pool", "stem_pool", kernel=3, stride=2, padding=1),
                   *residual_block("stage1", 6, "stem_pool"), *residual_block("stage2a", 12, "stage1", 2),
                   layer("non_local", "non_local", "stage2a", sub_sample=2, norm=True),
                   *residual_block("stage2b", 12, "non_local"))


def activations() -> dict:
    """Each once after a convolution and once by itself."""
    layers = [conv("head", 6)]
    for kind in ("relu", "leaky_relu", "prelu", "gelu", "silu", "sigmoid", "tanh"):
        fields = {"slope": 0.2} if kind == "leaky_relu" else {}
        layers += [conv(f"{kind}_conv", 6, 1), layer(kind, f"{kind}_fused", **fields),
                   layer("add", f"{kind}_sum", [f"{kind}_fused", layers[-1]["name"]]),
                   layer(kind, f"{kind}_alone", **fields),
                   layer("add", f"{kind}_out", [f"{kind}_alone", f"{kind}_sum"])]
    return network(1, *layers)


def u_net() -> dict:
    return network(3, conv("head", 8), layer("leaky_relu", "head_relu", slope=0.1), conv("down", 12, stride=2),
                   layer("silu", "down_silu"), conv("deep", 12, dilation=2), layer("prelu", "deep_prelu"),
                   layer("up_sample", "up", factor=2, mode="bilinear"),
                   layer("concatenate", "both", ["up", "head_relu"]), conv("tail", 3), residual=True)


def refiner() -> dict:
    """As the denoisers are: unshuffled, told the noise, added to the frame."""
    told = {"condition": {"name": "sigma", "minimum": 0, "maximum": 100, "default": 25, "scale": 0.02}, "range": [-1, 1]}
    return network(1, layer("pixel_unshuffle", "unshuffle", factor=2), layer("concatenate", "told", ["unshuffle", "condition"]),
                   conv("conv0", 8), layer("relu", "relu0"), conv("conv1", 8), layer("relu", "relu1"), conv("conv2", 4),
                   layer("pixel_shuffle", "shuffle", factor=2), input=told, residual=True)


def mirrored(*block: dict) -> dict:
    """What reads the frame, in samples and in blocks, sees it mirrored; the rest zeros."""
    return network(2, layer("pixel_unshuffle", "unshuffle", factor=2), conv("blocks", 6), conv("samples", 6, 5, "input", stride=2),
                   layer("add", "both", ["blocks", "samples"]), *block, conv("tail", 8), layer("pixel_shuffle", "out", factor=2),
                   input={"border": "mirror"}, residual=True)


def pools() -> dict:
    return network(2, layer("max_pool", "max", "input", kernel=3, stride=1, padding=1),
                   layer("average_pool", "average", "input", kernel=3, stride=1, padding=1),
                   layer("average_pool", "inside", "input", kernel=3, stride=1, padding=1, count_padding=False),
                   layer("concatenate", "all", ["max", "average", "inside", "input"]),
                   layer("average_pool", "half", kernel=2), layer("max_pool", "quarter", kernel=2),
                   layer("up_sample", "back", factor=2), layer("multiply", "product", ["back", "half"]),
                   layer("up_sample", "out", factor=2, mode="bilinear"))


def convolutions() -> dict:
    return network(3, conv("groups", 9, 3, groups=3), conv("depthwise", 9, 5, groups=9), conv("plain", 8, 3, bias=False),
                   conv("pairs", 12, 3, groups=4, dilation=2), conv("strided", 7, 4, stride=2, padding=1),
                   conv("wide", 16, 1), layer("pixel_shuffle", "shuffle", factor=2), conv("last", 3, 7))


def norms() -> dict:
    return network(3, conv("head", 8), layer("batch_norm", "folded"), layer("layer_norm", "layer", epsilon=1e-6),
                   layer("batch_norm", "affine", "layer"), layer("add", "sum", ["affine", "layer"]),
                   layer("group_norm", "group", groups=4), conv("tail", 3))


def dense() -> dict:
    """Planes that several layers read, of which they need parts of several sizes."""
    return network(3, conv("a", 6), conv("b", 6), layer("relu", "b_relu"), conv("c", 6, inputs="a"),
                   layer("add", "sum", ["c", "a"]), layer("concatenate", "abc", ["a", "b_relu", "sum"]),
                   conv("d", 3, 1, "abc"), residual=True)


def restorer() -> dict:
    """Two scales and attention, as `restore` is, with channels that do not fill up what is multiplied at once."""
    return network(1, layer("pixel_unshuffle", "unshuffle", factor=2), conv("head", 6), layer("leaky_relu", "head_relu", slope=0.1),
                   conv("down", 11, stride=2), layer("leaky_relu", "down_relu", slope=0.1),
                   layer("window_attention", "attention", window=4, channels=6, heads=2), conv("coarse", 11),
                   layer("relu", "coarse_relu"), conv("up", 24, 1), layer("pixel_shuffle", "shuffle_up", factor=2),
                   layer("add", "both", ["shuffle_up", "head_relu"]), conv("fine", 6), layer("leaky_relu", "fine_relu", slope=0.1),
                   conv("tail", 4), layer("pixel_shuffle", "shuffle", factor=2),
                   input={"range": [-0.5, 0.5], "border": "mirror"}, residual=True)


def colours() -> dict:
    """Zeros beyond the frame, dilated, added and normalised; of whole groups, and what stays in floating point."""
    return network(3, conv("head", 12, 5), layer("relu", "head_relu"), conv("deep", 9, dilation=2), layer("batch_norm", "deep_norm"),
                   layer("leaky_relu", "deep_relu", slope=0.2), conv("wide", 12, 1), layer("add", "sum", ["wide", "head_relu"]),
                   layer("relu", "sum_relu"), conv("last", 6), layer("sigmoid", "gate"), conv("groups", 6, inputs="gate", groups=3),
                   layer("add", "linear", ["groups", "last"]), conv("tail", 3))


# The same, of files that tell ranges.
IN_BYTES = {"restorer": (restorer(), 1, 45, 70), "colours": (colours(), 1, 21, 34)}

# Description, frames, height, width.
FIXTURES = {
    "resnet": (resnet(), 1, 45, 59),
    "activations": (activations(), 1, 9, 11),
    "u_net": (u_net(), 1, 33, 27),
    "refiner": (refiner(), 1, 23, 31),
    "pools": (pools(), 1, 13, 18),
    "convolutions": (convolutions(), 1, 21, 19),
    "norms": (norms(), 1, 15, 12),
    "dense": (dense(), 1, 14, 17),
    "gaussian": (between(layer("non_local", "block", mode="gaussian", channels=4)), 1, 11, 9),
    "gaussian_sub_sampled": (between(layer("non_local", "block", mode="gaussian", sub_sample=2)), 1, 11, 9),
    "embedded_gaussian": (between(layer("non_local", "block"), 7), 1, 13, 10),
    "embedded_gaussian_norm": (between(layer("non_local", "block", sub_sample=3, norm=True, bias=False)), 1, 13, 10),
    "dot_product": (between(layer("non_local", "block", mode="dot_product", sub_sample=2)), 1, 9, 12),
    "concatenation": (between(layer("non_local", "block", mode="concatenation", channels=3)), 1, 9, 12),
    "space_time": (between(layer("non_local", "block", reach="space_time", sub_sample=2), input={"frames": 3}), 5, 9, 8),
    "space_time_dot": (between(layer("non_local", "block", reach="space_time", mode="dot_product"), input={"frames": 4}), 3, 7, 8),
    "temporal": (between(layer("non_local", "block", reach="temporal"), input={"frames": 3}), 4, 9, 8),
    "temporal_concatenation": (between(layer("non_local", "block", reach="temporal", mode="concatenation"),
                                       input={"frames": 2}), 2, 9, 8),
    "self_attention": (between(layer("self_attention", "block"), 16), 1, 12, 11),
    "self_attention_sub_sampled": (between(layer("self_attention", "block", channels=3, value_channels=4, sub_sample=2,
                                                 bias=True)), 1, 12, 11),
    "attention": (between(layer("attention", "block", heads=2)), 1, 12, 11),
    "window_attention": (between(layer("window_attention", "block", window=4, heads=2, relative_bias=True)), 1, 19, 22),
    "window_attention_plain": (between(layer("window_attention", "block", window=3, channels=6, heads=3, residual=False,
                                             bias=False)), 1, 13, 9),
    "concatenation_sub_sampled": (between(layer("non_local", "block", mode="concatenation", sub_sample=2)), 1, 9, 7),
    "thirds": (network(2, conv("head", 4), layer("up_sample", "up", factor=3, mode="bilinear"), conv("down", 4, stride=3),
                       layer("up_sample", "again", factor=3), layer("average_pool", "tail", kernel=3)), 1, 7, 8),
    "mirrored": (mirrored(), 1, 45, 71),
    "mirrored_block": (mirrored(layer("non_local", "block")), 1, 9, 14),
}


MODELS = Path(__file__).resolve().parents[2] / "lib/models"
BUNDLED = ("gaussian", "restore", "restore_noisy")


def randomise(graph: export.Graph) -> None:
    """Weights that keep the size of what goes through; nothing at its usual start."""
    for name, tensor in graph.state_dict().items():
        if name.endswith("running_var"):
            nn.init.uniform_(tensor, 0.5, 2)
        elif tensor.dim() == 4:
            nn.init.kaiming_normal_(tensor, nonlinearity="linear")
        elif name.endswith("weight") or name.endswith("gamma"):
            nn.init.uniform_(tensor, 0.5, 1.5)
        elif tensor.is_floating_point():
            nn.init.normal_(tensor, std=0.2)


def make(seed: int, description: dict, frames: int, height: int, width: int) -> tuple[export.Graph, dict]:
    torch.manual_seed(seed)
    graph = export.Graph(description).eval()
    randomise(graph)
    channels = description["input"]["channels"]
    inputs = np.random.default_rng(seed).random((frames, channels, height, width), np.float32)
    return graph, run(graph, inputs)


def run(graph: export.Graph, inputs: np.ndarray) -> dict:
    """What goes in, and what comes out, calculated in double precision."""
    tensors = {"input": inputs}
    condition = None
    if "condition" in graph.description["input"]:
        condition = 40.0
        tensors["condition"] = np.array([condition], np.float32)
    expected = graph.double().run(inputs.astype(np.float64), condition)[-1]
    graph.float()
    return tensors | {"expected": expected.astype(np.float32)}


def make_in_bytes(seed: int, description: dict, frames: int, height: int, width: int) -> tuple[export.Graph, dict]:
    """The frames have whole bytes, as 8-bit video has."""
    graph, tensors = make(seed, description, frames, height, width)
    low, high = description["input"].get("range", [0, 1])
    tensors = run(graph, (np.round(255 * tensors["input"]) / 255 * (high - low) + low).astype(np.float32))
    side = graph.multiple
    crop = torch.from_numpy(tensors["input"][..., : height // side * side, : width // side * side])
    known = quantise.Tensors(graph)
    grids = quantise.grids_of(graph, known, [crop])
    graph.ranges = {name + export.RANGE: grid.range() for name, grid in grids.items()}
    if "gate" in known.layers:  # which can't be bytes: it is passed over
        graph.ranges["gate" + export.RANGE] = np.stack([np.zeros(6, np.float32), np.ones(6, np.float32)])
    return graph, tensors | rounded(graph, tensors["input"])


def rounded(graph: export.Graph, inputs: np.ndarray) -> dict:
    return {"rounded": run(quantise.in_bytes(graph), inputs)["expected"]}


def picture(seed: int, height: int, width: int, low: float, high: float) -> np.ndarray:
    """Waves, an edge and noise, in 8 bits of the range of a network's values: [1, 1, height, width]."""
    y, x = np.mgrid[:height, :width]
    waves = 0.5 + 0.2 * np.sin(x / 3) * np.cos(y / 5) + 0.15 * (x + 2 * y > height)
    noisy = waves + np.random.default_rng(seed).normal(0, 0.04, waves.shape)
    return (low + (high - low) * np.round(255 * noisy.clip(0, 1)) / 255).astype(np.float32)[None, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    folder = parser.parse_args().folder
    data = {}
    for seed, (name, fixture) in enumerate((FIXTURES | IN_BYTES).items()):
        graph, tensors = (make_in_bytes if name in IN_BYTES else make)(seed, *fixture)
        export.save(graph, folder / f"network_{name}.safetensors", {"made_by": "tests/parity/network.py"})
        data |= {f"{name}.{key}": value for key, value in tensors.items()}
        print(f"{name}: {tensors['expected'].shape}, standard deviation {tensors['expected'].std():.2f}")
    for seed, name in enumerate(BUNDLED):
        graph = export.load(MODELS / f"{name}.safetensors").eval()
        tensors = run(graph, picture(seed, 45, 71, *graph.description["input"]["range"]))
        tensors |= rounded(graph, tensors["input"]) if graph.ranges else {}
        data |= {f"bundled_{name}.{key}": value for key, value in tensors.items()}
    safetensors.save(folder / "network_frames.safetensors", data, {})


if __name__ == "__main__":
    main()
