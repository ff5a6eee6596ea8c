"""config.json -> CachePlan: what every layer keeps, in exact bytes, and why we say so.

`plan` finds the language model in the file, has its family's reader lay out the layers, and refuses
by name any key that nobody read and that might change the cache. A `layer_plan` in the config says
the layers by hand. Engines build on the plan; it knows none of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import latent
from tinyllm.memory.attention import plain_layers
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.families import ENCODERS, READERS, UNSOLVED
from tinyllm.memory.fields import MOST_TOKENS, Fields, shown, whole_number
from tinyllm.memory.layers import Attention, Layer, Placed
from tinyllm.memory.manual import manual_layers
from tinyllm.memory.shape import LAYER_KEYS
from tinyllm.memory.vocabulary import suspicious_keys
from tinyllm.memory.wrapper import language_model

MOST_SEQUENCES = 1_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """Layers that keep the same thing for the same reason."""

    layer: Layer
    rule: str
    layers: tuple[int, ...]  # their numbers, from 0

    @property
    def kind(self) -> str:
        return self.layer.kind

    @property
    def count(self) -> int:
        return len(self.layers)


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one sequence as constant + slope x tokens, for start <= tokens <= end."""

    start: int
    end: int | None
    constant: Fraction
    slope: Fraction


@dataclass(frozen=True, slots=True)
class CachePlan:
    """What one sequence of a model keeps."""

    model_type: str
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    layer_count: int = 0  # of the model, with the layers that keep nothing

    def with_encoder_tokens(self, tokens: int) -> "CachePlan":
        """The same for an encoder's output of another length, which cross attention keeps."""
        whole_number("tokens", tokens, 1, MOST_TOKENS)
        entries = tuple(
            replace(entry, layer=replace(entry.layer, limit=tokens))
            if isinstance(entry.layer, Attention) and entry.kind == "cross"
            else entry
            for entry in self.entries
        )
        return replace(self, entries=entries)

    def bytes(
        self,
        tokens: int,
        sequences: int = 1,
        dtype: str = "bfloat16",
        key_dtype: str | None = None,
        value_dtype: str | None = None,
    ) -> int:
        """Logical bytes of `sequences` sequences of `tokens` tokens each."""
        tokens = whole_number("tokens", tokens, 0, MOST_TOKENS)
        sequences = whole_number("sequences", sequences, 0, MOST_SEQUENCES)
        types = CacheTypes.named(dtype, key_dtype, value_dtype)
        return sequences * sum(
            entry.count * entry.layer.bytes(tokens, types) for entry in self.entries
        )

    def entry_bytes(self, tokens: int, types: CacheTypes) -> tuple[int, ...]:
        """Bytes of one sequence, entry by entry."""
        return tuple(entry.count * entry.layer.bytes(tokens, types) for entry in self.entries)

    def bytes_per_token(self, tokens: int, types: CacheTypes) -> Fraction:
        """Bytes that the next token adds to a sequence of `tokens` tokens."""
        return sum(
            (entry.count * entry.layer.slope(tokens, types) for entry in self.entries), Fraction(0)
        )

    def pieces(self, types: CacheTypes) -> tuple[Piece, ...]:
        """The whole curve, a straight piece between bends (windows and chunks).

        Compressed layers grow in steps of their ratio; their piece is exact at its multiples.
        """
        bends = sorted({bend for entry in self.entries for bend in entry.layer.bends})
        pieces, start, value = [], 0, Fraction(sum(self.entry_bytes(0, types)))
        for end in [*bends, None]:
            slope = self.bytes_per_token(start, types)
            pieces.append(Piece(start, end, value - slope * start, slope))
            if end is not None:
                start, value = end, value + slope * (end - start)
        return tuple(pieces)


def plan(config: Mapping[str, object]) -> CachePlan:
    """The cache of the model that a config.json describes.

    Raises MemoryPlanError, naming the key, for what is missing, malformed or unknown.
    """
    if not isinstance(config, Mapping):
        raise MemoryPlanError(f"a config.json must be an object, not {shown(config)}")
    if config.get("layer_plan") is not None:
        by_hand = collate(manual_layers(Fields(config)))
        notes = ["layers given by hand in layer_plan"]
        return CachePlan("layer_plan", by_hand, tuple(notes), _last(by_hand))
    root, text, family = language_model(config)
    placed, notes = _read(text, family)
    _refuse_unread(text)
    if root is not text:
        _refuse_unread(root, wrapper=True)
    notes += [
        f"{text.name(key)} is not in the file: {value:,}, the default of {family} in transformers"
        for key, value in text.defaulted.items()
    ]
    entries = collate(placed)
    stated = [value for key in LAYER_KEYS if isinstance(value := text.get(key), int)]
    return CachePlan(family, entries, tuple(notes), max([_last(entries), *stated]))


def _last(entries: Iterable[Entry]) -> int:
    """The number of layers up to the last that keeps something."""
    return 1 + max((index for entry in entries for index in entry.layers), default=-1)


def _read(text: Fields, family: str) -> tuple[list[Placed], list[str]]:
    """Layers by the family's reader; by the keys alone when the family is unknown."""
    if family in ENCODERS:
        raise MemoryPlanError(f"model_type {family!r} is an encoder: it keeps no KV cache")
    if family in UNSOLVED:
        raise MemoryPlanError(
            f"model_type {family!r} has {UNSOLVED[family]}: describe it in a layer_plan"
        )
    reader = READERS.get(family)
    if reader is not None:
        return list(reader(text, family)), []
    _refuse_other_kinds(text, family)
    said = f"model_type {family!r} is unknown" if family else "model_type is missing"
    if latent.has_latent(text):
        return list(latent.latent_layers(text)), [f"{said}: read as latent attention by its keys"]
    return list(plain_layers(text, family)), [f"{said}: read as plain attention by its keys"]


def _refuse_other_kinds(text: Fields, family: str) -> None:
    """An unknown model that says it is no decoder alone is not read as one."""
    if text.flag("is_encoder_decoder"):
        raise MemoryPlanError(
            f"{text.name('is_encoder_decoder')} is true, and model_type {family!r} is not known: "
            "describe its self and cross attention in a layer_plan"
        )
    classes = text.get("architectures")
    names = classes if isinstance(classes, list) else []
    if any(isinstance(name, str) and name.endswith("ForMaskedLM") for name in names):
        raise MemoryPlanError(
            f"{text.name('architectures')} names a masked language model: an encoder keeps no KV "
            "cache"
        )


def _refuse_unread(fields: Fields, wrapper: bool = False) -> None:
    """Never guess: an unread key that speaks of the cache is refused by name."""
    keys = suspicious_keys(fields, wrapper)
    if keys:
        names = ", ".join(fields.name(key) for key in keys[:5])
        raise MemoryPlanError(
            f"{names}: not known for this model type, and might change the cache; "
            "remove what does not, or describe the layers in a layer_plan"
        )


def collate(placed: Iterable[Placed]) -> tuple[Entry, ...]:
    """Layers that keep the same for the same reason, together, in order of appearance."""
    groups: dict[tuple[Layer, str], list[int]] = {}
    for item in placed:
        groups.setdefault((item.layer, item.rule), []).append(item.index)
    return tuple(Entry(layer, rule, tuple(numbers)) for (layer, rule), numbers in groups.items())
