#!/usr/bin/python3
"""Trains the bundled model `grade`: instructions of grade_grammar.py, what grade_edits.py makes of colours.

Each step has so many sentences; each sentence is asked of colours of its own: of pictures, with their places, uniformly
random ones, and greys. A sentence's loss is the length of its error over the length of its edit: small edits count as much
as large ones. It is stopped and resumed at any time: --resume continues from the checkpoint."""
import argparse
import random
import re
import time
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

import grade_edits
import grade_model
import grade_off_topic
from grade_contexts import WordNet
from grade_grammar import Grammar, known_words, meaningful_words, usual_words
from grade_tokenizer import Tokenizer, learn_merges, words_of
from samples import KODAK_IN_LIVE1

VOCABULARY = 5120
# The loss of a sentence, to begin with, and at last. What its error is divided by where nothing is to change, as a root mean
# square over colours; and up to where errors, over the size of the edit, are squared. With the last ones at once the median of all
# instructions, which is to do nothing, is learned first, and nothing else for long.
LEAST_EDITS, WIDTHS = (0.06, 0.035), (1.0, 0.8)
STRAY_COLOUR = 4.0  # what a square of colour weighs where there is to be none: noir with red lips is seen at once
PROBES_SHARE = 0.7  # of the loss of grade_model.Probes
EMBEDDING = "text_model.embeddings.token_embedding.weight"
SETS = ("live1", "mcmaster", "set14")


def learn_tokenizer(dictionary: list[str], wordnet: WordNet, seed: int) -> Tokenizer:
    grammar = Grammar(random.Random(seed), dictionary, off_topic=0.25, typos=0.4, wordnet=wordnet)
    counts = Counter(word for _ in range(60_000) for word in words_of(grammar.sentence()[0]))
    counts.update({word: 30 for word in known_words()})
    return Tokenizer(learn_merges(counts, VOCABULARY - 2 * 256 - 2))


def with_other_pieces(embedding: Tensor, old: Tokenizer, new: Tokenizer) -> Tensor:
    """A piece begins as the mean of what it was made of."""
    return torch.stack([embedding[old.of_piece(piece)].mean(0) for piece in new.ids])


def begun_from(path: Path) -> dict:
    """What --resume would find, as far as a model's file tells it."""
    weights, merges, metadata = grade_model.load(path)
    steps, minutes = re.search(r"step (\d+), ([\d.]+) min", metadata["last_report"]).groups()
    return {"model": weights, "average": {name: t.clone() for name, t in weights.items()}, "merges": merges, "steps": int(steps), "seconds": 60 * float(minutes),
            "history": [metadata["last_report"]]}


class Colours:
    """Samples of pictures, with their places, and others."""

    def __init__(self, data: Path, seed: int):
        files = [p for name in SETS for p in sorted((data / name).iterdir()) if name != "live1" or p.stem not in KODAK_IN_LIVE1]
        rng = np.random.default_rng(1)
        samples = []
        for picture in filter(lambda p: p is not None, (cv2.imread(str(f)) for f in files)):
            height, width = picture.shape[:2]
            y, x = rng.integers(0, height, 8192), rng.integers(0, width, 8192)
            place = np.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)
            samples.append(np.concatenate([picture[y, x, ::-1] / 255, place], -1).astype(np.float32))
        self.pictures = torch.from_numpy(np.concatenate(samples))
        self.random = torch.Generator().manual_seed(seed)

    def batch(self, sentences: int, count: int) -> tuple[Tensor, Tensor]:
        """[B, N, 3], [B, N, 2]"""
        g = self.random
        natural = self.pictures[torch.randint(len(self.pictures), (sentences, count), generator=g)]
        exposure = torch.empty(sentences, 1, 1).uniform_(0.7, 1.3, generator=g)
        colours, places = natural[..., :3] ** exposure, natural[..., 3:].clone()
        flips = torch.where(torch.rand(sentences, 1, 2, generator=g) < torch.tensor([0.5, 0.2]), -1.0, 1.0)
        places *= flips
        uniform, grey = count * 55 // 100, count * 88 // 100
        colours[:, uniform:grey] = torch.rand(sentences, grey - uniform, 3, generator=g)
        colours[:, grey:] = colours[:, grey:].mean(-1, keepdim=True) + 0.04 * torch.randn(sentences, count - grey, 3, generator=g)
        places[:, uniform:] = torch.rand(sentences, count - uniform, 2, generator=g) * 2 - 1
        return colours.clamp(0, 1), places


