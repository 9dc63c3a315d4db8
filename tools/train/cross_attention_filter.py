"""The cross-attention filter that lib/grade runs, as a PyTorch module, and its file.

    model = CrossAttentionFilter(512, "r g b r*r g*g b*b luma*luma chroma", frequencies=1, heads=4)
    graded = model(colours, places, tokens)     # [..., N, 3] of colours and places [..., N, 2], tokens [..., T, 512]
    model.save("look.safetensors", {"trained_on": "..."})
    save_embeddings("warm_sunset.safetensors", tokens)      # [T, 512]

lib/include/nonlocal/cross_attention_filter.h says what features there are and what the file holds.
"""
import math
from pathlib import Path

import torch
from torch import Tensor, nn

import safetensors

FORMAT, VERSION = "nonlocal.cross_attention_filter", "1"


def colour_features(names: str, colours: Tensor) -> Tensor:
    """[..., 3] to [..., features]: each name is a product of r, g, b, luma, cb, cr and chroma."""
    r, g, b = colours.unbind(-1)
    luma = 0.2126 * r + 0.7152 * g + 0.0722 * b
    cb, cr = (b - luma) / 1.8556, (r - luma) / 1.5748
    atoms = {"r": r, "g": g, "b": b, "luma": luma, "cb": cb, "cr": cr}
    atoms["chroma"] = (cb**2 + cr**2 + 0.01**2).sqrt()
    products = [math.prod(atoms[atom] for atom in name.split("*")) for name in names.split()]
    return torch.stack(products, -1)


def place_features(frequencies: int, places: Tensor) -> Tensor:
    """[..., 2] of x and y in -1 .. 1 to [..., 4 frequencies]: sines and cosines of x, then of y."""
    angles = places[..., None] * math.pi / 2 * 2.0 ** torch.arange(frequencies, dtype=places.dtype)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-3)


def places_of(width: int, height: int) -> Tensor:
    """[height, width, 2]: x and y of the pixels' middles."""
    x = (2 * torch.arange(width) + 1) / width - 1
    y = (2 * torch.arange(height) + 1) / height - 1
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)


class Layer(nn.Module):
    def __init__(self, features: int, embedding: int, heads: int, dim: int, value_dim: int, bias: bool):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(features, heads * dim, bias)
        self.key = nn.Linear(embedding, heads * dim, bias)
        self.value = nn.Linear(embedding, heads * value_dim, bias)
        self.output = nn.Linear(heads * value_dim, 3, bias)

    def forward(self, features: Tensor, tokens: Tensor, padding: Tensor | None) -> Tensor:
        """What changes: features [..., N, F], tokens [..., T, d_e], padding [..., T] (True: no token)."""
        q, k, v = (self.split(x) for x in (self.query(features), self.key(tokens), self.value(tokens)))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if padding is not None:
            scores = scores.masked_fill(padding[..., None, None, :], -torch.inf)
        average = scores.softmax(-1) @ v
        return self.output(average.transpose(-3, -2).flatten(-2))

    def split(self, x: Tensor) -> Tensor:
        """[..., N, heads d] to [..., heads, N, d]"""
        return x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)


class CrossAttentionFilter(nn.Module):
    def __init__(self, embedding: int, features: str = "r g b", frequencies: int = 0, heads: int = 1, dim: int = 16,
                 value_dim: int = 8, layers: int = 1, bias: bool = True):
        super().__init__()
        self.features, self.frequencies, self.heads = features, frequencies, heads
        inputs = len(features.split()) + 4 * frequencies
        self.layers = nn.ModuleList(Layer(inputs, embedding, heads, dim, value_dim, bias) for _ in range(layers))

    def forward(self, colours: Tensor, places: Tensor, tokens: Tensor, padding: Tensor | None = None,
                strength: float = 1) -> Tensor:
        now = colours
        for layer in self.layers:
            features = torch.cat([colour_features(self.features, now), place_features(self.frequencies, places)], -1)
            now = now + layer(features, tokens, padding)
        return colours + strength * (now - colours)

    def save(self, path: str | Path, metadata: dict[str, str] | None = None) -> None:
        """Writes the file. `metadata` says where the weights come from."""
        tensors = {name: t.detach().float().contiguous().numpy() for name, t in self.state_dict().items()}
        known = {"format": FORMAT, "version": VERSION, "layers": str(len(self.layers)), "heads": str(self.heads),
                 "colour_features": self.features, "frequencies": str(self.frequencies)}
        safetensors.save(path, tensors, known | (metadata or {}))


def save_embeddings(path: str | Path, tokens: Tensor, pooled: Tensor | None = None,
                    metadata: dict[str, str] | None = None) -> None:
    """Writes a prompt's tokens [T, d_e], and perhaps the whole prompt as one vector."""
    tensors = {"tokens": tokens} | ({} if pooled is None else {"pooled": pooled})
    safetensors.save(path, {name: t.detach().float().contiguous().numpy() for name, t in tensors.items()}, metadata or {})
