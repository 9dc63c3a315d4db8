#!/usr/bin/python3
"""Models of CLIP's and CLIPSeg's shape in which relevance is planted: patches of a colour lie where the colour's name does,
gray ones where phrases lie that name no colour. Nothing is trained; each weight is written down.

planted.py make    planted_clip.safetensors, planted_clipseg.safetensors: weights (F16), description and vocabulary; they know
                   red, green, blue, yellow, cyan and magenta as single tokens. Patches have 8 x 8 samples, pictures 64 x 64

A token has eight channels: how much redder, greener and bluer than gray it is, and how gray, each with its negative, so that
normalisation changes no direction. Embeddings have the four of them.
"""
import argparse
import json
from pathlib import Path

import tokenizer
from encoders import DEVIATION, MEAN, safetensors

import numpy as np

FOLDER = Path(__file__).resolve().parent
COLOURS = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "cyan": (0, 1, 1), "magenta": (1, 0, 1)}
NEUTRAL = ["object", "things", "stuff", "texture"]
AXES, WIDTH, PATCH, SIDE, CONTEXT, BLOCKS, HIDDEN = 4, 8, 8, 8, 16, 3, 4
GRAY = 0.25  # how gray everything is, on the scale of colours
COSINES_SCALE = 10
Tensors = dict[str, np.ndarray]


# Gray is the fourth axis. A channel and its negative lie side by side.
SPREAD = np.kron(np.eye(AXES), [[1], [-1]])  # channels x axes
# Of R, G and B, how far each is from the mean of the other two.
OPPONENT = 1.5 * (np.eye(3) - 1 / 3)


def vocabulary() -> tokenizer.Definition:
    """Bytes, and merges that make each word one token."""
    merges: list[tuple[str, str]] = []
    for word in [*COLOURS, *NEUTRAL]:
        symbols = tokenizer.Definition({}, merges, {}).merged(tokenizer.symbols_of(word))
        while len(symbols) > 1:
            merges.append((symbols[0], symbols[1]))
            symbols = tokenizer.Definition({}, merges, {}).merged(symbols)
    definition = tokenizer.of_merges(merges)
    assert all(len(definition.encode(word.encode())) == 3 for word in [*COLOURS, *NEUTRAL])
    return definition


def add_norm(t: Tensors, name: str, width: int, weight: float = 1) -> None:
    t[f"{name}.weight"], t[f"{name}.bias"] = np.full(width, weight), np.zeros(width)


def add_linear(t: Tensors, name: str, weight: np.ndarray, bias: np.ndarray | None = None) -> None:
    t[f"{name}.weight"], t[f"{name}.bias"] = weight, np.zeros(len(weight)) if bias is None else bias


def add_block(t: Tensors, name: str, like: float, value: np.ndarray, output: float, norm: float = 1) -> None:
    """Attention by likeness, an output of so much of the values, no more."""
    for part, weight in (("q", like * np.eye(WIDTH)), ("k", like * np.eye(WIDTH)), ("v", value), ("out", output * np.eye(WIDTH))):
        add_linear(t, f"{name}.self_attn.{part}_proj", weight)
    add_norm(t, f"{name}.layer_norm1", WIDTH, norm)
    add_norm(t, f"{name}.layer_norm2", WIDTH)
    add_linear(t, f"{name}.mlp.fc1", np.zeros((HIDDEN, WIDTH)))
    add_linear(t, f"{name}.mlp.fc2", np.zeros((WIDTH, HIDDEN)))


def text_tower(definition: tokenizer.Definition) -> Tensors:
    """The end token, gray by itself, takes on the colours of the tokens before it."""
    t: Tensors = {}
    tokens = np.zeros((len(definition.ids), WIDTH))
    for word, rgb in COLOURS.items():
        tokens[definition.encode(word.encode())[1]] = SPREAD @ [*OPPONENT @ rgb, 0]
    tokens[-1] = SPREAD @ [0, 0, 0, 1]
    t["text_model.embeddings.token_embedding.weight"] = tokens
    t["text_model.embeddings.position_embedding.weight"] = np.zeros((CONTEXT, WIDTH))
    add_block(t, "text_model.encoder.layers.0", 0, np.diag([1] * 6 + [0] * 2), 30)
    add_norm(t, "text_model.final_layer_norm", WIDTH)
    t["text_projection.weight"] = SPREAD.T / 2
    return t


