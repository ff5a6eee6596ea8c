"""What a run is asked for: a prompt as token ids, stop tokens, and whether it all fits.

Shared by plain and speculative decoding, so that both refuse the same things in the same words.
"""

from collections.abc import Iterable, Sequence

from tinyllm.errors import ContextOverflowError, TokenError, whole_number
from tinyllm.model import Transformer
from tinyllm.tokenizer import checked_ids

Prompt = str | Sequence[int]
Stop = str | Iterable[int]


def prompt_tokens(prompt: Prompt, model: Transformer, max_new_tokens: int) -> list[int]:
    """Token ids of a prompt, checked against the vocabulary and the context.

    Raises TokenError for an empty or unknown prompt, SettingError for a bad max_new_tokens,
    ContextOverflowError, with the numbers, when prompt and new tokens exceed the context.
    """
    tokens = token_ids(prompt, model)
    if not tokens:
        raise TokenError("the prompt is empty: give at least one character")
    max_new_tokens = whole_number(max_new_tokens, "max_new_tokens", 1)
    room = model.config.context_length - len(tokens)
    if max_new_tokens > room:
        advice = (
            f"ask for at most {room} new tokens or shorten the prompt"
            if room > 0
            else f"shorten the prompt to at most {model.config.context_length - 1} tokens"
        )
        raise ContextOverflowError(
            f"prompt ({len(tokens)} tokens) and new tokens ({max_new_tokens}) come to "
            f"{len(tokens) + max_new_tokens}, and the context holds {model.config.context_length}: "
            + advice
        )
    return tokens


def stop_tokens(stop: Stop, model: Transformer) -> frozenset[int]:
    """The tokens that end a run; the tokens of a text, each by itself, or ids."""
    return frozenset(token_ids(stop, model))


def token_ids(text: str | Iterable[int], model: Transformer) -> list[int]:
    """Ids of a text or a checked copy of ids; TokenError for what the model does not know."""
    if isinstance(text, str):
        return model.tokenizer.encode(text)
    return checked_ids(text, model.config.vocab_size)
