"""Faults of where a text ends: a stop token that is passed over, or a length asked first."""

from tinyllm.experiments.pitfalls.loop import Loop
from tinyllm.experiments.pitfalls.record import Bench, Result, Seen, Texts
from tinyllm.experiments.pitfalls.rounds import engine_text, new_tokens
from tinyllm.speculative import speculate


class StopSeenAtRoundsEnd(Loop):
    """Looks for a stop token in the last place of a round only."""

    def finish(self, before: int, end: int) -> str:
        """A stop token that was a proposal is passed over."""
        if self.sequence[-1] in self.stops:
            return "stop"
        return "length" if len(self.sequence) >= end else ""


class LengthBeforeStop(Loop):
    """Asks for the length first."""

    def finish(self, before: int, end: int) -> str:
        """Where the stop token is the last one allowed, the answer counts as cut off."""
        return "length" if len(self.sequence) >= end else super().finish(before, end)


def measure_stop(bench: Bench) -> Seen:
    """A stop token inside an accepted block; the target drafts for itself, so all are."""
    stop = _token_inside_a_round(bench)
    loop = StopSeenAtRoundsEnd(bench, bench.target, stops=[stop])
    loop.run(bench.tokens, [bench.k])
    texts = Texts(new_tokens(loop, bench), engine_text(bench, stop=[stop], self_draft=True))
    result = Result(
        f"tokens until the stop token {bench.target.tokenizer.piece(stop)!r}",
        str(len(texts.wrong)),
        str(len(texts.right)),
        "ends at an accepted stop token and draws nothing after it",
    )
    return Seen(result, texts=texts)


def measure_length_before_stop(bench: Bench) -> Seen:
    """A stop token as the last token that is allowed."""
    text = engine_text(bench)
    stop = text[-1]
    symbol = bench.target.tokenizer.piece(stop)
    cap = text.index(stop) + 1
    loop = LengthBeforeStop(bench, bench.draft, stops=[stop])
    wrong = loop.run(cap, [bench.k])
    made = engine_text(bench, stop=[stop], cap=cap)
    right = "stop" if made[-1] == stop else "length"
    result = Result(
        f"why a text ends whose last allowed token (of {cap}) is the stop token {symbol!r}",
        wrong,
        right,
        "gives the stop token as the last one, whatever the length",
    )
    return Seen(result, texts=Texts(new_tokens(loop, bench), made))


def _token_inside_a_round(bench: Bench) -> int:
    """The token that comes first, and as late as can be, as an accepted proposal.

    A text of one symbol has only its first token, which is one when k > 1.
    """
    events = speculate(
        bench.target, bench.target, bench.prompt, k=bench.k, max_new_tokens=bench.tokens
    )
    seen: set[int] = set()
    found = None
    for event in events:
        for place, token in enumerate(event.tokens):
            if token not in seen and place < event.accepted:
                found = token
            seen.add(token)
    return next(iter(seen)) if found is None else found
