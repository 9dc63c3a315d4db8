#!/usr/bin/python3
"""Makes the fixtures of the cross-attention filter: a model with random weights, and what PyTorch makes of it in
double precision.

cross_attention_filter.safetensors         the model's file
cross_attention_filter_case.safetensors    "tokens", "colours", "places", and the "expected" colours
"""
import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "train"))
import safetensors
from cross_attention_filter import CrossAttentionFilter

FEATURES = "r g b r*g luma*luma*chroma cb"
HEADS, DIM, EMBEDDING, TOKENS, COLOURS = 2, 5, 11, 6, 40


def check_with_multi_head_attention(model: CrossAttentionFilter, features: torch.Tensor, tokens: torch.Tensor) -> None:
    """A layer of the module is torch.nn.MultiheadAttention of the same projections."""
    layer = model.layers[0]
    size = HEADS * DIM
    other = torch.nn.MultiheadAttention(size, HEADS, kdim=EMBEDDING, vdim=EMBEDDING, batch_first=True).double()
    with torch.no_grad():
        # Its queries are as wide as its heads: the projection of ours goes in as it is.
        other.q_proj_weight.copy_(torch.eye(size))
        other.k_proj_weight.copy_(layer.key.weight)
        other.v_proj_weight.copy_(layer.value.weight)
        other.in_proj_bias.copy_(torch.cat([torch.zeros(size), layer.key.bias, layer.value.bias]))
        other.out_proj.weight.copy_(torch.eye(size))
        other.out_proj.bias.zero_()
        average = other(layer.query(features), tokens, tokens, need_weights=False)[0]
        torch.testing.assert_close(layer.output(average), layer(features, tokens, None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    folder = parser.parse_args().folder
    torch.manual_seed(1)
    made = {"made by": "tests/parity/cross_attention_filter.py"}
    model = CrossAttentionFilter(EMBEDDING, FEATURES, frequencies=2, heads=HEADS, dim=DIM, value_dim=DIM, layers=2)
    for layer in model.layers:
        torch.nn.init.normal_(layer.query.weight, std=1.0)
        torch.nn.init.normal_(layer.output.weight, std=0.1)
    model.save(folder / "cross_attention_filter.safetensors", made)
    tokens, colours = torch.randn(TOKENS, EMBEDDING), torch.rand(COLOURS, 3)
    places = 2 * torch.rand(COLOURS, 2) - 1
    model.double()
    inputs = [t.double() for t in (colours, places, tokens)]
    check_with_multi_head_attention(model, torch.randn(COLOURS, 6 + 8).double(), inputs[2])
    expected = model(*inputs).detach()
    tensors = {"tokens": tokens, "colours": colours, "places": places, "expected": expected}
    arrays = {name: t.float().contiguous().numpy() for name, t in tensors.items()}
    safetensors.save(folder / "cross_attention_filter_case.safetensors", arrays, made)


if __name__ == "__main__":
    main()
