"""LaTeX lines with this run's numbers in them; the symbols stand in the pages."""

from tinyllm.config import ModelConfig
from tinyllm.experiments.kv_cache import ELEMENT_BYTES, SCALE_BYTES, CacheSize
from tinyllm.experiments.speculative import Comparison
from tinyllm.speculative import Counters, theory

CACHE_BYTES = r"\text{bytes} = 2 \, L \, G \, S \, (D \, b + s)"
TOKENS_PER_CALL = r"\text{tokens per call} = \frac{1 - \alpha^{k+1}}{1 - \alpha}"


def cache_bytes(config: ModelConfig, tokens: int, dtype: str, size: CacheSize) -> tuple[str, ...]:
    """The cache formula with numbers, and the two other counts below it."""
    head = rf"{config.head_dim} \cdot {ELEMENT_BYTES[dtype]} + {SCALE_BYTES[dtype]}"
    factors = rf"2 \cdot {config.n_layer} \cdot {config.n_kv_head} \cdot {tokens} \cdot ({head})"
    return (
        CACHE_BYTES,
        rf"{factors} = {size.formula:,}",
        rf"\texttt{{cache.nbytes}} = {size.nbytes:,}",
        rf"\textstyle\sum \texttt{{array.nbytes}} = {size.arrays:,}",
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
