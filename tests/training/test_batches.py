"""Windows cover what they claim to, and a teacher's table says what the teacher says."""

from pathlib import Path

import numpy as np
import pytest

from tinyllm.config import ModelConfig
from tinyllm.training.batches import (
    FULL,
    TaughtWindows,
    TextWindows,
    side_by_side,
    teacher_table,
)
from tinyllm.training.job import fresh_generator
from tinyllm.training.losses import divergence, rejection, softmax_in_place
from tinyllm.training.network import Network
from tinyllm.training.parameters import initialise
from tinyllm.training.schedule import Plan


def test_text_windows_are_pieces_of_the_text(tiny_plan: Plan) -> None:
    text = np.arange(200, dtype=np.uint8)
    source = TextWindows(tiny_plan, text)
    generator = fresh_generator(0)
    seen = set()
    for step in range(50):
        batch = source.draw(step % 12, generator)
        assert batch.tokens.size == batch.targets.size == tiny_plan.tokens_per_step
        np.testing.assert_array_equal(batch.targets, batch.tokens + 1)
        np.testing.assert_array_equal(np.diff(batch.tokens.astype(int)), 1)
        seen.add(int(batch.targets.max()))
    assert max(seen) == 199  # the last character can be a target


def test_windows_side_by_side_cover_the_text() -> None:
    windows = side_by_side(np.arange(101), 10)
    assert windows.shape == (10, 11)
    np.testing.assert_array_equal(windows[:, :-1].reshape(-1), np.arange(100))
    np.testing.assert_array_equal(windows[:, 1:].reshape(-1), np.arange(1, 101))
    few = side_by_side(np.arange(101), 10, most=3)
    assert few[:, 0].tolist() == [0, 40, 90]


def test_table_is_the_teachers_softmax(
    tiny_config: ModelConfig, tmp_path: Path, generator: np.random.Generator
) -> None:
    teacher = Network(initialise(tiny_config, generator))
    windows = generator.integers(0, 96, (5, 33))
    path = tmp_path / "table.npy"
    table = teacher_table(path, teacher, windows)
    assert table.dtype == np.uint16
    expected = teacher.forward(windows[:, :-1]).copy()
    softmax_in_place(expected)
    np.testing.assert_allclose(table.reshape(-1, 96) / FULL, expected, atol=0.51 / FULL)
    written = path.stat().st_mtime_ns
    np.testing.assert_array_equal(teacher_table(path, teacher, windows), table)
    assert path.stat().st_mtime_ns == written  # used again, not worked out again
    assert len(teacher_table(path, teacher, windows[:4])) == 4


def test_taught_windows_keep_text_and_teacher_together(generator: np.random.Generator) -> None:
    plan = Plan(
        steps=5,
        tokens_per_step=40,
        tokens_at_once=20,
        lengths=(10,),
        shares_first=(1.0,),
        shares_last=(1.0,),
    )
    windows = np.arange(7)[:, None] + np.zeros((1, 11), int)
    table = np.broadcast_to(np.arange(7, dtype=np.uint16)[:, None, None], (7, 10, 3))
    batch = TaughtWindows(plan, windows, table).draw(0, generator)
    assert batch.tokens.shape == (4, 10)
    assert batch.teacher is not None
    np.testing.assert_array_equal(batch.teacher[..., 0], batch.tokens)
    part = batch.rows(1, 3)
    assert part.teacher is not None
    np.testing.assert_array_equal(part.teacher, batch.teacher[1:3])


def test_distances_of_the_worked_example() -> None:
    """p = (.6, .3, .1), q = (.5, .2, .3): accepted 4/5."""
    p, q = np.array([[0.6, 0.3, 0.1]]), np.array([[0.5, 0.2, 0.3]])
    assert rejection(np.log(q), p) == pytest.approx(0.2)
    assert rejection(np.log(p), p) == pytest.approx(0.0)
    assert divergence(np.log(p), p) == pytest.approx(0.0)
    assert divergence(np.log(q), p) == pytest.approx(float(np.sum(p * np.log(p / q))))
