"""The table of right answers: whole, true, and able to show a difference."""

import pytest

from tinyllm.memory import conformance
from tinyllm.memory.presets import presets


def test_every_preset_by_every_engine():
    rows = list(conformance.rows())
    assert [row.model for row in rows[::4]] == list(presets())
    assert {row.engine for row in rows} == {"logical", "vllm", "llamacpp", "sglang"}
    assert [row for row in rows if row.right != row.checked] == []
    assert all(row.checked or row.remark for row in rows)
    checked = {row.engine: 0 for row in rows}
    for row in rows:
        checked[row.engine] += row.checked
    assert checked == {"logical": 58 * 3, "vllm": 224 * 7, "llamacpp": 212, "sglang": 53}


def test_a_wrong_answer_is_seen(monkeypatch: pytest.MonkeyPatch):
    cases = [dict(case) for case in conformance.answers("logical")]
    cases[0]["bytes_at_8192"] += 1
    real = conformance.answers
    monkeypatch.setattr(
        conformance, "answers", lambda name: cases if name == "logical" else real(name)
    )
    row = next(row for row in conformance.rows() if row.engine == "logical")
    assert (row.right, row.checked) == (2, 3)
    assert "8,192 tokens" in row.remark
