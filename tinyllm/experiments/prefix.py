"""Reusing a prefix that was computed before: recompute it, copy it, or share its blocks.

A copy takes the memory a second time and shares it with nobody; a paged cache finds the blocks by
their tokens and shares them, whole blocks only. All ways are timed in turn, from a request's
tokens to its last logits, and all its own logits are compared with those of recomputing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tinyllm.cache import PagedCache
from tinyllm.experiments import prefill
from tinyllm.experiments.models import is_large
from tinyllm.experiments.prefill import SIZES, TURNS, PrefillConfig, PrefillRow
from tinyllm.experiments.prompts import validation_tokens
from tinyllm.experiments.timing import Case, Progress, Spread, steps_in_turn
from tinyllm.layers import Array
from tinyllm.model import Transformer

PREFIX, OWN = 384, 64  # tokens, as in the article
BLOCK_SIZE = 16
# What a page measures beside these and what the visitor chose.
MORE_SIZES, MORE_PREFIXES = (16, 32, 128, 448), (0, 96, 192, 288, 480)
LARGE_SIZES, LARGE_PREFIXES, LARGE_TURNS = (16, 32, 64), (0, 96, 192), 2  # of a large model


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """A request of prefix + own tokens, the first of which are in a cache already."""

    prefix: int
    own: int
    found: int  # of the prefix, the tokens in whole blocks
    recompute_seconds: Spread
    copy_seconds: Spread
    blocks_seconds: Spread
    copy_difference: float  # the largest of the own tokens' logits, against recomputing
    blocks_difference: float
    copied_bytes: int
    new_block_bytes: int  # that the request takes when it shares blocks


def rows(
    model: Transformer,
    lengths: Sequence[int] = (PREFIX,),
    own: int = OWN,
    turns: int = TURNS,
    kv_dtype: str | None = None,
    block_size: int = BLOCK_SIZE,
) -> Iterator[PrefixRow]:
    """A row for each length of the prefix."""
    events = measure(model, lengths, own, turns, kv_dtype, block_size)
    return (event for event in events if isinstance(event, PrefixRow))


def measure(
    model: Transformer,
    lengths: Sequence[int],
    own: int,
    turns: int,
    kv_dtype: str | None,
    block_size: int = BLOCK_SIZE,
) -> Iterator[PrefixRow | Progress]:
    """The rows, and before each how far its measurements are."""
    text = validation_tokens(model, max(lengths, default=0) + own)
    for length in lengths:
        yield from _measure(model, text[: length + own], length, turns, kv_dtype, block_size)


def _measure(
    model: Transformer,
    tokens: list[int],
    length: int,
    turns: int,
    kv_dtype: str | None,
    block_size: int,
) -> Iterator[PrefixRow | Progress]:
    own = len(tokens) - length
    dense = model.new_cache(kv_dtype, len(tokens))
    # Blocks for the prefix and for one request: what an earlier one left is evicted.
    n_blocks = -(-length // block_size) + -(-len(tokens) // block_size)
    pool = model.new_pool(n_blocks, block_size, kv_dtype)
    holder = pool.new_cache()
    if length:
        model.forward(tokens[:length], dense, rows=0)
        model.forward(tokens[:length], holder, rows=0)

    def recompute(rows: int = 1) -> Array:
        return model.forward(tokens, model.new_cache(kv_dtype, len(tokens)), rows)

    def copy(rows: int = 1) -> Array:
        cache = model.new_cache(kv_dtype, len(tokens))
        cache.copy_from(dense)
        return model.forward(tokens[length:], cache, rows)

    def share() -> PagedCache:
        return pool.new_cache(tokens[: length + 1])  # later turns would find the own tokens too

    def blocks(rows: int = 1) -> Array:
        cache = share()
        logits = model.forward(tokens[cache.length :], cache, rows)
        cache.truncate(0)
        return logits

    cases = {"recompute": Case(recompute), "copy": Case(copy), "blocks": Case(blocks)}
    seconds = yield from steps_in_turn(f"prefix {length}", cases, turns, warm_up=1)
    wanted = recompute(own)
    cache = share()
    found = cache.length
    shared_bytes = cache.nbytes
    shared_logits = model.forward(tokens[found:], cache, own)
    yield PrefixRow(
        length,
        own,
        found,
        Spread.of(seconds["recompute"]),
        Spread.of(seconds["copy"]),
        Spread.of(seconds["blocks"]),
        float(abs(copy(own) - wanted).max()),
        float(abs(shared_logits - wanted).max()),
        dense.used_nbytes,
        cache.nbytes - shared_bytes,
    )


def turns_for(model: Transformer) -> int:
    """How many times each way is timed while a visitor waits."""
    return LARGE_TURNS if is_large(model.config) else TURNS


def watch(config: PrefillConfig, model: Transformer) -> Iterator[PrefillRow | PrefixRow | Progress]:
    """The rows of a page: the article's and the chosen ones first, then those between."""
    own, dtype, turns = config.own, config.kv_dtype, turns_for(model)
    large = is_large(model.config)
    sizes = LARGE_SIZES if large else (*SIZES, *MORE_SIZES)
    others = [
        length
        for length in (LARGE_PREFIXES if large else MORE_PREFIXES)
        if length != config.prefix and length + own <= model.config.context_length
    ]
    yield from measure(model, [config.prefix], own, turns, dtype)
    yield from prefill.measure(model, sizes, turns, dtype)
    yield from measure(model, others, own, turns, dtype)


@dataclass(slots=True)
class PrefillRecord:
    """The rows so far, each kind in order of its length."""

    chosen: int  # length of the prefix that the visitor chose
    prefills: list[PrefillRow] = field(default_factory=list)
    prefixes: list[PrefixRow] = field(default_factory=list)
    progress: Progress | None = None

    def take(self, event: PrefillRow | PrefixRow | Progress) -> bool:
        """Take one event in; a row is worth drawing."""
        self.progress = event if isinstance(event, Progress) else None
        if isinstance(event, PrefillRow):
            self.prefills = sorted([*self.prefills, event], key=lambda one: one.tokens)
        elif isinstance(event, PrefixRow):
            self.prefixes = sorted([*self.prefixes, event], key=lambda one: one.prefix)
        return self.progress is None

    @property
    def reuse(self) -> PrefixRow | None:
        """The row that the visitor chose, which is the first one measured."""
        return next((row for row in self.prefixes if row.prefix == self.chosen), None)

    @property
    def fill(self) -> PrefillRow | None:
        """The row of most tokens so far."""
        return self.prefills[-1] if self.prefills else None
