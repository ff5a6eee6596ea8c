"""Weights in safetensors files, one or several with an index, each read when it is asked for.

The format: eight bytes with the length of a JSON header, the header, the numbers. The library of
the same name reads no bfloat16 into numpy, and whole files only; a model should not pass through
memory twice. Source: huggingface.co/docs/safetensors, "Format".
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tinyllm.errors import WeightsError
from tinyllm.layers import Array

_DTYPES: dict[str, Any] = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
}
_LONGEST_HEADER = 100 * 2**20


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor lies."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    start: int  # in the file
    n_bytes: int


class SafetensorsWeights(Mapping[str, Array]):
    """The tensors of a folder by name; each look-up reads from the disk."""

    def __init__(self, folder: Path) -> None:
        """Reads the headers. WeightsError names the file that is missing or damaged."""
        self.path = folder / "model.safetensors"
        index = folder / "model.safetensors.index.json"
        if index.exists() and not self.path.exists():
            self.path = index
        self._places: dict[str, _Place] = {}
        for path in _files(index) if self.path == index else [self.path]:
            self._places |= _header(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape, which is known before it is read."""
        return self._places[name].shape

    def dtype(self, name: str) -> str:
        """The name of its type in the file."""
        return self._places[name].kind

    def __getitem__(self, name: str) -> Array:
        place = self._places[name]
        if place.kind not in _DTYPES:
            raise WeightsError(
                f"{place.path}: {name} is {place.kind}, and must be a float type: "
                f"{', '.join(_DTYPES)}"
            )
        dtype = np.dtype(_DTYPES[place.kind])
        array: Array = np.fromfile(
            place.path, dtype, place.n_bytes // dtype.itemsize, offset=place.start
        )
        if place.kind == "BF16":
            array = array.astype(np.float32)
        return array.reshape(place.shape)


def _files(index: Path) -> list[Path]:
    """The files that an index names, each once."""
    try:
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise WeightsError(f"cannot read {index}: {error!r}") from None
    if any(Path(name).name != name for name in names):
        raise WeightsError(f"{index} names files outside its folder")
    return [index.parent / name for name in names]


def _header(path: Path) -> dict[str, _Place]:
    """The places of a file's tensors, checked against the file's length."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(size, _LONGEST_HEADER):
                raise ValueError(f"its header would be {length:,} bytes long")
            entries = json.loads(file.read(length))
        places = {}
        for name, entry in entries.items():
            if name == "__metadata__":
                continue
            shape = tuple(int(extent) for extent in entry["shape"])
            first, last = (int(offset) for offset in entry["data_offsets"])
            start = 8 + length + first
            place = _Place(path, str(entry["dtype"]), shape, start, last - first)
            if not 0 <= first <= last or start + place.n_bytes > size:
                raise ValueError(f"{name} ends beyond the file: it is cut off")
            dtype = _DTYPES.get(place.kind)
            count = int(np.prod(shape, dtype=np.int64))
            if dtype is not None and place.n_bytes != count * np.dtype(dtype).itemsize:
                raise ValueError(f"{name} has {place.n_bytes:,} bytes, which do not fit its shape")
            places[name] = place
    except (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
        raise WeightsError(f"cannot read {path}: {error}") from None
    return places
