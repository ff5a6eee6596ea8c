"""Faults of the loop around the rule: caches that fall out of step, and counting.

Each fault is the loop with one step overridden. Its result stands beside the engine's own.
"""

from collections.abc import Sequence

from tinyllm.experiments.pitfalls.loop import Loop
from tinyllm.experiments.pitfalls.record import Bars, Bench, Result, Seen, Texts
from tinyllm.generation import generate
from tinyllm.prompt import prompt_tokens
from tinyllm.sampling import Distribution, RandomSampler, Sampling
from tinyllm.speculative import Counters, ModelDrafter, SpeculativeDecoder, speculate
from tinyllm.speculative.drafters import RunShape

KS = (1, 2, 4, 8)
VERDICTS = (True, False, True, True)


class ForgottenTruncate(Loop):
    """Leaves the refused proposals in the target's cache."""

    def rewind_target(self) -> None:
        """Nothing: the next call attends to tokens that were never said."""


class DraftLacksLastProposal(Loop):
    """Shortens the draft's cache and never lengthens it."""

    def catch_up_draft(self) -> None:
        """After full acceptance the last proposal was drawn and never fed: a place is missing."""
        self.draft_cache.truncate(min(self.draft_cache.length, len(self.sequence) - 1))


class IdleRoundsSkipDraft(Loop):
    """Leaves the draft alone in rounds without proposals."""

    def catch_up_draft(self) -> None:
        """A round of k = 0 also adds a token, which the draft never hears of."""
        if self.proposed:
            super().catch_up_draft()


class CountsBehindRefusal(Loop):
    """Counts every accepted proposal, also behind the first refusal."""

    def count_accepted(self, p: Distribution, q: Sequence[Distribution]) -> int:
        """A proposal behind a refusal continues a text that does not exist."""
        places = range(len(self.proposed))
        return sum(self.verdict(p[n], q[n], self.proposed[n]) for n in places)


def measure_forgotten_truncate(bench: Bench) -> Seen:
    """Greedy text with and without."""
    loop = ForgottenTruncate(bench, bench.draft)
    loop.run(bench.tokens, [bench.k])
    texts = Texts(new_tokens(loop, bench), engine_text(bench))
    plain = generate(bench.target, bench.prompt, max_new_tokens=bench.tokens)
    same = sum(
        one == token.id for one, token in zip(texts.right, plain, strict=True)
    )  # a near tie may part calls of other widths
    result = Result(
        "first token that differs from the right text",
        _place(texts),
        "none",
        f"truncates after every round: {same} of {bench.tokens} tokens are plain decoding's",
    )
    return Seen(result, texts=texts)


def measure_draft_gap(bench: Bench) -> Seen:
    """Acceptance of a model that drafts for itself, by k; every token should be accepted."""
    wrong, right = [], []
    for k in KS:
        loop = DraftLacksLastProposal(bench, bench.target)
        loop.run(bench.tokens, [k])
        wrong.append(loop.accepted / loop.tested)
        events = speculate(
            bench.target, bench.target, bench.prompt, k=k, max_new_tokens=bench.tokens
        )
        right.append(Counters.of(events).acceptance_rate or 0.0)
    result = Result(
        f"accepted / tested of a model that drafts for itself, k = {', '.join(map(str, KS))}",
        _shares(wrong),
        _shares(right),
        "feeds the draft what was committed and not yet fed",
    )
    return Seen(result, Bars(tuple(f"k = {k}" for k in KS), tuple(wrong), tuple(right)))


def measure_idle_rounds(bench: Bench) -> Seen:
    """The same where every other round proposes nothing."""
    loop = IdleRoundsSkipDraft(bench, bench.target)
    loop.run(bench.tokens, [0, bench.k])
    prompt = prompt_tokens(bench.prompt, bench.target, bench.tokens)
    run = RunShape(len(prompt) + bench.tokens, bench.target.config.vocab_size, Sampling())
    decoder = SpeculativeDecoder(
        bench.target, ModelDrafter(bench.target), prompt, run, frozenset(), RandomSampler()
    )
    end, counters, number = run.capacity, Counters(), 0
    while len(decoder.sequence) < end:
        k = bench.k if number % 2 else 0
        counters = counters.add(decoder.round(min(k, end - len(decoder.sequence) - 1)))
        number += 1
    wrong, right = loop.accepted / loop.tested, counters.acceptance_rate or 0.0
    result = Result(
        f"accepted / tested of a model that drafts for itself, k = 0 and {bench.k} in turn",
        _shares([wrong]),
        _shares([right]),
        "feeds the draft after every round, also one of k = 0",
    )
    return Seen(result, Bars((f"k = 0, {bench.k}, ...",), (wrong,), (right,)))


class ScriptedVerdicts:
    """A sampler that takes the likeliest token and gives verdicts by a list."""

    def __init__(self, verdicts: Sequence[bool]) -> None:
        self._verdicts = list(verdicts)

    def draw(self, p: Distribution) -> int:
        """The likeliest token."""
        return int(p.argmax())

    def accept(self, probability: float) -> bool:
        """The next verdict."""
        return self._verdicts.pop(0)


def measure_counting(bench: Bench) -> Seen:
    """The count for verdicts yes, no, yes, yes; and the greedy text."""
    scripted = ScriptedVerdicts(VERDICTS)
    loop = CountsBehindRefusal(bench, bench.draft, temperature=1.0, sampler=scripted)
    loop.round(len(VERDICTS))
    events = speculate(
        bench.target,
        bench.draft,
        bench.prompt,
        k=len(VERDICTS),
        max_new_tokens=len(VERDICTS) + 1,
        temperature=1.0,
        sampler=ScriptedVerdicts(VERDICTS),
    )
    right = next(events).accepted
    greedy = CountsBehindRefusal(bench, bench.draft)
    greedy.run(bench.tokens, [bench.k])
    texts = Texts(new_tokens(greedy, bench), engine_text(bench))
    result = Result(
        "accepted for the verdicts yes, no, yes, yes; first token of the greedy text that differs",
        f"{loop.accepted}; {_place(texts)}",
        f"{right}; none",
        "stops asking at the first refusal",
    )
    return Seen(result, texts=texts)


def engine_text(
    bench: Bench, stop: Sequence[int] = (), cap: int | None = None, self_draft: bool = False
) -> tuple[int, ...]:
    """Greedy tokens of the engine's own speculative decoding."""
    events = speculate(
        bench.target,
        bench.target if self_draft else bench.draft,
        bench.prompt,
        k=bench.k,
        max_new_tokens=cap or bench.tokens,
        stop=stop,
    )
    return tuple(token for event in events for token in event.tokens)


def new_tokens(loop: Loop, bench: Bench) -> tuple[int, ...]:
    """What a loop made."""
    return tuple(loop.sequence[len(bench.prompt_tokens) :])


def _place(texts: Texts) -> str:
    place = texts.first_difference
    return "none" if place is None else str(place)


def _shares(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1%}" for value in values)
