"""The header of a GGUF file: metadata, and where the tensors lie; no tensor is read.

A file's first megabytes are enough; long arrays (the vocabulary) are skipped. The `gguf` package
reads the same and more, and tests hold us to it; on a vocabulary of 150,000 it takes twenty times
as long, and it wants the whole file. Source: ggml, docs/gguf.md, versions 2 and 3.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from mmap import mmap

from tinyllm.errors import MemoryPlanError

MAGIC = b"GGUF"
MOST_ITEMS = 4_096  # arrays that are longer hold tokens, not layers
_ALL_ITEMS = 10_000_000
_MOST_TENSORS, _MOST_DIMENSIONS, _ALIGNMENT = 100_000, 4, 32
_MOST_KEYS = 100_000
_MOST_DEPTH = 4
# Type number -> struct format of one value.
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"}
_FORMATS |= {12: "d"}
_STRING, _ARRAY = 8, 9


class _Reader:
    """A cursor over bytes that names the offset when they end or make no sense."""

    def __init__(self, content: bytes | mmap, most_items: int = MOST_ITEMS) -> None:
        self.content, self.at, self.most_items = content, 0, most_items

    def take(self, count: int) -> bytes:
        if count > len(self.content) - self.at:
            raise MemoryPlanError(
                f"the GGUF header ends beyond the first {len(self.content):,} bytes: give more"
            )
        self.at += count
        return self.content[self.at - count : self.at]

    def number(self, kind: int) -> int | float | bool:
        if kind not in _FORMATS:
            raise MemoryPlanError(f"the GGUF header has a value of unknown type {kind}")
        form = f"<{_FORMATS[kind]}"
        value: int | float | bool = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def whole(self, kind: int) -> int:
        return int(self.number(kind))

    def text(self) -> str:
        return self.take(self.whole(10)).decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> object:
        """One value; None for an array too long to be about layers."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(kind)
        if depth > _MOST_DEPTH:
            raise MemoryPlanError("the GGUF header has arrays within arrays")
        inner, count = self.whole(4), self.whole(10)
        if count <= self.most_items:
            return [self.value(inner, depth + 1) for _ in range(count)]
        self.skip(inner, count, depth)
        return None

    def skip(self, inner: int, count: int, depth: int) -> None:
        """Pass over an array without keeping it."""
        if inner in _FORMATS:
            self.take(struct.calcsize(f"<{_FORMATS[inner]}") * count)
            return
        for _ in range(count):  # every string or array takes bytes, so take() ends a false count
            self.value(inner, depth + 1)


def read_header(content: bytes) -> dict[str, object]:
    """The metadata of a GGUF file from its first bytes, by key."""
    return _metadata(_Reader(content))[0]


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of a file."""

    name: str
    shape: tuple[int, ...]  # rows first, as numpy has it; the file tells the row's length first
    kind: int  # ggml's number of its type
    offset: int  # in bytes, from where the tensors begin


@dataclass(frozen=True, slots=True)
class Header:
    """All that stands before the tensors."""

    metadata: dict[str, object]  # long arrays too
    tensors: Mapping[str, TensorEntry]
    data_start: int  # where the tensors begin in the file


def read_file(content: bytes | mmap) -> Header:
    """The header of a whole GGUF file, which may be mapped into memory; MemoryPlanError for what
    is none."""
    reader = _Reader(content, _ALL_ITEMS)
    metadata, count = _metadata(reader)
    if count > _MOST_TENSORS:
        raise MemoryPlanError(f"a GGUF file has at most {_MOST_TENSORS:,} tensors, not {count:,}")
    tensors = {}
    for _ in range(count):
        name = reader.text()
        n_dimensions = reader.whole(4)
        if not 1 <= n_dimensions <= _MOST_DIMENSIONS:
            raise MemoryPlanError(f"the tensor {name} has {n_dimensions} dimensions")
        shape = tuple(reader.whole(10) for _ in range(n_dimensions))[::-1]
        tensors[name] = TensorEntry(name, shape, kind=reader.whole(4), offset=reader.whole(10))
        if not 0 < prod(shape) < 2**40:
            raise MemoryPlanError(f"the tensor {name} has the shape {shape}")
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise MemoryPlanError(f"general.alignment must be a whole number, not {alignment!r}")
    return Header(metadata, tensors, -(-reader.at // alignment) * alignment)


def _metadata(reader: _Reader) -> tuple[dict[str, object], int]:
    """The metadata at a file's head, and the number of its tensors."""
    if reader.content[:4] != MAGIC:
        raise MemoryPlanError("not a GGUF file: it does not begin with GGUF")
    reader.take(4)
    version = reader.whole(4)
    if version not in (2, 3):
        raise MemoryPlanError(f"GGUF version must be 2 or 3, not {version}")
    n_tensors = reader.whole(10)
    count = reader.whole(10)
    if count > _MOST_KEYS:
        raise MemoryPlanError(f"a GGUF header has at most {_MOST_KEYS:,} keys, not {count:,}")
    metadata = {}
    for _ in range(count):
        key = reader.text()
        metadata[key] = reader.value(reader.whole(4))
    return metadata, n_tensors
