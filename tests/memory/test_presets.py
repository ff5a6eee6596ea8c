"""Every preset keeps the right number of bytes.

The right answers are, for each model, the slope far beyond every window and the bytes at two
lengths in bfloat16, reckoned by hand from its config.json apart from this code: index keys and
convolutions 16-bit, recurrent states 32-bit where the config says so, windows min(n, window).
"""

from collections import Counter

import pytest

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan
from tinyllm.memory.conformance import answers, logical_checks
from tinyllm.memory.presets import preset, presets

CASES = answers("logical")
# Our kinds under the names of the cases.
NAMES = {"window": "swa", "latent": "mla", "index": "idx", "compressed": "dsv4"}


def test_there_is_a_case_for_every_preset() -> None:
    assert [case["model"] for case in CASES] == list(presets())
    assert len(CASES) == 58


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_logical_bytes(case):
    model = plan(preset(case["model"]).config)
    checks = list(logical_checks(case))
    assert len(checks) == 3
    assert [check for check in checks if not check.agrees] == []
    kinds: Counter[str] = Counter()
    for entry in model.entries:
        kinds[NAMES.get(entry.kind, entry.kind)] += entry.count
    expected = {"chunk" if kind == "chunked" else kind: n for kind, n in case["kinds"].items()}
    assert kinds == expected


@pytest.mark.parametrize("name", presets())
def test_every_entry_says_where_it_came_from(name):
    for entry in plan(preset(name).config).entries:
        assert entry.rule
        assert entry.layers


def test_the_figures_of_the_article() -> None:
    """Qwen3-8B: 144 KiB a token, 72 GiB for 16 x 32,768; gpt-oss-20b 3.0 GiB at 131,072."""
    qwen = plan(preset("Qwen3-8B").config)
    assert qwen.bytes(1) == 144 * 1024
    assert qwen.bytes(32_768, sequences=16) == 72 * 2**30
    assert round(plan(preset("gpt-oss-20b").config).bytes(131_072) / 2**30, 1) == 3.0


def test_an_unknown_preset_is_named_with_close_ones() -> None:
    with pytest.raises(MemoryPlanError, match=r"no preset 'Qwen.Qwen3-9B'; close to it: .*3-8B"):
        preset("Qwen/Qwen3-9B")