def perceived(colours: Tensor) -> Tensor:
    """Oklab and gamma-coded RGB side by side; what is out of range counts less."""
    inside = colours.clamp(0, 1)
    soft = inside + 0.1 * (colours - inside)
    lab = grade_edits.oklab(grade_edits.linear(inside.clamp(min=2e-3)))
    return torch.cat([1.3 * lab, soft], -1)


def losses(out: Tensor, target: Tensor, before: Tensor, least_edit: float, width: float) -> Tensor:
    """Of each sentence: squares below about `width`, lengths above."""
    seen = perceived(target)
    squares = (perceived(out) - seen).square()
    colourless = (-seen[..., 1:3].square().sum(-1) / 0.02**2).exp()
    error = (squares.sum(-1) + STRAY_COLOUR * colourless * squares[..., 1:3].sum(-1)).mean(-1)
    size = (seen - perceived(before)).square().sum(-1).mean(-1)
    return (error / (size + least_edit**2) + width**2).sqrt() - width


class Training:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        torch.manual_seed(options.seed)
        torch.set_num_threads(options.threads)
        usual = usual_words()
        self.words = sorted(known_words(), key=lambda word: (word not in usual, word))
        dictionary = grade_off_topic.other_words(options.dictionary, options.wordnet, meaningful_words())
        wordnet = WordNet(options.wordnet)
        state = torch.load(options.resume) if options.resume else begun_from(options.weights) if options.weights else {}
        is_known = state and not options.new_tokens
        self.tokenizer = Tokenizer(state["merges"]) if is_known else learn_tokenizer(dictionary, wordnet, 1)
        self.model, self.probes = grade_model.Grade(len(self.tokenizer)), grade_model.Probes()
        parameters = [*self.model.parameters(), *self.probes.parameters()]
        decayed = [p for p in parameters if p.ndim > 1]
        others = [p for p in parameters if p.ndim <= 1]
        self.optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                           lr=options.rate, betas=(0.9, 0.98), foreach=True)
        self.average = {name: t.clone() for name, t in self.model.state_dict().items()}  # over the last steps
        self.steps, self.seconds, self.history, self.waiting = 0, 0.0, [], []
        if state:
            if is_known and "optimizer" in state:
                self.optimizer.load_state_dict(state["optimizer"])
                for group in self.optimizer.param_groups:
                    group["foreach"] = True
                self.probes.load_state_dict(state["probes"])
            elif not is_known:
                for weights in (state["model"], state["average"]):
                    weights[EMBEDDING] = with_other_pieces(weights[EMBEDDING], Tokenizer(state["merges"]), self.tokenizer)
            self.model.load_state_dict(state["model"])
            self.average, self.steps, self.seconds, self.history = (state[k] for k in ("average", "steps", "seconds", "history"))
        self.first_step = self.steps
        seed = options.seed + self.steps + 7919 * options.rank
        self.grammar = Grammar(random.Random(seed), dictionary, wordnet=wordnet)
        self.colours = Colours(options.data, seed)

    def batch(self) -> tuple[list[list[int]], list[list[list[float]]]]:
        """Sentences of like length, eight groups of them in turn."""
        if not self.waiting:
            self.grammar.several = 0.45 * max(0.0, 2 * self.begun() - 1)
            self.grammar.places = self.options.places
            self.grammar.off_topic = 0.11 + 0.19 * max(0.0, 2 * self.progress() - 1)
            sentences = [self.grammar.sentence() for _ in range(8 * self.options.sentences)]
            pairs = sorted(((self.tokens(text), edits) for text, edits in sentences), key=lambda p: len(p[0]))
            n = self.options.sentences
            self.waiting = [pairs[i : i + n] for i in range(0, len(pairs), n)]
            self.grammar.rng.shuffle(self.waiting)
        return tuple(zip(*self.waiting.pop()))

    def tokens(self, text: str) -> list[int]:
        rng = self.grammar.rng
        if rng.random() < self.options.broken:
            return self.tokenizer.broken_tokens(text, grade_model.CONTEXT, rng, 0.15)
        return self.tokenizer.tokens(text, grade_model.CONTEXT)

    def step(self) -> tuple[float, float]:
        o = self.options
        for group in self.optimizer.param_groups:
            group["lr"] = o.rate * min(1, (self.steps + 1 - self.first_step) / 400, max(0.01, 2.5 * (1 - self.progress())))
        tokens, edits = self.batch()
        half = slice(self.steps % 2, None, 2)  # of the sentences: the filter takes as long as the encoder, and learns from fewer
        colours, places = self.colours.batch(len(edits[half]), o.colours)
        target = grade_edits.apply_all(edits[half], colours, places)
        probed, probed_places = self.probes.batch(len(tokens))
        probed_target = grade_edits.apply_all(edits, probed, probed_places)
        ids, padding = grade_model.batch_of(tokens)
        encoded = self.model.tokens(ids, padding, o.dropout, o.bf16)
        out = grade_model.folded(self.model.filter, encoded[half], padding[half], colours, places)
        how = (self.annealed(LEAST_EDITS), self.annealed(WIDTHS))
        filtered, told = losses(out, target, colours, *how), losses(self.probes(encoded, padding), probed_target, probed, *how)
        # The error of a sentence that asks for nothing is divided by little: with the weight 1, what was seen too seldom is done only
        # if it asks for something in nine of ten cases; with 0.35, in three of four.
        asks = torch.tensor([bool(e) for e in edits])
        weights = torch.where(asks, 1.0, o.nothing)
        self.optimizer.zero_grad(set_to_none=True)
        ((weights[half] * filtered).mean() + PROBES_SHARE * (weights * told).mean()).backward()
        self.share_gradients()
        # One batch in tens of thousands has no gradient that is a number, and would be the end of all weights.
        if torch.isfinite(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 20.0)):
            self.optimizer.step()
        self.steps += 1
        self.follow()
        nothing = ~asks[half]
        errors = losses(out.detach(), target, colours, 0.025, 0.2)
        return float(errors[~nothing].mean()), float(errors[nothing].mean())

    def share_gradients(self) -> None:
        """Of several processes, each with sentences of its own: the mean."""
        if not dist.is_initialized():
            return
        gradients = [p.grad for p in (*self.model.parameters(), *self.probes.parameters())]
        together = torch.cat([g.flatten() for g in gradients])
        dist.all_reduce(together)
        together /= dist.get_world_size()
        for gradient, mean in zip(gradients, together.split([g.numel() for g in gradients])):
            gradient.copy_(mean.view_as(gradient))

    def agree(self) -> None:
        """The first process's time tells all of them the rate and the end."""
        if dist.is_initialized():
            seconds = torch.tensor([self.seconds], dtype=torch.float64)
            dist.broadcast(seconds, 0)
            self.seconds = float(seconds)

    @torch.no_grad()
    def follow(self) -> None:
        if self.steps % 4 == 0:
            share = 1.0 if self.steps < 100 else 0.02
            for name, value in self.model.state_dict().items():
                self.average[name].lerp_(value, share)

    def begun(self) -> float:
        """0 .. 1 over the first steps."""
        return min(1.0, self.steps / self.options.first_steps)

    def annealed(self, ends: tuple[float, float]) -> float:
        """The first one, then, from the middle of the training on, towards the second."""
        first, last = ends
        return first * (last / first) ** max(0.0, 2 * self.progress() - 1)

    def progress(self) -> float:
        o = self.options
        return min(1.0, self.seconds / 60 / o.minutes if o.minutes else self.steps / o.steps)

    def report(self, found: list[tuple[float, float]]) -> None:
        some, nothing = np.nanmean(np.array(found or [(np.nan, np.nan)]), 0)
        line = f"{100 * self.progress():.0f} %, step {self.steps}, {self.seconds / 60:.1f} min, error over edit {some:.3f}, where nothing is asked {nothing:.3f}"
        print(f"{time.strftime('%H:%M:%S')} {self.options.out.stem}: {line}", flush=True)
        self.history.append(line)
        self.save()

    def save(self) -> None:
        o = self.options
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "average": self.average, "merges": self.tokenizer.merges}
        state["probes"] = self.probes.state_dict()
        state |= {"steps": self.steps, "seconds": self.seconds, "history": self.history}
        partial = o.out.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(o.out.with_suffix(".checkpoint"))
        averaged = grade_model.Grade(len(self.tokenizer))
        averaged.load_state_dict(self.average)
        grade_model.save(averaged, o.out, self.tokenizer.to_json(), self.words, self.provenance())

    def provenance(self) -> dict[str, str]:
        o = self.options
        return {
            "name": o.out.stem,
            "purpose": "colour grading of video by instructions in English",
            "trained_by": "tools/train/grade.py",
            "trained_on": "instructions of tools/train/grade_grammar.py, words of Debian's wamerican that mean nothing here, colours of McMaster, Set14, "
            "LIVE1 without the Kodak set's photographs",
            "training": f"{self.steps} steps of {o.processes * o.sentences} sentences of {o.colours} colours, AdamW from {o.rate:g}, seed {o.seed}, weights averaged",
            "last_report": self.history[-1] if self.history else "",
        }

    def run(self) -> None:
        found, last_report = [], self.seconds
        while True:
            self.agree()
            if self.progress() >= 1:
                break
            before = time.monotonic()
            found.append(self.step())
            self.seconds += time.monotonic() - before
            if self.seconds - last_report > 60 * self.options.report and self.options.rank == 0:
                self.report(found)
                found, last_report = [], self.seconds
        if found and self.options.rank == 0:
            self.report(found)


