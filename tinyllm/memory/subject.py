"""The model that is sized: its plan, and the facts that stand beside it.

It comes from a preset, from a config.json's text, or from the header of a GGUF file, whose keys
stand for it in a text of the same kind.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tinyllm.memory.cache_plan import CachePlan, plan
from tinyllm.memory.fields import MOST_TOKENS
from tinyllm.memory.files import parse_config
from tinyllm.memory.gguf_header import read_header
from tinyllm.memory.gguf_plan import ARCHITECTURE, plan_metadata
from tinyllm.memory.presets import preset

_LENGTHS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")


@dataclass(frozen=True, slots=True)
class Subject:
    """A model with what is known of it."""

    name: str
    plan: CachePlan
    parameters: int | None = None
    dtype: str | None = None  # of the published weights
    longest: int | None = None  # tokens the model was made for
    source: str = ""
    verified: bool = True


@lru_cache(maxsize=128)
def of_preset(name: str) -> Subject:
    """A public model of our list."""
    item = preset(name)
    return Subject(
        item.name,
        plan(item.config),
        item.parameters,
        item.dtype,
        _longest(item.config),
        item.source,
        item.verified,
    )


@lru_cache(maxsize=32)
def of_text(text: str) -> Subject:
    """A config.json, or the keys of a GGUF header as header_text writes them."""
    config = parse_config(text)
    if ARCHITECTURE in config:
        name = config.get("general.basename")
        model = plan_metadata(config)
        longest = config.get(f"{config[ARCHITECTURE]}.context_length")
    else:
        name = config.get("_name_or_path")
        model = plan(config)
        longest = _longest(config)
    label = name if isinstance(name, str) and 0 < len(name) <= 96 else model.model_type
    return Subject(label or "your model", model, longest=_tokens(longest), source="your own file")


def header_text(content: bytes) -> str:
    """The keys of a GGUF header that a plan needs, as the text of a JSON object."""
    metadata = read_header(content)
    family = f"{metadata.get(ARCHITECTURE)}."
    kept = {
        key: value
        for key, value in metadata.items()
        if key.startswith(family) or key in (ARCHITECTURE, "general.basename")
    }
    return json.dumps(kept, indent=1)


def _longest(config: Mapping[str, Any]) -> int | None:
    """Tokens the model was made for, when the config says so."""
    inner = [config.get(key) for key in ("text_config", "llm_config", "language_config")]
    for place in (config, *(one for one in inner if isinstance(one, Mapping))):
        for key in _LENGTHS:
            if _tokens(place.get(key)) is not None:
                return _tokens(place.get(key))
    return None


def _tokens(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value <= MOST_TOKENS else None  # type: ignore[return-value,operator]
