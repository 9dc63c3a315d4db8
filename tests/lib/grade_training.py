#!/usr/bin/python3
"""What the bundled model `grade` is trained with: grade_training.py TOKENIZER_IDS MODEL

Its tokenizer is the library's, edits stay within range and leave alone what they should, tone curves rise, what is trained is
the filter that the file describes, a model's file is read as it was written, and the paraphrases of grade_prompts.jsonl are held out."""
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
except ImportError:
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "train"))
import json
import re

import grade_edits
import grade_model
import grade_sayings
import safetensors
from grade_edits import row
from grade_contexts import WordNet
from grade_grammar import Grammar, undone
from grade_images import IMAGES
from grade_phrases import PHRASES
from grade_requests import COMBINED, REQUESTS
from grade_scenes import ALL_LOOKS, STUFF_LOOKS
from grade_tokenizer import Tokenizer

OTHER_WORDS = ["zebra", "parliament", "trombone"]
WORDNET = Path("/usr/share/wordnet")
EVERYDAY = {"out of it"}  # what no suite holds out


def check_tokenizer(program: str, model: str) -> None:
    grammar = Grammar(random.Random(3), OTHER_WORDS)
    texts = [grammar.sentence()[0].encode() for _ in range(2000)]
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    lines = subprocess.run([program, model], input=data, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    merges = json.loads(safetensors.load(model)[1]["tokenizer"])["model"]["merges"]
    tokenizer = Tokenizer([tuple(m.split(" ")) for m in merges])
    assert len(lines) == len(texts)
    for text, line in zip(texts, lines):
        ids = tokenizer.tokens(text.decode(), 10_000)
        assert ids == [int(n) for n in line.split()], text
        broken = tokenizer.broken_tokens(text.decode(), 10_000, grammar.rng, 0.3)
        assert spelt(tokenizer, broken) == spelt(tokenizer, ids), text


def spelt(tokenizer: Tokenizer, ids: list[int]) -> str:
    pieces = {i: piece for piece, i in tokenizer.ids.items()}
    return "".join(pieces[i] for i in ids)


def check_edits() -> None:
    torch.manual_seed(1)
    grammar = Grammar(random.Random(4), OTHER_WORDS)
    edits = [grammar.sentence()[1] for _ in range(500)]
    colours, places = torch.rand(500, 40, 3), torch.rand(500, 40, 2) * 2 - 1
    colours[:, :8] = torch.tensor([[float(i >> c & 1) for c in range(3)] for i in range(8)])
    after = grade_edits.apply_all(edits, colours, places)
    assert after.isfinite().all() and after.min() >= 0 and after.max() <= 1
    asked = torch.tensor([bool(e) for e in edits])
    assert torch.equal(after[~asked], colours[~asked]) and 50 < asked.sum() < 500
    assert (after - colours).abs().amax((1, 2))[asked].min() > 1e-3
    barely = grade_edits.apply(torch.tensor([row(exposure=1e-9)]), colours[:1], places[:1])
    assert (barely - colours[:1]).abs().max() < 1e-3


def check_curves() -> None:
    x = torch.linspace(0, 1, 500)
    for most in ({"contrast": 9.0}, {"contrast": -9.0}, {"shadows": 9.0}, {"shadows": -9.0}, {"highlights": 9.0}, {"highlights": -9.0}):
        amounts = [torch.tensor(most.get(name, 0.0)) for name in ("contrast", "shadows", "highlights", "fade")]
        curve = grade_edits.tone_curve(x, *amounts)
        assert curve.diff().min() > 0 and curve[0] == 0 and abs(curve[-1] - 1) < 1e-6, most


def check_model() -> None:
    torch.manual_seed(1)
    model = grade_model.Grade(600)
    ids, padding = grade_model.batch_of([[1, 2, 3], [4, 5, 6, 7, 8]])
    colours, places = torch.rand(2, 50, 3), torch.rand(2, 50, 2) * 2 - 1
    plain = model.filter(colours, places, model.text_model(ids, padding), padding)
    assert (plain - model(ids, padding, colours, places)).abs().max() < 1e-5


def check_file() -> None:
    """A model's file gives back what training goes on from."""
    torch.manual_seed(2)
    tokenizer = Tokenizer([("a", "b"), ("ab", "c</w>")])
    model = grade_model.Grade(len(tokenizer))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        grade_model.save(model, path, tokenizer.to_json(), ["warm"], {"name": "model"})
        weights, merges, metadata = grade_model.load(path)
    assert merges == tokenizer.merges and metadata["words"] == "warm"
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(weights[name], value.half().float()) for name, value in model.state_dict().items())


def check_undone() -> None:
    """What is against a look moves colours back, and brings colour where the look has none."""
    warm, grey = undone([row(exposure=-0.5, temperature=0.2)])[0], undone([row(mono=1.0, fade=0.05)])[0]
    column = {name: i for name, i in grade_edits.COLUMNS.items()}
    assert warm[column["exposure"]] > 0 and warm[column["temperature"]] < 0
    assert grey[column["mono"]] == grey[column["fade"]] == 0 and grey[column["saturation"]] > 0 and grey[column["contrast"]] > 0


def tellings(saying: str) -> list[str]:
    """With all of its alternatives, see grade_sayings.py."""
    found = re.search(r"\(([^()]*)\)", saying)
    return [text for one in found[1].split("|") for text in tellings(saying.replace(found[0], one, 1))] if found else [saying]


def check_held_out() -> None:
    """What the suite measures generalisation with is not learned: no phrase of the tables, no sentence."""
    suites = (Path(__file__).parent / name for name in ("grade_prompts.jsonl", "grade_prompts_unseen.jsonl"))
    entries = [json.loads(line) for suite in suites for line in suite.read_text().splitlines()]
    held_out = {entry["prompt"].lower() for entry in entries if entry["kind"] == "paraphrase"}
    assert len(held_out) >= 80
    sayings = [s for table in (names for name, names in vars(grade_sayings).items() if name.isupper()) for s in table if isinstance(s, str)]
    names = [name for names, _ in ALL_LOOKS + PHRASES + grade_sayings.MORE_PHRASES + REQUESTS for name in names] + sayings + [name for _, names, _ in STUFF_LOOKS for name in names]
    names += [image for images in IMAGES.values() for image in images] + [sentence for sentence, _ in COMBINED]
    for part in (part.strip() for name in names for text in tellings(name) for part in re.split(r"\{\w+\}", text)):
        assert len(part.split()) < 3 or part in EVERYDAY or not any(part in prompt for prompt in held_out), part
    grammar = Grammar(random.Random(5), OTHER_WORDS, typos=0.0, wordnet=WordNet(WORDNET) if WORDNET.is_dir() else None)
    assert not held_out & {grammar.sentence()[0].lower() for _ in range(50_000)}


check_tokenizer(sys.argv[1], sys.argv[2])
check_edits()
check_curves()
check_held_out()
check_model()
check_file()
check_undone()
