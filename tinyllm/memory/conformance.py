"""Our answers against right ones: every preset by every engine's rules, and public reports.

The right ones stand in assets/memory/conformance: bytes reckoned by hand, answers of vLLM's own
planner, llama.cpp totals reckoned from its source, and what people measured. Each file names its
source. `python -m tinyllm memory --conformance` prints what this yields.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan, plan
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.engines import llamacpp, sglang, vllm
from tinyllm.memory.engines.vllm_blocks import Group
from tinyllm.memory.presets import ASSETS, preset, presets

FOLDER = ASSETS / "conformance"
_BF16 = CacheTypes.named("bfloat16")
_VLLM_FIGURES = (
    *("block_size", "num_blocks", "bytes_per_block", "reserved_bytes_per_request"),
    "log_tokens",
)
_SAME_SHAPE = {"deepseek-ai/DeepSeek-R1": "deepseek-ai/DeepSeek-V3"}  # not presets themselves


@dataclass(frozen=True, slots=True)
class Check:
    """One figure beside its right value."""

    model: str
    engine: str
    what: str
    ours: object
    right: object

    @property
    def agrees(self) -> bool:
        return self.ours == self.right


@dataclass(frozen=True, slots=True)
class Row:
    """All checks of one preset by one engine's rules."""

    model: str
    engine: str
    right: int
    checked: int
    remark: str  # the first difference, or why nothing is checked


@cache
def answers(name: str) -> Any:
    """The right answers of one file: logical, vllm, llamacpp or reports."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@cache
def _plan(model: str) -> CachePlan:
    return plan(preset(model).config)


def logical_checks(case: dict[str, Any]) -> Iterator[Check]:
    """Bytes of one sequence at two lengths, and the slope beyond every window."""
    model = _plan(case["model"])
    for tokens in (8_192, 131_072):
        right = case[f"bytes_at_{tokens}"]
        yield Check(case["model"], "logical", f"{tokens:,} tokens", model.bytes(tokens), right)
    slope = int(model.bytes_per_token(2**30, _BF16))
    yield Check(case["model"], "logical", "bytes a token", slope, case["bytes_per_token"])


def vllm_checks(row: list[Any]) -> Iterator[Check]:
    """All figures of vLLM's planner at one setting."""
    golden = answers("vllm")
    right = dict(zip(golden["columns"], row, strict=True))
    values = golden["settings"][right["setting"]]
    settings = vllm.Settings(**dict(zip(golden["settings_columns"], values, strict=True)))
    pool = vllm.pool(_plan(right["model"]), settings)
    ours = {name: getattr(pool, name) for name in _VLLM_FIGURES}
    ours["groups"] = " ".join(map(_described, pool.groups))
    ours["max_concurrency"] = round(pool.max_concurrency, 4)
    for name, value in ours.items():
        what = f"{name}, setting {right['setting']}"
        yield Check(right["model"], "vllm", what, value, right[name])


def _described(group: Group) -> str:
    """A group as the planner's answers write it; "one" when heads differ within it."""
    kind = group.kind if len(set(group.specs)) == 1 else "one"
    return f"{kind}:{len(group.layers)}x{group.block_size}"


def llamacpp_checks(row: list[Any]) -> Iterator[Check]:
    """The total of llama.cpp at one setting."""
    golden = answers("llamacpp")
    model, setting, total = row
    values = golden["settings"][setting]
    settings = llamacpp.Settings(**dict(zip(golden["settings_columns"], values, strict=True)))
    ours = llamacpp.cache(_plan(model), settings).total_bytes
    yield Check(model, "llamacpp", f"total bytes, setting {setting}", ours, total)


def sglang_checks(case: dict[str, Any]) -> Iterator[Check]:
    """Bytes a token in layers that keep every one: the slope reckoned by hand.

    Index keys are left out: SGLang stores them in 8 bits, and the slope has them in 16.
    """
    model = _plan(case["model"])
    if any(entry.kind == "index" for entry in model.entries):
        return
    ours = sglang.per_token(model, sglang.Settings()).full
    yield Check(case["model"], "sglang", "bytes a token", ours, case["bytes_per_token"])


def report_checks(report: dict[str, Any]) -> Iterator[Check]:
    """One public report or dispute, its right answer reckoned apart."""
    name = report["model"]
    model = plan(report["config"]) if "config" in report else _plan(_SAME_SHAPE.get(name, name))
    if "bytes" in report:
        ours = model.bytes(report["tokens"])
        yield Check(name, "report", f"{report['tokens']:,} tokens", ours, report["bytes"])
    else:
        slope = int(model.bytes_per_token(2**30, _BF16))
        yield Check(name, "report", "bytes a token", slope, report["bytes_per_token"])


_SOURCES: dict[str, tuple[Callable[[Any], Iterator[Check]], Callable[[], list[Any]]]] = {
    "logical": (logical_checks, lambda: answers("logical")),
    "vllm": (vllm_checks, lambda: answers("vllm")["rows"]),
    "llamacpp": (llamacpp_checks, lambda: answers("llamacpp")["rows"]),
    "sglang": (sglang_checks, lambda: answers("logical")),
}


def rows() -> Iterator[Row]:
    """Every preset by every engine, in the order of the presets."""
    by_model: dict[tuple[str, str], list[Check]] = {}
    refused: dict[tuple[str, str], str] = {}
    for engine, (checks, cases) in _SOURCES.items():
        for case in cases():
            name = case["model"] if isinstance(case, dict) else case[0]
            try:
                by_model.setdefault((name, engine), []).extend(checks(case))
            except MemoryPlanError as error:
                refused[name, engine] = str(error)
    for name in presets():
        for engine in _SOURCES:
            found = by_model.get((name, engine), [])
            yield _row(name, engine, found, refused.get((name, engine), ""))


def _row(name: str, engine: str, checks: list[Check], refused: str) -> Row:
    wrong = [check for check in checks if not check.agrees]
    remark = refused or ("" if checks else "no right value is known")
    if wrong:
        first = wrong[0]
        remark = f"{first.what}: {first.ours}, right is {first.right}"
    return Row(name, engine, len(checks) - len(wrong), len(checks), remark)


def reports() -> Iterator[tuple[Check, str]]:
    """Public reports, each with the address where it was discussed when it is known."""
    for report in answers("reports"):
        for check in report_checks(report):
            yield check, report.get("source", "")
