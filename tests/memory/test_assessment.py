"""A choice worked out: its numbers are those of plan and engines, and its sums add up."""

from dataclasses import replace

import pytest

from tinyllm.memory import CacheTypes, plan
from tinyllm.memory.arithmetic import terms
from tinyllm.memory.assessment import assess
from tinyllm.memory.choice import ENGINES, Choice
from tinyllm.memory.commands import command
from tinyllm.memory.curves import capacity, growth
from tinyllm.memory.engines import llamacpp, vllm
from tinyllm.memory.placement import ranks_of, types_of
from tinyllm.memory.presets import presets
from tinyllm.memory.savings import savings
from tinyllm.memory.subject import Subject, of_preset, of_text

QWEN = "Qwen/Qwen3-8B"
HYBRID = "Qwen/Qwen3.5-27B"
GIBIBYTE = 2**30


def worked_out(**fields):
    choice = Choice(**fields)
    return assess(choice, of_preset(choice.model))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", presets())
def test_every_preset_by_every_engine(model, engine):
    here = worked_out(model=model, engine=engine, gpu="B300", tp=8, context=8_192)
    plan_bytes = here.subject.plan.bytes(8_192, 16, "bfloat16")
    rows = terms(here.subject.plan, 8_192, 16, types_of(here.choice), ranks_of(here.choice))
    assert sum(row.bytes for row in rows) == here.logical_bytes
    assert here.logical_bytes <= plan_bytes
    assert (here.served is None) == bool(here.unknown)
    if engine == "llama.cpp":
        assert here.logical_bytes == plan_bytes
    assert growth(here).kinds.keys() == here.kinds.keys()
    assert command(here).text


def test_the_three_numbers_of_the_article():
    """Qwen3-8B, 32,768 x 16: 72 GiB logical; what fits is what vLLM's rules say of the room."""
    here = worked_out()
    assert here.logical_bytes == here.served.reserved_bytes == 72 * GIBIBYTE
    settings = vllm.Settings(32_768, here.room.pool_low, 8_192)
    assert here.fits == int(vllm.pool(here.subject.plan, settings).max_concurrency) == 11


def test_pipeline_stages_are_the_fullest_ones():
    whole = worked_out(model=HYBRID, engine="vLLM")
    halves = worked_out(model=HYBRID, engine="vLLM", pp=2)
    assert halves.logical_bytes == whole.logical_bytes // 2


def test_latents_are_whole_on_every_gpu():
    model = "deepseek-ai/DeepSeek-V3"
    one, eight = (worked_out(model=model, tp=tp, gpu="B300") for tp in (1, 8))
    assert one.logical_bytes == eight.logical_bytes


def test_state_blocks_bound_max_num_seqs():
    """20 GiB give Qwen3.5-27B 417 blocks, and vLLM refuses more sequences than those."""
    for requests, refused in ((417, False), (418, True)):
        here = worked_out(model=HYBRID, pool_gib=20.0, requests=requests, context=1_024)
        assert bool(here.refusals) is refused
        assert ("--max-num-seqs 418 is above the 417" in command(here).text) is refused


def test_a_context_above_the_pool_names_the_largest():
    here = worked_out(pool_gib=1.0, context=32_768)
    assert "--max-model-len may be at most 7,280" in here.refusals[0]
    assert not worked_out(pool_gib=1.0, context=7_280).refusals
    assert worked_out(pool_gib=1.0, context=7_281).refusals


def test_llama_cpp_allocates_at_once():
    here = worked_out(engine="llama.cpp", kv_type="q8_0", requests=4)
    settings = llamacpp.Settings(4 * 32_768, 4, False, "q8_0", "q8_0")
    assert here.served.pool_bytes == llamacpp.cache(here.subject.plan, settings).total_bytes
    fits = here.fits
    assert not worked_out(engine="llama.cpp", kv_type="q8_0", requests=fits).refusals
    assert worked_out(engine="llama.cpp", kv_type="q8_0", requests=fits + 1).refusals
    assert "256" in worked_out(engine="llama.cpp", requests=257, context=256).refusals[0]


def test_without_a_parameter_count_the_pool_is_unknown_but_not_the_cache():
    subject = Subject("mine", plan(presets()[QWEN].config))
    here = assess(Choice(), subject)
    assert here.room.pool_low is here.fits is None
    assert here.served.reserved_bytes == 72 * GIBIBYTE
    assert assess(Choice(parameters=8 * 10**9), subject).fits
    assert assess(Choice(pool_gib=9.0), subject).fits == 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", [QWEN, HYBRID, "openai/gpt-oss-20b", "google/gemma-3-27b-it"])
