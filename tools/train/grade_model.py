"""The bundled model `grade`: a text encoder and a cross-attention filter in one file.

lib/include/nonlocal/text_encoder.h and cross_attention_filter.h say what both calculate, and read the file.
"""
import json
import math
from pathlib import Path

import torch
from torch import Tensor, nn

import safetensors
from cross_attention_filter import FORMAT, VERSION, CrossAttentionFilter, colour_features, place_features

CONTEXT = 64  # tokens, start and end included
WIDTH, HEADS, LAYERS = 128, 4, 4
COLOUR_FEATURES = "r g b r*r g*g b*b r*g chroma chroma*cb chroma*cr"
FREQUENCIES = 2
FILTER = {"heads": 5, "dim": 24, "value_dim": 4, "layers": 2}
FIRST_CHANGES, FIRST_SHARPNESS = 0.3, 2.0  # of PyTorch's usual outputs and queries, to begin with


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        average = scores.masked_fill(padding[:, None, None], -torch.inf).softmax(-1) @ v
        return self.out_proj(average.transpose(1, 2).flatten(2))


class Perceptron(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attn, self.mlp = Attention(width, heads), Perceptron(width)

    def forward(self, x: Tensor, padding: Tensor, dropout: float) -> Tensor:
        x = x + nn.functional.dropout(self.self_attn(self.layer_norm1(x), padding), dropout, self.training)
        return x + nn.functional.dropout(self.mlp(self.layer_norm2(x)), dropout, self.training)


class Embeddings(nn.Module):
    def __init__(self, vocabulary: int, width: int):
        super().__init__()
        self.token_embedding, self.position_embedding = nn.Embedding(vocabulary, width), nn.Embedding(CONTEXT, width)
        nn.init.normal_(self.token_embedding.weight, std=0.1)
        nn.init.normal_(self.position_embedding.weight, std=0.03)

    def forward(self, ids: Tensor) -> Tensor:
        return self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]


class Encoder(nn.Module):
    def __init__(self, width: int, heads: int, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))


class TextModel(nn.Module):
    """CLIP's text tower without a causal mask; its tensors have CLIP's names."""

    def __init__(self, vocabulary: int):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, WIDTH)
        self.encoder = Encoder(WIDTH, HEADS, LAYERS)
        self.final_layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, ids: Tensor, padding: Tensor, dropout: float = 0.0) -> Tensor:
        x = self.embeddings(ids)
        for layer in self.encoder.layers:
            x = layer(x, padding, dropout)
        return self.final_layer_norm(x)


class Grade(nn.Module):
    def __init__(self, vocabulary: int):
        super().__init__()
        self.text_model = TextModel(vocabulary)
        self.filter = CrossAttentionFilter(WIDTH, COLOUR_FEATURES, FREQUENCIES, **FILTER)
        with torch.no_grad():
            for layer in self.filter.layers:
                layer.output.weight.mul_(FIRST_CHANGES)
                layer.output.bias.zero_()
                layer.query.weight.mul_(FIRST_SHARPNESS)

    def forward(self, ids: Tensor, padding: Tensor, colours: Tensor, places: Tensor, dropout: float = 0.0, bf16: bool = False) -> Tensor:
        """ids and padding [B, T], colours [B, N, 3], places [B, N, 2]"""
        return folded(self.filter, self.tokens(ids, padding, dropout, bf16), padding, colours, places)

    def tokens(self, ids: Tensor, padding: Tensor, dropout: float = 0.0, bf16: bool = False) -> Tensor:
        with torch.cpu.amp.autocast(enabled=bf16, dtype=torch.bfloat16):
            return self.text_model(ids, padding, dropout).float()


