"""Which layers attend to a sliding window or a chunk, and how long it is.

`layer_types` decides when it is given; else the rule of the model family; a window whose layers
nobody knows is refused. A window of null, 0 or -1 and `use_sliding_window: false` mean none.
Source: transformers 5.24, the configuration class of each family.
"""

from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.fields import MOST_LAYERS, MOST_TOKENS, Fields, whole_number
from tinyllm.memory.layers import Attention, AttentionKind

# model_type -> the layers of one period: S slides, F is full.
PATTERNS = {
    "mistral": "S",
    "mixtral": "S",
    "ministral": "S",
    "starcoder2": "S",
    "phi3": "S",
    "phi3_v": "S",
    "phimoe": "S",
    "phi4_multimodal": "S",
    "phi4mm": "S",
    "gemma2": "SF",
    "vaultgemma": "SF",
    "gpt_oss": "SF",
    "gemma3": "SSSSSF",
    "gemma3_text": "SSSSSF",
    "gemma3n_text": "SSSSF",
    "gemma3n": "SSSSF",
    "gemma4_text": "SSSSSF",
    "gemma4_unified_text": "SSSSSF",
    "cohere2": "SSSF",
    "cohere2_moe": "SSSF",
    "olmo3": "SSSF",
    "exaone4": "SSSF",
    "exaone_moe": "SSSF",
    "afmoe": "SSSF",
    "cwm": "FSSS",
}
# Those whose class slides when sliding_window is not written; the others then do not.
_SLIDE_BY_DEFAULT = set(PATTERNS) - {
    *("mixtral", "starcoder2", "phi3", "phi3_v", "phimoe", "phi4_multimodal", "phi4mm"),
}
# Below max_window_layers these are full, above it they slide (Qwen2Config, Dots1Config).
THRESHOLD = (
    {"dots1", "qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"}
    | {"qwen2_5_omni_text", "qwen2_audio", "qwen3", "qwen3_moe"}
)  # fmt: skip
_PERIOD_KEYS = (
    *("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"),
    "layer_switch",  # Command R7B and A, beside order_of_interleaved_layers
)
_TYPES = {
    "full_attention": "F",
    "attention": "F",
    "sliding_attention": "S",
    "sliding_window_attention": "S",
    "chunked_attention": "C",
}
_KINDS: dict[str, AttentionKind] = {"S": "window", "C": "chunk"}


@dataclass(frozen=True, slots=True)
class Spans:
    """One letter a layer (S slides, C is chunked, F is full), the length, and why."""

    letters: str
    limit: int | None
    rule: str

    def layer(self, index: int, full: Attention) -> Attention:
        """What the layer keeps, given what it would keep of all tokens."""
        letter = self.letters[index]
        if letter == "F":
            return full
        return replace(full, kind=_KINDS[letter], limit=self.limit)


def read_spans(fields: Fields, family: str, count: int) -> Spans:
    """The span of each of `count` layers."""
    if family in ("llama4_text", "llama4"):
        return _read_chunks(fields, count)
    if family not in PATTERNS:
        fields.ignore("use_bidirectional_attention")  # of the prompt alone, in PaliGemma
    elif fields.get("use_bidirectional_attention") not in (None, False, "vision"):
        raise MemoryPlanError(
            f"{fields.name('use_bidirectional_attention')} makes the model an encoder without a "
            "cache; only null, false and 'vision' are known"
        )
    if family in _SLIDE_BY_DEFAULT and fields.absent("sliding_window", "sliding_window_size"):
        raise MemoryPlanError(
            f"{fields.name('sliding_window')} is missing: a whole number, or null for none"
        )
    if family == "phi4mm":  # every layer, as its window is longer than its context
        fields.whole("full_attn_mod", high=1, default=1)
    # The classes of Qwen and SmolLM3 slide only when told to; the others have no such key.
    by_default = not family.startswith(("qwen", "smollm"))
    window = _read_window(fields, by_default)
    if fields.text("order_of_interleaved_layers", "local_attn_first") != "local_attn_first":
        raise MemoryPlanError(
            f"{fields.name('order_of_interleaved_layers')} must be 'local_attn_first'"
        )
    fields.ignore(*_PERIOD_KEYS, "max_window_layers", "no_rope_layers", "no_rope_layer_interval")
    if fields.has("layer_types"):
        fields.ignore("prefix_dense_sliding_window_pattern")
        letters = _letters(fields, count)
        if window is None and not fields.flag("use_sliding_window", by_default):
            return Spans("F" * count, None, "every token (use_sliding_window is false)")
        if window is None and "S" in letters:
            raise MemoryPlanError(
                f"{fields.name('sliding_window')} is missing, and layer_types has sliding layers: "
                f"a whole number from 1 to {MOST_TOKENS:,}"
            )
        return Spans(letters, window, "layer_types")
    if window is None:
        return Spans("F" * count, None, "every token")
    letters, rule = _family_letters(fields, family, count)
    return Spans(letters, window, rule)


