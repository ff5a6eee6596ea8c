"""Characters as tokens: newline and the 95 printable ASCII characters, 96 symbols in all.

Newline is 0 and the space 1, so every id is a symbol a model can emit. There is no unknown
token: text outside the alphabet is refused by name, or filtered when a caller asks for that.
"""

from collections.abc import Iterable, Sequence

from tinyllm.errors import SettingError, TokenError
from tinyllm.tokenizer.protocol import Message, checked_ids

ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))


class CharTokenizer:
    """Text <-> token ids over ALPHABET."""

    vocab_size = len(ALPHABET)
    stop_tokens: frozenset[int] = frozenset()
    can_chat = False

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

    def piece(self, token: int) -> str:
        """The symbol itself."""
        return self.decode([token])

    def stream(self) -> "CharStream":
        """Every token is a whole character, so nothing is ever held back."""
        return CharStream(self)

    def chat(self, messages: Sequence[Message]) -> str:
        """Refused: these models continue a text and were taught no conversation."""
        raise SettingError("this model continues a text and knows no conversation: give a prompt")

    @staticmethod
    def keep_known(text: str) -> str:
        """The text without the symbols outside the alphabet."""
        known = set(ALPHABET)
        return "".join(symbol for symbol in text if symbol in known)


class CharStream:
    """Symbols as they come."""

    def __init__(self, tokenizer: CharTokenizer) -> None:
        self._tokenizer = tokenizer

    def feed(self, token: int) -> str:
        """The symbol of a token."""
        return self._tokenizer.piece(token)

    def close(self) -> str:
        """Nothing is left."""
        return ""
