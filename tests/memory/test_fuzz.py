"""Damaged configs end in a number or in a refusal that names a key, never in another exception.

Each of 10,000 configs is a preset with one to three values removed, nulled, retyped or scaled; the
seed comes from hypothesis, which shrinks to a small one when a config breaks something.
"""

import copy
import json
import random
import time
from functools import partial

import hypothesis
from hypothesis import strategies

from tinyllm.errors import MemoryPlanError
from tinyllm.memory import CacheTypes, plan
from tinyllm.memory.engines import llamacpp, sglang, vllm
from tinyllm.memory.presets import presets

CONFIGS = [preset.config for preset in presets().values()]
RUNS, PER_RUN = 100, 100
ODD = ["", "abc", "4", True, False, 0, -1, 0.5, 8.0, float("nan"), float("inf"), [], {}, [None]]
ODD += [[[1]], {"a": 1}, 10**30, ["full_attention"], 1e400]
BF16 = CacheTypes.named("bfloat16")


def containers(value):
    """Every object and list inside a config, itself included."""
    found = [value]
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list) and inner:
            found += containers(inner)
    return found


def damage(config, chance: random.Random) -> None:
    """Change one value somewhere."""
    place = chance.choice(containers(config))
    if not place:
        return
    key = chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
    how = chance.choice(["remove", "null", "retype", "scale", "rename"])
    if how == "remove":
        del place[key]
    elif how == "null":
        place[key] = None
    elif how == "rename" and isinstance(place, dict):
        place[f"{key}_x"] = place.pop(key)
    elif how == "scale" and type(place[key]) is int:
        place[key] *= chance.choice([-1, 0, 2, 3, 1000, 10**12])
    else:
        place[key] = copy.deepcopy(chance.choice(ODD))


def damaged(chance: random.Random):
    """A preset's config with one to three values changed."""
    config = json.loads(json.dumps(chance.choice(CONFIGS)))
    for _ in range(chance.randint(1, 3)):
        damage(config, chance)
    return config


@hypothesis.settings(max_examples=RUNS, deadline=None)
@hypothesis.given(strategies.integers(0, 2**32))
def test_a_number_or_a_named_refusal(seed):
    chance = random.Random(seed)
    for _ in range(PER_RUN):
        config = damaged(chance)
        try:
            model = plan(config)
            number = model.bytes(chance.randint(0, 10**6))
            model.pieces(BF16)
        except MemoryPlanError:
            continue
        assert isinstance(number, int)
        assert number >= 0


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(strategies.integers(0, 2**32))
def test_engines_end_in_a_number_or_a_named_refusal(seed):
    """What a damaged config gives, at settings of any size, and plans of layers by hand."""
    chance = random.Random(seed)
    for _ in range(25):
        try:
            model = plan(by_hand(chance) if chance.random() < 0.5 else damaged(chance))
        except MemoryPlanError:
            continue
        ranks, stages = chance.choice([1, 2, 3, 8, 64]), chance.choice([1, 1, 2, 5])
        length, memory = chance.randint(1, 10**6), chance.choice([0, 1, 10**6, 10**11])
        server = vllm.Settings(length, memory, 2_048, True, ranks, stages)
        for size in (
            partial(vllm.pool, model, server),
            partial(vllm.largest_model_len, model, server),
            partial(llamacpp.cache, model, llamacpp.Settings(length, slots=ranks)),
            partial(sglang.pools, model, sglang.Settings(tensor_parallel=ranks), memory),
        ):
            try:
                found = size()
            except MemoryPlanError:
                continue
            if isinstance(found, vllm.Pool):
                assert found.max_concurrency >= 0
                assert found.log_lines


def by_hand(chance: random.Random):
    """A layer plan of random rows."""
    rows = []
    for _ in range(chance.randint(0, 4)):
        kind = chance.choice(["full", "window", "chunk", "cross", "latent", "index", "state"])
        row = {"kind": kind, "count": chance.randint(1, 9), "limit": chance.randint(1, 5_000)}
        row |= {"heads": chance.choice([1, 2, 8]), "head_dim": chance.choice([1, 64, 80, 128])}
        if kind in ("full", "latent", "index", "state"):
            del row["limit"]
        if kind in ("latent", "index", "state"):
            del row["heads"]
        if kind in ("latent", "state"):
            del row["head_dim"]
        if kind == "latent":
            row |= {"kv_lora_rank": chance.choice([1, 512]), "qk_rope_head_dim": 64}
        if kind == "state":
            row |= {"recurrent_elements": chance.choice([0, 1, 10**6])}
        rows.append(row)
    return {"layer_plan": rows}


def test_plan_and_bytes_take_less_than_a_millisecond() -> None:
    plan(CONFIGS[0]).bytes(1)
    start = time.process_time()
    for config in CONFIGS * 10:
        plan(config).bytes(8_192)
    assert time.process_time() - start < len(CONFIGS) * 10 * 1e-3
