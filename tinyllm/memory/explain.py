"""A pasted start-up log, explained line by line and checked against a model's plan.

vLLM prints two figures, tokens and concurrency, that often contradict each other; both follow from
one number of blocks, which is found again here. Figures are compared within the rounding of what
was printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.engines import sglang
from tinyllm.memory.explain_vllm import Verdict, close, refusal_verdicts, vllm_verdicts
from tinyllm.memory.layers import Attention, Latent, State
from tinyllm.memory.log_lines import LogLine, read_lines


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
    verdicts = [*vllm_verdicts(lines, model, tensor_parallel, dtype)]
    if model is not None:
        verdicts += refusal_verdicts(lines, model, tensor_parallel, dtype)
        settings = sglang.Settings(dtype=dtype, tensor_parallel=tensor_parallel)
        verdicts += [*_sglang(lines, model, settings), *_llamacpp(lines, model)]
    return Explanation(lines, tuple(verdicts))


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
        agrees = all(close(size, tokens * part) for size, part in pairs)
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
        agrees = any(close(line.values["bytes"], size, 2**20) for size in expected)
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
