"""vLLM's figures in a log, against each other and against a model's plan.

Two of its lines, tokens and concurrency, often contradict each other; both follow from one number
of blocks, which is found again here.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.engines import vllm
from tinyllm.memory.fields import MOST_TOKENS
from tinyllm.memory.log_lines import LogLine

_BATCHED = (8_192, 2_048, 16_384, 4_096)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison of lines with each other or with the plan came to."""

    lines: tuple[int, ...]  # their numbers
    agrees: bool
    text: str


def close(printed: float, exact: float, unit: int = 2**30) -> bool:
    """Equal within the two decimals that were printed."""
    return abs(printed - exact) <= 0.0051 * unit


def vllm_verdicts(
    lines: tuple[LogLine, ...], model: CachePlan | None, ranks: int, dtype: str
) -> Iterator[Verdict]:
    """Tokens against concurrency, for each pair of lines in the order they came."""
    memory = [line.values["bytes"] for line in lines if line.kind == "vllm_memory"]
    tokens = [line for line in lines if line.kind == "vllm_tokens"]
    concurrencies = [line for line in lines if line.kind == "vllm_concurrency"]
    for turn, (printed, bound) in enumerate(zip(tokens, concurrencies, strict=False)):
        length, times = bound.values["length"], bound.values["concurrency"]
        if not length:
            continue
        numbers, total = (printed.number, bound.number), printed.values["tokens"]
        derived = length * times
        alike = abs(total - derived) <= 0.006 * length  # the concurrency has two decimals
        said = f"{total:,.0f} tokens and {times}x {length:,.0f} = {derived:,.0f} tokens"
        yield Verdict(
            numbers,
            alike,
            f"{said} are one figure, printed twice"
            if alike
            else f"{said} contradict each other: the concurrency is the capacity; the tokens are "
            "blocks over groups",
        )
        if model is not None:
            pair = _Pair(int(length), times, int(total), memory[turn] if turn < len(memory) else 0)
            yield Verdict(numbers, *_from_blocks(pair, model, ranks, dtype))


@dataclass(frozen=True, slots=True)
class _Pair:
    """vLLM's two lines as printed, and the memory of the pool when that was printed too."""

    length: int
    concurrency: float
    tokens: int
    memory: float

    def fits(self, pool: vllm.Pool) -> bool:
        """Whether a pool would print these lines, in the new way or in the old."""
        if self.memory and not self._fills(pool):
            return False
        same = round(pool.max_concurrency, 2) == self.concurrency
        return same and self.tokens in (pool.log_tokens, pool.old_log_tokens)

    def _fills(self, pool: vllm.Pool) -> bool:
        spare = self.memory - pool.num_blocks * pool.bytes_per_block
        rounding = 0.0051 * 2**30
        return -rounding <= spare < pool.bytes_per_block + rounding


def _from_blocks(pair: _Pair, model: CachePlan, ranks: int, dtype: str) -> tuple[bool, str]:
    """The number of blocks from which vLLM printed both lines for this model."""
    for caching, scheduling, batched in _ways():
        settings = vllm.Settings(
            pair.length, 0, batched, scheduling, ranks, dtype=dtype, prefix_caching=caching
        )
        try:
            pool = vllm.pool(model, settings)
        except MemoryPlanError as error:
            return False, f"not checked: {error}"
        each = pool.blocks_per_request
        nearest, spread = round(pair.concurrency * each), 1 + each // 200
        tried = range(max(1, nearest - spread), nearest + spread + 1)
        found = [n for n in tried if pair.fits(replace(pool, num_blocks=n))]
        if found:
            blocks = f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"
            capacity = replace(pool, num_blocks=found[0]).log_tokens
            return True, (
                f"both lines follow from {blocks} blocks of {pool.bytes_per_block:,} bytes: a "
                f"request reserves {each:,} blocks in {len(pool.groups)} groups, so "
                f"{capacity:,} tokens fit at full length{_flags(pool)}"
            )
    return False, (
        f"no number of blocks of this model gives both at tensor parallel {ranks} and {dtype}: "
        "another model, parallelism, cache type, or a version that sizes otherwise"
    )


def refusal_verdicts(
    lines: tuple[LogLine, ...], model: CachePlan, ranks: int, dtype: str
) -> Iterator[Verdict]:
    """What vLLM said that one request needs, against what it reserves by the plan."""
    for line in lines:
        length = int(line.values.get("length", 0))
        if line.kind != "vllm_refusal" or not 0 < length <= MOST_TOKENS:
            continue
        needed, available = line.values["needed_bytes"], line.values["available_bytes"]
        found = set()
        try:
            for caching, scheduling, batched in _ways():
                settings = vllm.Settings(
                    length,
                    int(available),
                    batched,
                    scheduling,
                    ranks,
                    dtype=dtype,
                    prefix_caching=caching,
                )
                found.add(vllm.pool(model, settings).reserved_bytes_per_request)
        except MemoryPlanError as error:
            yield Verdict((line.number,), False, f"not checked: {error}")
            continue
        agrees = any(close(needed, size) for size in found)
        sizes = " or ".join(f"{size / 2**30:,.2f}" for size in sorted(found))
        yield Verdict((line.number,), agrees, f"by the plan one request reserves {sizes} GiB")


def _ways() -> Iterator[tuple[bool, bool, int]]:
    """Settings that a log does not tell: prefix caching, async scheduling, batched tokens."""
    return itertools.product((True, False), (True, False), _BATCHED)


def _flags(pool: vllm.Pool) -> str:
    """The settings that were assumed, where they change the number of blocks."""
    settings, said = pool.settings, []
    if pool.has_states:
        said.append(f"prefix caching {'on' if settings.prefix_caching else 'off'}")
    if any(group.kind in ("window", "chunk") for group in pool.groups):
        said.append(f"{settings.in_flight:,} tokens in flight")
    return f" ({', '.join(said)})" if said else ""
