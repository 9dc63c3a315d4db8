#!/usr/bin/python3
"""CLIP's towers in PyTorch, literally, in double precision, with random weights.

encoders.py make            text_clip.safetensors, text_full.safetensors, vision.safetensors: weights (F16), description
                            and vocabulary in one file as the library reads it; *_expected.safetensors: inputs, outputs
encoders.py compare PROGRAM towers of ViT-B/32's size: the outputs of PROGRAM (tests/lib/encoder_outputs.cpp) must be
                            PyTorch's within 1e-4 of the largest
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch import Tensor
except ImportError:
    print("python3-torch is not installed", file=sys.stderr)
    sys.exit(77)

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "tools" / "train"))
import safetensors  # noqa: E402

Weights = dict[str, Tensor]
GROUNDED_BLOCKS = 6
MEAN, DEVIATION = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]


# --- The towers ---

def linear(w: Weights, name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def norm(w: Weights, name: str, x: Tensor, epsilon: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], epsilon)


def activated(name: str, x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x) if name == "quick_gelu" else F.gelu(x)


def attention(w: Weights, name: str, x: Tensor, heads: int, is_causal: bool) -> Tensor:
    n, width = x.shape
    q, k, v = (linear(w, f"{name}.{part}_proj", x).view(n, heads, -1).transpose(0, 1) for part in "qkv")
    scores = q @ k.transpose(1, 2) * (width // heads) ** -0.5
    if is_causal:
        scores = scores + torch.full((n, n), -torch.inf, dtype=x.dtype).triu(1)
    return linear(w, f"{name}.out_proj", (torch.softmax(scores, dim=2) @ v).transpose(0, 1).reshape(n, width))


def block(w: Weights, name: str, x: Tensor, config: dict) -> Tensor:
    epsilon = config["layer_norm_eps"]
    normal = norm(w, f"{name}.layer_norm1", x, epsilon)
    x = x + attention(w, f"{name}.self_attn", normal, config["num_attention_heads"], config.get("causal", True))
    hidden = linear(w, f"{name}.mlp.fc1", norm(w, f"{name}.layer_norm2", x, epsilon))
    return x + linear(w, f"{name}.mlp.fc2", activated(config["hidden_act"], hidden))


def text_tower(w: Weights, config: dict, ids: list[int], end: int) -> tuple[Tensor, Tensor]:
    """The tokens, and the projected end token."""
    tower = "text_model"
    x = w[f"{tower}.embeddings.token_embedding.weight"][ids]
    x = x + w[f"{tower}.embeddings.position_embedding.weight"][: len(ids)]
    for i in range(config["num_hidden_layers"]):
        x = block(w, f"{tower}.encoder.layers.{i}", x, config)
    x = norm(w, f"{tower}.final_layer_norm", x, config["layer_norm_eps"])
    pooled = x[ids.index(end)]
    projection = w.get("text_projection.weight")
    return x, pooled if projection is None else pooled @ projection.T


def positions_on(table: Tensor, rows: int, columns: int) -> Tensor:
    side, width = round((len(table) - 1) ** 0.5), table.shape[1]
    grid = table[1:].view(1, side, side, width).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, size=(rows, columns), mode="bicubic", align_corners=False)
    return torch.cat([table[:1], grid.permute(0, 2, 3, 1).reshape(rows * columns, width)])


def vision_states(w: Weights, config: dict, rgb: Tensor) -> list[Tensor]:
    """The tokens before the first block and after each. `rgb`: 3 x height x width, 0 to 1."""
    tower, epsilon = "vision_model", config["layer_norm_eps"]
    mean, deviation = (torch.tensor(v, dtype=rgb.dtype).view(3, 1, 1) for v in (MEAN, DEVIATION))
    patches = F.conv2d(((rgb - mean) / deviation)[None], w[f"{tower}.embeddings.patch_embedding.weight"],
                       stride=config["patch_size"])[0]
    rows, columns = patches.shape[1:]
    x = torch.cat([w[f"{tower}.embeddings.class_embedding"][None], patches.flatten(1).T])
    x = x + positions_on(w[f"{tower}.embeddings.position_embedding.weight"], rows, columns)
    states = [norm(w, f"{tower}.pre_layrnorm", x, epsilon)]
    for i in range(config["num_hidden_layers"]):
        states.append(block(w, f"{tower}.encoder.layers.{i}", states[-1], config | {"causal": False}))
    return states


def embedded(w: Weights, config: dict, x: Tensor) -> Tensor:
    return norm(w, "vision_model.post_layernorm", x, config["layer_norm_eps"]) @ w["visual_projection.weight"].T


def vision_tower(w: Weights, config: dict, rgb: Tensor) -> dict[str, Tensor]:
    return vision_outputs(w, config, vision_states(w, config, rgb))


def vision_outputs(w: Weights, config: dict, states: list[Tensor]) -> dict[str, Tensor]:
    last = f"vision_model.encoder.layers.{config['num_hidden_layers'] - 1}"
    values = {"pooled": states[-1][:1], "patches": maskclip_values(w, last, states[-2][1:], config["layer_norm_eps"]),
              "grounded": grounded_values(w, config, states)}
    return {"tokens": states[-1]} | {name: embedded(w, config, x) for name, x in values.items()}


def maskclip_values(w: Weights, name: str, x: Tensor, epsilon: float) -> Tensor:
    values = linear(w, f"{name}.self_attn.v_proj", norm(w, f"{name}.layer_norm1", x, epsilon))
    return linear(w, f"{name}.self_attn.out_proj", values)


def self_self(x: Tensor, values: Tensor, temperature: Tensor) -> Tensor:
    """Each token's average of `values`, by how much `x` looks like others' `x`; heads x tokens x channels."""
    units = F.normalize(x, dim=-1)
    return torch.softmax(temperature * units @ units.transpose(1, 2), dim=2) @ values


def self_self_attention(w: Weights, name: str, x: Tensor, heads: int) -> Tensor:
    n, width = x.shape
    q, k, v = (linear(w, f"{name}.{part}_proj", x).view(n, heads, -1).transpose(0, 1) for part in "qkv")
    temperature = x.norm(dim=1).mean() * (width // heads) ** -0.5
    parts = [self_self(self_self(p, F.normalize(p, dim=-1), temperature), v, temperature) for p in (q, k, v)]
    return linear(w, f"{name}.out_proj", (sum(parts) / 3).transpose(0, 1).reshape(n, width))


def grounded_values(w: Weights, config: dict, states: list[Tensor]) -> Tensor:
    """GEM's path beside the last blocks."""
    layers = config["num_hidden_layers"]
    first = max(layers - GROUNDED_BLOCKS, 0)
    y = states[first]
    for i in range(first, layers):
        name = f"vision_model.encoder.layers.{i}"
        normal = norm(w, f"{name}.layer_norm1", states[i], config["layer_norm_eps"])
        y = y + self_self_attention(w, f"{name}.self_attn", normal, config["num_attention_heads"])
    return y[1:]


