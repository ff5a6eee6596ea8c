"""Finds the language model inside a config.json: at the top, or nested in a multimodal wrapper.

The wrapper's other keys are about images and sound; those that repeat the language model's shape
are passed over, since engines read the nested object.
"""

from collections.abc import Mapping

from tinyllm.memory.defaults import class_defaults
from tinyllm.memory.fields import Fields
from tinyllm.memory.shape import DIM_KEYS, HEAD_KEYS, KV_HEAD_KEYS, LAYER_KEYS, WIDTH_KEYS

_NESTS = ("text_config", "language_config", "llm_config", "thinker_config")
_REPEATED = (
    *(*LAYER_KEYS, *HEAD_KEYS, *KV_HEAD_KEYS, *DIM_KEYS, *WIDTH_KEYS),
    *("sliding_window", "use_sliding_window", "max_window_layers", "layer_types"),
)


def language_model(config: Mapping[str, object]) -> tuple[Fields, Fields, str]:
    """(top level, language model, its model_type); the first two are one when nothing nests."""
    root = Fields(config)
    text, family = root, root.text("model_type")
    for _ in range(2):  # Qwen-Omni nests twice: thinker_config.text_config
        inner = _nested(text)
        if inner is None:
            break
        text, family = inner, inner.text("model_type", default=family)
    if text is root:
        return root, root, family
    root.ignore(*_REPEATED)
    text.defaults = class_defaults(family)
    return root, text, family


def _nested(fields: Fields) -> Fields | None:
    """The object under the first nesting key that holds anything."""
    for key in _NESTS:
        section = fields.section(key)
        if section is not None and section.values:
            return section
    return None
