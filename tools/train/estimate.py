"""The library's non-local means on numpy planes."""
import ctypes
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

BUILD = Path(__file__).resolve().parents[2] / "build"


@cache
def library(build: Path) -> ctypes.CDLL:
    """The functions of estimate.cpp."""
    path = build / "tools" / "train" / "libtrain_estimate.so"
    if not path.exists():
        raise FileNotFoundError(f"{path}: not found; build it: cmake --build {build} --target train_estimate")
    functions = ctypes.CDLL(str(path))
    functions.nonlocal_train_estimate.restype = ctypes.c_char_p
    functions.nonlocal_train_filter_h.restype = ctypes.c_double
    return functions


def filter_h(patch_size: int, search_size: int, sigma: float, planes: int = 1, build: Path = BUILD) -> float:
    """The library's h at a strength of 1, in 8-bit code values."""
    return library(build).nonlocal_train_filter_h(patch_size, search_size, ctypes.c_double(sigma), planes)


def chroma_estimate(estimate: "Estimate", sigma: float) -> "Estimate":
    """The one for chroma of 4:2:0 where `estimate` is luma's; sigma is chroma's."""
    strength, search_size = ctypes.c_double(), ctypes.c_int()
    library(estimate.build).nonlocal_train_chroma(
        estimate.search_size, ctypes.c_double(sigma), ctypes.byref(strength), ctypes.byref(search_size)
    )
    return replace(estimate, search_size=search_size.value, strength=estimate.strength * strength.value)


@dataclass(frozen=True)
class Estimate:
    """Non-local means of one patch and search size; see lib/include/nonlocal/non_local_means.h."""

    patch_size: int
    search_size: int
    strength: float = 1
    build: Path = BUILD

    def __str__(self) -> str:
        return f"patch {self.patch_size}, search {self.search_size}, strength {self.strength:g}"

    @staticmethod
    def from_text(text: str, build: Path = BUILD) -> "Estimate":
        """From what str() gives, as models have it in their metadata."""
        values = [part.split()[1] for part in text.split(",")]
        return Estimate(int(values[0]), int(values[1]), float(values[2]), build)

    def filter(self, plane: np.ndarray, sigma: float, threads: int = 1) -> np.ndarray:
        """Filters a plane [height, width], or several [planes, height, width] that share their weights, uint8 or
        uint16; sigma in 8-bit code values at either depth."""
        if plane.dtype not in (np.uint8, np.uint16) or plane.ndim not in (2, 3):
            raise ValueError(f"expected planes of uint8 or uint16, found {plane.dtype}, shape {plane.shape}")
        plane = np.ascontiguousarray(plane)
        out = np.empty_like(plane)
        message = library(self.build).nonlocal_train_estimate(
            plane.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p),
            plane.shape[0] if plane.ndim == 3 else 1, plane.shape[-1], plane.shape[-2], 8 * plane.itemsize,
            self.patch_size, self.search_size, ctypes.c_double(sigma), ctypes.c_double(self.strength), threads,
        )  # fmt: skip
        if message:
            raise ValueError(message.decode())
        return out
