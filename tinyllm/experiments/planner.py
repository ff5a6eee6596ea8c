"""The planner: speed-up by k and by batch size for models that are not here, from assumptions.

alpha, c and a curve of verification costs are the visitor's; the formulas are speculative/theory.py
and speculative/curves.py. Loads no model and measures nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from tinyllm.experiments.settings import Settings
from tinyllm.memory.gpus import GIBIBYTE, Gpu, gpus
from tinyllm.speculative import theory
from tinyllm.speculative.curves import Curve, Roofline, flat, linear

KS = tuple(range(1, 17))
BATCHES = tuple(2**power for power in range(10))
BYTES_PER_PARAMETER = 2  # bfloat16, as the operations are


@cache
def fast_gpus() -> dict[str, Gpu]:
    """GPUs whose bandwidth and operations are known, by name."""
    return {name: one for name, one in gpus().items() if one.bytes_per_second}


@dataclass(frozen=True, slots=True)
class PlanSettings(Settings):
    """What a visitor assumes of models that are not here."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {
        "alpha": (0.0, 1.0),
        "c": (0.0, 1.0),
        "k": (1, KS[-1]),
        "slope": (0.0, 1.0),
        "billions": (0.1, 1000.0),
        "cache_gib": (0.0, 64.0),
        "batch": (1, BATCHES[-1]),
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "curve": ("flat", "linear", "roofline"),
        "gpu": tuple(fast_gpus()),
    }

    alpha: float = 0.8  # acceptance of one proposal
    c: float = 0.05  # a draft call, in target steps
    k: int = 4
    curve: str = "roofline"  # of verification costs
    slope: float = 0.1  # of the linear one, in steps a token
    gpu: str = "H100 SXM 80GB"
    billions: float = 8.0  # parameters of the target
    cache_gib: float = 0.0  # KV cache that one sequence reads
    batch: int = 64  # sequences decoded together

    @property
    def roofline(self) -> Roofline:
        """The target on its GPU."""
        gpu, parameters = fast_gpus()[self.gpu], self.billions * 1e9
        return Roofline(
            parameters=parameters,
            weight_bytes=parameters * BYTES_PER_PARAMETER,
            cache_bytes=self.cache_gib * GIBIBYTE,
            bytes_per_second=gpu.bytes_per_second or 0.0,
            operations_per_second=gpu.operations_per_second or 0.0,
        )

    def cost(self, batch: int) -> Curve:
        """The curve chosen, for a batch; only a roofline knows of batches."""
        if self.curve == "flat":
            return flat
        return linear(self.slope) if self.curve == "linear" else self.roofline.curve(batch)

    def speedup(self, k: int, batch: int) -> float:
        """Over plain decoding of the same batch."""
        return theory.forecast(self.alpha, k, self.c, self.cost(batch))


@dataclass(frozen=True, slots=True)
class KPlan:
    """One k, at the batch chosen."""

    k: int
    tokens_per_call: float
    call_cost: float  # T(k + 1), in steps
    flat: float  # speed-up if it were 1
    speedup: float


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One batch size: the k chosen, and the best there."""

    batch: int
    call_cost: float  # T(k + 1) of the k chosen
    speedup: float
    best_k: int  # 0 where none wins
    best_speedup: float


def by_k(plan: PlanSettings) -> list[KPlan]:
    """Every k."""
    cost = plan.cost(plan.batch)
    return [
        KPlan(
            k=k,
            tokens_per_call=theory.tokens_per_call(plan.alpha, k),
            call_cost=cost(k + 1),
            flat=theory.improvement(plan.alpha, k, plan.c),
            speedup=plan.speedup(k, plan.batch),
        )
        for k in KS
    ]


def by_batch(plan: PlanSettings) -> list[BatchPlan]:
    """Every batch size."""
    rows = []
    for batch in BATCHES:
        speedups = {0: 1.0} | {k: plan.speedup(k, batch) for k in KS}
        best = max(speedups, key=speedups.__getitem__)
        rows.append(
            BatchPlan(
                batch=batch,
                call_cost=plan.cost(batch)(plan.k + 1),
                speedup=speedups[plan.k],
                best_k=best,
                best_speedup=speedups[best],
            )
        )
    return rows
