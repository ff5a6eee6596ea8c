"""What a plan says of itself, and plans written by hand."""

import pytest

from tests.memory.shapes import GEMMA_2, LLAMA
from tinyllm.errors import MemoryPlanError
from tinyllm.memory import plan


def test_what_is_assumed_is_said() -> None:
    assert plan(LLAMA).notes == ()
    assert "'brand_new' is unknown" in plan({**LLAMA, "model_type": "brand_new"}).notes[0]
    nested = plan({"text_config": {**GEMMA_2, "model_type": "gemma3_text", "head_dim": 128}})
    assert nested.notes == ()
    short = {key: value for key, value in GEMMA_2.items() if key != "head_dim"}
    note = plan({"text_config": {**short, "model_type": "gemma3_text"}}).notes[0]
    assert note.startswith("text_config.head_dim is not in the file: 256, the default of")


def test_entries_say_their_layers_and_rule() -> None:
    entry = plan({**GEMMA_2, "num_hidden_layers": 4}).entries[0]
    assert (entry.kind, entry.count, entry.layers) == ("window", 2, (0, 2))
    assert entry.rule == (
        "8 KV heads (num_key_value_heads), head_dim 256; SF repeated (the pattern of gemma2)"
    )


def test_layers_by_hand() -> None:
    rows = [
        {"kind": "full", "count": 12, "heads": 8, "head_dim": 64},
        {"kind": "window", "count": 12, "heads": 8, "head_dim": 64, "limit": 128},
        {"kind": "state", "count": 2, "recurrent_elements": 1000, "recurrent_bytes": 4},
        {"kind": "latent", "count": 1, "kv_lora_rank": 512, "qk_rope_head_dim": 64},
    ]
    assert plan({"layer_plan": rows}).bytes(1000) == (12_000 + 12 * 128) * 2048 + 8000 + 1_152_000


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (7, r"layer_plan\[0\] must be an object"),
        ({"kind": "full", "count": 1}, r"layer_plan\[0\].heads is missing"),
        ({"kind": "round", "count": 1}, r"layer_plan\[0\].kind must be one of full, window"),
        (
            {"kind": "full", "count": 1, "heads": 1, "head_dim": 1, "limit": 5},
            r"layer_plan\[0\].limit is not a key of kind 'full'",
        ),
    ],
)
def test_a_wrong_layer_plan_is_refused(row, message):
    with pytest.raises(MemoryPlanError, match=message):
        plan({"layer_plan": [row]})