class Probes(nn.Module):
    """What an instruction does to a few colours that are always the same, told from the mean of its tokens alone. In training it
    brings the text encoder the meaning of words without the detour by the filter; it is no part of the model."""

    def __init__(self, number: int = 96):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        grey = torch.rand(number, 1, generator=g)
        pale = torch.rand(number, 1, generator=g)
        self.register_buffer("colours", grey + pale * (torch.rand(number, 3, generator=g) - grey))
        self.register_buffer("places", torch.rand(number, 2, generator=g) * 2 - 1)
        self.change = nn.Linear(WIDTH, 3 * number)
        nn.init.zeros_(self.change.weight)

    def forward(self, tokens: Tensor, padding: Tensor) -> Tensor:
        """[B, number, 3]"""
        there = (~padding).float()[..., None]
        mean = (tokens * there).sum(1) / there.sum(1)
        return self.colours + self.change(mean).unflatten(-1, (-1, 3))

    def batch(self, sentences: int) -> tuple[Tensor, Tensor]:
        return self.colours.expand(sentences, -1, -1), self.places.expand(sentences, -1, -1)


def folded(model: CrossAttentionFilter, tokens: Tensor, padding: Tensor, colours: Tensor, places: Tensor) -> Tensor:
    """What `model` makes of colours, in fewer and larger products: W_Q is multiplied into the keys, W_out into the values."""
    at = place_features(model.frequencies, places)
    for layer in model.layers:
        heads = layer.heads
        query, bias = (w.unflatten(0, (heads, -1)) for w in (layer.query.weight, layer.query.bias))
        key = layer.key(tokens).unflatten(-1, (heads, -1)).flatten(0, 1).transpose(0, 1) / math.sqrt(query.shape[1])  # [h, B T, d]
        key = torch.cat([key @ query, key @ bias[..., None]], -1)  # [h, B T, F + 1]
        key = key.unflatten(1, tokens.shape[:2]).permute(1, 3, 0, 2).flatten(2)  # [B, F + 1, h T]
        features = torch.cat([colour_features(model.features, colours), at], -1)
        scores = torch.baddbmm(key[:, -1:], features, key[:, :-1]).unflatten(-1, (heads, -1))
        weights = scores.masked_fill(padding[:, None, None], -torch.inf).softmax(-1).flatten(2)
        value = layer.value(tokens).unflatten(-1, (heads, -1)).flatten(0, 1).transpose(0, 1)  # [h, B T, d_v]
        value = value @ layer.output.weight.unflatten(1, (heads, -1)).permute(1, 2, 0)  # [h, B T, 3]
        value = value.unflatten(1, tokens.shape[:2]).transpose(0, 1).flatten(1, 2)
        colours = colours + layer.output.bias + weights @ value
    return colours


def batch_of(tokens: list[list[int]]) -> tuple[Tensor, Tensor]:
    """ids, and where there are none."""
    length = max(map(len, tokens))
    ids = torch.tensor([t + [0] * (length - len(t)) for t in tokens])
    return ids, torch.arange(length) >= torch.tensor([len(t) for t in tokens])[:, None]


def save(model: Grade, path: Path, tokenizer: str, words: list[str], metadata: dict[str, str]) -> None:
    config = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_act": "gelu",
              "layer_norm_eps": 1e-5, "max_position_embeddings": CONTEXT, "causal": False}
    f = model.filter
    known = {"format": FORMAT, "version": VERSION, "layers": str(len(f.layers)), "heads": str(f.heads), "colour_features": f.features,
             "frequencies": str(f.frequencies), "config": json.dumps(config), "tokenizer": tokenizer, "words": " ".join(words)}
    tensors = {name.removeprefix("filter."): t.detach().half().contiguous().numpy() for name, t in model.state_dict().items()}
    safetensors.save(path, tensors, known | metadata)


def load(path: Path) -> tuple[dict[str, Tensor], list[tuple[str, str]], dict[str, str]]:
    """A saved model's weights by their names in Grade, its tokenizer's merges, its metadata."""
    tensors, metadata = safetensors.load(path)
    names = {name.removeprefix("filter."): name for name in Grade(1).state_dict()}
    merges = [tuple(pair.split(" ")) for pair in json.loads(metadata["tokenizer"])["model"]["merges"]]
    return {names[name]: torch.from_numpy(t.astype("float32")) for name, t in tensors.items()}, merges, metadata
