"""Characters as tokens: newline and the 95 printable ASCII characters, 96 symbols in all.

Newline is 0 and the space 1, so every id is a symbol a model can emit. There is no unknown
token: text outside the alphabet is refused by name, or filtered when a caller asks for that.
"""

from collections.abc import Iterable
from operator import index

from tinyllm.errors import TokenError

ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))


class CharTokenizer:
    """Text <-> token ids over ALPHABET."""

    vocab_size = len(ALPHABET)

    def __init__(self) -> None:
        self._id_of = {symbol: token for token, symbol in enumerate(ALPHABET)}

    def encode(self, text: str) -> list[int]:
        """Token ids of a text. TokenError names the first symbols outside the alphabet."""
        try:
            return [self._id_of[symbol] for symbol in text]
        except KeyError:
            outside = sorted(set(text) - set(ALPHABET), key=text.index)
            shown = ", ".join(f"{symbol!r} (U+{ord(symbol):04X})" for symbol in outside[:5])
            more = f" and {len(outside) - 5} more" if len(outside) > 5 else ""
            raise TokenError(
                f"the models know printable ASCII and newline only; remove {shown}{more} "
                f"(first at character {text.index(outside[0]) + 1})"
            ) from None

    def decode(self, tokens: Iterable[int]) -> str:
        """Text of token ids. TokenError names what is no id, or an id outside 0..95."""
        return "".join(ALPHABET[token] for token in checked_ids(tokens, self.vocab_size))

    @staticmethod
    def keep_known(text: str) -> str:
        """The text without the symbols outside the alphabet."""
        known = set(ALPHABET)
        return "".join(symbol for symbol in text if symbol in known)


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
