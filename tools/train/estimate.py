"""The library's non-local means on numpy planes."""
import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BUILD = Path(__file__).resolve().parents[2] / "build"


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
        """Filters a plane [height, width], uint8 or uint16; sigma in 8-bit code values at either depth."""
        if plane.dtype not in (np.uint8, np.uint16) or plane.ndim != 2:
            raise ValueError(f"expected a plane of uint8 or uint16, found {plane.dtype}, shape {plane.shape}")
        plane = np.ascontiguousarray(plane)
        out = np.empty_like(plane)
        message = self._function()(
            plane.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p),
            plane.shape[1], plane.shape[0], 8 * plane.itemsize,
            self.patch_size, self.search_size, ctypes.c_double(sigma), ctypes.c_double(self.strength), threads,
        )  # fmt: skip
        if message:
            raise ValueError(message.decode())
        return out

    def _function(self):
        path = self.build / "tools" / "train" / "libtrain_estimate.so"
        if not path.exists():
            build = f"cmake --build {self.build} --target train_estimate"
            raise FileNotFoundError(f"{path}: not found; build it: {build}")
        function = ctypes.CDLL(str(path)).nonlocal_train_estimate
        function.restype = ctypes.c_char_p
        return function
