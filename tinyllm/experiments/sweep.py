"""bench speculative: when drafting wins, over k and temperature.

Every cell decodes the same prompts speculatively and is timed in turn with the engine's plain
decoding of that prompt. Beside the measured speed-up stand what the theory makes of the cell's
acceptance rate: with a verification that costs one step, and with what it was measured to cost.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tinyllm.experiments import call_cost
from tinyllm.experiments.call_cost import WIDTHS, CallCost, costs_of
from tinyllm.experiments.prompts import validation_prompts
from tinyllm.experiments.settings import RANGES, RunConfig
from tinyllm.experiments.timing import Spread, timed
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.speculative import Costs, Counters, Round, speculate, theory

KS = (1, 2, 3, 4, 6, 8)
TEMPERATURES = (0.0, 0.7, 1.0)
REPEATS = 3  # times through the prompts
WATCHED_TURNS = 31  # of the calls, when a visitor waits
SETTINGS = RunConfig(tokens=96)
Place = tuple[float, int]  # temperature, k


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One cell: k at a temperature, over all prompts decoded so far."""

    temperature: float
    k: int
    alpha: float  # accepted / tested
    accepted_per_proposed: float
    tokens_per_call: float
    equation_1: float  # at this alpha
    ideal_flat: float  # Theorem 3.8: speed-up if a verification cost one step
    ideal_measured: float  # with the verification's measured cost
    speedup: Spread  # of pairs: a prompt's plain and speculative decoding, in turn
    pairs: int
    plain_tokens_per_second: float
    identical: bool | None  # to greedy plain decoding; None above temperature 0


@dataclass(slots=True)
class _Cell:
    """What was measured at one place so far."""

    counters: Counters = field(default_factory=Counters)
    pairs: list[tuple[float, float]] = field(default_factory=list)  # plain, speculative seconds
    plain_rates: list[float] = field(default_factory=list)  # tokens a second
    identical: bool = True

    def row(self, place: Place, costs: Costs) -> SweepRow:
        temperature, k = place
        counters = self.counters
        alpha = counters.acceptance_rate or 0.0
        return SweepRow(
            temperature=temperature,
            k=k,
            alpha=alpha,
            accepted_per_proposed=counters.accepted_per_proposed or 0.0,
            tokens_per_call=counters.tokens_per_call or 0.0,
            equation_1=theory.tokens_per_call(alpha, k),
            ideal_flat=theory.improvement(alpha, k, costs.c),
            ideal_measured=theory.forecast(alpha, k, costs.c, costs.verification.__getitem__),
            speedup=Spread.of(plain / speculative for plain, speculative in self.pairs),
            pairs=len(self.pairs),
            plain_tokens_per_second=Spread.of(self.plain_rates).median,
            identical=None if temperature else self.identical,
        )


def cells(
    target: Transformer,
    draft: Transformer,
    costs: Costs,
    prompts: Sequence[str],
    config: RunConfig = SETTINGS,
    temperatures: Sequence[float] = TEMPERATURES,
    ks: Sequence[int] = KS,
    repeats: int = REPEATS,
) -> Iterator[SweepRow]:
    """A cell's row, up to date, whenever one more prompt was decoded in it.

    The prompts are the outer loop, so that the whole map is there after the first of them, and a
    machine that slows down slows all cells. Of `config` tokens, seed, filters and KV dtype count.
    """
    found: Mapping[Place, _Cell] = {(t, k): _Cell() for t in temperatures for k in ks}
    for repeat in range(repeats):
        for prompt in prompts:
            for temperature in temperatures:
                seed = (config.seed + repeat) % (int(RANGES["seed"][1]) + 1)
                settings = config.with_(temperature=temperature, seed=seed).run_settings
                plain = list(timed(partial(generate, target, prompt, **settings)))
                text = [token.id for token, _ in plain]
                for k in ks:
                    cell = found[temperature, k]
                    begin = partial(speculate, target, draft, prompt, k=k, **settings)
                    _decode(cell, text, sum(seconds for _, seconds in plain), begin)
                    yield cell.row((temperature, k), costs)


def _decode(
    cell: _Cell, text: Sequence[int], plain: float, begin: Callable[[], Iterator[Round]]
) -> None:
    """Decode one prompt speculatively into a cell; `plain` seconds made `text`."""
    made: list[int] = []
    total = 0.0
    for event, seconds in timed(begin):
        cell.counters = cell.counters.add(event)
        made += event.tokens
        total += seconds
    cell.pairs.append((plain, total))
    cell.plain_rates.append(len(text) / plain)
    cell.identical = cell.identical and made == list(text)


def rows(
    target: Transformer,
    draft: Transformer,
    config: RunConfig = SETTINGS,
    temperatures: Sequence[float] = TEMPERATURES,
    ks: Sequence[int] = KS,
    repeats: int = REPEATS,
) -> Iterator[SweepRow]:
    """The finished cells, a temperature at a time; by default at the article's settings."""
    prompts = validation_prompts()
    costs = costs_of(list(call_cost.rows(target, draft, _widths(ks))))
    for temperature in temperatures:
        last = {}
        for row in cells(target, draft, costs, prompts, config, (temperature,), ks, repeats):
            last[row.k] = row
        yield from last.values()


@dataclass(slots=True)
class SweepRecord:
    """What a watched sweep has given so far."""

    costs: tuple[CallCost, ...] = ()
    rows: dict[Place, SweepRow] = field(default_factory=dict)

    def take(self, event: tuple[CallCost, ...] | SweepRow) -> bool:
        """Take one event in; each is worth drawing."""
        if isinstance(event, SweepRow):
            self.rows[event.temperature, event.k] = event
        else:
            self.costs = event
        return True


def watch(
    config: RunConfig, target: Transformer, draft: Transformer
) -> Iterator[tuple[CallCost, ...] | SweepRow]:
    """The costs of all calls, then the cells as they fill and sharpen."""
    costs = tuple(call_cost.rows(target, draft, _widths(KS), WATCHED_TURNS, config.kv_dtype))
    yield costs
    yield from cells(target, draft, costs_of(costs), validation_prompts(), config)


def _widths(ks: Sequence[int]) -> list[int]:
    """The article's widths, and every k + 1, so that no cost is interpolated."""
    return sorted({*WIDTHS, *(k + 1 for k in ks)})
