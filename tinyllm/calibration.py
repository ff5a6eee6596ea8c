"""The column chunks that suit this machine's caches, measured once and remembered.

A few rows meet a weight larger than the L2 cache in contiguous column chunks (layers.Weight). How
wide these are best depends on the processor and its BLAS, so a short measurement chooses among a
few widths; the answer lies in a small file of the user's cache folder, one line a machine. Reads a
clock, and is asked only when a large model is loaded.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from statistics import median
from time import thread_time

import numpy as np
from threadpoolctl import threadpool_limits

from tinyllm.arena import Arena
from tinyllm.layers import L2_BYTES, Weight
from tinyllm.machine import this_machine

CANDIDATES = (0, 16, 32, 64, 128)  # columns; 0: no chunks
ROWS = 5  # of a verification with k = 4
TURNS = 9
_WORTH = 0.95  # of the time without chunks
_SHAPE, _COUNT = (256, 1024), 16  # one MiB each: all together never stay in a core's cache


def chunk_columns(model_bytes: int) -> int:
    """What suits a model of that size here: no chunks while its weights stay in the L2 cache."""
    return calibrated() if model_bytes > L2_BYTES else 0


@lru_cache(maxsize=1)
def calibrated() -> int:
    """The best of CANDIDATES on this machine, from the file or measured now and written there."""
    path, machine = remembered_at(), str(this_machine())
    known = _read(path)
    if known.get(machine) in CANDIDATES:
        return known[machine]
    best = worth_it(measure())
    with suppress(OSError):  # where nothing can be written, each process measures for itself
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(known | {machine: best}, indent=2) + "\n", "utf-8")
        beside.replace(path)
    return best


def worth_it(seconds: Mapping[int, float]) -> int:
    """The fastest width, or 0 where chunks, a second copy of the weights, save next to nothing."""
    best = min(seconds, key=seconds.__getitem__)
    return best if seconds[best] < _WORTH * seconds[0] else 0


def measure(turns: int = TURNS) -> dict[int, float]:
    """Median seconds of ROWS rows through all weights, for each candidate, taken in turn."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((ROWS, _SHAPE[0]), np.float32)
    arena = Arena()
    matrices = [arena.empty(_SHAPE, x.dtype) for _ in range(_COUNT)]
    for matrix in matrices:
        generator.standard_normal(out=matrix, dtype=np.float32)
    weights = {width: [Weight.of(one, width, arena) for one in matrices] for width in CANDIDATES}
    times: dict[int, list[float]] = {width: [] for width in CANDIDATES}
    with threadpool_limits(1, "blas"):
        for _turn in range(turns):
            for width, those in weights.items():
                start = thread_time()
                for weight in those:
                    weight.rows(x)
                times[width].append(thread_time() - start)
    return {width: median(taken) for width, taken in times.items()}


def remembered_at() -> Path:
    """The file, in the folder for caches that the system names or ~/.cache."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "tinyllm" / "chunks.json"


def _read(path: Path) -> dict[str, int]:
    """What is remembered; nothing when the file is missing or is not ours."""
    try:
        known = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
