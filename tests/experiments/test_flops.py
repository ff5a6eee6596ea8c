"""Operations counted from shapes: against products as they are made, and against the article."""

from typing import Any

import numpy as np
import pytest

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.experiments.flops import matrix_flops
from tinyllm.experiments.reference import PlainCache, plain_forward
from tinyllm.model import random_weights

SMALL = ModelConfig(vocab_size=11, context_length=32, n_layer=2, n_head=3, n_kv_head=3, width=12)
# The article's table: T, then MFLOP without and with the cache.
ARTICLE = (
    (16, 15.1, 0.95),
    (32, 30.5, 0.98),
    (64, 62.6, 1.03),
    (128, 131.6, 1.13),
    (256, 288.3, 1.32),
    (511, 675.6, 1.71),
)


class Counted(np.ndarray):
    """An array that counts the operations of the products it takes part in."""

    operations = 0

    def __matmul__(self, other: Any) -> Any:
        result = super().__matmul__(other)
        Counted.operations += 2 * result.size * self.shape[-1]
        return result


@pytest.mark.parametrize(("new", "held"), [(1, 0), (1, 7), (5, 0), (4, 6)])
def test_the_count_is_that_of_the_products_made(new: int, held: int) -> None:
    weights = {name: array.view(Counted) for name, array in random_weights(SMALL).items()}
    cache = PlainCache(SMALL, 16)
    cache.n = held
    Counted.operations = 0
    plain_forward(weights, SMALL, [1] * new, cache)
    # The plain engine multiplies what the mask then hides; the formula counts what is seen.
    hidden = new * (new - 1) // 2
    assert Counted.operations - 4 * SMALL.width * SMALL.n_layer * hidden == matrix_flops(
        SMALL, new, held
    )


@pytest.mark.parametrize(("tokens", "uncached", "cached"), ARTICLE)
def test_the_article_counted_about_the_same(tokens: int, uncached: float, cached: float) -> None:
    config = PRESETS["target"]
    assert matrix_flops(config, tokens) / 1e6 == pytest.approx(uncached, rel=0.03)
    assert matrix_flops(config, 1, tokens - 1) / 1e6 == pytest.approx(cached, rel=0.03)


@pytest.mark.parametrize(("tokens", "uncached", "cached"), ARTICLE)
def test_what_the_article_counted(tokens: int, uncached: float, cached: float) -> None:
    """To the digit: two operations for every parameter but the positions', where ours counts only
    what is multiplied (no table of embeddings, no norms, no biases)."""
    config = PRESETS["target"]
    a_token = 2 * (config.n_parameters - config.context_length * config.width)
    a_pair = 4 * config.n_layer * config.width
    whole = tokens * a_token + a_pair * tokens * (tokens + 1) // 2
    assert round(whole / 1e6, 1) == uncached
    assert round((a_token + a_pair * tokens) / 1e6, 2) == cached


def test_tokens_without_logits_end_at_the_last_keys_and_values() -> None:
    config = ModelConfig(vocab_size=5, n_layer=1, n_head=2, n_kv_head=1, width=4)
    keys_and_values = 2 * 3 * (2 * 4 * 2)  # of three tokens: C x 2 G D
    last = 2 * (2 * 4 * 4 + 2 * 4 * 16 + 4 * 5)  # query, output, MLP and head of one
    assert matrix_flops(config, 3, rows=1) == keys_and_values + last + 4 * 4 * 3
    assert matrix_flops(config, 3, rows=3) == matrix_flops(config, 3)
