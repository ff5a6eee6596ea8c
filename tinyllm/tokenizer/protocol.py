"""What the engine and the pages ask of a tokenizer, and the check of token ids that all share.

A token is a symbol for the models that ship, and a piece of a word for a language model.
"""

from collections.abc import Iterable, Sequence
from operator import index
from typing import Literal, Protocol, TypedDict

from tinyllm.errors import TokenError


class Message(TypedDict):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class TextStream(Protocol):
    """The text of one sequence of tokens, as they come."""

    def feed(self, token: int) -> str:
        """The text that this token completes; "" while a character lacks some of its bytes."""

    def close(self) -> str:
        """What is left at the end: a replacement character where bytes were missing, else ""."""


class Tokenizer(Protocol):
    """Text <-> token ids, and what a token looks like."""

    @property
    def vocab_size(self) -> int:
        """V, the number of ids."""

    @property
    def stop_tokens(self) -> frozenset[int]:
        """The tokens with which the model ends its text; none for a model that never ends it."""

    @property
    def can_chat(self) -> bool:
        """Whether chat() knows how the model was taught to see a conversation."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; TokenError for what the tokenizer has no token for."""

    def decode(self, tokens: Iterable[int]) -> str:
        """Text of token ids; TokenError for what is no id."""

    def piece(self, token: int) -> str:
        """One token as it may be shown: its text, or its bytes where these are no text."""

    def stream(self) -> TextStream:
        """A decoder that takes token by token and never gives half a character."""

    def chat(self, messages: Sequence[Message]) -> str:
        """The text to continue for the next answer; SettingError where can_chat is False."""


_INT = {int}


def checked_ids(tokens: Iterable[int], vocab_size: int) -> list[int]:
    """Token ids as a list of int, from a row of whole numbers (numpy's too).

    TokenError says what is no whole number, or names the first id outside 0..vocab_size - 1.
    """
    try:
        ids = list(tokens)
        if set(map(type, ids)) != _INT:
            if bool in map(type, ids):
                raise TypeError("True and False are no token ids")
            ids = list(map(index, ids))
    except TypeError as error:
        raise TokenError(
            f"token ids are a row of whole numbers from 0 to {vocab_size - 1}: {error}"
        ) from None
    if ids and (min(ids) < 0 or max(ids) >= vocab_size):
        outside = next(token for token in ids if not 0 <= token < vocab_size)
        raise TokenError(f"token id {outside} is outside 0..{vocab_size - 1}")
    return ids
