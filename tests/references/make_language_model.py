"""Writes language_model.json: what transformers and a plain byte-pair encoder make of SmolLM2.

Run by hand where torch, transformers, gguf and regex are installed; the tests need neither:
    PYTHONPATH=. python tests/references/make_language_model.py SmolLM2-135M-Instruct.Q4_1.gguf
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import regex
import torch
import transformers
from gguf import GGUFReader

from tests.language_prompts import PROMPTS, TEXTS

NEW_TOKENS = 48
ROWS = (0, 8, 17, 19)  # the prompts whose logits are kept
STRIDE = 97  # of every so manieth token
# GPT-2's published pattern, after digits have been split off one by one.
SPLIT = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def byte_symbols() -> list[str]:
    """GPT-2's bytes_to_unicode, from its definition."""
    keep = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    extra = iter(range(256, 512))
    return [chr(b) if b in keep else chr(next(extra)) for b in range(256)]


class PlainEncoder:
    """Byte-pair encoding as published: merge the pair of the lowest rank until none is left."""

    def __init__(self, path: str) -> None:
        fields = GGUFReader(path).fields
        pieces = fields["tokenizer.ggml.tokens"].contents()
        kinds = fields["tokenizer.ggml.token_type"].contents()
        merges = fields["tokenizer.ggml.merges"].contents()
        self.id_of = {piece: token for token, piece in enumerate(pieces)}
        self.rank = {tuple(m.split(" ")): rank for rank, m in enumerate(merges)}
        self.special = [p for p, kind in zip(pieces, kinds, strict=True) if kind == 3]
        self.symbols = byte_symbols()

    def encode(self, text: str) -> list[int]:
        names = "|".join(map(regex.escape, sorted(self.special, key=len, reverse=True)))
        ids = []
        for part in regex.split(f"({names})", text):
            if part in self.special:
                ids.append(self.id_of[part])
                continue
            for run in regex.findall(r"\p{N}|\P{N}+", part):
                for word in SPLIT.findall(run):
                    ids += self.merge([self.symbols[b] for b in word.encode()])
        return ids

    def merge(self, word: list[str]) -> list[int]:
        while len(word) > 1:
            ranks = [self.rank.get(pair, 10**9) for pair in pairwise(word)]
            best = min(ranks)
            if best == 10**9:
                break
            at = ranks.index(best)
            word[at : at + 2] = [word[at] + word[at + 1]]
        return [self.id_of[piece] for piece in word]


def main(path: str) -> None:
    encode = PlainEncoder(path).encode
    found: dict[str, object] = {
        "made by": f"transformers {transformers.__version__}, torch {torch.__version__}",
        "encoded": [encode(text) for text in TEXTS],
    }
    file = Path(path)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    ).eval()
    greedy, rows = [], []
    with torch.no_grad():
        for number, prompt in enumerate(PROMPTS):
            ids = torch.tensor([encode(prompt)])
            out = model(ids, use_cache=True)
            if number in ROWS:
                row = out.logits[0, -1]
                rows.append(
                    {
                        "prompt": number,
                        "top": row.topk(5).indices.tolist(),
                        "logits": [round(x, 4) for x in row[::STRIDE].tolist()],
                    }
                )
            new, gaps = [], []
            for _ in range(NEW_TOKENS):
                best = out.logits[0, -1].topk(2)
                new.append(int(best.indices[0]))
                gaps.append(float(best.values[0] - best.values[1]))
                out = model(
                    best.indices[None, :1], past_key_values=out.past_key_values, use_cache=True
                )
            greedy.append(new)
            print(number, round(min(gaps), 5), repr(prompt[:30]), flush=True)
    found |= {"greedy": greedy, "rows": rows, "stride": STRIDE}
    Path(__file__).with_name("language_model.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