def test_capacity_falls_as_requests_grow_longer(model, engine):
    choice = Choice(model=model, engine=engine)
    curve = capacity(choice, of_preset(model))
    assert choice.context in curve.tokens
    assert list(curve.requests) == sorted(curve.requests, reverse=True)


def test_growth_has_the_choice_and_every_bend():
    here = worked_out(model="openai/gpt-oss-20b", context=4_096)
    curve = growth(here)
    assert {128, 4_096} <= set(curve.tokens)
    at = curve.tokens.index(4_096)
    assert {kind: sizes[at] for kind, sizes in curve.kinds.items()} == here.kinds
    assert curve.reserved[at] == here.served.reserved_bytes


@pytest.mark.parametrize(
    ("engine", "kv_type", "smaller"),
    [
        ("vLLM", "bfloat16", "fp8_e4m3"),
        ("vLLM", "float16", "fp8_e4m3"),
        ("vLLM", "fp8_e5m2", "int4_per_token_head"),
        ("llama.cpp", "float16", "q8_0"),
        ("llama.cpp", "q5_1", "q4_0"),
        ("llama.cpp", "q4_0", None),
    ],
)
def test_the_next_smaller_type_is_tried(engine, kv_type, smaller):
    found = savings(worked_out(engine=engine, kv_type=kv_type))
    tried = [saving.choice.kv_type for saving in found if saving.what.startswith("KV cache in")]
    assert tried == ([] if smaller is None else [smaller])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", [QWEN, HYBRID, "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3"])
def test_every_saving_saves_what_it_says(model, engine):
    here = worked_out(model=model, engine=engine, tp=8)
    found = savings(here)
    assert found or here.served is None
    for saving in found:
        then = assess(saving.choice, here.subject)
        assert saving.saved_bytes == here.served.reserved_bytes - then.served.reserved_bytes
        assert saving.fits == then.fits
        assert saving.saved_bytes > 0 or saving.more > 0


def test_more_gpus_than_heads_save_no_cache():
    here = worked_out(model=QWEN, tp=8, gpu="L4", context=1_024)
    (twice,) = [saving for saving in savings(here) if "twice the GPUs" in saving.what]
    assert twice.saved_bytes == 0


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"dp": 2, "tp": 4}, ["vllm serve Qwen/Qwen3-8B", "--max-num-seqs 8"]),
        ({"engine": "llama.cpp", "kv_type": "q8_0"}, ["llama-server", "-c 524288", "-fa on"]),
        ({"engine": "llama.cpp", "kv_type": "float16", "v_type": "q4_0"}, ["-ctv q4_0"]),
        ({"engine": "SGLang", "tp": 2}, ["python -m sglang.launch_server", "--tp-size 2"]),
        ({"context": 65_536}, ["WARNING: the model was made for 40,960"]),
        ({"pool_gib": 2.0}, ["--kv-cache-memory-bytes 2147483648"]),
    ],
)
def test_commands(fields, parts):
    made = command(worked_out(**fields))
    assert all(part in made.text for part in parts)
    assert all(flag.why for flag in made.flags)
    lines = made.text.splitlines()
    assert all(line.startswith("#") or line.startswith("  ") or line[0].isalpha() for line in lines)


def test_a_name_of_ones_own_cannot_break_out_of_the_command():
    subject = of_text('{"model_type": "llama; rm -rf /", "num_hidden_layers": 1, "head_dim": 8, '
                      '"num_attention_heads": 1}')  # fmt: skip
    made = command(assess(replace(Choice(), model="your own"), subject))
    assert "rm -rf" not in made.text


@pytest.mark.parametrize(
    ("dtype", "ranks", "formula"),
    [
        ("bfloat16", 1, "36 layers × 8 KV heads × (128 + 128) × 2 B × 100 tokens × 3 requests"),
        ("bfloat16", 16, "36 layers × 1 KV heads × (128 + 128) × 2 B × 100 tokens × 3 requests"),
        ("q8_0", 1, "(1,088 B of K + 1,088 B of V in 8 KV heads)"),
    ],
)
def test_formulas_are_equations(dtype, ranks, formula):
    types = CacheTypes.named(dtype)
    (term,) = terms(of_preset(QWEN).plan, 100, 3, types, ranks)
    assert formula in term.formula
    product = term.formula.replace("layers", "").replace("KV heads", "").replace("tokens", "")
    product = product.replace("requests", "").replace(" B of K", "").replace(" B of V in 8 ", "")
    product = product.replace(" B", "").replace("×", "*").replace(",", "")
    assert eval(product) == term.bytes
