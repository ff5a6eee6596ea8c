"""bench pitfalls: every known way to get caches and speculation wrong, done on purpose.

Each fault is a small re-implementation that lives here, beside the engine and never inside it;
its result stands beside the right one, with what the engine says or does instead. The first five
are those of the article's own trials, the others were seen in real engines.
"""

from collections.abc import Iterator, Sequence

from tinyllm.attention import causal_mask
from tinyllm.cache import DenseCache
from tinyllm.cache.block_table import BlockTable
from tinyllm.cache.blocks import BlockPool
from tinyllm.experiments.pitfalls import arrays, blocks, laws, outlier, rounds, stops, storage
from tinyllm.experiments.pitfalls.record import (
    PROMPT,
    Bars,
    Bench,
    Pitfall,
    PitfallRow,
    Result,
    Seen,
    Texts,
)
from tinyllm.model import Transformer
from tinyllm.sampling import Sampling
from tinyllm.speculative import SpeculativeDecoder, acceptance, verification
from tinyllm.speculative.drafters import ModelDraft

__all__ = [
    "PITFALLS",
    "PROMPT",
    "Bars",
    "Bench",
    "Pitfall",
    "PitfallRow",
    "Result",
    "Seen",
    "Texts",
    "measured",
    "rows",
]

_ALL = (
    Pitfall(
        "cache-overflow",
        arrays.measure_cache_overflow,
        arrays.unchecked_cache,
        DenseCache.reserve,
    ),
    Pitfall(
        "position-overflow",
        arrays.measure_position_overflow,
        arrays.unchecked_positions,
        Transformer.forward,
    ),
    Pitfall(
        "unnormalised-p",
        laws.measure_unnormalised,
        laws.undivided_choice,
        acceptance.residual,
    ),
    Pitfall(
        "forgotten-truncate",
        rounds.measure_forgotten_truncate,
        rounds.ForgottenTruncate,
        SpeculativeDecoder.verify,
    ),
    Pitfall(
        "no-causal-mask",
        arrays.measure_no_mask,
        arrays.verify_without_mask,
        causal_mask,
    ),
    Pitfall(
        "argmax-proposal",
        laws.compared(laws.argmax_proposal),
        laws.argmax_proposal,
        ModelDraft.propose,
    ),
    Pitfall(
        "softmax-residual",
        laws.compared(laws.softmax_residual),
        laws.softmax_residual,
        acceptance.residual,
    ),
    Pitfall(
        "target-after-refusal",
        laws.compared(laws.target_after_refusal),
        laws.target_after_refusal,
        laws.right_step,
    ),
    Pitfall(
        "filter-on-the-draw-only",
        laws.compared(laws.filter_on_the_draw_only, laws.top_2),
        laws.filter_on_the_draw_only,
        ModelDraft.propose,
    ),
    Pitfall(
        "temperature-on-the-draw-only",
        laws.compared(laws.temperature_on_the_draw_only, laws.cooled),
        laws.temperature_on_the_draw_only,
        ModelDraft.propose,
    ),
    Pitfall(
        "token-zero-is-nothing",
        laws.compared(laws.token_zero_is_nothing),
        laws.token_zero_is_nothing,
        laws.right_step,
    ),
    Pitfall(
        "empty-residual",
        laws.measure_empty_residual,
        laws.empty_residual,
        acceptance.residual,
    ),
    Pitfall(
        "counts-behind-refusal",
        rounds.measure_counting,
        rounds.CountsBehindRefusal,
        verification.by_token,
    ),
    Pitfall(
        "draft-lacks-last-proposal",
        rounds.measure_draft_gap,
        rounds.DraftLacksLastProposal,
        ModelDraft.commit,
    ),
    Pitfall(
        "idle-rounds-skip-draft",
        rounds.measure_idle_rounds,
        rounds.IdleRoundsSkipDraft,
        ModelDraft.commit,
    ),
    Pitfall(
        "stop-inside-a-round",
        stops.measure_stop,
        stops.StopSeenAtRoundsEnd,
        verification.by_token,
    ),
    Pitfall(
        "length-before-stop",
        stops.measure_length_before_stop,
        stops.LengthBeforeStop,
        verification.by_token,
    ),
    Pitfall(
        "rollback-one-too-far",
        storage.measure_rollback,
        storage.one_too_far,
        DenseCache.truncate,
    ),
    Pitfall(
        "whole-prompt-reused",
        storage.measure_whole_prompt,
        storage.reuse_everything,
        storage.reuse_all_but_one,
    ),
    Pitfall(
        "refused-in-the-index",
        storage.measure_index,
        storage.index_when_fed,
        BlockPool.forget,
    ),
    Pitfall(
        "leaked-blocks",
        blocks.measure_blocks,
        blocks.LeakyPool,
        BlockTable.truncate,
    ),
    Pitfall(
        "outlier-key-channel",
        outlier.measure_outlier_channel,
        outlier.one_scale_a_token,
        outlier.one_scale_a_channel,
    ),
    Pitfall(
        "widths-round-differently",
        arrays.measure_widths,
        arrays.measure_widths,
        Transformer.forward,
    ),
    Pitfall(
        "vocabulary-of-one",
        arrays.measure_vocabulary_of_one,
        arrays.top_k_by_partition,
        Sampling.distribution,
    ),
)
PITFALLS = {pitfall.name: pitfall for pitfall in _ALL}


def rows(bench: Bench) -> Iterator[PitfallRow]:
    """Every pitfall in turn."""
    return (row for row, _seen in measured(bench))


def measured(
    bench: Bench, names: Sequence[str] = tuple(PITFALLS)
) -> Iterator[tuple[PitfallRow, Seen]]:
    """Each pitfall in turn: its row, and what a page draws beside it."""
    for name in names:
        seen = PITFALLS[name].measure(bench)
        yield PitfallRow.of(name, seen), seen
