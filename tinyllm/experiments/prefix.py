"""Reusing a prefix that was computed before: recompute it, copy it, or share its blocks.

A copy takes the memory a second time and shares it with nobody; a paged cache finds the blocks by
their tokens and shares them, whole blocks only. All ways are timed in turn, from a request's
tokens to its last logits, and all its own logits are compared with those of recomputing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tinyllm.cache import PagedCache
from tinyllm.experiments import prefill
from tinyllm.experiments.prefill import (
    SIZES,
    TURNS,
    PrefillConfig,
    PrefillRow,
)
from tinyllm.experiments.prompts import validation_text
from tinyllm.experiments.settings import CONTEXT_LENGTH
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.layers import Array
from tinyllm.model import Transformer

PREFIX, OWN = 384, 64  # tokens, as in the article
BLOCK_SIZE = 16
# What a page measures beside these and what the visitor chose.
MORE_SIZES, MORE_PREFIXES = (16, 32, 128, 448), (0, 96, 192, 288, 480)


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
    lengths: Iterable[int] = (PREFIX,),
    own: int = OWN,
    turns: int = TURNS,
    kv_dtype: str | None = None,
    block_size: int = BLOCK_SIZE,
) -> Iterator[PrefixRow]:
    """A row for each length of the prefix."""
    text = model.tokenizer.encode(validation_text()[: model.config.context_length])
    for length in lengths:
        yield _row(model, text[: length + own], length, turns, kv_dtype, block_size)


def _row(
    model: Transformer,
    tokens: list[int],
    length: int,
    turns: int,
    kv_dtype: str | None,
    block_size: int,
) -> PrefixRow:
    own = len(tokens) - length
    dense = model.new_cache(kv_dtype)
    # Blocks for the prefix and for one request: what an earlier one left is evicted.
    n_blocks = -(-length // block_size) + -(-len(tokens) // block_size)
    pool = model.new_pool(n_blocks, block_size, kv_dtype)
    holder = pool.new_cache()
    if length:
        model.forward(tokens[:length], dense, rows=0)
        model.forward(tokens[:length], holder, rows=0)

    def recompute(rows: int = 1) -> Array:
        return model.forward(tokens, model.new_cache(kv_dtype), rows)

    def copy(rows: int = 1) -> Array:
        cache = model.new_cache(kv_dtype)
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
    seconds = in_turn(cases, turns, warm_up=1)
    wanted = recompute(own)
    cache = share()
    found = cache.length
    shared_bytes = cache.nbytes
    shared_logits = model.forward(tokens[found:], cache, own)
    return PrefixRow(
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


def watch(config: PrefillConfig, model: Transformer) -> Iterator[PrefillRow | PrefixRow]:
    """The rows of a page: the article's and the chosen ones first, then those between."""
    own, dtype = config.own, config.kv_dtype
    others = [
        length
        for length in MORE_PREFIXES
        if length != config.prefix and length + own <= CONTEXT_LENGTH
    ]
    yield from rows(model, [config.prefix], own, kv_dtype=dtype)
    yield from prefill.rows(model, (*SIZES, *MORE_SIZES), kv_dtype=dtype)
    yield from rows(model, others, own, kv_dtype=dtype)


@dataclass(slots=True)
class PrefillRecord:
    """The rows so far, each kind in order of its length."""

    chosen: int  # length of the prefix that the visitor chose
    prefills: list[PrefillRow] = field(default_factory=list)
    prefixes: list[PrefixRow] = field(default_factory=list)

    def take(self, row: PrefillRow | PrefixRow) -> bool:
        """Take one row in; each is worth drawing."""
        if isinstance(row, PrefillRow):
            self.prefills = sorted([*self.prefills, row], key=lambda one: one.tokens)
        else:
            self.prefixes = sorted([*self.prefixes, row], key=lambda one: one.prefix)
        return True

    @property
    def reuse(self) -> PrefixRow:
        """The row that the visitor chose: the first one measured."""
        return next(row for row in self.prefixes if row.prefix == self.chosen)

    @property
    def fill(self) -> PrefillRow | None:
        """The row of most tokens so far."""
        return self.prefills[-1] if self.prefills else None
