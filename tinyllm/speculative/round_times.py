"""What a round costs here: rounds of every k in turn with plain tokens, timed inside the loop.

It runs the real loop on real text, and always some of a kind one after the other, so that calls
are timed as they come in a run: among sampling, verdicts and the other model's calls, with the
processor's caches as these leave them. Reads a clock, which the loop itself does not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from statistics import median
from time import perf_counter

import numpy as np

from tinyllm.attention import Tree
from tinyllm.cache import KVCache
from tinyllm.generation import Token, generate
from tinyllm.layers import Array
from tinyllm.model import Transformer
from tinyllm.prompt import Prompt, prompt_tokens
from tinyllm.sampling import RandomSampler, Sampler, Sampling
from tinyllm.speculative.costs import Costs
from tinyllm.speculative.decoding import SpeculativeDecoder
from tinyllm.speculative.drafters import Draft, Drafter, ModelDrafter, Proposal, RunShape

KS = tuple(range(1, 9))
TURNS = 10  # through plain tokens and every k
PLAIN, ROUNDS = 6, 3  # of a kind one after the other; the first finds others' caches, and is left
TOKENS = 96  # behind the prompt, before a run begins again
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class RoundTime:
    """One round of k proposals. Seconds."""

    k: int
    answered: bool  # all proposals are the drafter's; else it had fewer
    kept_all: bool
    drafting: float  # the proposals
    verifying: float  # the target's call
    feeding: float  # the draft learns what was decided
    rest: float  # distributions, verdicts, draws, and the loop itself


@dataclass(frozen=True, slots=True)
class Turn:
    """Plain tokens and rounds of every k, timed in one go, and so on one footing."""

    step: float  # seconds of a plain token, the median
    step_call: float  # the target's share of them
    rounds: tuple[RoundTime, ...]

    def in_steps(self) -> tuple[RoundTime, ...]:
        """The rounds in steps."""
        parts = ("drafting", "verifying", "feeding", "rest")
        return tuple(
            replace(time, **{part: getattr(time, part) / self.step for part in parts})
            for time in self.rounds
        )


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
    tokens = prompt_tokens(prompt, target, 2 * (max(ks) + 1))  # for a round, and one not timed
    capacity = min(len(tokens) + TOKENS, target.config.context_length)
    run = RunShape(capacity, target.config.vocab_size, sampling, kv_dtype)
    rehearsal = _Rehearsal(target, drafter, tokens, run, seed, clock)
    rehearsal.begin()
    for _ in range(turns):
        plain = [rehearsal.plain_token() for _ in range(PLAIN)][1:]
        bursts = [[rehearsal.round(k) for _ in range(ROUNDS)][1:] for k in ks]
        step = median(seconds for seconds, _ in plain)
        call = median(call for _, call in plain)
        yield Turn(step, call / step, tuple(chain.from_iterable(bursts)))


def costs_of(turns: Sequence[Turn]) -> Costs:
    """Medians by k; through what grows with k a straight line is laid."""
    times = list(chain.from_iterable(turn.in_steps() for turn in turns))
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
    return Costs(
        c=c,
        verification={1: median(turn.step_call for turn in turns)} | verifying,
        asking=start + feeding[False],
        per_round=per_round,
        per_proposal=per_proposal,
        catch_up=max(0.0, feeding[True] - feeding[False]),
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


class _Rehearsal:
    """A plain and a speculative run of one text, a token and a round at a time, again and again."""

    def __init__(
        self,
        target: Transformer,
        drafter: Drafter | Transformer,
        tokens: list[int],
        run: RunShape,
        seed: int,
        clock: Clock,
    ) -> None:
        self._target = _TimedModel(target, clock)
        self._drafter = ModelDrafter(drafter) if isinstance(drafter, Transformer) else drafter
        self._tokens = tokens
        self._run = run
        self._sampler = RandomSampler(seed)
        self._clock = clock
        self._plain: Iterator[Token] = iter(())
        self._plain_left = 0

    def begin(self) -> None:
        """A new speculative run; its prefill is nobody's round."""
        self._decoder = SpeculativeDecoder(
            self._target,
            self._drafter,
            self._tokens,
            self._run,
            frozenset(),
            self._sampler,
            self._run.kv_dtype,
        )
        self._draft = _TimedDraft(self._decoder.draft, self._run.vocab_size, self._clock)
        self._decoder.draft = self._draft

    def round(self, k: int) -> RoundTime:
        """A round of k proposals; a new run is begun when there is no more room."""
        if len(self._decoder.sequence) + k + 1 > self._run.capacity:
            self.begin()
            self._decoder.round(k)
        draft, target, clock = self._draft, self._target, self._clock
        draft.answered = True
        draft.drafting = draft.feeding = draft.padding = target.seconds = 0.0
        start = clock()
        event = self._decoder.round(k)
        total = clock() - start - draft.padding
        return RoundTime(
            k=k,
            answered=draft.answered,
            kept_all=event.accepted == k,
            drafting=draft.drafting,
            verifying=target.seconds,
            feeding=draft.feeding,
            rest=total - draft.drafting - draft.feeding - target.seconds,
        )

    def plain_token(self) -> tuple[float, float]:
        """Seconds of a token of plain decoding, and of the target's call in it."""
        if not self._plain_left:
            self._plain_left = self._run.capacity - len(self._tokens)
            self._plain = self._plain_run(self._plain_left)
            next(self._plain)  # its call is the prefill
            self._plain_left -= 1
        self._plain_left -= 1
        self._target.seconds = 0.0
        start = self._clock()
        next(self._plain)
        return self._clock() - start, self._target.seconds

    def _plain_run(self, tokens: int) -> Iterator[Token]:
        sampling = self._run.sampling
        return generate(
            self._target,
            self._tokens,
            max_new_tokens=tokens,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            kv_dtype=self._run.kv_dtype,
            sampler=self._sampler,
        )


class _TimedModel(Transformer):
    """A model, sharing everything with the one it stands for, that adds up its calls' seconds."""

    def __init__(self, model: Transformer, clock: Clock) -> None:
        self.__dict__.update(vars(model))
        self.seconds = 0.0
        self._clock = clock

    def forward(
        self,
        tokens: Sequence[int],
        cache: KVCache | None = None,
        rows: int | None = None,
        hidden: list[Array] | None = None,
        tree: Tree | None = None,
    ) -> Array:
        """Of the model, timed."""
        start = self._clock()
        logits = super().forward(tokens, cache, rows, hidden, tree)
        self.seconds += self._clock() - start
        return logits


class _TimedDraft:
    """A draft whose seconds are added up, and who always proposes k tokens.

    Where the draft has fewer, token 0 fills up: the target's call must be as long as is timed.
    """

    def __init__(self, draft: Draft, vocab_size: int, clock: Clock) -> None:
        self._draft = draft
        self.observe = getattr(draft, "observe", None)
        self._certain = np.eye(vocab_size)[0]
        self._clock = clock
        self.answered = True
        self.drafting = self.feeding = self.padding = 0.0

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """k tokens."""
        start = self._clock()
        proposal = self._draft.propose(sequence, k, sampler)
        end = self._clock()
        self.drafting += end - start
        missing = k - len(proposal.tokens)
        self.answered = not missing
        proposal = Proposal(proposal.tokens + [0] * missing, proposal.q + [self._certain] * missing)
        self.padding += self._clock() - end
        return proposal

    def commit(self, sequence: Sequence[int]) -> None:
        """Timed too."""
        start = self._clock()
        self._draft.commit(sequence)
        self.feeding += self._clock() - start
