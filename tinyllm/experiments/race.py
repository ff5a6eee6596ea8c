"""The race: one prompt decoded without a cache, with a cache, and with cache + speculation.

Every repeat runs the three lanes in turn (the same seed makes the same tokens every time); a
lane's record is its middle run by speed. It is replayed slowed by one factor, which is shown;
the speeds are the true ones. Draws nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from tinyllm.experiments.settings import RunConfig
from tinyllm.experiments.timing import Spread, timed
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.speculative import Drafter, speculate
from tinyllm.tokenizer import CharTokenizer

LANES = ("uncached", "cached", "speculative")
REPLAY_SECONDS = 12.0  # the slowest lane's replay; the other two keep their proportion


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
    texts: tuple[str, ...]
    accepted: tuple[int, ...]
    ends: tuple[float, ...]  # seconds from the start, prompt included
    tokens_per_second: Spread

    @property
    def n_tokens(self) -> int:
        return sum(len(text) for text in self.texts)

    @property
    def calls(self) -> int:
        return len(self.texts)


def race(
    config: RunConfig, target: Transformer, drafter: Drafter | Transformer, repeats: int = 3
) -> Iterator[Step]:
    """Run the lanes in turn, `repeats` times over, one event per call of the target."""
    for repeat in range(repeats):
        for lane in LANES:
            yield from _run(lane, repeat, config, target, drafter)


def _run(
    lane: str, repeat: int, config: RunConfig, target: Transformer, drafter: Drafter | Transformer
) -> Iterator[Step]:
    if lane == "speculative":
        rounds = partial(
            speculate, target, drafter, config.prompt, k=config.k, **config.run_settings
        )
        for event, seconds in timed(rounds):
            yield Step(lane, repeat, event.tokens, event.accepted, seconds)
        return
    cached = lane == "cached"
    tokens = partial(generate, target, config.prompt, cached=cached, **config.run_settings)
    for token, seconds in timed(tokens):
        yield Step(lane, repeat, (token.id,), 0, seconds)


def lanes(steps: Iterable[Step]) -> tuple[Lane, ...]:
    """The records of whole repeats, in the order of LANES."""
    runs: dict[str, dict[int, list[Step]]] = {lane: {} for lane in LANES}
    for step in steps:
        runs[step.lane].setdefault(step.repeat, []).append(step)
    return tuple(_record(name, list(repeats.values())) for name, repeats in runs.items())


def _record(name: str, repeats: list[list[Step]]) -> Lane:
    ordered = sorted(repeats, key=lambda repeat: sum(step.seconds for step in repeat))
    middle = ordered[len(ordered) // 2]
    decode = CharTokenizer().decode
    n_tokens = sum(len(step.tokens) for step in middle)
    return Lane(
        name=name,
        texts=tuple(decode(step.tokens) for step in middle),
        accepted=tuple(step.accepted for step in middle),
        ends=tuple(accumulate(step.seconds for step in middle)),
        tokens_per_second=Spread.of(
            n_tokens / sum(step.seconds for step in repeat) for repeat in repeats
        ),
    )


def first_difference(record: Sequence[Lane]) -> int | None:
    """The first token at which a lane's text is not the first lane's; None when all agree."""
    first, *others = ("".join(lane.texts) for lane in record)
    places = (
        place
        for other in others
        for place, (one, two) in enumerate(zip(first, other, strict=True))
        if one != two
    )
    return min(places, default=None)


@dataclass(slots=True)
class RaceRecord:
    """The steps so far; `lanes` needs whole repeats."""

    steps: list[Step] = field(default_factory=list)

    def take(self, step: Step) -> bool:
        """Take one step in; none is worth drawing by itself."""
        self.steps.append(step)
        return False

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The three lanes' records."""
        return lanes(self.steps)


def slow_down(record: Sequence[Lane], seconds: float = REPLAY_SECONDS) -> float:
    """The one factor by which the replay is slower than the runs, to two figures."""
    factor = seconds / max(lane.ends[-1] for lane in record)
    return float(f"{max(factor, 1.0):.2g}")


def tokens_read(config: RunConfig) -> tuple[int, int]:
    """Tokens the target reads in all: without a cache, and with one (P prompt, N new)."""
    prompt, new = len(config.prompt), config.tokens
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
            "text": "".join(lane.texts),
        }
        for lane in record
    ]
