#!/usr/bin/python3
"""Leaves heads or features of colours out of the filter of a checkpoint of grade.py, which then goes on with --resume.

Frames that are graded exactly take as long as there are heads, and most of it for features. Those to leave out are the ones
without which the loss rises least: --measure tells it of each, of sentences of the grammar. grade_model.FILTER or
COLOUR_FEATURES is then to be what is left."""
import argparse
import random
from pathlib import Path

import torch
from torch import Tensor

import grade
import grade_edits
import grade_model
import grade_off_topic
from cross_attention_filter import colour_features
from grade_grammar import Grammar, known_words
from grade_tokenizer import Tokenizer

SENTENCES, AT_ONCE, COLOURS = 768, 64, 24


def heads_of(model: dict[str, Tensor]) -> int:
    return model["filter.layers.0.value.weight"].shape[0] // grade_model.FILTER["value_dim"]


def kept_rows(name: str, heads: list[int]) -> tuple[int, Tensor] | None:
    """The dimension of a weight that has the heads side by side, and the indices to keep."""
    matrix, _, kind = name.partition("layers.")[2].partition(".")[2].partition(".")
    if not name.startswith("filter.layers.") or (matrix, kind) == ("output", "bias"):
        return None
    size = grade_model.FILTER["value_dim" if matrix in ("value", "output") else "dim"]
    return int(matrix == "output"), torch.tensor([h * size + i for h in heads for i in range(size)])


def without(name: str, tensor: Tensor, left_out: list[set[int]], heads: int) -> Tensor:
    layer = int(name.split(".")[2]) if name.startswith("filter.layers.") else 0
    rows = kept_rows(name, [h for h in range(heads) if h not in left_out[layer]])
    return tensor if rows is None or tensor.ndim == 0 else tensor.index_select(*rows).clone()


def leave_out_heads(state: dict, left_out: list[set[int]]) -> None:
    """Of the weights, their average, and what the optimizer knows of them."""
    heads, ordered = heads_of(state["model"]), in_order_of_optimizer(state)
    for i, moments in state["optimizer"]["state"].items():
        for kind, value in moments.items():
            moments[kind] = without(ordered[i], value, left_out, heads)
    for part in ("model", "average"):
        state[part] = {name: without(name, value, left_out, heads) for name, value in state[part].items()}


def without_feature(weight: Tensor, bias: Tensor, samples: Tensor, feature: int, others: list[int]) -> None:
    """A query's weights of a feature become weights of the others, which tell most of it: samples [n, features, and 1]."""
    share = torch.linalg.lstsq(samples[:, others + [-1]], samples[:, feature : feature + 1]).solution[:, 0]
    weight[:, others] += weight[:, feature : feature + 1] * share[:-1]
    bias += weight[:, feature] * share[-1]
    weight[:, feature] = 0


def samples_of(names: str, data: Path) -> Tensor:
    colours = grade.Colours(data, 9).batch(200, COLOURS)[0].flatten(0, 1)
    return torch.cat([colour_features(names, colours), torch.ones(len(colours), 1)], -1)


def leave_out_features(state: dict, left_out: list[str], data: Path) -> None:
    """Of the queries of the weights, their average, and what the optimizer knows of them."""
    names = grade_model.COLOUR_FEATURES.split()
    kept = [i for i, name in enumerate(names) if name not in left_out]
    samples = samples_of(grade_model.COLOUR_FEATURES, data)
    columns = torch.tensor(kept + [len(names) + i for i in range(4 * grade_model.FREQUENCIES)])
    for part in ("model", "average"):
        weights = state[part]
        for layer in range(grade_model.FILTER["layers"]):
            weight, bias = (weights[f"filter.layers.{layer}.query.{kind}"] for kind in ("weight", "bias"))
            alive = list(range(len(names)))
            for feature in (names.index(name) for name in left_out):
                alive.remove(feature)
                without_feature(weight, bias, samples, feature, alive)
            weights[f"filter.layers.{layer}.query.weight"] = weight[:, columns].clone()
    ordered = in_order_of_optimizer(state)
    for i, moments in state["optimizer"]["state"].items():
        if ordered[i].startswith("filter.") and ordered[i].endswith("query.weight"):
            for kind, value in moments.items():
                moments[kind] = value if value.ndim == 0 else value[:, columns].clone()


