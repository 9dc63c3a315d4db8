"""The refinement network: what averaging lost, from the noisy plane and the non-local estimate of it.

Planes are float, in 8-bit code values: f noisy, g the non-local estimate of f, s the standard deviation of f's
noise. All are unshuffled by r; L valid 3x3 convolutions of C channels follow, with ReLU after each but the last:

    x = [unshuffle(f / 255 - 0.5), unshuffle(g / 255 - 0.5), 4 mean(s) / 255]        2 r² + 1 channels
    refined = g + 255 shuffle(convolutions(x))
"""
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import safetensors


class Refinement(nn.Module):
    def __init__(self, unshuffle: int, layers: int, channels: int):
        super().__init__()
        self.unshuffle, self.layers, self.channels = unshuffle, layers, channels
        widths = [2 * unshuffle**2 + 1] + [channels] * (layers - 1) + [unshuffle**2]
        for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
            convolution = nn.Conv2d(inputs, outputs, 3)
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            nn.init.zeros_(convolution.bias)
            self.add_module(f"conv{i}", convolution)
        with torch.no_grad():
            # At the start the estimate comes out as it is: else the first steps unlearn the filters.
            convolution.weight.mul_(0.002)
            self._see_differences()

    def _see_differences(self) -> None:
        """Half of the first filters start with f - g, a quarter with the edges of g, neither with plain levels.

        What averaging lost is in f - g, a tenth of the planes' own size, and training finds it slowly by itself.
        """
        weight, n = self.conv0.weight, self.unshuffle**2
        half, rest = self.channels // 2, self.channels * 3 // 4
        weight[:half, n : 2 * n] = -weight[:half, :n]
        weight[half:rest, :n] = 0
        edges = weight[half:rest, n : 2 * n]
        edges -= edges.mean((1, 2, 3), keepdim=True)
        weight[:rest, : 2 * n] *= 4

    @property
    def border(self) -> int:
        """Pixels that the convolutions take off each side."""
        return self.unshuffle * self.layers

    @property
    def flops(self) -> float:
        """Floating-point operations a pixel of the plane, two a multiply-add."""
        return 2 * sum(p.numel() for p in self.parameters() if p.dim() == 4) / self.unshuffle**2

    def convolutions(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(self.layers):
            x = getattr(self, f"conv{i}")(x)
            if i < self.layers - 1:
                x = functional.relu(x)
        return x

    def inputs(self, f: torch.Tensor, g: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        """[N, 1, H, W] each, H and W multiples of r, to [N, 2r² + 1, H/r, W/r]."""
        r = self.unshuffle
        planes = [functional.pixel_unshuffle(plane / 255 - 0.5, r) for plane in (f, g)]
        return torch.cat(planes + [functional.avg_pool2d(s, r) / 255 * 4], 1)

    def forward(self, f: torch.Tensor, g: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        """[N, 1, H, W] each, to [N, 1, H - 2 border, W - 2 border]."""
        out = functional.pixel_shuffle(self.convolutions(self.inputs(f, g, s)), self.unshuffle)
        b = self.border
        return g[..., b:-b, b:-b] + 255 * out

    @torch.no_grad()
    def refine(self, f: np.ndarray, g: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Refines whole planes [H, W] of any size, mirrored beyond their borders (border pixels not repeated)."""
        height, width = f.shape
        b, r = self.border, self.unshuffle
        sides = ((b, b + -height % r), (b, b + -width % r))
        dtype = self.conv0.weight.dtype
        planes = [torch.from_numpy(np.pad(p, sides, "reflect")).to(dtype)[None, None] for p in (f, g, s)]
        return self(*planes)[0, 0, :height, :width].numpy()


def shape_metadata(network: Refinement) -> dict[str, str]:
    return {
        "format": "nonlocal.refinement",
        "version": "1",
        "unshuffle": str(network.unshuffle),
        "layers": str(network.layers),
        "channels": str(network.channels),
    }


def weights(network: Refinement) -> dict[str, np.ndarray]:
    return {name: value.detach().contiguous().numpy() for name, value in network.state_dict().items()}


def load_network(path: str | Path) -> Refinement:
    tensors, metadata = safetensors.load(path)
    if metadata.get("format") != "nonlocal.refinement":
        raise ValueError(f"{path}: expected the format nonlocal.refinement, found {metadata.get('format')}")
    network = Refinement(*(int(metadata[key]) for key in ("unshuffle", "layers", "channels")))
    # Copies: what comes from a file's bytes is read-only.
    network.load_state_dict({name: torch.from_numpy(tensors[name].copy()) for name in network.state_dict()})
    return network
