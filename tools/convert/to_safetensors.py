#!/usr/bin/python3
"""Makes safetensors of PyTorch's own files: to_safetensors.py pytorch_model.bin model.safetensors

Takes state dicts (Hugging Face's pytorch_model.bin, checkpoints that have one under "state_dict" or "model") and
OpenAI's TorchScript archives (ViT-B-32.pt). Names, shapes and types stay as they are; what is no tensor of numbers is left
out, and so is *.position_ids. The model's other files (config.json, the tokenizer's) belong beside what is written.

Needs python3-torch. Only tensors are unpickled where PyTorch can be told so (1.13 and later): older ones run what a file
says.
"""
import argparse
import inspect
import json
import pickle
import re
import sys
from pathlib import Path

import torch
from torch import Tensor

TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64", torch.int64: "I64",
         torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


def unpickled(path: Path) -> object:
    options = {"weights_only": True} if "weights_only" in inspect.signature(torch.load).parameters else {}
    try:
        return torch.load(path, map_location="cpu", **options)
    except pickle.UnpicklingError as error:  # whose words advise to let the file's code run
        other = re.search(r"Unsupported (?:class|global:(?: GLOBAL)?) ([\w.]+)", str(error))
        if other:
            raise ValueError(f"holds more than tensors ({other[1]}): save its state_dict()") from None
        raise ValueError("expected a file that torch.save wrote") from None


def load(path: Path) -> dict[str, Tensor]:
    try:
        loaded = torch.jit.load(str(path), map_location="cpu").state_dict()  # an archive of code; it is not run
    except RuntimeError:
        loaded = unpickled(path)
    for key in ("state_dict", "model"):
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict):
        raise ValueError(f"expected a dictionary of tensors, found {type(loaded).__name__}")
    tensors = {name: t.detach() for name, t in loaded.items()
               if isinstance(t, Tensor) and t.dtype in TYPES and not name.endswith("position_ids")}
    if not tensors:
        raise ValueError("expected tensors, found none")
    return tensors


def raw_bytes(tensor: Tensor) -> bytes:
    """NumPy has no bfloat16: its bits pass as integers."""
    tensor = tensor.contiguous()
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy().tobytes()


def save(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    header: dict[str, dict] = {"__metadata__": metadata}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(raw_bytes(tensor))
    partial.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path, nargs="?", help="[model.safetensors beside the source]")
    options = parser.parse_args()
    target = options.target or options.source.with_name("model.safetensors")
    try:
        tensors = load(options.source)
        save(target, tensors, {"format": "pt", "made from": options.source.name})
    except Exception as error:  # whatever unpickling raises: one line says it
        sys.exit(f"{options.source}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    print(f"{target}: {len(tensors)} tensors, {sum(t.numel() for t in tensors.values())} numbers")


if __name__ == "__main__":
    main()