def in_order_of_optimizer(state: dict) -> list[str]:
    """Names of weights: those that are decayed, then the others."""
    names = [*state["model"], *(f"probes.{name}" for name in ("change.weight", "change.bias"))]
    decayed = [n for n in names if state["model"].get(n, state["probes"].get(n[7:])).ndim > 1]
    return decayed + [n for n in names if n not in decayed]


class Loss:
    """Of the averaged weights, over sentences that are always the same."""

    def __init__(self, options: argparse.Namespace, state: dict):
        torch.set_num_threads(1)
        tokenizer = Tokenizer(state["merges"])
        grade_model.FILTER["heads"] = heads_of(state["model"])
        self.model = grade_model.Grade(len(tokenizer)).eval()
        self.model.load_state_dict(state["average"])
        others = grade_off_topic.other_words(options.dictionary, options.wordnet, known_words())
        grammar = Grammar(random.Random(77), others)
        colours = grade.Colours(options.data, 9)
        pairs = [(tokenizer.tokens(text, grade_model.CONTEXT), edits) for text, edits in (grammar.sentence() for _ in range(SENTENCES))]
        pairs.sort(key=lambda pair: len(pair[0]))
        self.batches = [self.batch(pairs[i : i + AT_ONCE], colours) for i in range(0, SENTENCES, AT_ONCE)]
        self.samples = samples_of(self.model.filter.features, options.data)

    def batch(self, pairs: list, colours: grade.Colours) -> tuple[Tensor, ...]:
        tokens, edits = zip(*pairs)
        before, places = colours.batch(len(pairs), COLOURS)
        ids, padding = grade_model.batch_of(list(tokens))
        return self.model.tokens(ids, padding), padding, before, places, grade_edits.apply_all(list(edits), before, places)

    def __call__(self) -> float:
        each = [grade.losses(grade_model.folded(self.model.filter, tokens, padding, before, places), target, before, 0.025, 0.2)
                for tokens, padding, before, places, target in self.batches]
        return float(torch.cat(each).mean())

    def without(self, layer: int, head: int) -> float:
        size = grade_model.FILTER["value_dim"]
        weight = self.model.filter.layers[layer].output.weight[:, head * size : (head + 1) * size]
        kept = weight.clone()
        weight.zero_()
        loss = self()
        weight.copy_(kept)
        return loss

    def without_feature(self, name: str) -> float:
        names = self.model.filter.features.split()
        queries = [layer.query for layer in self.model.filter.layers]
        kept = [(q.weight.clone(), q.bias.clone()) for q in queries]
        others = [i for i, other in enumerate(names) if other != name]
        for q in queries:
            without_feature(q.weight, q.bias, self.samples, names.index(name), others)
        loss = self()
        for q, (weight, bias) in zip(queries, kept):
            q.weight.copy_(weight)
            q.bias.copy_(bias)
        return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, metavar="IN.checkpoint")
    parser.add_argument("out", type=Path, nargs="?", metavar="OUT.checkpoint")
    parser.add_argument("--leave-out", nargs="+", metavar="HEADS", help="a list for each layer: 1,7 8,9")
    parser.add_argument("--leave-out-features", nargs="+", metavar="FEATURE", help="names of COLOUR_FEATURES, in turn: needs --data")
    parser.add_argument("--measure", action="store_true", help="say what each head and each feature is worth")
    parser.add_argument("--data", type=Path, help="for --measure, as of grade.py")
    parser.add_argument("--dictionary", default="/usr/share/dict/words")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    options = parser.parse_args()
    checkpoint = torch.load(options.checkpoint)
    if options.measure:
        with torch.no_grad():
            loss = Loss(options, checkpoint)
            print(f"with all heads {loss():.4f}")
            for layer in range(grade_model.FILTER["layers"]):
                for head in range(grade_model.FILTER["heads"]):
                    print(f"layer {layer} without head {head:2d} {loss.without(layer, head):.4f}", flush=True)
            for name in grade_model.COLOUR_FEATURES.split():
                print(f"without {name} {loss.without_feature(name):.4f}", flush=True)
    if options.leave_out_features:
        with torch.no_grad():
            leave_out_features(checkpoint, options.leave_out_features, options.data)
    if options.leave_out:
        leave_out_heads(checkpoint, [{int(head) for head in heads.split(",")} for heads in options.leave_out])
    if options.out:
        torch.save(checkpoint, options.out)
