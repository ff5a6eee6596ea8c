"""bench call-cost: what a target call costs by its number of tokens, and what a draft call costs.

Speculation pays when checking n tokens in one call costs much less than n calls. All calls are
timed in turn behind the same cached text; a cost in steps is the ratio to the target's
one-token call of the same turn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinyllm.experiments.prompts import validation_text
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.model import Transformer
from tinyllm.speculative import Costs

WIDTHS = (1, 2, 3, 5, 9, 17)  # tokens of a target call
CACHED = 100  # tokens before the call
TURNS = 101  # of one call each: the shorter, the fewer are interrupted


@dataclass(frozen=True, slots=True)
class CallCost:
    """One kind of call."""

    model: str  # its name
    role: str  # "target" or "draft"
    tokens: int  # n, fed in one call
    path: str  # that the layers' products take for n rows
    seconds: Spread
    steps: Spread  # T(n) / T(1) of the target; for the draft this is c


def rows(
    target: Transformer,
    draft: Transformer,
    widths: Sequence[int] = WIDTHS,
    turns: int = TURNS,
    kv_dtype: str = "float32",
) -> Iterator[CallCost]:
    """The target's calls by width, then the draft's one-token call. `widths` begins with 1."""
    cases = [(target, "target", width) for width in widths] + [(draft, "draft", 1)]
    seconds = _in_turn([(model, width) for model, _, width in cases], turns, kv_dtype)
    steps = seconds[0]
    for (model, role, width), times in zip(cases, seconds, strict=True):
        yield CallCost(
            model.name,
            role,
            width,
            model.path(width),
            Spread.of(times),
            Spread.of(one / step for one, step in zip(times, steps, strict=True)),
        )


def costs_of(costs: Sequence[CallCost]) -> Costs:
    """The medians of one run of `rows`: of the calls alone, as the theory takes them."""
    (c,) = (row.steps.median for row in costs if row.role == "draft")
    return Costs(c, {row.tokens: row.steps.median for row in costs if row.role == "target"})


def _in_turn(
    cases: Sequence[tuple[Transformer, int]], turns: int, kv_dtype: str
) -> list[list[float]]:
    """Seconds a call, for each case one figure a turn; a first turn is not counted."""
    fed = cases[0][0].tokenizer.encode(validation_text()[: CACHED + max(n for _, n in cases)])

    def case(model: Transformer, width: int) -> Case:
        cache, new = model.new_cache(kv_dtype, len(fed)), fed[CACHED : CACHED + width]
        model.forward(fed[:CACHED], cache, rows=0)

        def call() -> None:
            model.forward(new, cache)
            cache.truncate(CACHED)

        return Case(call)

    named = {str(place): case(model, width) for place, (model, width) in enumerate(cases)}
    return list(in_turn(named, turns, warm_up=1).values())
