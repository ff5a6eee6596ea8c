"""Tokenizers: what is asked of one, and the characters of the models that ship."""

from tinyllm.tokenizer.characters import ALPHABET, CharTokenizer
from tinyllm.tokenizer.protocol import Message, TextStream, Tokenizer, checked_ids

__all__ = [
    "ALPHABET",
    "CharTokenizer",
    "Message",
    "TextStream",
    "Tokenizer",
    "checked_ids",
]
