"""The vectorised rule is the engine's, draw by draw, and its report tells laws apart."""

from typing import Any

import numpy as np
import pytest

from tinyllm.experiments import exactness
from tinyllm.experiments.settings import RunConfig
from tinyllm.generation import generate
from tinyllm.model import Transformer
from tinyllm.sampling import Sampling, inverse_cdf
from tinyllm.speculative import speculate
from tinyllm.speculative.acceptance import acceptance_probability, acceptance_rate, residual

SETTINGS = [(1.0, None, 1.0), (0.7, None, 1.0), (1.0, 5, 1.0), (1.3, None, 0.8), (0.0, None, 1.0)]


def found(target: Transformer, draft: Transformer, prefix: str, *sampling: Any) -> exactness.Laws:
    return exactness.laws(target, draft, prefix, Sampling(*sampling), "float32")


@pytest.mark.parametrize("sampling", SETTINGS)
def test_many_draws_at_once_are_the_engines_rule_one_by_one(target, draft, sampling) -> None:
    laws = found(target, draft, "import ", *sampling)
    p, q = laws.p, laws.q
    uniforms = np.random.default_rng(5).random((3_000, 3))
    emitted, proposed, accepted = exactness.speculative_draws(p, q, uniforms)
    for row, token, proposal, verdict in zip(uniforms, emitted, proposed, accepted, strict=True):
        assert proposal == inverse_cdf(q, row[0])
        assert verdict == (row[1] < acceptance_probability(p, q, proposal))
        assert token == (proposal if verdict else inverse_cdf(residual(p, q), row[2]))


def test_many_draws_at_once_are_rounds_of_the_engine(target, draft) -> None:
    laws = found(target, draft, "        if not ", 1.0)
    uniforms = np.random.default_rng(6).random((60, 3))
    emitted, _, accepted = exactness.speculative_draws(laws.p, laws.q, uniforms)
    for row, token, verdict in zip(uniforms, emitted, accepted, strict=True):

        class Fed:
            """The row's three numbers, then whatever for the bonus token."""

            draws = iter((row[0], row[2], 0.5) if not verdict else (row[0], 0.5))
            threshold = row[1]

            def draw(self, p):
                return inverse_cdf(p, next(self.draws))

            def accept(self, probability):
                return self.threshold < probability

        event = next(
            speculate(
                target,
                draft,
                laws.prefix,
                k=1,
                max_new_tokens=2,
                temperature=1.0,
                sampler=Fed(),
            )
        )
        assert event.tokens[0] == token


def test_the_areas_add_up_to_the_laws(target, draft) -> None:
    laws = found(target, draft, "    return self.", 1.0)
    assert np.allclose(laws.accepted + laws.redrawn, laws.p, atol=1e-15)
    assert np.allclose(laws.accepted + laws.refused, laws.q, atol=1e-15)
    assert laws.redrawn.sum() == pytest.approx(laws.refused.sum(), abs=1e-12)
    assert laws.accepted.sum() == pytest.approx(acceptance_rate(laws.p, laws.q))
    plain = next(generate(target, laws.prefix, max_new_tokens=1, temperature=1.0))
    assert np.allclose(plain.p, laws.p, atol=1e-6)


def test_the_report_tells_the_right_law_from_the_drafters(target, draft) -> None:
    rows = list(exactness.rows(target, draft, checkpoints=(500, 20_000)))
    assert [row.prefix for row in rows] == [p for p in exactness.PREFIXES for _ in range(2)]
    for row in rows[1::2]:
        assert row.draws == 20_000
        deviation = (row.sum_min * (1 - row.sum_min) / row.draws) ** 0.5
        assert abs(row.accepted - row.sum_min) < 4 * deviation
        assert row.noise_low < row.noise < row.noise_high
        assert row.tvd_speculative < 1.3 * row.noise_high
        assert row.tvd_draft_only > 4 * row.noise_high
        assert row.tvd_draft_only == pytest.approx(1 - row.sum_min, abs=0.02)
        assert row.p_value is not None
        assert row.p_value > 1e-4
        assert row.p_value_draft_only == pytest.approx(0, abs=1e-9)
    assert rows[1].tvd_speculative < rows[0].tvd_speculative


def test_greedy_draws_are_all_the_targets(target, draft) -> None:
    laws = found(target, draft, "import ", 0.0)
    (row,) = exactness.draws(laws, 0.0, checkpoints=(100,))
    assert (row.tvd_speculative, row.tvd_direct, row.noise, row.p_value) == (0, 0, 0, None)
    assert row.tvd_draft_only == 1 - row.sum_min
    assert row.accepted == row.sum_min


def test_a_seed_is_a_sample(target, draft) -> None:
    laws = found(target, draft, "x = ", 0.7)
    runs = [list(exactness.draws(laws, 0.7, seed, (100, 300))) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_a_visitors_prefix(target, draft) -> None:
    config = RunConfig(prompt="def ", temperature=1.0, top_k=3)
    laws = exactness.chosen_laws(config, target, draft)
    assert np.count_nonzero(laws.p) == 3
    record = exactness.DrawsRecord(laws)
    assert all(record.take(row) for row in exactness.draws(laws, 1.0, 0, (10, 20)))
    assert [row.draws for row in record.rows] == [10, 20]
