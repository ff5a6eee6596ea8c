"""GPUs by the memory that their driver exposes, which is less than the figure on the box.

Rows that come from data sheets alone say `verified: false`, and whoever shows them must say so.
"""

import difflib
import json
from dataclasses import dataclass
from functools import cache

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import shown
from tinyllm.memory.presets import ASSETS

GIBIBYTE = 2**30


@dataclass(frozen=True, slots=True)
class Gpu:
    """One model of GPU."""

    name: str
    vendor: str
    label: str  # the memory on the box
    memory_bytes: int
    source: str
    verified: bool
    bytes_per_second: float | None = None  # of its memory; None where no source was read
    operations_per_second: float | None = None  # dense, in bfloat16
    speed_source: str = ""

    @property
    def batched_tokens(self) -> int:
        """vLLM 0.32's default --max-num-batched-tokens when serving on it."""
        if self.memory_bytes >= 160 * GIBIBYTE:
            return 16_384
        large = self.memory_bytes >= 70 * GIBIBYTE and "A100" not in self.name
        return 8_192 if large else 2_048

    @property
    def max_sequences(self) -> int:
        """vLLM 0.32's default --max-num-seqs when serving on it."""
        return 256 if self.batched_tokens == 2_048 else 1_024


@cache
def gpus() -> dict[str, Gpu]:
    """All GPUs by name, in the order of the file."""
    rows = json.loads((ASSETS / "gpus.json").read_text(encoding="utf-8"))
    return {row["name"]: Gpu(**row) for row in rows}


def gpu(name: str) -> Gpu:
    """The GPU of that name, or the only one whose name begins so, in any case."""
    known = gpus()
    if name in known:
        return known[name]
    begins = [full for full in known if full.lower().startswith(name.lower())] if name else []
    if len(begins) == 1:
        return known[begins[0]]
    close = begins or difflib.get_close_matches(name, known, n=4, cutoff=0.3)
    raise MemoryPlanError(f"no GPU {shown(name)}: choose {', '.join(close or known)}")
