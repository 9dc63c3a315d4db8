"""Non-local blocks and attention for networks that nonlocal's Network runs; see lib/network/README.md for each.

Planes of features are [N, C, H, W]. Where a network looks at several frames, N counts them in the order of time; each
sees itself and the `frames` - 1 before it, and before the first stands the first.
"""
import math

import torch
from torch import nn
from torch.nn import functional

MODES = ("embedded_gaussian", "gaussian", "dot_product", "concatenation")
REACHES = ("spatial", "temporal", "space_time")


def tokens(x: torch.Tensor) -> torch.Tensor:
    """[N, C, H, W] to [N, H W, C]."""
    return x.flatten(2).transpose(1, 2)


def history(x: torch.Tensor, frames: int) -> torch.Tensor:
    """[N, n, C] to [N, frames, n, C]: each frame's and those before it."""
    return torch.stack([x[[max(t - k, 0) for k in range(frames)]] for t in range(len(x))])


def pooled(x: torch.Tensor, by: int) -> torch.Tensor:
    return functional.max_pool2d(x, by) if by > 1 else x


class NonLocalBlock(nn.Module):
    """z = W_z y + x (X. Wang et al., CVPR 2018); the identity until it is trained."""

    def __init__(self, inputs: int, mode: str = "embedded_gaussian", reach: str = "spatial", channels: int | None = None,
                 sub_sample: int = 1, bias: bool = True, norm: bool = False, epsilon: float = 1e-5, frames: int = 1):
        super().__init__()
        if mode not in MODES or reach not in REACHES:
            raise ValueError(f"expected a mode of {', '.join(MODES)} and a reach of {', '.join(REACHES)}, found {mode}, {reach}")
        self.mode, self.reach, self.sub_sample, self.frames = mode, reach, sub_sample, frames
        channels = channels or max(1, inputs // 2)
        if mode != "gaussian":
            self.theta = nn.Conv2d(inputs, channels, 1, bias=bias)
            self.phi = nn.Conv2d(inputs, channels, 1, bias=bias)
        if mode == "concatenation":
            self.f = nn.Conv2d(2 * channels, 1, 1, bias=False)
        self.g = nn.Conv2d(inputs, channels, 1, bias=bias)
        self.z = nn.Conv2d(channels, inputs, 1, bias=bias)
        self.norm = nn.BatchNorm2d(inputs, epsilon) if norm else nn.Identity()
        for parameter in self.norm.parameters() if norm else self.z.parameters():
            nn.init.zeros_(parameter)

    def scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """[..., n, C], [..., m, C] to weights [..., n, m]."""
        if self.mode == "concatenation":
            over_query, over_key = self.f.weight.flatten().chunk(2)
            sums = (query @ over_query)[..., :, None] + (key @ over_key)[..., None, :]
            return functional.relu(sums) / key.shape[-2]
        product = query @ key.transpose(-1, -2)
        return product / key.shape[-2] if self.mode == "dot_product" else product.softmax(-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key = (x, x) if self.mode == "gaussian" else (self.theta(x), self.phi(x))
        query, key, value = (tokens(t) for t in (query, pooled(key, self.sub_sample), pooled(self.g(x), self.sub_sample)))
        if self.reach != "spatial":
            key, value = history(key, self.frames), history(value, self.frames)
        if self.reach == "space_time":
            key, value = key.flatten(1, 2), value.flatten(1, 2)
        if self.reach == "temporal":
            key, value, query = key.transpose(1, 2), value.transpose(1, 2), query[:, :, None]
        y = self.scores(query, key) @ value
        if self.reach == "temporal":
            y = y[:, :, 0]
        y = y.transpose(1, 2).unflatten(2, x.shape[2:])
        return x + self.norm(self.z(y))


class SelfAttention2d(nn.Module):
    """gamma v(attention) + x (H. Zhang et al.: SAGAN, ICML 2019); the identity until it is trained."""

    def __init__(self, inputs: int, channels: int | None = None, value_channels: int | None = None, sub_sample: int = 1,
                 bias: bool = False):
        super().__init__()
        channels = channels or max(1, inputs // 8)
        value_channels = value_channels or channels
        self.sub_sample = sub_sample
        self.f = nn.Conv2d(inputs, channels, 1, bias=bias)
        self.g = nn.Conv2d(inputs, channels, 1, bias=bias)
        self.h = nn.Conv2d(inputs, value_channels, 1, bias=bias)
        self.v = nn.Conv2d(value_channels, inputs, 1, bias=bias)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key, value = (tokens(pooled(t, self.sub_sample)) for t in (self.f(x), self.h(x)))
        weights = (tokens(self.g(x)) @ key.transpose(1, 2)).softmax(-1)
        return x + self.gamma * self.v((weights @ value).transpose(1, 2).unflatten(2, x.shape[2:]))


class TransformerBlock(nn.Module):
    """softmax(Q K^T / sqrt(d)) V of several heads, projected and, unless told otherwise, added to x.

    A. Vaswani et al.: Attention Is All You Need, NIPS 2017.
    """

    def __init__(self, inputs: int, channels: int | None = None, heads: int = 1, bias: bool = True,
                 residual: bool = True):
        super().__init__()
        channels = channels or inputs
        self.heads, self.residual = heads, residual
        for name in ("query", "key", "value"):
            self.add_module(name, nn.Conv2d(inputs, channels, 1, bias=bias))
        self.out = nn.Conv2d(channels, inputs, 1, bias=bias)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """[N, n, C] to [N, heads, n, C / heads]."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def position_bias(self) -> torch.Tensor | float:
        return 0.0

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """[N, n, C] each."""
        query, key, value = (self.split(t) for t in (query, key, value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + self.position_bias()
        return (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)

    def mixed(self, x: torch.Tensor) -> torch.Tensor:
        y = self.attend(*(tokens(t) for t in (self.query(x), self.key(x), self.value(x))))
        return y.transpose(1, 2).unflatten(2, x.shape[2:])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.out(self.mixed(x))
        return x + y if self.residual else y


class WindowAttention(TransformerBlock):
    """The same in windows of `window` x `window` (Z. Liu et al.: Swin Transformer, ICCV 2021)."""

    def __init__(self, inputs: int, window: int, channels: int | None = None, heads: int = 1, bias: bool = True,
                 residual: bool = True, relative_bias: bool = False):
        super().__init__(inputs, channels, heads, bias, residual)
        self.window = window
        if relative_bias:
            self.relative_bias = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))

    def position_bias(self) -> torch.Tensor | float:
        if not hasattr(self, "relative_bias"):
            return 0.0
        w = self.window
        y, x = (t.flatten() for t in torch.meshgrid(torch.arange(w), torch.arange(w), indexing="ij"))
        down, right = (t[:, None] - t[None, :] + w - 1 for t in (y, x))
        return self.relative_bias[down * (2 * w - 1) + right].permute(2, 0, 1)

    def mixed(self, x: torch.Tensor) -> torch.Tensor:
        n, _, height, width = x.shape
        w = self.window

        def windows(t: torch.Tensor) -> torch.Tensor:
            cut = t.reshape(n, -1, height // w, w, width // w, w).permute(0, 2, 4, 3, 5, 1)
            return cut.reshape(-1, w * w, t.shape[1])

        y = self.attend(*(windows(t) for t in (self.query(x), self.key(x), self.value(x))))
        y = y.reshape(n, height // w, width // w, w, w, -1).permute(0, 5, 1, 3, 2, 4)
        return y.reshape(n, -1, height, width)


class LayerNorm2d(nn.Module):
    """Over the channels of each position."""

    def __init__(self, channels: int, epsilon: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.layer_norm(x.movedim(1, -1), (x.shape[1],), self.weight, self.bias, self.epsilon)
        return y.movedim(-1, 1)
