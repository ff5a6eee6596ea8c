"""From a name to a model: the config, the tokenizer and the weights, folded as they are read.

float32 in memory, made once and read-only, so that all sessions share it. What it will take is
worked out from the config before anything is taken.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from tinyllm import calibration
from tinyllm.config import ModelConfig
from tinyllm.errors import ConfigError, MissingPackageError, WeightsError
from tinyllm.folding import FoldedWeights, folded_bytes, folding
from tinyllm.layers import Array
from tinyllm.loading.names import find_model
from tinyllm.loading.safetensors import SafetensorsWeights
from tinyllm.machine import available_memory
from tinyllm.model import Transformer, compute_dtype
from tinyllm.quantities import format_bytes
from tinyllm.tokenizer import CharTokenizer, Tokenizer

# What some files hold besides weights: masks, tables, a second name for the embedding.
_NO_WEIGHTS = (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq", "lm_head.weight")


class WeightsFile(Protocol):
    """Tensors on the disk, by Hugging Face's names."""

    path: Path

    def __iter__(self) -> Iterator[str]: ...

    def __getitem__(self, name: str) -> Array: ...

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape, without reading it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far loading has come."""

    layers: int  # read and folded
    of: int
    nbytes: int  # that the whole model takes in memory


@dataclass(frozen=True, slots=True)
class Loaded:
    """The last event of loading."""

    model: Transformer


def load_model(name: str | Path, dtype: str = "float32") -> Transformer:
    """A model by name (available_models), or by the path of its folder or GGUF file.

    dtype is what the engine computes in, "float32" or "float64". Raises WeightsError,
    ConfigError, TokenizerError or MissingPackageError, naming the file and what is wrong with it.
    """
    model = None
    for event in loading(name, dtype):
        if isinstance(event, Loaded):
            model = event.model
    assert model is not None
    return model


def loading(name: str | Path, dtype: str = "float32") -> Iterator[Progress | Loaded]:
    """load_model() layer by layer, for a progress bar; the last event holds the model."""
    path = find_model(name)
    file: WeightsFile
    if path.suffix == ".gguf" and path.is_file():
        file, config, tokenizer = _gguf(path)
    else:
        config = ModelConfig.load(path / "config.json")
        tokenizer = _tokenizer(path, config)
        file = SafetensorsWeights(path)
    kind = compute_dtype(dtype)
    chunk_columns = calibration.chunk_columns(config.n_parameters * kind.itemsize)
    shown = path.name if path.is_dir() and str(name) == str(path) else Path(name).name
    needed = folded_bytes(config, kind, chunk_columns)
    _refuse_what_does_not_fit(shown, needed)
    weights = CheckedWeights(file, config)
    yield Progress(0, config.n_layer, needed)
    folded: FoldedWeights | None = None
    for layer, part in enumerate(folding(weights, config, kind, chunk_columns), 1):
        if isinstance(part, FoldedWeights):
            folded = part
        else:
            yield Progress(layer, config.n_layer, needed)
    assert folded is not None
    yield Loaded(Transformer(config, folded, dtype, shown, tokenizer=tokenizer))


def stored_config(name: str | Path) -> ModelConfig:
    """The config of a model on the disk, by name or path; its weights are not read.

    Raises WeightsError, ConfigError or MissingPackageError, as load_model() does.
    """
    path = find_model(name)
    if path.is_dir():
        return ModelConfig.load(path / "config.json")
    require("gguf")
    from tinyllm.loading.gguf_file import GgufWeights

    return GgufWeights(path).config


def load_weights(folder: Path, config: ModelConfig) -> dict[str, Array]:
    """The weights of a folder as stored, checked against the config's shapes."""
    weights = CheckedWeights(SafetensorsWeights(folder), config)
    return {name: weights[name] for name in weights}


class CheckedWeights(Mapping[str, Array]):
    """The weights that a config calls for, each read and checked when it is asked for.

    WeightsError names the first that is missing, has another shape, is too many, or holds what
    is no number.
    """

    def __init__(self, file: WeightsFile, config: ModelConfig) -> None:
        self._file = file
        self._names: dict[str, str] = {}  # ours -> the file's
        found = {name.removeprefix("transformer."): name for name in file}
        for name, shape in config.weight_shapes.items():
            if name not in found:
                raise WeightsError(f"{file.path} lacks {name}, which config.json calls for")
            if file.shape(found[name]) != shape:
                raise WeightsError(
                    f"{file.path}: {name} is {file.shape(found[name])}, config.json says {shape}"
                )
            self._names[name] = found[name]
        unknown = sorted(name for name in set(found) - set(self._names) if _is_weight(name))
        if unknown:
            raise WeightsError(
                f"{file.path} holds {unknown[0]}, which config.json does not call for"
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> Array:
        try:
            weight = self._file[self._names[name]]
        except OSError as error:
            raise WeightsError(f"cannot read {self._file.path}: {error}") from None
        if not np.isfinite(weight).all():
            raise WeightsError(f"{self._file.path}: {name} holds a value that is not a number")
        return weight


def _is_weight(name: str) -> bool:
    return not name.endswith(_NO_WEIGHTS)


def _tokenizer(folder: Path, config: ModelConfig) -> Tokenizer:
    """That of a tokenizer.json; without one, characters, when the vocabulary is theirs."""
    if (folder / "tokenizer.json").exists():
        require("tokenizers", "jinja2")
        from tinyllm.tokenizer.files import from_json

        return from_json(folder, config.vocab_size)
    if config.vocab_size != CharTokenizer.vocab_size:
        raise ConfigError(
            f"{folder} has no tokenizer.json, so vocab_size must be {CharTokenizer.vocab_size}, "
            f"the symbols of tinyllm's own tokenizer, not {config.vocab_size}"
        )
    return CharTokenizer()


def _gguf(path: Path) -> tuple[WeightsFile, ModelConfig, Tokenizer]:
    require("gguf", "tokenizers", "jinja2")
    from tinyllm.loading.gguf_file import GgufWeights
    from tinyllm.tokenizer.files import from_gguf

    file = GgufWeights(path)
    return file, file.config, from_gguf(file.metadata, file.config.vocab_size)


def require(*packages: str) -> None:
    """MissingPackageError for those that are not installed."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingPackageError(
            f"language models need {' and '.join(missing)}: run make llm, or "
            "pip install -r requirements-llm.txt"
        )


def _refuse_what_does_not_fit(name: str, needed: int) -> None:
    free = available_memory()
    if free is not None and needed > free:
        raise WeightsError(
            f"{name} takes {format_bytes(needed)} of memory and {format_bytes(free)} are free: "
            "choose a smaller model, or end what else is running"
        )