# --- Random weights ---

class Random:
    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.tensors: dict[str, np.ndarray] = {}

    def add(self, name: str, shape: tuple[int, ...], deviation: float, middle: float = 0) -> None:
        """Rounded to F16, as files have them."""
        values = self.generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation) + np.float32(middle)
        self.tensors[name] = np.asarray(values, np.float16)

    def add_norm(self, name: str, width: int) -> None:
        self.add(f"{name}.weight", (width,), 0.2, 1)
        self.add(f"{name}.bias", (width,), 0.2)

    def add_linear(self, name: str, outputs: int, inputs: int) -> None:
        self.add(f"{name}.weight", (outputs, inputs), inputs**-0.5)
        self.add(f"{name}.bias", (outputs,), 0.2)

    def add_blocks(self, prefix: str, config: dict) -> None:
        width, hidden = config["hidden_size"], config["intermediate_size"]
        for i in range(config["num_hidden_layers"]):
            name = f"{prefix}.{i}"
            for part in "qkv":
                self.add_linear(f"{name}.self_attn.{part}_proj", width, width)
            self.add_linear(f"{name}.self_attn.out_proj", width, width)
            self.add_norm(f"{name}.layer_norm1", width)
            self.add_norm(f"{name}.layer_norm2", width)
            self.add_linear(f"{name}.mlp.fc1", hidden, width)
            self.add_linear(f"{name}.mlp.fc2", width, hidden)

    def add_text(self, config: dict) -> None:
        width = config["hidden_size"]
        self.add("text_model.embeddings.token_embedding.weight", (config["vocab_size"], width), 0.5)
        self.add("text_model.embeddings.position_embedding.weight", (config["max_position_embeddings"], width), 0.3)
        self.add_blocks("text_model.encoder.layers", config)
        self.add_norm("text_model.final_layer_norm", width)
        if config.get("projection_dim"):
            self.add("text_projection.weight", (config["projection_dim"], width), width**-0.5)

    def add_vision(self, config: dict) -> None:
        width, patch, side = config["hidden_size"], config["patch_size"], config["image_size"] // config["patch_size"]
        self.add("vision_model.embeddings.class_embedding", (width,), 0.5)
        self.add("vision_model.embeddings.patch_embedding.weight", (width, 3, patch, patch), 1 / patch)
        self.add("vision_model.embeddings.position_embedding.weight", (1 + side * side, width), 0.5)
        self.add_norm("vision_model.pre_layrnorm", width)
        self.add_blocks("vision_model.encoder.layers", config)
        self.add_norm("vision_model.post_layernorm", width)
        self.add("visual_projection.weight", (config["projection_dim"], width), width**-0.5)


def weights_of(tensors: dict[str, np.ndarray], dtype: torch.dtype) -> Weights:
    return {name: torch.from_numpy(np.asarray(values, np.float32)).to(dtype) for name, values in tensors.items()}


