"""All drafters of one target on one prompt, each timed in turn with plain decoding.

c is what drafting took, clocked around the draft inside the run: a proposal's time over a plain
step's, what it costs a draft to learn what was decided included. Draws nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

from tinyllm.experiments.settings import DEFAULT_PROMPT, RANGES, RunConfig, Settings
from tinyllm.experiments.timing import Spread, timed
from tinyllm.generation import generate
from tinyllm.loading import load_model, shipped_models
from tinyllm.model import Transformer
from tinyllm.sampling import Sampler
from tinyllm.speculative import (
    RULES,
    Counters,
    Drafter,
    ModelDrafter,
    named,
    speculate,
)
from tinyllm.speculative.drafters import (
    Draft,
    Footprint,
    Proposal,
    RunShape,
    available,
    draft_of,
    footprint_of,
)

# The targets that ship with a draft, the largest first.
TARGETS = tuple(
    name for name in ("base", "target") if {name, draft_of(name)} <= set(shipped_models())
)
REPEATS = 5
TREE = "-tree"  # behind the name of a drafter whose proposals get siblings, see speculative/tree.py
_BRANCHING = ("draft", "heads")


@dataclass(frozen=True, slots=True)
class DraftersConfig(Settings):
    """One prompt for all drafters of a target."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {
        name: RANGES[name] for name in ("k", "temperature", "tokens", "seed")
    } | {"width": (2, 4)}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"target": TARGETS, "verify": tuple(RULES)}

    target: str = TARGETS[0]
    k: int = 4  # proposals a round
    temperature: float = 0.7
    prompt: str = DEFAULT_PROMPT
    tokens: int = 96
    seed: int = 0
    verify: str = "token"  # the acceptance rule, of all but trees
    width: int = 2  # candidates for a place, of trees

    def check(self) -> None:
        """The prompt is text the model knows, and with the new tokens fits its positions."""
        RunConfig(prompt=self.prompt, tokens=self.tokens)

    @property
    def run_settings(self) -> dict[str, Any]:
        """The arguments that generate() and speculate() share, but for the prompt."""
        names = {"max_new_tokens": self.tokens}
        return names | {"temperature": self.temperature, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class DrafterRun:
    """One drafter once, beside the plain run of the same repeat."""

    name: str
    seconds: float
    draft_seconds: float  # of them, spent in the draft
    plain_seconds: float
    plain_step: float  # seconds of a plain step, prefill left out
    counters: Counters
    identical: bool  # the tokens are those of plain decoding
    footprint: Footprint


@dataclass(frozen=True, slots=True)
class DrafterRow:
    """One drafter over its runs so far."""

    drafter: str
    tokens_per_call: float
    acceptance_rate: float | None
    accepted_per_proposed: float | None
    proposed_per_round: float
    c: Spread | None  # a proposal in plain steps; None where none was made
    speedup: Spread
    weights_bytes: int
    state_bytes: int
    identical: bool | None  # None above temperature 0
    runs: int

    def row(self) -> dict[str, Any]:
        """As one flat object, c unrolled where there is one."""
        c = self.c
        return {
            "drafter": self.drafter,
            "tokens_per_call": self.tokens_per_call,
            "acceptance_rate": self.acceptance_rate,
            "accepted_per_proposed": self.accepted_per_proposed,
            "proposed_per_round": self.proposed_per_round,
            "c": None if c is None else c.median,
            "c_low": None if c is None else c.low,
            "c_high": None if c is None else c.high,
            "speedup": self.speedup.median,
            "speedup_low": self.speedup.low,
            "speedup_high": self.speedup.high,
            "weights_bytes": self.weights_bytes,
            "state_bytes": self.state_bytes,
            "identical": self.identical,
            "runs": self.runs,
        }


class ClockedDrafter:
    """A drafter with a clock around its work, as it runs inside the loop."""

    def __init__(self, drafter: Drafter) -> None:
        self.drafter = drafter
        self.seconds = 0.0  # in propose and commit, all runs together; the first commit left out
        self._has_read = False
        self.draft: Draft | None = None  # the latest
        self.observe: Callable[..., None] | None = None

    def start(self, run: RunShape) -> "ClockedDrafter":
        """Start the drafter."""
        self._has_read = False
        self.draft = self.drafter.start(run)
        # Shown on only where it is looked at: keeping hidden states is not free.
        self.observe = getattr(self.draft, "observe", None)
        return self

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """Its proposal."""
        assert self.draft is not None
        began = perf_counter()
        proposal = self.draft.propose(sequence, k, sampler)
        self.seconds += perf_counter() - began
        return proposal

    def commit(self, sequence: Sequence[int]) -> None:
        """Let it learn."""
        assert self.draft is not None
        began = perf_counter()
        self.draft.commit(sequence)
        if self._has_read:
            self.seconds += perf_counter() - began
        self._has_read = True


def entrants(target: str, load: Callable[[str], Transformer] = load_model) -> dict[str, Drafter]:
    """Every drafter that ships for a target, by its name; some once more, as a tree."""
    found = {}
    for name in available(target):
        drafter = named(name, load, target)
        found[name] = ModelDrafter(drafter) if isinstance(drafter, Transformer) else drafter
    trees = {name + TREE: found[name] for name in _BRANCHING if name in found}
    return found | trees


def way_of(name: str, width: int, verify: str = "token") -> dict[str, Any]:
    """How the proposals of an entrant are checked: the arguments of speculate()."""
    return {"width": width} if name.endswith(TREE) else {"verify": verify}


def watch(
    config: DraftersConfig,
    target: Transformer,
    drafters: Mapping[str, Drafter],
    repeats: int = REPEATS,
) -> Iterator[DrafterRun]:
    """Plain decoding and every drafter in turn, an event a drafter, `repeats` times over."""
    settings = config.run_settings
    for _ in range(repeats):
        plain = list(timed(partial(generate, target, config.prompt, **settings)))
        tokens = [token.id for token, _ in plain]
        seconds = [waited for _, waited in plain]
        step = sum(seconds[1:]) / len(seconds[1:])
        for name, drafter in drafters.items():
            clocked = ClockedDrafter(drafter)
            own = way_of(name, config.width, config.verify) | settings
            begin = partial(speculate, target, clocked, config.prompt, k=config.k, **own)
            rounds = list(timed(begin))
            assert clocked.draft is not None
            yield DrafterRun(
                name=name,
                seconds=sum(waited for _, waited in rounds),
                draft_seconds=clocked.seconds,
                plain_seconds=sum(seconds),
                plain_step=step,
                counters=Counters.of(event for event, _ in rounds),
                identical=[t for event, _ in rounds for t in event.tokens] == tokens,
                footprint=footprint_of(clocked.draft),
            )


@dataclass(slots=True)
class DraftersRecord:
    """The runs so far, by drafter."""

    temperature: float
    runs: dict[str, list[DrafterRun]] = field(default_factory=dict)

    def take(self, run: DrafterRun) -> bool:
        """Take one run in; each is worth drawing."""
        self.runs.setdefault(run.name, []).append(run)
        return True

    @property
    def rows(self) -> list[DrafterRow]:
        """A row for every drafter that has run, in the order of entrants."""
        return [_row(name, runs, self.temperature) for name, runs in self.runs.items()]


def _row(name: str, runs: Sequence[DrafterRun], temperature: float) -> DrafterRow:
    """Counters of one run, as the same seed makes the same tokens; spreads over all."""
    counters = runs[0].counters
    drafting = [run.draft_seconds / run.plain_step for run in runs]  # in steps
    made = counters.proposed
    return DrafterRow(
        drafter=name,
        tokens_per_call=counters.tokens_per_call or 0.0,
        acceptance_rate=counters.acceptance_rate,
        accepted_per_proposed=counters.accepted_per_proposed,
        proposed_per_round=counters.proposed / counters.drafts,
        c=Spread.of(one / made for one in drafting) if made else None,
        speedup=Spread.of(run.plain_seconds / run.seconds for run in runs),
        weights_bytes=runs[-1].footprint.weights,
        state_bytes=runs[-1].footprint.state,
        identical=None if temperature else all(run.identical for run in runs),
        runs=len(runs),
    )
