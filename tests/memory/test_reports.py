"""Public reports and disputes about the bytes of a cache, with the right answers and links."""

import json
from pathlib import Path

import pytest

from tinyllm.memory import CacheTypes, plan
from tinyllm.memory.presets import preset

REPORTS = json.loads((Path(__file__).parent / "reports.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["id"])
def test_the_right_answer(report):
    names = {"deepseek-ai/DeepSeek-R1": "deepseek-ai/DeepSeek-V3"}  # of one shape
    model = plan(report.get("config") or preset(names.get(report["model"], report["model"])).config)
    if "bytes" in report:
        assert model.bytes(report["tokens"]) == report["bytes"]
    else:
        slope = model.bytes_per_token(2**30, CacheTypes.named("bfloat16"))
        assert slope == report["bytes_per_token"]