def arrays(tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.float().contiguous().numpy() for name, tensor in tensors.items()}


# --- Fixtures ---

def make_text(folder: Path, name: str, config: dict, seed: int) -> None:
    vocabulary = (FOLDER / "tokenizer.json").read_text()
    random = Random(seed)
    random.add_text(config)
    description = {"text_config": config} if name == "text_clip" else config
    metadata = {"config": json.dumps(description), "tokenizer": vocabulary, "made by": "tests/parity/encoders.py"}
    safetensors.save(folder / f"{name}.safetensors", random.tensors, metadata)
    weights, expected = weights_of(random.tensors, torch.float64), {}
    start, end = config["vocab_size"] - 2, config["vocab_size"] - 1
    generator = np.random.default_rng(seed)
    for count in (2, 5, 12, config["max_position_embeddings"]):
        ids = [start, *map(int, generator.integers(0, start, count - 2)), end]
        tokens, pooled = text_tower(weights, config, ids, end)
        expected |= {f"ids.{count}": torch.tensor(ids).float(), f"tokens.{count}": tokens, f"pooled.{count}": pooled}
    safetensors.save(folder / f"{name}_expected.safetensors", arrays(expected), {"made by": "tests/parity/encoders.py"})


def make_vision(folder: Path, config: dict) -> None:
    random = Random(3)
    random.add_vision(config)
    metadata = {"config": json.dumps({"vision_config": config}), "made by": "tests/parity/encoders.py"}
    safetensors.save(folder / "vision.safetensors", random.tensors, metadata)
    weights, expected = weights_of(random.tensors, torch.float64), {}
    torch.manual_seed(1)
    for columns, rows in ((3, 3), (4, 5), (7, 2), (1, 1)):
        rgb = torch.rand(3, rows * config["patch_size"], columns * config["patch_size"]).double()
        case = f"{columns}x{rows}"
        outputs = vision_tower(weights, config, rgb)
        expected |= {f"rgb.{case}": rgb} | {f"{name}.{case}": tensor for name, tensor in outputs.items()}
    safetensors.save(folder / "vision_expected.safetensors", arrays(expected), {"made by": "tests/parity/encoders.py"})


def make(folder: Path) -> None:
    text = {"hidden_size": 24, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 764,
            "max_position_embeddings": 20, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "projection_dim": 10}
    make_text(folder, "text_clip", text, 1)
    full = text | {"hidden_size": 15, "intermediate_size": 37, "num_hidden_layers": 3, "num_attention_heads": 5,
                   "hidden_act": "gelu", "causal": False, "layer_norm_eps": 1e-3, "projection_dim": None,
                   "max_position_embeddings": 70}
    make_text(folder, "text_full", full, 2)
    make_vision(folder, {"hidden_size": 24, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
                         "patch_size": 4, "image_size": 12, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
                         "projection_dim": 10})


# --- At full size ---

TEXT = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8, "vocab_size": 49408,
        "max_position_embeddings": 77, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "projection_dim": 512}
VISION = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "patch_size": 32,
          "image_size": 224, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "projection_dim": 512}


def compare(program: str, layers: int) -> None:
    text_config, vision_config = (config | {"num_hidden_layers": layers} for config in (TEXT, VISION))
    random = Random(1)
    random.add_text(text_config)
    random.add_vision(vision_config)
    ids = [49406, *range(1000, 40000, 3900), 49407]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        safetensors.save(folder / "model.safetensors", random.tensors, {"made by": "tests/parity/encoders.py"})
        (folder / "config.json").write_text(json.dumps({"text_config": text_config, "vision_config": vision_config}))
        torch.manual_seed(1)
        rgb = torch.rand(3, 224, 224)
        safetensors.save(folder / "inputs", arrays({"ids": torch.tensor(ids), "rgb": rgb}), {})
        subprocess.run([program, name, str(folder / "inputs"), str(folder / "outputs")], check=True)
        found, _ = safetensors.load(folder / "outputs")
    weights = weights_of(random.tensors, torch.float32)
    tokens, pooled = text_tower(weights, text_config, ids, 49407)
    expected = {f"text.{k}": v for k, v in {"tokens": tokens, "pooled": pooled}.items()}
    expected |= {f"vision.{k}": v for k, v in vision_tower(weights, vision_config, rgb).items()}
    worst = 0.0
    for key, tensor in arrays(expected).items():
        error = float(np.abs(found[key].reshape(tensor.shape) - tensor).max() / np.abs(tensor).max())
        worst = max(worst, error)
        print(f"{key}: {error:.2g} of the largest")
    sys.exit(0 if worst < 1e-4 else 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make").add_argument("folder", nargs="?", type=Path, default=FOLDER)
    other = commands.add_parser("compare")
    other.add_argument("program")
    other.add_argument("--layers", type=int, default=12)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    if options.command == "make":
        make(options.folder)
    else:
        compare(options.program, options.layers)


if __name__ == "__main__":
    main()