def train(rank: int, options: argparse.Namespace) -> None:
    options.rank = rank
    if options.processes > 1:
        dist.init_process_group("gloo", init_method=f"file://{options.out.resolve()}.processes", rank=rank, world_size=options.processes)
    Training(options).run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="FILE.safetensors")
    parser.add_argument("--data", type=Path, required=True, help="folder with live1, mcmaster, set14")
    parser.add_argument("--dictionary", default="/usr/share/dict/words", help="of English, a word a line (package wamerican)")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="folder of its data files (package wordnet-base)")
    parser.add_argument("--steps", type=int, default=20_000, help="of training, those before --resume included")
    parser.add_argument("--minutes", type=float, help="of training, those before --resume included: in place of --steps")
    parser.add_argument("--first-steps", type=int, default=3000, help="of them with instructions of mostly one clause")
    parser.add_argument("--places", type=float, default=0.1, help="share of instructions of places alone, which are learned late")
    parser.add_argument("--sentences", type=int, default=64, help="of a step")
    parser.add_argument("--colours", type=int, default=24, help="of a sentence")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--bf16", action="store_true", help="of the encoder's products")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--report", type=float, default=1, help="minutes between reports")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", type=float, default=0.22, help="share of instructions whose words are cut at random")
    parser.add_argument("--nothing", type=float, default=1.0, help="what a sentence weighs that asks for nothing: with less, more that is said unusually is done, and more nonsense")
    parser.add_argument("--new-tokens", action="store_true", help="learn the tokenizer again, for an extended grammar")
    parser.add_argument("--resume", type=Path, metavar="FILE.checkpoint")
    parser.add_argument("--weights", type=Path, metavar="FILE.safetensors", help="of a model to begin with, where no checkpoint is left: its readout and AdamW's memory begin anew")
    parser.add_argument("--processes", type=int, default=1, help="that share the work, each with --sentences of its own a step")
    options = parser.parse_args()
    if options.processes == 1:
        train(0, options)
    else:
        options.out.with_name(f"{options.out.name}.processes").unlink(missing_ok=True)  # where they meet
        torch.multiprocessing.spawn(train, (options,), options.processes)
