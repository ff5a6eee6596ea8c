"""What a round costs here: rounds of every k in turn with plain tokens, timed inside the loop.

It runs the real loop on real text, and always some of a kind one after the other, so that calls
are timed as they come in a run: among sampling, verdicts and the other model's calls, with the
processor's caches as these leave them. Reads a clock, which the loop itself does not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from operator import attrgetter
from statistics import median
from time import perf_counter

from tinyllm.model import Transformer
from tinyllm.prompt import Prompt, prompt_tokens
from tinyllm.sampling import Sampling
from tinyllm.speculative.costs import Costs
from tinyllm.speculative.drafters import Drafter, RunShape
from tinyllm.speculative.rehearsal import Clock, Rehearsal, RoundTime

KS = tuple(range(1, 9))
TURNS = 6  # through plain tokens and every k
# Of a kind one after the other. The first find the processor's caches full of the other kind's
# weights and are left: both are up to their pace after some eight.
PLAIN, COLD = 16, 8
ROUNDS = 2  # of each k, behind one that is left
# Plain steps before a returning round. AutoK's pauses begin with 2 or 4 and grow; what a draft must
# read grows with them, far slower than they do. Of those behind it the first few cost more.
PAUSE, RESUMED = 8, 4
TOKENS = 96  # behind the prompt, before a run begins again


@dataclass(frozen=True, slots=True)
class Turn:
    """Plain tokens and rounds of every k, timed in one go, and so on one footing."""

    step: float  # seconds of a plain token, the median
    step_call: float  # the target's share of them
    rounds: tuple[RoundTime, ...]  # those in which the drafter had nothing among them
    returning: RoundTime  # behind a pause
    resumed: float  # seconds of the RESUMED plain steps behind that

    def in_steps(self) -> tuple[RoundTime, ...]:
        """The rounds in steps."""
        parts = ("drafting", "verifying", "feeding", "rest")
        return tuple(
            replace(time, **{part: getattr(time, part) / self.step for part in parts})
            for time in self.rounds
        )

    @property
    def reading(self) -> float:
        """What the returning round fed the draft more than the others of its k, in steps."""
        return self._more(attrgetter("feeding"))

    @property
    def cold(self) -> float:
        """What it took more in all else."""
        return self._more(attrgetter("seconds")) - self.reading

    @property
    def resuming(self) -> float:
        """What the plain steps behind it took more than others, in steps."""
        return self.resumed / self.step - RESUMED

    def _more(self, seconds: Callable[[RoundTime], float]) -> float:
        alike = [seconds(time) for time in self.rounds if time.k == self.returning.k]
        return (seconds(self.returning) - median(alike)) / self.step


def calibrate(
    target: Transformer,
    drafter: Drafter | Transformer,
    prompt: Prompt,
    turns: int = TURNS,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    seed: int = 0,
    kv_dtype: str | None = None,
) -> Costs:
    """The costs that speculate(k="auto") weighs, from `turns` through all k.

    The settings are those of the run to come. Raises what speculate() raises, also where the
    context has no room for the longest round behind the prompt.
    """
    sampling = Sampling(temperature, top_k, top_p)
    return costs_of(list(timed_turns(target, drafter, prompt, sampling, turns, seed, kv_dtype)))


def timed_turns(
    target: Transformer,
    drafter: Drafter | Transformer,
    prompt: Prompt,
    sampling: Sampling,
    turns: int = TURNS,
    seed: int = 0,
    kv_dtype: str | None = None,
    ks: Sequence[int] = KS,
    clock: Clock = perf_counter,
) -> Iterator[Turn]:
    """Turn after turn, behind a prompt."""
    longest = max(ks) + 1  # tokens of a round; before it comes one that is not timed
    middle = ks[len(ks) // 2]
    room = max(2 * longest, PAUSE + middle + 1 + RESUMED)
    tokens = prompt_tokens(prompt, target, room)
    capacity = min(len(tokens) + TOKENS, target.config.context_length)
    run = RunShape(capacity, target.config.vocab_size, sampling, kv_dtype)
    rehearsal = Rehearsal(target, drafter, tokens, run, seed, clock)
    rehearsal.begin()
    for _ in range(turns):
        plain = [rehearsal.plain_token() for _ in range(PLAIN)][COLD:]
        for _ in range(COLD):
            rehearsal.round(ks[0])
        times: list[RoundTime] = []
        for k in ks:
            rehearsal.round(k)
            for _ in range(ROUNDS):
                times += rehearsal.rounds(k)
        step = median(seconds for seconds, _ in plain)
        call = median(call for _, call in plain)
        returning, resumed = rehearsal.round_among_steps(PAUSE, middle, RESUMED)
        yield Turn(step, call / step, tuple(times), returning, resumed)


def costs_of(turns: Sequence[Turn]) -> Costs:
    """Medians by k; through what grows with k a straight line is laid."""
    every = list(chain.from_iterable(turn.in_steps() for turn in turns))
    times = [time for time in every if time.k]
    by_k: dict[int, list[RoundTime]] = {}
    for time in times:
        by_k.setdefault(time.k, []).append(time)
    drafting = _drafting(times)
    rest = {k: median(time.rest for time in some) for k, some in by_k.items()}
    verifying = {k + 1: median(time.verifying for time in some) for k, some in by_k.items()}
    start, c = _line(drafting)
    per_round, per_proposal = _line(rest)
    feeding = {
        kept: median([time.feeding for time in times if time.kept_all == kept] or [0.0])
        for kept in (False, True)
    }
    asking = start + feeding[False]
    silent = median([time.seconds - 1 - asking for time in every if not time.k] or [0.0])
    return Costs(
        c=c,
        verification={1: median(turn.step_call for turn in turns)} | verifying,
        asking=asking,
        per_round=per_round,
        per_proposal=per_proposal,
        catch_up=max(0.0, feeding[True] - feeding[False]),
        cold=max(0.0, median(turn.cold for turn in turns)),
        reading=max(0.0, median(turn.reading for turn in turns)),
        silent=max(0.0, silent),
        resuming=max(0.0, median(turn.resuming for turn in turns)),
    )


def _drafting(times: Sequence[RoundTime]) -> dict[int, float]:
    """Medians by k; of rounds whose proposals are all the drafter's, where there are enough."""
    answered: dict[int, list[float]] = {}
    asked: dict[int, list[float]] = {}
    for time in times:
        asked.setdefault(time.k, []).append(time.drafting)
        if time.answered:
            answered.setdefault(time.k, []).append(time.drafting)
    chosen = answered if len(answered) > 1 else asked
    return {k: median(some) for k, some in sorted(chosen.items())}


def _line(points: Mapping[int, float]) -> tuple[float, float]:
    """Height at 0 and slope of the line through points, neither negative, by Theil and Sen.

    The median of the slopes between all pairs: a point spoilt by other work does not tilt it.
    """
    slopes = [(b - a) / (j - i) for (i, a), (j, b) in combinations(points.items(), 2)]
    slope = max(0.0, median(slopes or [b / j for j, b in points.items()]))
    return max(0.0, median(y - slope * x for x, y in points.items())), slope
