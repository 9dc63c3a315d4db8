"""Safetensors files, read and written by hand: Debian 12 has no package for them.

A file is the header's length (8 bytes, little-endian), the header (JSON: each tensor's type, shape and place,
"__metadata__" with strings), and the tensors' bytes. https://github.com/huggingface/safetensors
"""
import json
from pathlib import Path

import numpy as np

TYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "I32": np.dtype("<i4"), "U8": np.dtype("u1")}


def save(path: str | Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Writes `tensors` in their order; the header is padded with spaces to a multiple of 8 bytes."""
    names = {dtype: name for name, dtype in TYPES.items()}
    header: dict[str, dict] = {"__metadata__": metadata}
    offset = 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        place = [offset, end]
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    partial = Path(f"{path}.partial")
    with partial.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())
    partial.replace(path)


def load(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Gives the tensors and the metadata. Raises ValueError if the file is not what its header says."""
    data = Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 + length:
        raise ValueError(f"{path}: expected a header of {length} bytes, the file has {len(data)} bytes")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + length + begin : 8 + length + end], TYPES[entry["dtype"]])
        if values.size != np.prod(entry["shape"], dtype=int):
            raise ValueError(f"{path}: {name}: expected the shape {entry['shape']}, found {values.size} values")
        tensors[name] = values.reshape(entry["shape"])
    return tensors, metadata
