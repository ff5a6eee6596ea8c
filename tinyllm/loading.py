"""Models from disk: a folder with model.safetensors and config.json, or a shipped name.

Reads what tinyllm's trainer writes. No pickle, and nothing is downloaded.
"""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from tinyllm.config import ModelConfig
from tinyllm.errors import WeightsError
from tinyllm.layers import Array
from tinyllm.model import Transformer

MODELS = Path(__file__).parent.parent / "assets" / "models"


def shipped_models() -> list[str]:
    """Names of the trained models that come with the checkout."""
    return sorted(path.parent.name for path in MODELS.glob("*/model.safetensors"))


def load_model(name: str | Path, dtype: str = "float32") -> Transformer:
    """A shipped model by name, or any model by the path of its folder.

    dtype is what the engine computes in, "float32" or "float64". Raises WeightsError or
    ConfigError, naming the file and what is wrong with it.
    """
    folder = find_model(name)
    config = ModelConfig.load(folder / "config.json")
    return Transformer(config, load_weights(folder, config), dtype, folder.name)


def find_model(name: str | Path) -> Path:
    """The folder of a shipped model by name, or of any model by its path; else WeightsError."""
    folder = MODELS / name if str(name) in shipped_models() else Path(name)
    if not str(name) or not folder.is_dir():  # Path("") would be the current folder
        raise WeightsError(
            f"no model {str(name)!r}: choose {', '.join(shipped_models()) or 'a folder'}, "
            "or give the path of a folder with model.safetensors and config.json"
        )
    return folder


def load_weights(folder: Path, config: ModelConfig) -> dict[str, Array]:
    """The weights of a folder as stored, checked against the config's shapes."""
    path = folder / "model.safetensors"
    try:
        weights = load_file(path)
    except (OSError, SafetensorError, TypeError) as error:  # TypeError: bfloat16, fp8
        raise WeightsError(f"cannot read {path}: {error}") from error
    for name, shape in config.weight_shapes.items():
        if name not in weights:
            raise WeightsError(f"{path} lacks {name}, which config.json calls for")
        if weights[name].shape != shape:
            raise WeightsError(f"{path}: {name} is {weights[name].shape}, config.json says {shape}")
        if weights[name].dtype not in (np.float16, np.float32, np.float64):
            raise WeightsError(f"{path}: {name} is {weights[name].dtype}, and must be a float type")
        if not np.isfinite(weights[name]).all():
            raise WeightsError(f"{path}: {name} holds a value that is not a number")
    unknown = sorted(set(weights) - set(config.weight_shapes))
    if unknown:
        raise WeightsError(f"{path} holds {unknown[0]}, which config.json does not call for")
    return weights
