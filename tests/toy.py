"""A language model in small: 300 word pieces and bytes, a chat template, and random weights.

Stands where the pages and experiments expect any model that is not one of characters.
"""

import codecs
from collections.abc import Iterable, Sequence
from functools import cache

from tinyllm.config import ModelConfig
from tinyllm.experiments.models import ModelChoice
from tinyllm.model import Transformer, random_weights
from tinyllm.tokenizer import Message, checked_ids

STOP = 299
WORDS = (" the", " value", "def ", "return", "self", ".", "    ", "\n\n", "<user>", "<answer>")
NAME = "toy"


class ToyStream:
    """UTF-8, a token at a time."""

    def __init__(self, tokenizer: "ToyTokenizer") -> None:
        self._bytes = tokenizer.bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        return self._decoder.decode(self._bytes(token))

    def close(self) -> str:
        return self._decoder.decode(b"", final=True)


class ToyTokenizer:
    """Bytes are tokens 0..255; words follow; the rest are numbered pieces, the last one stops."""

    vocab_size = 300
    stop_tokens = frozenset({STOP})
    can_chat = True

    def bytes_of(self, token: int) -> bytes:
        if token < 256:
            return bytes([token])
        if token - 256 < len(WORDS):
            return WORDS[token - 256].encode()
        return b"" if token == STOP else f"[{token}]".encode()

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        while text:
            word = next((one for one in WORDS if text.startswith(one)), None)
            tokens += [256 + WORDS.index(word)] if word else text[0].encode()
            text = text[len(word or text[0]) :]
        return tokens

    def decode(self, tokens: Iterable[int]) -> str:
        ids = checked_ids(tokens, self.vocab_size)
        return b"".join(map(self.bytes_of, ids)).decode("utf-8", "replace")

    def piece(self, token: int) -> str:
        try:
            return self.bytes_of(token).decode("utf-8") or "<stop>"
        except UnicodeDecodeError:
            return f"<0x{token:02X}>"

    def stream(self) -> ToyStream:
        return ToyStream(self)

    def chat(self, messages: Sequence[Message]) -> str:
        return "".join(f"<user>{message['content']}" for message in messages) + "<answer>"


CONFIG = ModelConfig(vocab_size=300, context_length=512, n_layer=2, n_head=6, n_kv_head=3, width=48)
PROMPTS = {"explain": "the value of the value", "copy": "return self.value return self.value"}
CHOICE = ModelChoice(
    name=NAME,
    by_kv_heads={3: NAME},
    drafters=("ngram",),
    prompts=PROMPTS,
    context_length=512,
    tokens=(16, 64),
    characters=False,
)


@cache
def toy_model() -> Transformer:
    """Read-only, as every model is."""
    weights = random_weights(CONFIG, seed=3)
    # Larger logits: the random laws then have tops, as those of trained models have.
    weights["lm_head.weight"] = weights["lm_head.weight"] * 20
    return Transformer(CONFIG, weights, name=NAME, tokenizer=ToyTokenizer())
