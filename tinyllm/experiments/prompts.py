"""The prompts that measurements share: line starts of the validation text, unseen in training."""

from pathlib import Path

from tinyllm.errors import CorpusError
from tinyllm.model import Transformer

# A text that goes on by repeating itself: what prompt lookup is made for.
COPYING_PROMPT = 5 * "    def close(self):\n        self.file.close()\n\n"
VALIDATION_TEXT = Path(__file__).parents[2] / "assets" / "texts" / "validation.txt"


def validation_text() -> str:
    """Source code that no shipped model was trained on."""
    return VALIDATION_TEXT.read_text("ascii")


def validation_tokens(model: Transformer, count: int) -> list[int]:
    """The first `count` tokens of the validation text, as the model's tokenizer makes them."""
    most = 8 * count  # characters; a piece of source code has half as many, and less
    return model.tokenizer.encode(validation_text()[:most])[:count]


def validation_prompts(count: int = 8, length: int = 16, text: str | None = None) -> list[str]:
    """`count` prompts of `length` characters, evenly spread over the text.

    Each is the start of a line of at least that length. Raises CorpusError when the text has
    fewer such lines.
    """
    lines = (text if text is not None else validation_text()).splitlines()
    starts = [line[:length] for line in lines if len(line.rstrip()) >= length]
    starts = [start for start in starts if start.strip()]
    if len(starts) < count:
        raise CorpusError(
            f"the text has {len(starts)} lines of {length} characters and more; {count} are needed"
        )
    return [starts[(2 * i + 1) * len(starts) // (2 * count)] for i in range(count)]
