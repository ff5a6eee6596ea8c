"""The race: one prompt decoded without a cache, with a cache, and with cache + speculation.

Every repeat runs the three lanes in turn (the same seed makes the same tokens every time); a
lane's record is its middle run by speed. It is replayed slowed by one factor, which is shown;
the speeds are the true ones. A larger model's lanes run side by side instead, to be watched live:
the one that has taken the least time so far makes the next step. Draws nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, islice

from tinyllm.experiments.request import request
from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.texts import agreement, pieces_of
from tinyllm.experiments.timing import Spread, timed
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.speculative import Drafter, speculate
from tinyllm.tokenizer import Tokenizer

LANES = ("uncached", "cached", "speculative")
REPLAY_SECONDS = 12.0  # the slowest lane's replay; the other two keep their proportion
LIVE_PARAMETERS = 1_000_000  # a model of more takes too long to be run before anything is shown


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the target in one lane: the tokens it gave and what it took."""

    lane: str
    repeat: int
    tokens: tuple[int, ...]
    accepted: int  # how many of the tokens a drafter proposed
    seconds: float


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane's record: its text step by step with the time at which each step ended."""

    name: str
    tokens: tuple[int, ...]
    pieces: tuple[tuple[str, ...], ...]  # of each step: the text that each of its tokens completes
    accepted: tuple[int, ...]
    ends: tuple[float, ...]  # seconds from the start, prompt included
    tokens_per_second: Spread

    @property
    def text(self) -> str:
        return "".join(piece for step in self.pieces for piece in step)

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)

    @property
    def calls(self) -> int:
        return len(self.pieces)


def is_live(model: Transformer) -> bool:
    """Whether a model's race is to be watched while it runs."""
    return model.config.n_parameters > LIVE_PARAMETERS


def race(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer, repeats: int = 3
) -> Iterator[Step]:
    """Run the lanes in turn, `repeats` times over, one event per call of the target."""
    for repeat in range(repeats):
        for lane in LANES:
            yield from _run(lane, repeat, config, target, drafter)


def live_race(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer
) -> Iterator[Step]:
    """Run the lanes once, side by side: the next step is of the lane that took least so far."""
    running = {lane: _run(lane, 0, config, target, drafter) for lane in LANES}
    spent = dict.fromkeys(LANES, 0.0)
    while running:
        lane = min(running, key=lambda name: spent[name])
        step = next(running[lane], None)
        if step is None:
            del running[lane]
            continue
        spent[lane] += step.seconds
        yield step


def _run(
    lane: str, repeat: int, config: RunConfig, target: Transformer, drafter: Drafter | Transformer
) -> Iterator[Step]:
    asked = request(config, target)
    if lane == "speculative":
        rounds = partial(speculate, target, drafter, k=config.k, **asked)
        for event, seconds in timed(rounds):
            yield Step(lane, repeat, event.tokens, event.accepted, seconds)
        return
    tokens = partial(generate, target, cached=lane == "cached", **asked)
    for token, seconds in timed(tokens):
        yield Step(lane, repeat, (token.id,), 0, seconds)


def lanes(steps: Iterable[Step], tokenizer: Tokenizer) -> tuple[Lane, ...]:
    """The records of the lanes that have begun, in the order of LANES."""
    runs: dict[str, dict[int, list[Step]]] = {lane: {} for lane in LANES}
    for step in steps:
        runs[step.lane].setdefault(step.repeat, []).append(step)
    return tuple(
        _record(name, list(repeats.values()), tokenizer)
        for name, repeats in runs.items()
        if repeats
    )


def _record(name: str, repeats: list[list[Step]], tokenizer: Tokenizer) -> Lane:
    ordered = sorted(repeats, key=lambda repeat: sum(step.seconds for step in repeat))
    middle = ordered[len(ordered) // 2]
    tokens = tuple(token for step in middle for token in step.tokens)
    pieces = iter(pieces_of(tokens, tokenizer))
    return Lane(
        name=name,
        tokens=tokens,
        pieces=tuple(tuple(islice(pieces, len(step.tokens))) for step in middle),
        accepted=tuple(step.accepted for step in middle),
        ends=tuple(accumulate(step.seconds for step in middle)),
        tokens_per_second=Spread.of(
            len(tokens) / sum(step.seconds for step in repeat) for repeat in repeats
        ),
    )


def first_difference(record: Sequence[Lane]) -> int | None:
    """The first token at which a lane's text is not the first lane's; None when all agree.

    Where one only ends sooner it is the place behind its end.
    """
    first, *others = (lane.tokens for lane in record)
    return min((agreement(first, other) for other in others if other != first), default=None)


@dataclass(slots=True)
class RaceRecord:
    """The steps so far; their text is for the target's tokenizer to say."""

    tokenizer: Tokenizer
    steps: list[Step] = field(default_factory=list)

    def take(self, step: Step) -> bool:
        """Take one step in; none is worth drawing by itself."""
        self.steps.append(step)
        return False

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The records of the lanes that have begun."""
        return lanes(self.steps, self.tokenizer)


def slow_down(record: Sequence[Lane], seconds: float = REPLAY_SECONDS) -> float:
    """The one factor by which the replay is slower than the runs, to two figures."""
    factor = seconds / max(lane.ends[-1] for lane in record)
    return float(f"{max(factor, 1.0):.2g}")


def tokens_read(prompt: int, new: int) -> tuple[int, int]:
    """Tokens the target reads in all: without a cache, and with one."""
    return sum(prompt + made for made in range(new)), prompt + new - 1


def table(record: Iterable[Lane]) -> list[dict[str, object]]:
    """The lanes as plain rows, for export."""
    return [
        {
            "lane": lane.name,
            "tokens": lane.n_tokens,
            "target_calls": lane.calls,
            "tokens_per_second": lane.tokens_per_second.median,
            "tokens_per_second_low": lane.tokens_per_second.low,
            "tokens_per_second_high": lane.tokens_per_second.high,
            "seconds": lane.ends[-1],
            "text": lane.text,
        }
        for lane in record
    ]
