"""What a timing was measured on: processor, Python, numpy, and BLAS with its threads."""

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, as it is shown beside its timings."""

    processor: str
    cores: int
    python: str
    numpy: str
    blas: str  # "" when numpy's BLAS cannot be asked
    blas_threads: int

    def __str__(self) -> str:
        threads = f"{self.blas_threads} BLAS thread" + "s" * (self.blas_threads != 1)
        return (
            f"{self.processor}, {self.cores} cores, Python {self.python}, "
            f"numpy {self.numpy} ({self.blas}, {threads})"
        )


def this_machine() -> Machine:
    """Read from the system and from the libraries that are loaded."""
    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    names = (
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture') or ''}".strip()
        for pool in pools
    )
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        numpy=np.__version__,
        blas=", ".join(names),
        blas_threads=max((pool["num_threads"] for pool in pools), default=1),
    )


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that a process may still take: what Linux has free, inside its control group's limit.

    None where the system does not tell. `root` is where /proc and /sys are.
    """
    found = []
    with suppress(OSError, ValueError, LookupError):
        found.append(1024 * _entry(root / "proc/meminfo", "MemAvailable:"))
    with suppress(OSError, ValueError, LookupError):  # "max" is no number, and no limit
        group = root / "sys/fs/cgroup"
        limit = int((group / "memory.max").read_text("utf-8"))
        used = int((group / "memory.current").read_text("utf-8"))
        # Files that were read count as used, and are dropped when a process needs the room.
        found.append(limit - used + _entry(group / "memory.stat", "inactive_file"))
    return min(found, default=None)


def _entry(path: Path, name: str) -> int:
    """The number behind a name in a file of names and numbers; LookupError without it."""
    rows = (line.split() for line in path.read_text("utf-8").splitlines())
    return int({row[0]: row[1] for row in rows if len(row) > 1}[name])


def _processor() -> str:
    """The processor's own name where Linux tells it, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or platform.machine()
