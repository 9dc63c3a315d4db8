"""Byte-pair encoding as lib/include/nonlocal/tokenizer.h has it: its merges from counted words, and its tokenizer.json."""
import heapq
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

START, END, LAST = "<|startoftext|>", "<|endoftext|>", "</w>"
WORD = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_]+|\d|(?:[^\s\w]|_)+")


def byte_symbols() -> list[str]:
    """What vocabularies write for each byte: itself, or a letter from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256))
    return [chr(b) if b in plain else chr(0x100 + next(others)) for b in range(256)]


BYTES = byte_symbols()


def words_of(text: str) -> list[str]:
    return WORD.findall(" ".join(text.split()).lower())


def symbols_of(word: str) -> list[str]:
    symbols = [BYTES[b] for b in word.encode()]
    return symbols[:-1] + [symbols[-1] + LAST]


def learn_merges(counts: Counter, number: int) -> list[tuple[str, str]]:
    """The most frequent pair of neighbours becomes one symbol, again and again (R. Sennrich et al., ACL 2016)."""
    chains = [(symbols_of(word), n) for word, n in sorted(counts.items())]
    pairs, places = Counter(), defaultdict(set)

    def count(i: int, sign: int) -> set[tuple[str, str]]:
        symbols, n = chains[i]
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += sign * n
            places[pair].add(i)
        return set(zip(symbols, symbols[1:]))

    for i in range(len(chains)):
        count(i, 1)
    queue = [(-n, pair) for pair, n in pairs.items()]
    heapq.heapify(queue)
    merges = []
    while queue and len(merges) < number:
        n, best = heapq.heappop(queue)
        if pairs[best] != -n:  # it has changed since
            if pairs[best] > 0:
                heapq.heappush(queue, (-pairs[best], best))
            continue
        merges.append(best)
        for i in sorted(places.pop(best)):
            touched = count(i, -1)
            chains[i] = (merged(chains[i][0], best), chains[i][1])
            for pair in touched | count(i, 1):
                if pair != best and pairs[pair] > 0:
                    heapq.heappush(queue, (-pairs[pair], pair))
    return merges


def merged(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            out.append("".join(pair))
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


class Tokenizer:
    def __init__(self, merges: list[tuple[str, str]]):
        pieces = [s + end for end in ("", LAST) for s in sorted(BYTES)] + ["".join(m) for m in merges] + [START, END]
        self.merges, self.ids = merges, {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
        self.known: dict[str | tuple[str, int], list[int]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def tokens(self, text: str, context: int) -> list[int]:
        return self.framed((self.of_word(word) for word in words_of(text)), context)

    def broken_tokens(self, text: str, context: int, rng: random.Random, share: float) -> list[int]:
        """With that share of merges left out: words in other pieces, as misspelt ones are (BPE-dropout, I. Provilkov et al., ACL 2020)."""
        return self.framed((self.broken(word, rng, share) for word in words_of(text)), context)

    def broken(self, word: str, rng: random.Random, share: float) -> list[int]:
        """One of a few ways, since making one takes long."""
        key = (word, rng.randrange(8))
        if key not in self.known:
            self.known[key] = self.of_symbols(symbols_of(word), lambda: rng.random() < share)
        return self.known[key]

    def framed(self, words: Iterable[list[int]], context: int) -> list[int]:
        return [self.ids[START], *[i for ids in words for i in ids][: context - 2], self.ids[END]]

    def of_word(self, word: str) -> list[int]:
        if word not in self.known:
            self.known[word] = self.of_symbols(symbols_of(word))
        return self.known[word]

    def of_symbols(self, symbols: list[str], is_left_out: Callable[[], bool] = lambda: False) -> list[int]:
        while len(symbols) > 1:
            possible = [pair for pair in zip(symbols, symbols[1:]) if pair in self.ranks and not is_left_out()]
            if not possible:
                break
            symbols = merged(symbols, min(possible, key=self.ranks.__getitem__))
        return [self.ids[s] for s in symbols]

    def of_piece(self, piece: str) -> list[int]:
        """Of another tokenizer's piece."""
        if piece in self.ids:
            return [self.ids[piece]]
        letters = list(piece.removesuffix(LAST))
        return self.of_symbols(letters[:-1] + [letters[-1] + LAST] if piece.endswith(LAST) else letters)

    def to_json(self) -> str:
        space = {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}
        added = [{"id": self.ids[t], "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                  "normalized": t == START, "special": True} for t in (START, END)]
        model = {"type": "BPE", "continuing_subword_prefix": "", "end_of_word_suffix": LAST, "vocab": self.ids,
                 "merges": [" ".join(m) for m in self.merges]}
        return json.dumps({"version": "1.0", "added_tokens": added, "model": model,
                           "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, space, {"type": "Lowercase"}]}},
                          ensure_ascii=False, separators=(",", ":"))
