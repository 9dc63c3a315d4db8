#!/usr/bin/python3
"""Regions that answer a prompt, literally in PyTorch, in double precision, with random weights: CLIP's patches by MaskCLIP
and GEM with LERF's relevance, and CLIPSeg's decoder.

regions.py make    regions_clip.safetensors, regions_clipseg.safetensors, regions_clipseg_refined.safetensors: weights (F16)
                   and description; regions_expected.safetensors: frames of 8 bits, and each model's maps and pooled vectors
                   for the prompt that its metadata name, with the vocabulary tokenizer.json
regions.py full FOLDER  a model of ViT-B/16's size with random weights, to measure with: tests/lib/region_cost.cpp
"""
import argparse
import json
import math
from pathlib import Path

import encoders
import tokenizer
from encoders import Random, Weights, linear, norm, safetensors, weights_of

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

FOLDER = Path(__file__).resolve().parent
PROMPT = "A warm sunset"
NEUTRAL = ["object", "things", "stuff", "texture"]
TEXT = {"hidden_size": 12, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 3, "vocab_size": 764,
        "max_position_embeddings": 20, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "projection_dim": 10}
VISION = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 7, "num_attention_heads": 2, "patch_size": 4,
          "image_size": 12, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "projection_dim": 10}
DECODER = {"extract_layers": [1, 3, 4], "reduce_dim": 8, "decoder_num_attention_heads": 2, "decoder_intermediate_size": 16,
           "conditional_layer": 0}
FRAMES = [(30, 20), (15, 37), (9, 9), (100, 10)]  # the last is longer than a grid may be
CLIPSEG_SIDE = 16
KINDS = ["clip", "clipseg", "clipseg_refined"]
FULL_VISION = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
               "patch_size": 16, "image_size": 224, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "projection_dim": 512}
FULL_DECODER = {"extract_layers": [3, 6, 9], "reduce_dim": 64, "decoder_num_attention_heads": 4,
                "decoder_intermediate_size": 2048, "conditional_layer": 0}


# --- CLIP ---

def relevance(patches: Tensor, query: Tensor, phrases: Tensor, scale: float) -> Tensor:
    patches, query, phrases = (F.normalize(t, dim=-1) for t in (patches, query, phrases))
    own, others = scale * patches @ query, scale * patches @ phrases.T
    return (own.exp()[:, None] / (own.exp()[:, None] + others.exp())).min(dim=1).values


def pooled(patches: Tensor, scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=0) @ patches


# --- CLIPSeg ---

def post_norm_block(w: Weights, name: str, x: Tensor, heads: int, epsilon: float) -> Tensor:
    x = norm(w, f"{name}.layer_norm1", x + encoders.attention(w, f"{name}.self_attn", x, heads, False), epsilon)
    hidden = torch.relu(linear(w, f"{name}.mlp.fc1", x))
    return norm(w, f"{name}.layer_norm2", x + linear(w, f"{name}.mlp.fc2", hidden), epsilon)


def upsampled(w: Weights, x: Tensor) -> Tensor:
    """`x`: channels x rows x columns."""
    name = "decoder.transposed_convolution"

    def transposed(x: Tensor, name: str) -> Tensor:
        weight = w[f"{name}.weight"]
        return F.conv_transpose2d(x, weight, w[f"{name}.bias"], stride=weight.shape[2])
    if f"{name}.0.weight" not in w:
        return transposed(x[None], name)[0, 0]
    x = torch.relu(F.conv2d(x[None], w[f"{name}.0.weight"], w[f"{name}.0.bias"], padding=1))
    return transposed(torch.relu(transposed(x, f"{name}.2")), f"{name}.4")[0, 0]


def decoder(w: Weights, config: dict, states: list[Tensor], text: Tensor, rows: int, columns: int) -> Tensor:
    """Logits, rows x columns of samples."""
    x = None
    epsilon = config["vision_config"]["layer_norm_eps"]
    for i, layer in enumerate(reversed(config["extract_layers"])):
        reduced = linear(w, f"decoder.reduces.{i}", states[layer + 1])
        x = reduced if x is None else reduced + x
        if i == config["conditional_layer"]:
            x = linear(w, "decoder.film_mul", text) * x + linear(w, "decoder.film_add", text)
        x = post_norm_block(w, f"decoder.layers.{i}", x, config["decoder_num_attention_heads"], epsilon)
    return upsampled(w, x[1:].T.reshape(-1, rows, columns))


# --- Frames ---

def seen(frame: np.ndarray, rows: int, columns: int) -> Tensor:
    """`frame`: 3 x height x width of 0 to 255; at the size that the model sees, 0 to 1."""
    rgb = torch.from_numpy(frame.astype(np.float64))[None] / 255
    return F.interpolate(rgb, size=(rows, columns), mode="bicubic", antialias=True)[0].clamp(0, 1)


def grid_of(width: int, height: int, side: int) -> tuple[int, int]:
    def along(by: float) -> int:
        return math.floor(side * min(max(by, 1), 8) + 0.5)
    return along(height / width), along(width / height)


# --- Random models ---

