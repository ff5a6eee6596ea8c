"""Public models with the facts that size their caches: the shape, its source, the parameter count.

Each preset holds the keys of the model's config.json that matter here, not a copy of the file. Rows
whose file could not be read say `verified: false`, and pages must show it.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import shown

ASSETS = Path(__file__).parents[2] / "assets" / "memory"


@dataclass(frozen=True, slots=True)
class Preset:
    """One public model."""

    name: str
    config: Mapping[str, Any]
    source: str
    verified: bool
    parameters: int | None
    parameters_source: str | None
    dtype: str | None  # of the published weights


@cache
def presets() -> dict[str, Preset]:
    """All presets by name, in the order of the file."""
    rows = json.loads((ASSETS / "presets.json").read_text(encoding="utf-8"))
    return {row["name"]: Preset(**row) for row in rows}


def preset(name: str) -> Preset:
    """The preset of that name, or of the only one that ends in it, in any case."""
    known = presets()
    if name in known:
        return known[name]
    ends = [full for full in known if full.partition("/")[2].lower() == name.lower()]
    if len(ends) == 1:
        return known[ends[0]]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
    hint = f"; close to it: {', '.join(close)}" if close else ""
    raise MemoryPlanError(f"no preset {shown(name)}{hint}")
