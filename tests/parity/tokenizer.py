#!/usr/bin/python3
"""The tokenizer's definition, literally and slowly, by Python's own Unicode tables and the module regex.

tokenizer.py make                       tokenizer.json, a small vocabulary of our own, and tokenizer_answers.json,
                                        texts and their tokens
tokenizer.py compare PROGRAM VOCABULARY generated texts: the tokens of PROGRAM (tests/lib/tokenizer_ids.cpp)
                                        must be the definition's
"""
import argparse
import gzip
import json
import random
import struct
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

try:
    import regex
except ImportError:
    print("python3-regex is not installed", file=sys.stderr)
    sys.exit(77)

PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
START, END = "<|startoftext|>", "<|endoftext|>"
LISTED_MERGES = 49152 - 256 - 2
ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent


def byte_texts() -> dict[int, str]:
    """How vocabularies write bytes, in the order of their tokens."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(rest)}


BYTES = byte_texts()


def normalised(text: str) -> str:
    text = regex.sub(r"\s+", " ", unicodedata.normalize("NFC", text))
    return "".join(c.lower() for c in text)


def symbols_of(word: str) -> list[str]:
    symbols = [BYTES[byte] for byte in word.encode()]
    return [*symbols[:-1], symbols[-1] + "</w>"]


class Definition:
    def __init__(self, ids: dict[str, int], merges: list[tuple[str, str]], added: dict[str, bool]) -> None:
        """`added`: tokens looked for in the text, and whether in the normalised one."""
        self.ids = ids
        self.ranks = {merge: rank for rank, merge in enumerate(merges)}
        self.added = added

    def merged(self, symbols: list[str]) -> list[str]:
        while True:
            pairs = [(self.ranks.get(pair, len(self.ranks)), i) for i, pair in enumerate(zip(symbols, symbols[1:]))]
            rank, i = min(pairs, default=(len(self.ranks), 0))
            if rank == len(self.ranks):
                return symbols
            symbols = [*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :]]

    def split(self, text: str, is_normalised: bool) -> list[str]:
        tokens = {normalised(t) if is_normalised else t: t for t, n in self.added.items() if n == is_normalised}
        if not tokens:
            return [text]
        parts = regex.split("(" + "|".join(map(regex.escape, tokens)) + ")", text)
        return [tokens[p] if i % 2 else p for i, p in enumerate(parts)]

    def words(self, text: str) -> list[int]:
        return [self.ids[s] for word in PATTERN.findall(text) for s in self.merged(symbols_of(word))]

    def encode(self, data: bytes) -> list[int]:
        ids = [self.ids[START]]
        for i, part in enumerate(self.split(data.decode("utf-8", "replace"), False)):
            if i % 2:
                ids.append(self.ids[part])
                continue
            for j, piece in enumerate(self.split(normalised(part), True)):
                ids.extend([self.ids[piece]] if j % 2 else self.words(piece))
        return [*ids, self.ids[END]]


def of_merges(merges: list[tuple[str, str]]) -> Definition:
    pieces = [*BYTES.values(), *(b + "</w>" for b in BYTES.values()), *map("".join, merges), START, END]
    return Definition({piece: i for i, piece in enumerate(pieces)}, merges, {START: True, END: True})


def load(path: Path) -> Definition:
    if path.suffix == ".json":
        file = json.loads(path.read_text())
        merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in file["model"]["merges"]]
        return Definition(file["model"]["vocab"], merges, {t["content"]: t["normalized"] for t in file["added_tokens"]})
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n")
    return of_merges([tuple(line.split(" ")) for line in lines[1 : LISTED_MERGES + 1] if line])


# --- Texts ---

SCRIPTS = [(0x41, 0x7A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x58F), (0x5D0, 0x5F4), (0x600, 0x6FF),
           (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE01, 0xE5B), (0xF00, 0xFDA), (0x10A0, 0x10FF),
           (0x1100, 0x11FF), (0x1200, 0x137F), (0x13A0, 0x13FF), (0x1780, 0x17F9), (0x1E00, 0x1FFF), (0x2C00, 0x2DFF),
           (0x3040, 0x30FF), (0x4E00, 0x4FFF), (0xA640, 0xA69F), (0xAC00, 0xACFF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF),
           (0xFF00, 0xFFEF), (0x10400, 0x1044F), (0x11000, 0x1107F), (0x1E900, 0x1E95F), (0x20000, 0x200FF)]
EMOJI = [(0x1F300, 0x1F64F), (0x1F900, 0x1F9FF), (0x2600, 0x27BF), (0x1F1E6, 0x1F1FF)]
MARKS = [(0x300, 0x36F), (0x591, 0x5BD), (0x64B, 0x65F), (0x1AB0, 0x1ACE), (0x20D0, 0x20F0), (0x3099, 0x309A)]
NUMBERS = [(0x30, 0x39), (0x660, 0x669), (0x966, 0x96F), (0xBC, 0xBE), (0x2070, 0x2079), (0x2150, 0x218B),
           (0x2460, 0x2473), (0x1D7CE, 0x1D7FF)]
SPACES = " \t\n\r\v\f\x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u200b\u202f\u205f\u3000"
APOSTROPHES = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "''s", "!'s", "'", "’s", "'ſ", "'x", "'l"]
ODD = ["İ", "ß", "ẞ", "Σ", "ΣΑΣ", "ſ", "K", "Å", "ǅ", "ﬁ", "e\u0301\u0323", "\u0344", "\u2126", "각", "각", "\u0958", "\x00",
       "\u200d", "\ufeff", "\ufffd", START, END, "<|StartOfText|>", "<|ENDOFTEXT|>", "<|endoftext", "</w>", "Ġ"]
BROKEN = [b"\x80", b"\xff", b"\xc0\xaf", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
          b"\xe0\x80\x80", b"\xf0\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\xe2\x82\xac"]


def point_of(rng: random.Random, ranges: list[tuple[int, int]]) -> str:
    while True:
        c = chr(rng.randint(*rng.choice(ranges)))
        if unicodedata.category(c) != "Cn":  # what is not assigned may be by a later version
            return c


def part_of(rng: random.Random, words: list[str]) -> bytes:
    kind = rng.randrange(11)
    if kind < 3:
        word = rng.choice(words)
        return rng.choice([word, word.upper(), word.title(), word + rng.choice(APOSTROPHES)]).encode()
    if kind == 3:
        script = [rng.choice(SCRIPTS)]
        return "".join(point_of(rng, script) for _ in range(rng.randint(1, 8))).encode()
    if kind == 4:
        return "".join(point_of(rng, SCRIPTS + EMOJI + MARKS + NUMBERS) for _ in range(rng.randint(1, 5))).encode()
    if kind == 5:
        return "\u200d".join(point_of(rng, EMOJI) for _ in range(rng.randint(1, 3))).encode()
    if kind == 6:
        return (point_of(rng, SCRIPTS) + "".join(point_of(rng, MARKS) for _ in range(rng.randint(1, 5)))).encode()
    if kind == 7:
        return "".join(point_of(rng, NUMBERS) for _ in range(rng.randint(1, 5))).encode()
    if kind == 8:
        return rng.choice(APOSTROPHES + ODD).encode()
    if kind == 9:
        return rng.choice(BROKEN) if rng.random() < 0.3 else bytes([rng.randrange(33, 127)]) * rng.randint(1, 9)
    return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 3))).encode()


def text_of(rng: random.Random, words: list[str]) -> bytes:
    parts = [part_of(rng, words) for _ in range(rng.randint(0, 12))]
    data = bytearray((b" " if rng.random() < 0.5 else b"").join(parts))
    if data and rng.random() < 0.1:  # any byte may turn into any
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def texts(count: int, seed: int) -> list[bytes]:
    words = sorted(set(regex.findall(r"\p{L}+", (ROOT / "LICENSE").read_text())))
    rng = random.Random(seed)
    return [text_of(rng, words) for _ in range(count)]


# --- Commands ---

def compare(program: str, vocabulary: Path, count: int, seed: int) -> None:
    definition, all_texts = load(vocabulary), texts(count, seed)
    data = b"".join(struct.pack("<I", len(t)) + t for t in all_texts)
    out = subprocess.run([program, str(vocabulary)], input=data, stdout=subprocess.PIPE, check=True).stdout
    lines = out.decode().splitlines()
    wrong = len(lines) != count
    for text, line in zip(all_texts, lines):
        expected, found = definition.encode(text), [int(n) for n in line.split()]
        if found != expected:
            wrong = True
            print(f"{text!r}:\n  expected {expected}\n  found    {found}", file=sys.stderr)
    print(f"{len(lines)} of {count} texts, {sum(len(line.split()) for line in lines)} tokens, {vocabulary.name}")
    sys.exit(1 if wrong else 0)


LINES = ["a warm sunset over the sea, the sky is orange", "make the grass greener and the sky a deeper blue",
         "cold blue night in the city", "black and white film with grain", "le ciel bleu d'été, une forêt en automne",
         "ein kühler Wintermorgen über dem Fluß", "тёплый закат над морем", "夕焼けの空 青い海", "파란 하늘", "سماء زرقاء"]


def trained(count: int) -> list[tuple[str, str]]:
    """The pair that neighbours most often becomes one, the first of equal ones, `count` times."""
    corpus = (ROOT / "LICENSE").read_text() + "\n".join(LINES * 20)
    words = [(symbols_of(w), n) for w, n in sorted(Counter(PATTERN.findall(normalised(corpus))).items())]
    merges = []
    for _ in range(count):
        pairs = Counter()
        for symbols, n in words:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += n
        merges.append(min(pairs, key=lambda pair: (-pairs[pair], pair)))
        one = Definition({}, merges[-1:], {})
        words = [(one.merged(symbols), n) for symbols, n in words]
    return merges


def tokenizer_json(definition: Definition) -> dict:
    added = [{"id": definition.ids[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": t == START, "special": True} for t in (START, END)]
    way = [{"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}, {"type": "Lowercase"}]
    model = {"type": "BPE", "unk_token": END, "continuing_subword_prefix": "", "end_of_word_suffix": "</w>",
             "vocab": definition.ids, "merges": [" ".join(m) for m in definition.ranks]}
    return {"version": "1.0", "added_tokens": added, "normalizer": {"type": "Sequence", "normalizers": way}, "model": model}


def make(folder: Path) -> None:
    file = tokenizer_json(of_merges(trained(250)))
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(file, ensure_ascii=False, indent=0) + "\n")
    definition = load(path)
    chosen = [t.encode() for t in ["", " ", *LINES, "WARM\nsunset", "it's 1984's", *ODD, *APOSTROPHES]] + texts(100, 2)
    answers = [{"text": list(t), "ids": definition.encode(t)} for t in chosen]
    (folder / "tokenizer_answers.json").write_text("\n".join(["[", ",\n".join(map(json.dumps, answers)), "]\n"]))
    print(f"{len(definition.ids)} tokens, {len(answers)} answers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make").add_argument("folder", nargs="?", type=Path, default=FOLDER)
    other = commands.add_parser("compare")
    other.add_argument("program")
    other.add_argument("vocabulary", type=Path)
    other.add_argument("--count", type=int, default=10000)
    other.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder)
    else:
        compare(options.program, options.vocabulary, options.count, options.seed)


if __name__ == "__main__":
    main()
