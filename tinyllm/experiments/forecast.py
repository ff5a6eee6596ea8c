"""bench forecast: what a pair will win at every k, said beforehand, and what it wins.

Forecast: what calls and the loop cost here (speculative/round_times.py) and how often the drafter
is right along the target's own texts (speculative/profile.py). Beside it the same prompts
decoded speculatively, in turn with plain decoding, and the ideal in which checking costs one step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from statistics import median
from time import perf_counter
from typing import Any, ClassVar, TypeVar

from tinyllm.experiments.drafters import TARGETS
from tinyllm.experiments.forecast_record import (
    KS,
    Calibration,
    ForecastRecord,
    ForecastRow,
    Foreseen,
    K,
    Measured,
)
from tinyllm.experiments.prompts import validation_prompts
from tinyllm.experiments.settings import RANGES, RunConfig, Settings
from tinyllm.experiments.timing import Event, timed
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.prompt import prompt_tokens
from tinyllm.sampling import Sampling
from tinyllm.speculative import AUTO, Drafter, speculate
from tinyllm.speculative.drafters import RunShape, draft_of
from tinyllm.speculative.profile import profile
from tinyllm.speculative.rehearsal import Clock, Rehearsal
from tinyllm.speculative.round_times import TOKENS, timed_turns

REPEATS = 3  # times through the prompts
RUNS_OF_A_TEXT = 3  # by plain decoding, and by auto k; that of the middle counts
TURNS = 1  # through all k behind each prompt, for the costs
WATCHED: tuple[K, ...] = (*KS, "auto")
SETTINGS = RunConfig(tokens=96)

Made = TypeVar("Made")


def shipped_pairs() -> list[tuple[str, str]]:
    """Names of target and drafter: every target whose draft is here, with it and with n-grams."""
    return [(target, drafter) for target in TARGETS for drafter in (draft_of(target), "ngram")]


_RANGED = ("temperature", "tokens", "seed", "top_k", "top_p")
PAIRS = {f"{target} + {drafter}": (target, drafter) for target, drafter in shipped_pairs()}


@dataclass(frozen=True, slots=True)
class ForecastSettings(Settings):
    """What a visitor chooses of a forecast that is measured here."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {name: RANGES[name] for name in _RANGED}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"pair": tuple(PAIRS)}

    pair: str = next(iter(PAIRS), "")
    temperature: float = 0.7
    tokens: int = 96
    seed: int = 0
    top_k: int = 0
    top_p: float = 1.0

    @property
    def run(self) -> RunConfig:
        """Of every prompt."""
        return SETTINGS.with_(**{name: getattr(self, name) for name in self.ranges})


