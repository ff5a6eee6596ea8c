"""A model from the disk, for the command line: a config.json, a folder with it, or a GGUF file.

Only headers of weights are read. Pages never call this: they open no path that a visitor names.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan, plan
from tinyllm.memory.gguf_header import MAGIC
from tinyllm.memory.gguf_plan import plan_gguf

MOST_CONFIG_BYTES = 4 * 2**20
_MOST_HEADER_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True)
class Described:
    """What a model keeps, and the bytes of its weights when they are on the disk.

    Those of safetensors are exact; a GGUF file counts whole, with some megabytes of vocabulary.
    """

    model: CachePlan
    weight_bytes: int | None = None


def parse_config(text: str | bytes) -> dict[str, Any]:
    """A config.json's object; MemoryPlanError when it is none or too large."""
    if len(text) > MOST_CONFIG_BYTES:
        raise MemoryPlanError(f"a config.json has at most {MOST_CONFIG_BYTES:,} bytes")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MemoryPlanError(f"not a JSON file: {error}") from error
    if not isinstance(config, dict):
        raise MemoryPlanError("a config.json must be an object")
    return config


def read_text(path: Path, most: int) -> str:
    """A text file of at most so many bytes, in UTF-8 as far as it is."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise MemoryPlanError(f"{path}: {error.strerror or error}") from error
    if len(content) > most:
        raise MemoryPlanError(f"{path}: at most {most:,} bytes are read")
    return content.decode("utf-8", "replace")


def read_model(path: Path) -> Described:
    """A config.json, a folder that has one and perhaps safetensors, or a GGUF file."""
    file = path / "config.json" if path.is_dir() else path
    try:
        with file.open("rb") as opened:
            if opened.read(len(MAGIC)) == MAGIC:
                opened.seek(0)
                return Described(plan_gguf(opened.read(_MOST_HEADER_BYTES)), file.stat().st_size)
        if file.stat().st_size > MOST_CONFIG_BYTES:
            raise MemoryPlanError(f"{file}: a config.json has at most {MOST_CONFIG_BYTES:,} bytes")
        config = parse_config(file.read_bytes())
        shards = sorted(path.glob("*.safetensors")) if path.is_dir() else []
        sizes = [_tensor_bytes(shard) for shard in shards]
    except OSError as error:
        raise MemoryPlanError(f"{file}: {error.strerror or error}") from error
    return Described(plan(config), sum(sizes) if sizes else None)


def _tensor_bytes(path: Path) -> int:
    """Bytes of a safetensors file's tensors, by its header: 8 bytes of length, then JSON."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= _MOST_HEADER_BYTES:
            raise MemoryPlanError(f"{path}: not a safetensors file")
        header = file.read(length)
    try:
        tensors = json.loads(header)
        offsets = [row["data_offsets"] for name, row in tensors.items() if name != "__metadata__"]
        return sum(int(end) - int(start) for start, end in offsets)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MemoryPlanError(f"{path}: damaged safetensors header") from error
