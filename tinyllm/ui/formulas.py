"""LaTeX lines with this run's numbers in them; the symbols stand in the pages."""

from collections.abc import Sequence

from tinyllm.cache import Format, format_of
from tinyllm.cache.formats import BLOCK, WINDOW
from tinyllm.config import ModelConfig
from tinyllm.experiments.attention_step import HEAD_DIM, AttentionRow
from tinyllm.experiments.flops import matrix_flops
from tinyllm.experiments.memory import CacheSize
from tinyllm.experiments.speculative_record import Comparison
from tinyllm.speculative import Counters, theory

STEP_FLOPS = (
    r"\text{operations} = 2 \, T \, (L \, (10 \, C^2 + 2 \, C \, G \, D) + V C)"
    r" + 4 \, L \, C \, \textstyle(T S + \frac{T (T + 1)}{2})"
)
TOKENS_PER_CALL = r"\text{tokens per call} = \frac{1 - \alpha^{k+1}}{1 - \alpha}"


def cache_bytes(config: ModelConfig, tokens: int, dtype: str, size: CacheSize) -> tuple[str, ...]:
    """The cache formula in letters and with numbers, and the two other counts below it."""
    kind = format_of(dtype)
    lines = _by_channel(kind, config, tokens) if kind.keys_by_channel else _by_token(kind)
    head_dim = config.head_dim
    heads = rf"{config.n_layer} \cdot {config.n_kv_head}"
    if kind.keys_by_channel:
        keys = kind.key_bytes(head_dim, tokens)
        values = tokens * kind.vector_bytes(head_dim)
        numbers = rf"{heads} \cdot ({keys:,} + {values:,})"
    else:
        numbers = rf"2 \cdot {heads} \cdot {tokens} \cdot ({_vector(kind, head_dim)})"
    return (
        *lines,
        rf"{numbers} = {size.formula:,}",
        rf"\texttt{{cache.nbytes}} = {size.nbytes:,}",
        rf"\textstyle\sum \texttt{{array.nbytes}} = {size.arrays:,}",
    )


def _vector(kind: Format, head_dim: int) -> str:
    """D b / 8 + 2 n with numbers."""
    scales = rf" + 2 \cdot {kind.scales(head_dim)}" if kind.scaled else ""
    return rf"{head_dim} \cdot \tfrac{{{kind.bits}}}{{8}}{scales}"


def _by_token(kind: Format) -> tuple[str, ...]:
    scales = " + 2 n" if kind.scaled else ""
    return (rf"\text{{bytes}} = 2 \, L \, G \, S \, (D \tfrac{{b}}{{8}}{scales})",)


def _by_channel(kind: Format, config: ModelConfig, tokens: int) -> tuple[str, ...]:
    """Keys K and values V of one head, each with its numbers."""
    head_dim = config.head_dim
    coded, window = tokens // BLOCK * BLOCK, min(tokens, WINDOW)
    element = rf"{head_dim} \cdot \tfrac{{{kind.bits}}}{{8}}"
    scales = rf"\tfrac{{2 \cdot {head_dim}}}{{{BLOCK}}}"
    keys = rf"{coded} \, ({element} + {scales}) + 2 \cdot {head_dim} \cdot {window}"
    values = rf"{tokens} \, ({_vector(kind, head_dim)})"
    return (
        r"\text{bytes} = L \, G \, (K + V)",
        rf"K = F (D \tfrac{{b}}{{8}} + \tfrac{{2 D}}{{{BLOCK}}}) + 2 D W",
        rf"K = {keys} = {kind.key_bytes(head_dim, tokens):,}",
        r"V = S (D \tfrac{b}{8} + 2 n)",
        rf"V = {values} = {tokens * kind.vector_bytes(head_dim):,}",
    )


def step_flops(config: ModelConfig, held: int) -> tuple[str, ...]:
    """The operations of the step behind `held` tokens: with the cache, and from nothing."""
    T = held + 1
    cached = rf"T = 1, \; S = {held}: \quad {matrix_flops(config, 1, held) / 1e6:,.2f}"
    uncached = rf"T = {T}, \; S = 0: \quad {matrix_flops(config, T) / 1e6:,.1f}"
    return (
        STEP_FLOPS,
        rf"\text{{with the cache, }} {cached} \text{{ MFLOP}}",
        rf"\text{{recomputing, }} {uncached} \text{{ MFLOP}}",
    )


def heads_bytes(rows: Sequence[AttentionRow], context: int) -> tuple[str, ...]:
    """The bytes one layer's attention reads, for every number of KV heads."""
    factors = rf"{context:,} \cdot {HEAD_DIM} \cdot 4"
    return (
        r"\text{bytes read} = 2 \, G \, S \, D \, b",
        *(rf"2 \cdot {row.kv_heads} \cdot {factors} = {row.cache_bytes:,}" for row in rows),
    )


def tokens_per_call(alpha: float, k: int, counters: Counters) -> tuple[str, ...]:
    """Eq. 1 with numbers, and what was measured below it."""
    value = theory.tokens_per_call(alpha, k)
    fraction = rf"\frac{{1 - {alpha:.3f}^{{{k + 1}}}}}{{1 - {alpha:.3f}}}"
    if alpha >= 1:
        fraction = r"k + 1 \;\; (\alpha = 1)"
    measured = rf"1 + \frac{{A}}{{D}} = 1 + \frac{{{counters.accepted}}}{{{counters.drafts}}}"
    return (
        TOKENS_PER_CALL,
        rf"{fraction} = {value:.3f}",
        rf"\text{{measured: }} {measured} = {counters.tokens_per_call or 0:.3f}",
    )


def speedup(comparison: Comparison | None) -> str:
    """The measured speed-up as the ratio of the two speeds of the middle pair."""
    if comparison is None:
        return r"\text{speed-up: not measured yet}"
    ratio = rf"\frac{{{comparison.speculative:,.0f}}}{{{comparison.plain:,.0f}}}"
    return rf"\text{{speed-up}} = {ratio} = {comparison.speculative / comparison.plain:.2f}"
