#!/usr/bin/python3
"""Makes the fixtures of attention: small random matrices, and what PyTorch makes of them in double precision.

attention.safetensors            "query", "key", "value", "bias", "padding", "weight", and "expected.CASE" for each case
multi_head_attention.safetensors inputs, weights and outputs of torch.nn.MultiheadAttention
positional_encoding.safetensors  sinusoidal encodings in one to three dimensions
"""
import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "train"))
import safetensors  # noqa: E402

HEADS, DIM, VALUE_DIM = 2, 6, 5
WIDTH, HEIGHT = 6, 4
POSITIONS = WIDTH * HEIGHT
CONCATENATION_BIAS = 0.25


def grid_mask(width: int, height: int, radius: int, frame_radius: int) -> Tensor:
    """Which keys lie in the window of which queries."""
    p = torch.arange(POSITIONS)
    places = [(p % width, radius), (p // width % height, radius), (p // width // height, frame_radius)]
    allowed = torch.ones(POSITIONS, POSITIONS, dtype=torch.bool)
    for place, reach in places:
        allowed &= (place[:, None] - place[None, :]).abs() <= reach
    return allowed


def masks(padding: Tensor) -> dict[str, Tensor]:
    every = torch.ones(POSITIONS, POSITIONS, dtype=torch.bool)
    return {
        "none": every,
        "causal": every.tril(),
        "sequence": grid_mask(POSITIONS, 1, 3, 0),
        "frame": grid_mask(WIDTH, HEIGHT, 1, 0),
        "frames": grid_mask(WIDTH // 2, HEIGHT, 1, 1),
        "padding": every & (padding[None, :] == 0),
    }


def scores(q: Tensor, k: Tensor, weight: Tensor) -> dict[str, tuple[Tensor, bool]]:
    """Each relevance's scores of one head, and whether they are exponents."""
    products = q @ k.T
    pairs = torch.cat([q[:, None].expand(-1, len(k), -1), k[None].expand(len(q), -1, -1)], dim=2)
    return {
        "scaled_dot_product": (products / DIM**0.5, True),
        "gaussian": (products, True),
        "dot_product": (products, False),
        "concatenation": (torch.relu(pairs @ weight + CONCATENATION_BIAS), False),
        "additive": (torch.tanh(q[:, None] + k[None]) @ weight[:DIM], True),
    }


def average(score: Tensor, is_exponent: bool, allowed: Tensor, value: Tensor) -> Tensor:
    if is_exponent:
        return torch.softmax(score.masked_fill(~allowed, -torch.inf), dim=1) @ value
    return (score * allowed / allowed.sum(1, keepdim=True)) @ value


def attention_cases() -> dict[str, Tensor]:
    q, k = (0.7 * torch.randn(POSITIONS, HEADS * DIM) for _ in range(2))
    v = torch.randn(POSITIONS, HEADS * VALUE_DIM)
    bias = torch.randn(POSITIONS, POSITIONS)
    padding = (torch.arange(POSITIONS) % 5 == 2).float()
    weight = 0.5 * torch.randn(2 * DIM)
    tensors = {"query": q, "key": k, "value": v, "bias": bias, "padding": padding, "weight": weight}
    heads = [[m.double() for m in h] for h in zip(*(m.chunk(HEADS, dim=1) for m in (q, k, v)))]
    of_heads = [(scores(hq, hk, weight.double()), hv) for hq, hk, hv in heads]
    for name in of_heads[0][0]:
        for mask_name, allowed in masks(padding).items():
            outs = [average(*s[name], allowed, hv) for s, hv in of_heads]
            tensors[f"expected.{name}.{mask_name}"] = torch.cat(outs, dim=1)
    outs = [average(s["scaled_dot_product"][0] + bias, True, torch.ones_like(bias, dtype=torch.bool), hv)
            for s, hv in of_heads]
    return tensors | {"expected.scaled_dot_product.bias": torch.cat(outs, dim=1)}


def multi_head_cases() -> dict[str, Tensor]:
    layer = torch.nn.MultiheadAttention(12, 3, kdim=10, vdim=7, batch_first=True)
    torch.nn.init.normal_(layer.in_proj_bias, std=0.3)
    torch.nn.init.normal_(layer.out_proj.bias, std=0.3)
    query, key, value = torch.randn(11, 12), torch.randn(9, 10), torch.randn(9, 7)
    padding = torch.tensor([0, 0, 1, 0, 0, 0, 1, 1, 0])
    tensors = {"query": query, "key": key, "value": value, "padding": padding.float()}
    biases = layer.in_proj_bias.detach().chunk(3)
    for name, bias in zip("qkv", biases):
        tensors[f"{name}.weight"] = getattr(layer, f"{name}_proj_weight").detach()
        tensors[f"{name}.bias"] = bias
    tensors |= {"o.weight": layer.out_proj.weight.detach(), "o.bias": layer.out_proj.bias.detach()}
    # Training mode without dropout: the other mode has a fast path of its own.
    layer.double().requires_grad_(False)
    inputs = [m.double() for m in (query, key, value)]
    causal = torch.ones(11, 9, dtype=torch.bool).triu(1)
    options = {"none": {}, "padding": {"key_padding_mask": padding.bool()}, "causal": {"attn_mask": causal}}
    for name, option in options.items():
        tensors[f"expected.{name}"] = layer(*inputs, need_weights=False, **option)[0]
    return tensors


def sinusoids(places: Tensor, channels: int) -> Tensor:
    frequency = torch.exp(torch.arange(0, channels, 2).double() * (-torch.log(torch.tensor(10000.0).double()) / channels))
    angle = places.double()[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)


def encoding_cases() -> dict[str, Tensor]:
    sequence, frame, frames = torch.arange(40), torch.arange(7 * 5), torch.arange(4 * 3 * 3)
    return {
        "sequence": sinusoids(sequence, 4),
        "frame": torch.cat([sinusoids(p, 6) for p in (frame % 7, frame // 7)], dim=1),
        "frames": torch.cat([sinusoids(p, 4) for p in (frames % 4, frames // 4 % 3, frames // 12)], dim=1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    folder = parser.parse_args().folder
    torch.manual_seed(1)
    for name, cases in (("attention", attention_cases), ("multi_head_attention", multi_head_cases),
                        ("positional_encoding", encoding_cases)):
        tensors = {key: tensor.float().contiguous().numpy() for key, tensor in cases().items()}
        safetensors.save(folder / f"{name}.safetensors", tensors, {"made by": "tests/parity/attention.py"})
        print(f"{name}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