def vision_tower() -> Tensors:
    """A patch is its mean colour; blocks let patches of one colour agree."""
    t: Tensors = {}
    colours = SPREAD[:, :3] @ OPPONENT  # of R, G and B
    scaled = colours * DEVIATION / PATCH**2
    t["vision_model.embeddings.class_embedding"] = np.zeros(WIDTH)
    t["vision_model.embeddings.patch_embedding.weight"] = np.tile(scaled[:, :, None, None], (1, 1, PATCH, PATCH))
    constant = colours @ MEAN + SPREAD @ [0, 0, 0, GRAY]
    t["vision_model.embeddings.position_embedding.weight"] = np.tile(constant, (1 + SIDE**2, 1))
    add_norm(t, "vision_model.pre_layrnorm", WIDTH)
    for i in range(BLOCKS):
        add_block(t, f"vision_model.encoder.layers.{i}", 0.2, np.eye(WIDTH), 0.1, 10)
    add_norm(t, "vision_model.post_layernorm", WIDTH)
    t["visual_projection.weight"] = SPREAD.T / 2
    return t


def decoder() -> Tensors:
    """How much of the prompt's colour a patch has, less a threshold, is what all patches are compared by."""
    t: Tensors = {}
    plain = np.diag([1, 1, 1, 0]) @ SPREAD.T / 2  # colours without gray
    add_linear(t, "decoder.reduces.0", np.concatenate([plain, -plain]))
    for i in range(1, BLOCKS):
        add_linear(t, f"decoder.reduces.{i}", np.zeros((WIDTH, WIDTH)))
    twice = np.concatenate([np.eye(AXES), np.eye(AXES)])
    add_linear(t, "decoder.film_mul", twice)
    threshold = np.array([0, 0, 0, -2.0, 0, 0, 0, 2])
    add_linear(t, "decoder.film_add", np.zeros((WIDTH, AXES)), threshold)
    for i in range(BLOCKS):
        add_block(t, f"decoder.layers.{i}", 0, np.zeros((WIDTH, WIDTH)), 0)
    signs = np.repeat([1.0, -1.0], AXES)
    t["decoder.transposed_convolution.weight"] = np.tile(signs[:, None, None, None], (1, 1, PATCH, PATCH))
    t["decoder.transposed_convolution.bias"] = np.zeros(1)
    return t


def description(size: int) -> dict:
    shared = {"hidden_size": WIDTH, "intermediate_size": HIDDEN, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
              "num_attention_heads": 1, "projection_dim": AXES}
    return {"text_config": shared | {"vocab_size": size, "max_position_embeddings": CONTEXT, "num_hidden_layers": 1},
            "vision_config": shared | {"patch_size": PATCH, "image_size": PATCH * SIDE, "num_hidden_layers": BLOCKS},
            "extract_layers": list(range(BLOCKS)), "decoder_num_attention_heads": 2}


def make(folder: Path) -> None:
    definition = vocabulary()
    metadata = {"config": json.dumps(description(len(definition.ids))), "made by": "tests/parity/planted.py",
                "tokenizer": json.dumps(tokenizer.tokenizer_json(definition), ensure_ascii=False)}
    clip = text_tower(definition) | vision_tower() | {"logit_scale": np.log(COSINES_SCALE)}
    clipseg = {f"clip.{name}": tensor for name, tensor in clip.items()} | decoder()
    for kind, tensors in (("clip", clip), ("clipseg", clipseg)):
        rounded = {name: np.asarray(tensor, np.float16) for name, tensor in tensors.items()}
        safetensors.save(folder / f"planted_{kind}.safetensors", rounded, metadata)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make").add_argument("folder", nargs="?", type=Path, default=FOLDER)
    make(parser.parse_args().folder)


if __name__ == "__main__":
    main()
