"""Models from the disk: shipped ones, Hugging Face folders and GGUF files; nothing is fetched."""

from tinyllm.loading.load import (
    Loaded,
    Progress,
    load_model,
    load_weights,
    loading,
    stored_config,
)
from tinyllm.loading.names import MODELS, available_models, find_model, shipped_models

__all__ = [
    "MODELS",
    "Loaded",
    "Progress",
    "available_models",
    "find_model",
    "load_model",
    "load_weights",
    "loading",
    "shipped_models",
    "stored_config",
]
