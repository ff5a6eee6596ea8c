"""What fewer bits cost: every KV format's bytes, texts, logits, loss and step time.

float32 is the reference: greedy decoding of the shared prompts, the logits along its tokens, and
the loss over a text no model has seen, every prediction made through the cache. Draws nothing.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache import CACHE_DTYPES, format_of
from tinyllm.config import ModelConfig
from tinyllm.experiments.kv_dtype_record import FormatRow, Texts
from tinyllm.experiments.memory import cache_size
from tinyllm.experiments.models import is_large
from tinyllm.experiments.prompts import validation_prompts, validation_text
from tinyllm.experiments.request import request
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.texts import agreement, text_of
from tinyllm.experiments.timing import Case, Progress, Spread, in_turn
from tinyllm.generation import generate
from tinyllm.layers import Array
from tinyllm.model import Transformer
from tinyllm.training.losses import cross_entropy

REFERENCE = "float32"
PROMPT_LENGTH, NEW_TOKENS = 16, 96
TOKENS = PROMPT_LENGTH + NEW_TOKENS
WINDOWS = 8  # of the context's length, for the loss
STEP_TURNS = 40


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a model is measured, format by format."""

    prompts: int
    new_tokens: int  # behind each prompt
    windows: int  # of text, for the loss
    window: int  # tokens of one; 0: as many as the context has
    turns: int  # of the step that is timed

    def length(self, model: Transformer) -> int:
        """Tokens of a window."""
        return self.window or model.config.context_length


SMALL = Extent(8, NEW_TOKENS, WINDOWS, 0, STEP_TURNS)
LARGE = Extent(2, 24, 4, 64, 5)  # of a large model: three minutes become half a one


def extent_for(model: Transformer) -> Extent:
    """How much of this model is measured."""
    return LARGE if is_large(model.config) else SMALL


@dataclass(frozen=True, slots=True)
class _Answers:
    """What one format made of the shared prompts and windows."""

    texts: list[list[int]]  # up to the first token that is not float32's, with it
    logits: list[Array]  # (NEW_TOKENS, V) along float32's texts
    losses: NDArray[np.float64]  # (WINDOWS,)


def rows(model: Transformer, dtypes: Sequence[str] = CACHE_DTYPES) -> Iterator[FormatRow]:
    """A row for each format, measured anew."""
    return (event for event in measure(model, dtypes) if isinstance(event, FormatRow))


def measure(
    model: Transformer, dtypes: Sequence[str] = CACHE_DTYPES
) -> Iterator[FormatRow | Progress]:
    """The rows, and before each how far its measurements are."""
    encode, extent = model.tokenizer.encode, extent_for(model)
    texts = validation_prompts(extent.prompts, PROMPT_LENGTH)
    prompts = [encode(prompt) for prompt in texts]
    windows = _windows(encode(validation_text()), extent.windows, extent.length(model))
    reference = yield from _answers(model, REFERENCE, prompts, windows)
    for dtype in dtypes:
        answers = reference
        if dtype != REFERENCE:
            answers = yield from _answers(model, dtype, prompts, windows, reference.texts)
        yield _row(model, dtype, answers, reference, windows[0].tolist())


def _answers(
    model: Transformer,
    dtype: str,
    prompts: list[list[int]],
    windows: NDArray[np.int64],
    along: list[list[int]] | None = None,
) -> Generator[Progress, None, _Answers]:
    """Texts, logits and losses, part by part; float32's own are made without texts to go along."""
    texts, logits, losses = [], [], []
    parts = len(prompts) + len(windows)
    for part, prompt in enumerate(prompts):
        texts.append(_greedy(model, prompt, dtype, along[part] if along else None))
        logits.append(_logits(model, prompt, along[part] if along else texts[-1], dtype))
        yield Progress(dtype, part, parts)
    for part, window in enumerate(windows, len(prompts)):
        losses.append(_loss(model, window, dtype))
        yield Progress(dtype, part, parts)
    return _Answers(texts, logits, np.array(losses))