def _read_window(fields: Fields, by_default: bool) -> int | None:
    """The window, None when there is none; `by_default` stands in for use_sliding_window."""
    uses = fields.flag("use_sliding_window", by_default)
    for key in ("sliding_window", "sliding_window_size"):
        if fields.has(key) and fields.get(key) not in (0, -1):
            window = fields.whole(key, high=MOST_TOKENS)
            fields.ignore("sliding_window", "sliding_window_size")
            return window if uses else None
    return None


def _letters(fields: Fields, count: int) -> str:
    """layer_types as letters; MemoryPlanError names a type that is not attention."""
    names = fields.names("layer_types", count)
    for index, name in enumerate(names):
        if name not in _TYPES or _TYPES[name] == "C":
            raise MemoryPlanError(
                f"{fields.name('layer_types')}[{index}] is {name!r}, which is not known for this "
                "model type: describe the layers in a layer_plan"
            )
    return "".join(_TYPES[name] for name in names)


def _family_letters(fields: Fields, family: str, count: int) -> tuple[str, str]:
    """Which layers slide by the family's rule."""
    if family in THRESHOLD:
        first = fields.whole("max_window_layers", low=0, high=MOST_LAYERS)
        full = min(first, count)
        return "F" * full + "S" * (count - full), f"layers from max_window_layers {first} on slide"
    if family not in PATTERNS:
        raise MemoryPlanError(
            f"{fields.name('sliding_window')} is {fields.get('sliding_window')}, and which layers "
            f"of model_type {family!r} slide is not known: give layer_types, or a layer_plan"
        )
    cycle, origin = PATTERNS[family], f"the pattern of {family}"
    for key in _PERIOD_KEYS:
        if fields.has(key):
            cycle, origin = _cycle(fields, key), key
            break
    letters = (cycle * (count // len(cycle) + 1))[:count]
    if family == "gemma4_text" and letters:
        letters = letters[:-1] + "F"  # Gemma4TextConfig makes the last layer full
    return letters, f"{cycle} repeated ({origin})"


def _cycle(fields: Fields, key: str) -> str:
    """A period written as its length, or as EXAONE's L (local) and G (global)."""
    value = fields.get(key)
    if isinstance(value, str) and 0 < len(value) <= MOST_LAYERS and set(value) <= set("LG"):
        return value.replace("L", "S").replace("G", "F")
    if isinstance(value, str):
        raise MemoryPlanError(f"{fields.name(key)} must be of the letters L and G, not {value!r}")
    return "S" * (whole_number(fields.name(key), value, 1, MOST_LAYERS) - 1) + "F"


def _read_chunks(fields: Fields, count: int) -> Spans:
    """Llama 4: layers with rotary positions attend within chunks, the others to everything."""
    if fields.absent("attention_chunk_size"):
        raise MemoryPlanError(
            f"{fields.name('attention_chunk_size')} is missing: a whole number, or null for none"
        )
    if not fields.has("attention_chunk_size"):
        return Spans("F" * count, None, "every token (attention_chunk_size is null)")
    chunk = fields.whole("attention_chunk_size", high=MOST_TOKENS)
    fields.ignore("no_rope_layers", "no_rope_layer_interval")
    if fields.has("layer_types"):
        names = fields.names("layer_types", count)
        if set(names) <= {"chunked_attention", "full_attention"}:
            return Spans("".join(_TYPES[name] for name in names), chunk, "layer_types")
        raise MemoryPlanError(
            f"{fields.name('layer_types')} must be of chunked_attention and full_attention"
        )
    if fields.has("no_rope_layers") and fields.items("no_rope_layers"):
        turns = fields.wholes("no_rope_layers", count, 0, 1)
        return Spans("".join("FC"[turn] for turn in turns), chunk, "no_rope_layers")
    period = fields.whole("no_rope_layer_interval", high=MOST_LAYERS, default=4)
    letters = "".join("C" if (index + 1) % period else "F" for index in range(count))
    return Spans(letters, chunk, f"all but every {period}th layer is chunked")