def add_decoder(random: Random, vision: dict, decoder: dict, is_refined: bool) -> None:
    width, patch, blocks = decoder["reduce_dim"], vision["patch_size"], len(decoder["extract_layers"])
    random.add_linear("decoder.film_mul", width, vision["projection_dim"])
    random.add_linear("decoder.film_add", width, vision["projection_dim"])
    for i in range(blocks):
        random.add_linear(f"decoder.reduces.{i}", width, vision["hidden_size"])
    random.add_blocks("decoder.layers", {"hidden_size": width, "intermediate_size": decoder["decoder_intermediate_size"],
                                         "num_hidden_layers": blocks})
    name, part = "decoder.transposed_convolution", round(patch**0.5)
    shapes = {f"{name}": (width, 1, patch, patch)}
    if is_refined:
        shapes = {f"{name}.0": (width, width, 3, 3), f"{name}.2": (width, width // 2, part, part),
                  f"{name}.4": (width // 2, 1, part, part)}
    for layer, shape in shapes.items():
        random.add(f"{layer}.weight", shape, 0.3)
        random.add(f"{layer}.bias", (shape[0 if layer.endswith(".0") else 1],), 0.2)


def model_of(kind: str, seed: int, text: dict, vision: dict, decoder: dict) -> tuple[dict[str, np.ndarray], dict]:
    """Tensors, without CLIPSeg's prefix, and the description."""
    random = Random(seed)
    random.add_text(text)
    random.add_vision(vision)
    random.add("logit_scale", (), 0, math.log(20))
    description = {"text_config": text, "vision_config": vision}
    if kind != "clip":
        add_decoder(random, vision, decoder, kind == "clipseg_refined")
        description |= decoder
    return random.tensors, description


def save(path: Path, kind: str, tensors: dict[str, np.ndarray], description: dict) -> None:
    if kind != "clip":
        tensors = {name if name.startswith("decoder.") else f"clip.{name}": tensor for name, tensor in tensors.items()}
    metadata = {"config": json.dumps(description), "made by": "tests/parity/regions.py"}
    safetensors.save(path, tensors, metadata)


def text_of(w: Weights, prompt: str) -> Tensor:
    ids = tokenizer.load(FOLDER / "tokenizer.json").encode(prompt.encode())
    return encoders.text_tower(w, TEXT, ids, ids[-1])[1]


def clip_outputs(w: Weights, frame: np.ndarray) -> dict[str, Tensor]:
    rows, columns = grid_of(frame.shape[2], frame.shape[1], VISION["image_size"] // VISION["patch_size"])
    vision = encoders.vision_tower(w, VISION, seen(frame, rows * VISION["patch_size"], columns * VISION["patch_size"]))
    query, phrases, scale = text_of(w, PROMPT), torch.stack([text_of(w, p) for p in NEUTRAL]), w["logit_scale"].exp()
    outputs = {}
    for name, patches in (("gem", vision["grounded"]), ("maskclip", vision["patches"])):
        outputs[f"{name}.map"] = relevance(patches, query, phrases, scale).view(rows, columns)
        outputs[f"{name}.pooled"] = pooled(patches, scale * F.normalize(patches, dim=1) @ F.normalize(query, dim=0))
    return outputs


def clipseg_outputs(w: Weights, config: dict, frame: np.ndarray) -> dict[str, Tensor]:
    side = CLIPSEG_SIDE // VISION["patch_size"]
    states = encoders.vision_states(w, VISION, seen(frame, CLIPSEG_SIDE, CLIPSEG_SIDE))
    logits = decoder(w, config, states, text_of(w, PROMPT), side, side)
    means = F.avg_pool2d(logits[None], logits.shape[0] // side)[0].flatten()
    return {"map": torch.sigmoid(logits), "pooled": pooled(encoders.vision_outputs(w, VISION, states)["patches"], means)}


def make(folder: Path) -> None:
    generator = np.random.default_rng(1)
    frames = {f"{w}x{h}": generator.integers(0, 256, (3, h, w)).astype(np.float16) for w, h in FRAMES}
    expected = {f"frame.{case}": frame for case, frame in frames.items()}
    for seed, kind in enumerate(KINDS):
        tensors, description = model_of(kind, seed + 5, TEXT, VISION, DECODER)
        save(folder / f"regions_{kind}.safetensors", kind, tensors, description)
        weights = weights_of(tensors, torch.float64)
        for case, frame in frames.items():
            outputs = clip_outputs(weights, frame) if kind == "clip" else clipseg_outputs(weights, description, frame)
            expected |= encoders.arrays({f"{kind}.{name}.{case}": tensor for name, tensor in outputs.items()})
    metadata = {"prompt": PROMPT, "clipseg side": str(CLIPSEG_SIDE), "made by": "tests/parity/regions.py"}
    safetensors.save(folder / "regions_expected.safetensors", expected, metadata)


def make_full(folder: Path, kind: str) -> None:
    tensors, description = model_of(kind, 1, TEXT | {"projection_dim": FULL_VISION["projection_dim"]}, FULL_VISION, FULL_DECODER)
    folder.mkdir(parents=True, exist_ok=True)
    save(folder / "model.safetensors", kind, tensors, description)
    (folder / "tokenizer.json").write_text((FOLDER / "tokenizer.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make").add_argument("folder", nargs="?", type=Path, default=FOLDER)
    full = commands.add_parser("full")
    full.add_argument("folder", type=Path)
    full.add_argument("--kind", choices=KINDS, default=KINDS[0])
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    if options.command == "make":
        make(options.folder)
    else:
        make_full(options.folder, options.kind)


if __name__ == "__main__":
    main()
