"""What one layer keeps: attention, a latent, index keys, compressed rows, or a state.

Each kind answers in exact bytes for n tokens of one sequence, and says where its growth changes.
Nothing here knows config.json, model names or engines.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.dtypes import DS_MLA, CacheTypes


class Layer(Protocol):
    """One layer's part of the cache."""

    @property
    def kind(self) -> str:
        """full, window, chunk, cross, latent, index, compressed or state."""

    def bytes(self, tokens: int, types: CacheTypes) -> int:
        """Bytes kept for `tokens` tokens of one sequence."""

    def slope(self, tokens: int, types: CacheTypes) -> Fraction:
        """Bytes that each token adds when `tokens` are held already."""

    @property
    def bends(self) -> tuple[int, ...]:
        """Token counts beyond which the slope is another."""


AttentionKind = Literal["full", "window", "chunk", "cross"]


@dataclass(frozen=True, slots=True)
class Attention:
    """Keys and values of `heads` KV heads, of all tokens or of at most `limit`."""

    kind: AttentionKind
    heads: int
    key_dim: int
    value_dim: int
    limit: int | None = None  # window, chunk, or the encoder's tokens

    def sides(self, types: CacheTypes, heads: int) -> tuple[int, int]:
        """Bytes of the keys and of the values of one token in that many heads."""
        if DS_MLA in (types.key, types.value):
            raise MemoryPlanError(f"{DS_MLA.name} is for latent (MLA) layers, not for KV heads")
        keys = types.key.row_bytes(heads, self.key_dim)
        return keys, types.value.row_bytes(heads, self.value_dim)

    def row_bytes(self, types: CacheTypes) -> int:
        """Bytes of one token."""
        return sum(self.sides(types, self.heads))

    def kept(self, tokens: int) -> int:
        """Tokens of the sequence that the layer still holds."""
        if self.limit is None:
            return tokens
        return self.limit if self.kind == "cross" else min(tokens, self.limit)

    def bytes(self, tokens: int, types: CacheTypes) -> int:
        return self.kept(tokens) * self.row_bytes(types)

    def slope(self, tokens: int, types: CacheTypes) -> Fraction:
        grows = self.limit is None or (self.kind != "cross" and tokens < self.limit)
        return Fraction(self.row_bytes(types) if grows else 0)

    @property
    def bends(self) -> tuple[int, ...]:
        return () if self.limit is None or self.kind == "cross" else (self.limit,)


@dataclass(frozen=True, slots=True)
class Latent:
    """MLA: one vector per token that stands for the keys and values of all heads."""

    latent_dim: int
    rope_dim: int

    @property
    def kind(self) -> str:
        return "latent"

    def row_bytes(self, types: CacheTypes) -> int:
        """Bytes of one token; there is no separate V."""
        return types.key.latent_bytes(self.latent_dim, self.rope_dim)

    def bytes(self, tokens: int, types: CacheTypes) -> int:
        return tokens * self.row_bytes(types)

    def slope(self, tokens: int, types: CacheTypes) -> Fraction:
        return Fraction(self.row_bytes(types))

    @property
    def bends(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Index:
    """The key by which a sparse attention finds its tokens, one per token."""

    dim: int

    @property
    def kind(self) -> str:
        return "index"

    def bytes(self, tokens: int, types: CacheTypes) -> int:
        return tokens * types.key.index_bytes(self.dim)

    def slope(self, tokens: int, types: CacheTypes) -> Fraction:
        return Fraction(types.key.index_bytes(self.dim))

    @property
    def bends(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Compressed:
    """DeepSeek V4: a window of shared key-value rows, and one row for each `ratio` tokens."""

    dim: int
    window: int
    ratio: int  # 0: the window alone
    index_dim: int  # 0: no indexer

    @property
    def kind(self) -> str:
        return "compressed"

    def far_bytes(self, types: CacheTypes) -> int:
        """One compressed row and its index key."""
        index = types.key.index_bytes(self.index_dim) if self.index_dim else 0
        return types.key.vector_bytes(self.dim) + index

    def bytes(self, tokens: int, types: CacheTypes) -> int:
        far = tokens // self.ratio * self.far_bytes(types) if self.ratio else 0
        return min(tokens, self.window) * types.key.vector_bytes(self.dim) + far

    def slope(self, tokens: int, types: CacheTypes) -> Fraction:
        near = types.key.vector_bytes(self.dim) if tokens < self.window else 0
        return Fraction(near) + Fraction(self.far_bytes(types), self.ratio or 1) * bool(self.ratio)

    @property
    def bends(self) -> tuple[int, ...]:
        return (self.window,)


@dataclass(frozen=True, slots=True)
class State:
    """A constant: the last inputs of a short convolution, and a recurrent state.

    The convolution spans conv_rows tokens of conv_width channels, with groups x group_width more
    that tensor parallelism must not split within a group (the B and C of Mamba-2).
    """

    mixer: str
    conv_rows: int
    conv_width: int
    recurrent: int  # elements of the recurrent state
    recurrent_bytes: int  # of each of them
    groups: int = 0
    group_width: int = 0

    @property
    def kind(self) -> str:
        return "state"

    def elements(self, ranks: int = 1) -> tuple[int, int]:
        """Convolution and recurrent elements on one of `ranks` GPUs."""
        groups = self.groups
        if groups % ranks:  # vLLM repeats groups until each rank has one
            groups = max(groups, ranks)
        width = self.conv_width + groups * self.group_width
        return self.conv_rows * -(-width // ranks), -(-self.recurrent // ranks)

    def state_bytes(self, ranks: int = 1) -> int:
        """Bytes with a 16-bit convolution, as engines on GPUs keep it."""
        convolution, recurrent = self.elements(ranks)
        return convolution * 2 + recurrent * self.recurrent_bytes

    def bytes(self, tokens: int, types: CacheTypes) -> int:
        return self.state_bytes()

    def slope(self, tokens: int, types: CacheTypes) -> Fraction:
        return Fraction(0)

    @property
    def bends(self) -> tuple[int, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Placed:
    """What a reader of config.json yields: a layer's part, the layer's number, and why."""

    index: int
    layer: Layer
    rule: str
