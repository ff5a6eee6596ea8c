"""A pasted start-up log, explained line by line and checked against a model's plan.

vLLM prints two figures, tokens and concurrency, that often contradict each other; both follow from
one number of blocks, which is found again here. Figures are compared within the rounding of what
was printed.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.engines import sglang, vllm
from tinyllm.memory.fields import MOST_TOKENS
from tinyllm.memory.layers import Attention, Latent, State
from tinyllm.memory.log_lines import LogLine, read_lines

_BATCHED = (8_192, 2_048, 16_384, 4_096)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison of lines with each other or with the plan came to."""

    lines: tuple[int, ...]  # their numbers
    agrees: bool
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The memory lines of a log and what follows from them."""

    lines: tuple[LogLine, ...]
    verdicts: tuple[Verdict, ...]


def explain_log(
    log: str, model: CachePlan | None = None, tensor_parallel: int = 1, dtype: str = "bfloat16"
) -> Explanation:
    """Explain a log of vLLM, SGLang or llama.cpp; with a plan, check its figures too."""
    lines = tuple(read_lines(log))
    verdicts = [*_vllm(lines, model, tensor_parallel, dtype)]
    if model is not None:
        verdicts += _refused(lines, model, tensor_parallel, dtype)
        settings = sglang.Settings(dtype=dtype, tensor_parallel=tensor_parallel)
        verdicts += [*_sglang(lines, model, settings), *_llamacpp(lines, model)]
    return Explanation(lines, tuple(verdicts))


def _vllm(
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


def _refused(
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
        agrees = any(_close(needed, size) for size in found)
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


def _sglang(
    lines: tuple[LogLine, ...], model: CachePlan, settings: sglang.Settings
) -> Iterator[Verdict]:
    """Sizes of buffers against bytes per token."""
    for line in lines:
        if line.kind not in ("sglang_pool", "sglang_latent") or not line.values["tokens"]:
            continue
        try:
            each = sglang.per_token(model, settings)
        except MemoryPlanError as error:
            yield Verdict((line.number,), False, f"not checked: {error}")
            continue
        tokens = line.values["tokens"]
        if line.kind == "sglang_pool":
            pairs = [(line.values["k_bytes"], each.full_keys)]
            pairs.append((line.values["v_bytes"], each.full_values))
        else:
            pairs = [(line.values["bytes"], each.full)]
        agrees = all(_close(size, tokens * part) for size, part in pairs)
        printed = sum(size for size, _ in pairs) / tokens
        yield Verdict(
            (line.number,),
            agrees,
            f"{printed:,.0f} bytes a token as printed; {each.full:,} by the plan on each of "
            f"{settings.tensor_parallel} GPUs",
        )


def _llamacpp(lines: tuple[LogLine, ...], model: CachePlan) -> Iterator[Verdict]:
    """Each cache against the layers that it can be of: as many, with rows of that size."""
    for line in lines:
        if line.kind == "llama_state":
            states = [entry for entry in model.entries if isinstance(entry.layer, State)]
            size = sum(
                entry.count * 4 * sum(entry.layer.elements())
                for entry in states
                if isinstance(entry.layer, State)
            )
            expected = [size * line.values["cells"]]
        elif line.kind == "llama_cache":
            cells = line.values["cells"] * line.values.get("streams", 1)
            expected = [rows * cells for rows in _rows(model, line)]
        else:
            continue
        agrees = any(_close(line.values["bytes"], size, 2**20) for size in expected)
        sizes = " or ".join(f"{size / 2**20:,.2f}" for size in expected) or "no such layers"
        yield Verdict((line.number,), agrees, f"by the plan {sizes} MiB")


def _rows(model: CachePlan, line: LogLine) -> list[int]:
    """Bytes of a cell in the types that the line names, for the kinds of layers it may be of."""
    names = [part.split(")")[0] for part in line.text.split("(")[2:]]
    types = CacheTypes.named("f16", *names[:2])
    sums: dict[str, tuple[int, int]] = {}
    for entry in model.entries:
        if not isinstance(entry.layer, Attention | Latent) or entry.kind == "cross":
            continue
        for group in ("all", "window" if entry.kind in ("window", "chunk") else "full"):
            count, size = sums.get(group, (0, 0))
            size += entry.count * entry.layer.row_bytes(types)
            sums[group] = (count + entry.count, size)
    layers = line.values["layers"]
    return sorted({size for count, size in sums.values() if count == layers})


def _close(printed: float, exact: float, unit: int = 2**30) -> bool:
    """Equal within the two decimals that were printed."""
    return abs(printed - exact) <= 0.0051 * unit
