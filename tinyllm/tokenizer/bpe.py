"""Pieces of words as tokens: byte-pair encoding over the `tokenizers` library, for language models.

Text becomes tokens by the library. Tokens become text by their bytes, which are known one by one,
so that a stream can tell when a character is whole. Reads no file: see files.py for that.
"""

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer as Library

from tinyllm.errors import SettingError, TokenError
from tinyllm.tokenizer.chat import render
from tinyllm.tokenizer.protocol import Message, checked_ids


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The tokens that mean something, and how the model was taught to see a conversation."""

    begin: int | None = None  # put before every text; None where the model wants none
    ends: frozenset[int] = frozenset()
    template: str | None = None  # of a conversation, in Jinja's language


class BpeTokenizer:
    """Text <-> token ids by a trained vocabulary of pieces."""

    def __init__(self, library: Library, vocab_size: int, special: SpecialTokens) -> None:
        """vocab_size is the model's, which may have more ids than the vocabulary has pieces."""
        self.vocab_size = vocab_size
        self.stop_tokens = special.ends
        self.can_chat = special.template is not None
        self._library = library
        self._special = special
        self._bytes = _bytes_of_tokens(library, vocab_size)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, in which special tokens may stand by name."""
        try:
            ids = self._library.encode(text, add_special_tokens=False).ids
        except (TypeError, UnicodeEncodeError) as error:  # lone surrogates are no text
            raise TokenError(f"this is no text that can be stored as UTF-8: {error}") from None
        begin = self._special.begin
        return [begin, *ids] if begin is not None and ids[:1] != [begin] else ids

    def decode(self, tokens: Iterable[int]) -> str:
        """Text of token ids; bytes that are no UTF-8 become replacement characters."""
        ids = checked_ids(tokens, self.vocab_size)
        if ids and ids[0] == self._special.begin:
            del ids[0]
        return b"".join(self._bytes[token] for token in ids).decode("utf-8", "replace")

    def piece(self, token: int) -> str:
        """The token's text, or its bytes as <E3 81> where they are a part of a character."""
        (token,) = checked_ids([token], self.vocab_size)
        try:
            return self._bytes[token].decode("utf-8") or f"<unused {token}>"
        except UnicodeDecodeError:
            return f"<{self._bytes[token].hex(' ').upper()}>"

    def stream(self) -> "BpeStream":
        """A decoder that keeps a character's bytes until it has them all."""
        return BpeStream(self._bytes)

    def chat(self, messages: Sequence[Message]) -> str:
        """The conversation as the model's template writes it, up to where its answer begins."""
        if self._special.template is None:
            raise SettingError("this model has no chat template: give a prompt to continue")
        begin = self._special.begin
        names = {"bos_token": "" if begin is None else self._bytes[begin].decode("utf-8")}
        ends = sorted(self._special.ends)
        names["eos_token"] = self._bytes[ends[0]].decode("utf-8") if ends else ""
        return render(self._special.template, messages, names)


class BpeStream:
    """Text of tokens as they come, in whole characters."""

    def __init__(self, bytes_of: Sequence[bytes]) -> None:
        self._bytes = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        """The text that this token completes."""
        (token,) = checked_ids([token], len(self._bytes))
        return self._decoder.decode(self._bytes[token])

    def close(self) -> str:
        """A replacement character where the last one lacks bytes."""
        return self._decoder.decode(b"", final=True)


def _bytes_of_tokens(library: Library, vocab_size: int) -> list[bytes]:
    """What each id stands for; b"" for ids without a piece."""
    vocabulary = library.get_vocab(with_added_tokens=True)
    added = {token: entry.content for token, entry in library.get_added_tokens_decoder().items()}
    byte_level = _is_byte_level(library)
    found = [b""] * vocab_size
    for piece, token in vocabulary.items():
        if token >= vocab_size:
            continue
        if token in added:
            found[token] = added[token].encode()
        elif byte_level:
            found[token] = bytes(_BYTE_OF[symbol] for symbol in piece)
        elif len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            found[token] = bytes([int(piece[3:5], 16)])
        else:
            found[token] = piece.replace("▁", " ").encode()
    return found


def _is_byte_level(library: Library) -> bool:
    """Whether pieces are written in GPT-2's alphabet of bytes, else in SentencePiece's text."""
    return "ByteLevel" in str(library.decoder)


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable symbol for every byte: itself, or the next free one from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = [*map(chr, printable), *(chr(0x100 + place) for place in range(len(others)))]
    return dict(zip(symbols, [*printable, *others], strict=True))


_BYTE_OF = _byte_alphabet()