def _row(
    model: Transformer, dtype: str, answers: _Answers, reference: _Answers, tokens: list[int]
) -> FormatRow:
    """A format's answers beside float32's; `tokens` are fed before the step that is timed."""
    config, kind, extent = model.config, format_of(dtype), extent_for(model)
    size = cache_size(config, dtype, TOKENS)
    places = list(map(agreement, answers.texts, reference.texts))
    apart = [np.abs(a - b).max() for a, b in zip(answers.logits, reference.logits, strict=True)]
    increases = answers.losses - reference.losses
    step, reference_step = _step_times(model, dtype, tokens[:-1], extent.turns)
    return FormatRow(
        dtype=dtype,
        bits=kind.bits,
        keys_by_channel=kind.keys_by_channel,
        tokens=TOKENS,
        nbytes=size.nbytes,
        formula_bytes=size.formula,
        agree=size.agree,
        bytes_per_token=per_token(config, dtype),
        prompts=len(places),
        identical=places.count(extent.new_tokens),
        first_divergence=float(np.mean(places)),
        max_logit_difference=float(max(apart)),
        loss=float(answers.losses.mean()),
        loss_increase=float(increases.mean()),
        loss_error=float(increases.std(ddof=1) / len(increases) ** 0.5),
        step_seconds=step,
        reference_step_seconds=reference_step,
    )


def _greedy(
    model: Transformer, prompt: list[int], dtype: str, along: list[int] | None
) -> list[int]:
    """New tokens, or only as far as they are those of `along`, and the first that is not."""
    text: list[int] = []
    new = extent_for(model).new_tokens
    for token in generate(model, prompt, max_new_tokens=new, kv_dtype=dtype):
        text.append(token.id)
        if along is not None and token.id != along[len(text) - 1]:
            break
    return text


def _logits(model: Transformer, prompt: list[int], text: list[int], dtype: str) -> Array:
    """(NEW_TOKENS, V): what each token of the text was chosen from, if this cache had held it."""
    fed = [*prompt, *text[:-1]]
    return model.forward(fed, model.new_cache(dtype, len(fed)), rows=len(text))


def _windows(text: list[int], count: int, length: int) -> NDArray[np.int64]:
    """(count, length + 1) stretches of a text, evenly spaced."""
    starts = np.linspace(0, len(text) - length - 1, count).astype(int)
    return np.array([text[start : start + length + 1] for start in starts])


def _loss(model: Transformer, window: NDArray[np.int64], dtype: str) -> float:
    """Mean loss in nats over a window, every prediction made through the cache."""
    cache = model.new_cache(dtype, len(window) - 1)
    logits = model.forward(window[:-1].tolist(), cache).astype(np.float64)
    return cross_entropy(logits, window[1:]) / len(logits)


def _step_times(
    model: Transformer, dtype: str, tokens: list[int], turns: int
) -> tuple[Spread, Spread]:
    """Seconds of a step behind all tokens but the last, in this format and float32, in turn."""
    held = len(tokens) - 1

    def case(name: str) -> Case:
        cache = model.new_cache(name, len(tokens))
        model.forward(tokens[:held], cache, rows=0)

        def call() -> None:
            model.forward(tokens[held:], cache)
            cache.truncate(held)

        return Case(call)

    cases = {"this": case(dtype), "reference": case(REFERENCE)}
    seconds = in_turn(cases, turns, warm_up=1)
    return Spread.of(seconds["this"]), Spread.of(seconds["reference"])


def per_token(config: ModelConfig, dtype: str) -> float:
    """Bytes for a token when the whole context is held."""
    return format_of(dtype).bytes(config, config.context_length) / config.context_length


def texts(config: RunConfig, model: Transformer) -> Iterator[Texts | Progress]:
    """The run's prompt continued twice with the same seed."""
    asked = request(config, model)
    made: list[list[int]] = []
    dtypes = (REFERENCE, config.kv_dtype)
    for part, dtype in enumerate(dtypes):
        made.append([])
        for token in generate(model, **asked | {"kv_dtype": dtype}):
            made[part].append(token.id)
            yield Progress(dtype, part, len(dtypes))
    yield Texts(*(text_of(tokens, model.tokenizer) for tokens in made))


def watch(config: RunConfig, model: Transformer) -> Iterator[Texts | Progress | FormatRow]:
    """The run's own texts, then all formats, its own before the others."""
    yield from texts(config, model)
    ordered = dict.fromkeys((REFERENCE, config.kv_dtype, *CACHE_DTYPES))
    yield from measure(model, list(ordered))