def watch(
    config: RunConfig,
    target: Transformer,
    drafter: Drafter | Transformer,
    prompts: Sequence[str] | None = None,
    repeats: int = REPEATS,
    ks: Sequence[K] = WATCHED,
    clock: Clock = perf_counter,
) -> Iterator[Calibration | Foreseen | Measured]:
    """A prompt at a time: its plain text, costs behind it, the profile along it, every k.

    So all that is compared of a prompt is taken within a second or two, text after text, and a
    machine that slows down for longer slows all of it. Within a prompt plain runs follow each
    other, and so do those of a fixed k and those of auto k: large weights have a second copy for
    calls of few tokens, and some twenty calls go by until the caches hold the other one. Whoever
    takes the events does so between them, which would spoil the caches too. Plain decoding and
    auto k, which a few hundredths tell apart, run RUNS_OF_A_TEXT times each.
    Of `config` tokens, sampling, seed and KV dtype count.
    """
    record = ForecastRecord()
    for repeat in range(repeats):
        seed = (config.seed + repeat) % (int(RANGES["seed"][1]) + 1)
        settings = config.with_(seed=seed).run_settings
        for prompt in prompts or validation_prompts():
            plainly = partial(generate, target, prompt, **settings)
            plain = _middle(
                [_taken(plainly, attrgetter("id"), clock) for _ in range(RUNS_OF_A_TEXT)]
            )
            text, waits = [token for token, _ in plain], [waited for _, waited in plain]
            calibration = _calibrated(target, drafter, prompt, text, waits, settings, clock)
            record.take(calibration)
            yield calibration
            yield _foreseen(target, drafter, prompt, text, settings)
            begin = partial(speculate, target, drafter, prompt, costs=record.costs, **settings)
            measured = []
            # What ran before left the caches to plain steps.
            for _ in begin(k=KS[len(KS) // 2]):
                pass
            for k in ks:
                run = _middle(
                    [
                        _taken(partial(begin, k=k), attrgetter("tokens"), clock)
                        for _ in range(RUNS_OF_A_TEXT if k == AUTO else 1)
                    ]
                )
                emitted = sum(len(tokens) for tokens, _ in run)
                seconds = sum(waited for _, waited in run)
                measured.append(Measured(k, sum(waits), seconds, len(run), emitted))
            yield from measured


def rows(
    target: Transformer,
    drafter: Drafter | Transformer,
    drafter_name: str,
    config: RunConfig = SETTINGS,
    prompts: Sequence[str] | None = None,
    repeats: int = 4 * REPEATS,  # nobody waits for a page, and texts differ by a quarter in speed
    clock: Clock = perf_counter,
) -> list[ForecastRow]:
    """The finished rows of a pair."""
    record = ForecastRecord()
    for event in watch(config, target, drafter, prompts, repeats, clock=clock):
        record.take(event)
    return record.rows(target.name, drafter_name, config.temperature)


def _taken(
    begin: Callable[[], Iterable[Event]], made: Callable[[Event], Made], clock: Clock
) -> list[tuple[Made, float]]:
    """What each event of a run made, and the seconds waited for it.

    Nothing else is done between two events, and no event is kept: work there and new memory would
    cost each step some, and a speculative run's more than a plain one's.
    """
    return [(made(event), waited) for event, waited in timed(begin, clock)]


def _middle(runs: Sequence[list[tuple[Made, float]]]) -> list[tuple[Made, float]]:
    """Of runs that made the same, the one whose seconds are in the middle."""
    return sorted(runs, key=lambda run: sum(waited for _, waited in run))[len(runs) // 2]


def _calibrated(
    target: Transformer,
    drafter: Drafter | Transformer,
    prompt: str,
    text: Sequence[int],
    waits: Sequence[float],
    settings: dict[str, Any],
    clock: Clock,
) -> Calibration:
    """A few rounds of each k amid the plain text of a prompt, whose tokens took `waits` seconds.

    A step is the median of these tokens but the first, which takes the prefill. A turn's own plain
    tokens are too few for that, and all stand at the beginning, where attention costs less.
    """
    sampling = _sampling(settings)
    seed, kv_dtype = settings["seed"], settings["kv_dtype"]
    tokens = prompt_tokens(prompt, target, settings["max_new_tokens"])
    before = tokens + list(text[: max(0, len(text) - TOKENS) // 2])  # rounds go over TOKENS tokens
    turns = timed_turns(target, drafter, before, sampling, TURNS, seed, kv_dtype, clock=clock)
    first, *steps = waits
    step = median(steps)
    done = tuple(
        replace(turn, step=step, step_call=turn.step_call * turn.step / step) for turn in turns
    )
    capacity = len(tokens) + settings["max_new_tokens"]
    run = RunShape(capacity, target.config.vocab_size, sampling, kv_dtype)
    begin = clock()
    Rehearsal(target, drafter, tokens, run, seed, clock).begin()  # both read the prompt
    start = clock() - begin
    return Calibration(done, first / step, start / step)


def _foreseen(
    target: Transformer,
    drafter: Drafter | Transformer,
    prompt: str,
    text: Sequence[int],
    settings: dict[str, Any],
) -> Foreseen:
    """The drafter's profile along a text that plain decoding made."""
    found = profile(target, drafter, prompt, text, _sampling(settings), settings["kv_dtype"])
    return Foreseen({k: found.run(k) for k in KS})


def _sampling(settings: dict[str, Any]) -> Sampling:
    return Sampling(settings["temperature"], settings["top_k"], settings["top_p"])
