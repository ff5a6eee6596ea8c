"""vLLM 0.32: what one layer asks of the block pool, and how layers share it.

A layer's spec has a page (one block of one layer) and a number of blocks per request. Layers of
several kinds are grouped so that every group needs the same bytes per block. Source: vLLM,
vllm/v1/kv_cache_interface.py and vllm/v1/core/kv_cache_utils.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.cache_plan import CachePlan
from tinyllm.memory.dtypes import CacheTypes
from tinyllm.memory.engines.shards import token_bytes
from tinyllm.memory.layers import Attention, Index, Latent, Layer, State

STATE_ALIGNMENT, LATENT_ALIGNMENT = 16, 128  # of blocks that are enlarged for states


@dataclass(frozen=True, slots=True)
class Spec:
    """One layer on one GPU; layers with equal specs are of one class."""

    kind: str
    block_size: int
    token_bytes: int  # 0 for a state
    state_bytes: int = 0
    limit: int | None = None

    @property
    def page(self) -> int:
        """Bytes of one block of this layer."""
        return self.block_size * self.token_bytes or self.state_bytes

    def held(self, tokens: int, state_blocks: int) -> int:
        """Blocks that a running request of `tokens` tokens holds between two steps."""
        if self.kind == "window" and self.limit is not None:
            return min(_ceil(tokens, self.block_size), self._window_blocks(self.limit - 1))
        return self.blocks(tokens, 0, state_blocks)

    def _window_blocks(self, tokens: int) -> int:
        """Blocks of so many tokens in a row; one more, as a row may start within a block."""
        return _ceil(tokens, self.block_size) + 1

    def blocks(self, tokens: int, in_flight: int, state_blocks: int) -> int:
        """Blocks that one request of `tokens` tokens must be able to get."""
        if self.kind == "state":
            return state_blocks
        if self.kind == "cross":
            return _ceil(self.limit or 0, self.block_size)
        if self.limit is None:
            return _ceil(tokens, self.block_size)
        if self.kind == "window":
            return self._window_blocks(min(self.limit - 1 + in_flight, tokens))
        return _ceil(min(self.limit + in_flight, tokens), self.block_size)


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that share one block table: a block of the group has a page of each."""

    specs: tuple[Spec, ...]
    layers: tuple[int, ...]

    @property
    def kind(self) -> str:
        return self.specs[0].kind

    @property
    def block_size(self) -> int:
        return self.specs[0].block_size

    def pages(self, layers: range) -> int:
        """Bytes of one block's pages of those of the group's layers that are in `layers`."""
        pairs = zip(self.specs, self.layers, strict=True)
        return sum(spec.page for spec, layer in pairs if layer in layers)


def _ceil(amount: int, unit: int) -> int:
    return -(-amount // unit)


def groups_of(plan: CachePlan, types: CacheTypes, ranks: int, block_size: int) -> list[Group]:
    """The groups that vLLM's planner makes of a model's layers on `ranks` tensor-parallel GPUs."""
    order = sorted((i, n) for n, entry in enumerate(plan.entries) for i in entry.layers)
    by_entry = [_spec(entry.layer, types, ranks, block_size) for entry in plan.entries]
    layers = tuple(index for index, _ in order)
    specs = _with_state_blocks([by_entry[entry] for _, entry in order])
    if not all(spec.page for spec in specs):
        raise MemoryPlanError("vLLM needs layers that keep something: one of these keeps 0 bytes")
    token_slots = {(_type(spec), spec.limit, spec.block_size) for spec in specs}
    if len(set(specs)) == 1 or (len(token_slots) == 1 and specs[0].kind != "state"):
        return [Group(tuple(specs), layers)]  # one block table, though heads may differ
    return _split(_with_one_page(specs), layers)


def _type(spec: Spec) -> str:
    """Latent and index layers hold every token, as full attention does."""
    return "full" if spec.kind in ("latent", "index") else spec.kind


def _spec(layer: Layer, types: CacheTypes, ranks: int, block_size: int) -> Spec:
    """One layer on one of `ranks` GPUs."""
    if isinstance(layer, Attention):
        each = sum(token_bytes(layer, types, ranks))
        return Spec(layer.kind, block_size, each, limit=layer.limit)
    if isinstance(layer, Latent):
        return Spec("latent", block_size, layer.row_bytes(types))
    if isinstance(layer, Index):  # fp8 with one float32 scale per 128, whatever the cache's type
        return Spec("index", block_size, layer.dim + _ceil(layer.dim, 128) * 4)
    if isinstance(layer, State):
        return Spec("state", block_size, 0, layer.state_bytes(ranks))
    raise MemoryPlanError(f"how vLLM 0.32 sizes {layer.kind} layers is not known here")


def _with_state_blocks(specs: list[Spec]) -> list[Spec]:
    """Beside states, attention blocks grow until one holds a state, and states are padded to it."""
    states = [spec.state_bytes for spec in specs if spec.kind == "state"]
    others = [spec for spec in specs if spec.kind != "state"]
    if not states or not others:
        return specs
    sizes = {spec.token_bytes for spec in others}
    if len(sizes) > 1:
        raise MemoryPlanError("how vLLM 0.32 pages a state beside different attentions is unknown")
    align = LATENT_ALIGNMENT if others[0].kind == "latent" else STATE_ALIGNMENT
    each = sizes.pop()
    size = max(others[0].block_size, align * _ceil(max(states), align * each))
    return [
        replace(spec, block_size=size, state_bytes=size * each if spec.kind == "state" else 0)
        for spec in specs
    ]


def _with_one_page(specs: list[Spec]) -> list[Spec]:
    """Blocks of the smaller pages hold more tokens, until all pages are of one size."""
    largest = max(spec.page for spec in specs)
    for spec in specs:
        if largest % spec.page:
            raise MemoryPlanError(
                f"vLLM 0.32 refuses this model: a page of {largest:,} bytes is not a multiple of "
                f"one of {spec.page:,} ({spec.kind} layers)"
            )
    return [
        spec
        if spec.page == largest
        else replace(spec, block_size=spec.block_size * (largest // spec.page))
        for spec in specs
    ]


def _split(specs: Sequence[Spec], layers: tuple[int, ...]) -> list[Group]:
    """Classes of equal layers in groups of one size, each taking every nth layer of its class.

    The size is that of the smallest class, or of the largest when that is less than half more.
    """
    classes: dict[Spec, list[int]] = {}
    for spec, layer in zip(specs, layers, strict=True):
        classes.setdefault(spec, []).append(layer)
    sizes = [len(members) for members in classes.values()]
    size = max(sizes) if max(sizes) < 1.5 * min(sizes) else min(sizes)
    groups = []
    for spec, members in classes.items():
        number = _ceil(len(members), size)
        for turn in range(number):
            mine = tuple(members[turn::number])
            groups.append(Group((spec,) * len(mine), mine))
    return groups
