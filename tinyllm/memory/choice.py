"""What a visitor of the calculator chose: the fields of its address, each within its range.

A Choice that exists is valid in itself; whether a model or an engine can do it is said when it is
assessed. Fields carry the names of the URL parameters. It loads nothing.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.dtypes import cache_type
from tinyllm.memory.engines import llamacpp, sglang, vllm
from tinyllm.memory.fields import MOST_TOKENS, shown
from tinyllm.memory.gpus import gpus
from tinyllm.memory.lengths import read_lengths
from tinyllm.memory.presets import presets
from tinyllm.memory.weights import MOST_PARAMETERS, WEIGHT_TYPES

OWN = "your own"  # the model is a config.json of the visitor's
FULL = "full"  # every request is as long as the context
SAME = "same"  # values are stored as keys are
PUBLISHED = "published"  # weights as the model was published
VLLM, LLAMACPP, SGLANG = "vLLM", "llama.cpp", "SGLang"
ENGINES = {VLLM: vllm.TYPES, LLAMACPP: llamacpp.TYPES, SGLANG: sglang.TYPES}
_KV_TYPES = tuple(dict.fromkeys(name for types in ENGINES.values() for name in types))

# Field -> its lowest and highest value; controls and validation share them.
RANGES: dict[str, tuple[float, float]] = {
    "context": (16, 2**24),
    "requests": (1, 100_000),
    "tp": (1, 1_024),
    "pp": (1, 1_024),
    "dp": (1, 1_024),
    "parameters": (0, MOST_PARAMETERS),
    "pool_gib": (0, 2**20),
    "utilisation": (0.05, 1.0),
    "batched": (0, 2**20),
    "shared_prefix": (0, MOST_TOKENS),
    "seed": (0, 9_999),
}
CHOICES: dict[str, tuple[Any, ...]] = {
    "engine": tuple(ENGINES),
    "kv_type": _KV_TYPES,
    "v_type": (SAME, *llamacpp.TYPES),
    "weights": (PUBLISHED, *WEIGHT_TYPES),
}
_MOST_NAMED = 20
SWITCHES = ("async_scheduling", "prefix_caching", "kv_unified")


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, its requests, and where they are served."""

    model: str = "Qwen/Qwen3-8B"
    context: int = 32_768  # tokens of the longest request
    requests: int = 16  # at once
    kv_type: str = "bfloat16"
    engine: str = VLLM
    gpu: str = "H100 SXM 80GB"
    tp: int = 1
    pp: int = 1
    dp: int = 1  # replicas, each with weights and a cache of its own
    v_type: str = SAME  # llama.cpp alone chooses it apart
    weights: str = PUBLISHED
    parameters: int = 0  # 0: the preset's
    pool_gib: float = 0.0  # the engine's "available KV cache memory"; 0: estimated
    utilisation: float = 0.92
    batched: int = 0  # vLLM's --max-num-batched-tokens; 0: its default on the GPU
    async_scheduling: bool = True
    prefix_caching: bool = True
    kv_unified: bool = False  # llama.cpp's slots share one cache
    prompts: str = FULL  # lengths of prompts and outputs, as lengths.read_lengths reads them
    outputs: str = FULL
    shared_prefix: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for field in RANGES:
            self._check_range(field)
        for field, accepted in CHOICES.items():
            self._check_member(field, accepted)
        self._check_member("model", (*presets(), OWN))
        self._check_member("gpu", tuple(gpus()))
        for field in SWITCHES:
            self._check_member(field, (True, False))
        for field in ("prompts", "outputs"):
            if getattr(self, field) != FULL:
                read_lengths(getattr(self, field), field)

    def _check_range(self, field: str) -> None:
        low, high = RANGES[field]
        value, whole = getattr(self, field), isinstance(_default(field), int)
        right = isinstance(value, int) if whole else isinstance(value, int | float)
        if isinstance(value, bool) or not right or not low <= value <= high:  # also refuses nan
            kind = "whole number" if whole else "number"
            raise MemoryPlanError(
                f"{field} must be a {kind} from {low:,} to {high:,}, not {shown(value)}"
            )

    def _check_member(self, field: str, accepted: tuple[Any, ...]) -> None:
        value = getattr(self, field)
        if value in accepted and isinstance(value, type(_default(field))):
            return
        names = [str(one) for one in accepted]
        if len(names) > _MOST_NAMED:  # those like it, or a few
            names = difflib.get_close_matches(str(value)[:99], names, 3, 0.4) or names[:3]
            names.append(f"{len(accepted) - len(names)} more")
        raise MemoryPlanError(f"{field} must be one of {', '.join(names)}, not {shown(value)}")

    @property
    def key_type(self) -> str:
        """The cache type by its full name."""
        return cache_type(self.kv_type).name

    @property
    def value_type(self) -> str:
        return self.key_type if self.v_type == SAME else cache_type(self.v_type).name

    def to_query(self) -> dict[str, str]:
        """The URL parameters that differ from the defaults."""
        return {
            field.name: _written(getattr(self, field.name))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


FIELDS = tuple(field.name for field in fields(Choice))


def _default(field: str) -> Any:
    return Choice.__dataclass_fields__[field].default


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(field: str, raw: str) -> Any:
    """A URL parameter's text as its field's type; MemoryPlanError names the field."""
    default = _default(field)
    if isinstance(default, bool):
        if raw.lower() not in ("true", "false"):
            raise MemoryPlanError(f"{field} must be true or false, not {shown(raw)}")
        return raw.lower() == "true"
    if isinstance(default, str):
        return raw
    low, high = RANGES[field]
    try:
        return type(default)(raw)
    except (ValueError, OverflowError):
        kind = "whole number" if isinstance(default, int) else "number"
        raise MemoryPlanError(
            f"{field} must be a {kind} from {low:,} to {high:,}, not {shown(raw)}"
        ) from None


def from_query(query: Mapping[str, str]) -> Choice:
    """The choice of an address; MemoryPlanError for a parameter that is wrong or unknown."""
    for name in query:
        if name not in FIELDS:
            raise MemoryPlanError(f"{shown(name)} is not a parameter: one of {', '.join(FIELDS)}")
    return Choice(**{name: _value(name, raw) for name, raw in query.items()})


def problem_of(field: str, raw: str) -> str | None:
    """What is wrong with a URL parameter's text, in a sentence; None when nothing is."""
    try:
        from_query({field: raw})
    except MemoryPlanError as error:
        return str(error)
    return None
