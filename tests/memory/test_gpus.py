"""GPU facts: driver totals rather than the figures on the box, and vLLM's defaults by GPU."""

import pytest

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.gpus import GIBIBYTE, gpu, gpus
from tinyllm.memory.weights import WEIGHT_TYPES, budget, weight_bytes


@pytest.mark.parametrize(
    ("name", "gibibytes"),
    [
        ("L4", 22.49),
        ("A10", 22.49),
        ("T4", 15.0),
        ("L40S", 44.99),
        ("H100 SXM 80GB", 79.65),
        ("H200 SXM", 139.8),
        ("B200 SXM", 180.0),
    ],
)
def test_what_the_driver_exposes(name, gibibytes):
    assert round(gpu(name).memory_bytes / GIBIBYTE, 2) == gibibytes


@pytest.mark.parametrize(
    ("name", "batched", "sequences"),
    [("B200", 16_384, 1_024), ("H100 SXM", 8_192, 1_024), ("A100 SXM 80GB", 2_048, 256)],
)
def test_vllm_s_defaults(name, batched, sequences):
    assert (gpu(name).batched_tokens, gpu(name).max_sequences) == (batched, sequences)


def test_every_gpu_has_a_source_and_data_sheets_are_marked() -> None:
    assert len(gpus()) == 31
    assert all(row.source for row in gpus().values())
    assert {row.name for row in gpus().values() if "nominal" in row.source} <= {
        row.name for row in gpus().values() if not row.verified
    }


@pytest.mark.parametrize("name", ["", "H100", "nothing"])
def test_an_unknown_or_ambiguous_gpu_is_refused(name):
    with pytest.raises(MemoryPlanError, match=r"no GPU .*: choose"):
        gpu(name)


def test_weights_by_type() -> None:
    sizes = [weight_bytes(1_024, dtype) for dtype in WEIGHT_TYPES]
    assert sizes == [4096, 2048, 2048, 1024, 1024, 528, 576, 544]
    with pytest.raises(MemoryPlanError, match="unknown weight type 'int5': one of float32"):
        weight_bytes(1_024, "int5")


def test_weights_that_do_not_fit_leave_nothing() -> None:
    room = budget(gpu("L4"), weight_bytes(70 * 10**9, "bfloat16"), gpus=1)
    assert (room.pool_low, room.pool_high) == (0, 0)
    with pytest.raises(MemoryPlanError, match="utilisation must be above 0"):
        budget(gpu("L4"), 1, gpus=1, utilisation=1.5)
