"""Tokens as the text that is shown of them, and how far two texts are the same."""

from collections.abc import Iterable, Sequence

from tinyllm.tokenizer import Tokenizer


def pieces_of(tokens: Iterable[int], tokenizer: Tokenizer) -> list[str]:
    """The text that each token completes: "" while a character lacks some of its bytes, and for
    a token that ends the text."""
    feed, stops = tokenizer.stream().feed, tokenizer.stop_tokens
    return ["" if token in stops else feed(token) for token in tokens]


def text_of(tokens: Iterable[int], tokenizer: Tokenizer) -> str:
    """The text of tokens as far as its characters are whole."""
    return "".join(pieces_of(tokens, tokenizer))


def agreement(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items agree before the first that does not."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
