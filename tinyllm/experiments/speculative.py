"""Speculative decoding watched: rounds with running counters, speed in turn, and every k.

`rounds` is the run a visitor watches, `compare` measures it against plain decoding (the engine's
fastest path) in turn, and `by_k` counts the same run at every k for Eq. 1's curve. Draws nothing.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tinyllm.cache import format_of
from tinyllm.experiments.models import is_large
from tinyllm.experiments.request import prompt_ids, request
from tinyllm.experiments.settings import RANGES, RunConfig
from tinyllm.experiments.speculative_record import Choice, Comparison, KPoint, RoundRow
from tinyllm.experiments.timing import Progress, Spread, timed
from tinyllm.generation import Token, generate
from tinyllm.model import Transformer
from tinyllm.speculative import Counters, Drafter, Round, speculate

LEAST_SHOWN = 0.005  # probability
TOP = 6  # tokens shown of a place's distributions
PAIRS = 5  # of plain and speculative runs, for the speed-up
RUNS_PER_K = 4
KS = range(int(RANGES["k"][0]), int(RANGES["k"][1]) + 1)
LARGE_PAIRS, LARGE_KS = 3, (1, 2, 4, 8)  # of a large model
_NO_LAW: NDArray[np.float64] = np.empty((0, 0))


@dataclass(frozen=True, slots=True)
class CacheSpan:
    """Bytes of the target's cache with a prompt in it, and at the end of its run."""

    first: int
    last: int
    tokens: int  # at the end

    @classmethod
    def of(cls, config: RunConfig, target: Transformer) -> "CacheSpan":
        """By the formula of the run's format."""
        prompt = len(prompt_ids(config.prompt, target))
        tokens, kind = prompt + config.tokens, format_of(config.kv_dtype)
        first, last = (kind.bytes(target.config, held) for held in (prompt, tokens))
        return cls(first, last, tokens)

    @property
    def per_token(self) -> float:
        return self.last / self.tokens


def _speculate(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer
) -> Iterator[Round]:
    return speculate(target, drafter, k=config.k, **request(config, target))


def rounds(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer
) -> Iterator[RoundRow]:
    """The run, a round at a time."""
    counters, made = Counters(), 0
    kind = format_of(config.kv_dtype)
    for event in _speculate(config, target, drafter):
        counters = counters.add(event)
        made += len(event.tokens)
        lengths = (event.target_cache_peak, event.target_cache_length)
        peak_bytes, used_bytes = (kind.bytes(target.config, tokens) for tokens in lengths)
        top = tuple(choices(event, index) for index in range(len(event.proposed) + 1))
        event = replace(event, p=_NO_LAW, q=_NO_LAW)
        yield RoundRow(event, top, counters, made, peak_bytes, used_bytes)


def pairs_for(target: Transformer) -> int:
    """How many pairs of runs a visitor waits for."""
    return LARGE_PAIRS if is_large(target.config) else PAIRS


def ks_for(target: Transformer) -> Sequence[int]:
    """At which k a run is counted."""
    return LARGE_KS if is_large(target.config) else KS


def compare(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer, repeats: int = PAIRS
) -> Iterator[Comparison]:
    """Plain and speculative runs in turn; a comparison of all pairs so far after each pair."""
    events = _compare(config, target, drafter, repeats)
    return (event for event in events if isinstance(event, Comparison))


def _compare(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer, repeats: int
) -> Iterator[Comparison | Progress]:
    """The same, with the runs' steps in between."""
    plain_run = partial(generate, target, **request(config, target))
    fast_run = partial(_speculate, config, target, drafter)
    pairs: list[tuple[float, float]] = []  # speculative and plain, tokens a second
    for done in range(repeats):
        progress = Progress("speed", done, repeats)
        plain = yield from _rate(plain_run, progress)
        fast = yield from _rate(fast_run, progress)
        pairs.append((fast, plain))
        ordered = sorted(pairs, key=lambda pair: pair[0] / pair[1])
        middle = ordered[len(ordered) // 2]
        yield Comparison(Spread.of(a / b for a, b in pairs), middle[1], middle[0])


def _rate(
    begin: Callable[[], Iterable[Token | Round]], progress: Progress
) -> Generator[Progress, None, float]:
    """Tokens a second of a run."""
    made, seconds = 0, 0.0
    for event, waited in timed(begin):
        made += 1 if isinstance(event, Token) else len(event.tokens)
        seconds += waited
        yield progress
    return made / seconds


def by_k(
    config: RunConfig,
    target: Transformer,
    drafter: Drafter | Transformer,
    ks: Sequence[int] = KS,
) -> Iterator[KPoint | Progress]:
    """The run at every k of the control, counted over several seeds when it is short.

    At T = 0 the seed changes nothing, and a large model is slow, so that one is enough.
    """
    several = max(1, RUNS_PER_K * 96 // max(config.tokens, 96))
    one = not config.temperature or is_large(target.config)
    seeds = range(1 if one else several)
    for part, k in enumerate(ks):
        counters = Counters()
        for more in seeds:
            seed = (config.seed + more) % (int(RANGES["seed"][1]) + 1)
            for event in _speculate(config.with_(k=k, seed=seed), target, drafter):
                counters = counters.add(event)
                yield Progress("k", part, len(ks))
        yield KPoint(k, counters, len(seeds))


def watch(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer
) -> Iterator[RoundRow | KPoint | Comparison | Progress]:
    """The run round by round, then its speed in turn, then the same run at every k."""
    yield from rounds(config, target, drafter)
    yield from _compare(config, target, drafter, pairs_for(target))
    yield from by_k(config, target, drafter, ks_for(target))


def choices(event: Round, index: int, top: int = TOP) -> tuple[Choice, ...]:
    """The most likely tokens at the round's index-th place, by the greater of p and q.

    Index len(proposed) is the bonus place, where only the target speaks.
    """
    p: NDArray[np.float64] = event.p[index]
    q = event.q[index] if index < len(event.proposed) else None
    weight = p if q is None else np.maximum(p, q)
    (likely,) = np.nonzero(weight >= LEAST_SHOWN)  # at most 400 of however many
    order = likely[np.argsort(-weight[likely], kind="stable")[:top]]
    return tuple(
        Choice(token, float(p[token]), None if q is None else float(q[token]))
        for token in order.tolist()
    )
