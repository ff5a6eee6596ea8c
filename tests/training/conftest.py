"""A tiny shape and a tiny text, so that a run takes a blink."""

import numpy as np
import pytest

from tinyllm.config import ModelConfig
from tinyllm.training.corpus import Corpus, encode
from tinyllm.training.schedule import Plan

SENTENCE = "the draft proposes, the target disposes; "


@pytest.fixture
def tiny_config() -> ModelConfig:
    return ModelConfig(context_length=32, n_layer=1, n_head=2, n_kv_head=2, width=16)


@pytest.fixture
def tiny_plan() -> Plan:
    return Plan(
        steps=12,
        tokens_per_step=128,
        tokens_at_once=64,
        lengths=(16, 32),
        shares_first=(0.5, 0.5),
        shares_last=(0.2, 0.8),
        peak_rate=1e-2,
    )


@pytest.fixture
def tiny_corpus() -> Corpus:
    text = encode(SENTENCE * 40)
    cut = len(text) * 9 // 10
    return Corpus(
        text[:cut],
        text[cut:],
        {"sha256": "tiny", "source": "a sentence", "characters": {}, "files": {}},
    )


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(0)
