"""Plain decoding: one target call and one event a token.

This is the baseline that everything else is compared with, so it is the engine's fastest plain
path. It reads no clock: who wants times takes them around next().
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tinyllm.model import Transformer
from tinyllm.prompt import Prompt, Stop, prompt_tokens, stop_tokens
from tinyllm.sampling import Distribution, RandomSampler, Sampler, Sampling


@dataclass(slots=True)  # not frozen: that costs up to a hundredth of a short step
class Token:
    """One new token."""

    id: int
    position: int  # in the sequence, prompt included
    p: Distribution = field(compare=False)  # (V,), what it was drawn from


def generate(
    model: Transformer,
    prompt: Prompt,
    *,
    max_new_tokens: int = 96,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    stop: Stop = (),
    kv_dtype: str | None = None,
    cached: bool = True,
    sampler: Sampler | None = None,
) -> Iterator[Token]:
    """Tokens that follow a prompt, as they are made; a stop token is the last one given.

    cached=False recomputes the whole sequence at every token, in the dtype of computation
    whatever kv_dtype says, as nothing is stored. `sampler` replaces the seeded one. Raises,
    before the first token, TokenError, SettingError or ContextOverflowError.
    """
    tokens = prompt_tokens(prompt, model, max_new_tokens)
    sampling = Sampling(temperature, top_k, top_p)
    stops = stop_tokens(stop, model)
    draw = (sampler or RandomSampler(seed)).draw
    cache = model.new_cache(kv_dtype, capacity=len(tokens) + max_new_tokens) if cached else None

    def run() -> Iterator[Token]:
        new = tokens
        for _ in range(max_new_tokens):
            p = sampling.distribution(model.forward(new, cache, rows=1)[0])
            token = draw(p)
            yield Token(token, len(tokens), p)
            if token in stops:
                return
            tokens.append(token)
            new = [token] if cached else tokens

    return run()
