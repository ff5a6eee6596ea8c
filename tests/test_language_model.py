"""The real language model against references, and against itself in every way it can be run.

The references were made by transformers and by a plain byte-pair encoder on the same dequantised
weights: tests/references/make_language_model.py.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.language_prompts import PROMPTS, TEXTS
from tinyllm.cache import CACHE_DTYPES
from tinyllm.generation import generate
from tinyllm.loading import load_model
from tinyllm.memory import plan
from tinyllm.model import Transformer
from tinyllm.speculative import speculate
from tinyllm.speculative.drafters import NGramDrafter

FOUND = json.loads(
    (Path(__file__).parent / "references" / "language_model.json").read_text("utf-8")
)
TOLERANCE = 2e-3  # of a logit
COPIED = "Repeat this line: the red house stands by the old river.\n" * 2
# Over 24 tokens of a context, how far a logit may be off by the rounding of keys and values.
LOSSES = {"float32": TOLERANCE, "float16": 0.05, "bfloat16": 0.5}


@pytest.fixture(scope="session")
def language_model() -> Transformer:
    return load_model("SmolLM2-135M-Instruct")


@pytest.mark.parametrize("row", FOUND["rows"], ids=lambda row: PROMPTS[row["prompt"]][:12])
def test_logits_are_those_of_transformers(language_model, row):
    tokens = language_model.tokenizer.encode(PROMPTS[row["prompt"]])
    logits = language_model.forward(tokens, rows=1)[0]
    assert np.abs(logits[:: FOUND["stride"]] - row["logits"]).max() < TOLERANCE
    assert np.argsort(-logits)[:5].tolist() == row["top"]


@pytest.mark.parametrize("number", range(len(PROMPTS)))
def test_greedy_texts_are_those_of_transformers(language_model, number):
    """Fed in one call, which costs a sixth of decoding: every next token must be the largest."""
    expected = FOUND["greedy"][number]
    tokens = language_model.tokenizer.encode(PROMPTS[number])
    logits = language_model.forward([*tokens, *expected[:-1]], rows=len(expected))
    assert logits.argmax(axis=1).tolist() == expected


def test_decoding_token_by_token_gives_the_same_text(language_model):
    for number in (0, 8):
        made = generate(language_model, PROMPTS[number], max_new_tokens=24)
        assert [token.id for token in made] == FOUND["greedy"][number][:24]


@pytest.mark.parametrize(("text", "ids"), list(zip(TEXTS, FOUND["encoded"], strict=True)))
def test_texts_are_encoded_as_by_the_plain_encoder(language_model, text, ids):
    tokenizer = language_model.tokenizer
    assert tokenizer.encode(text) == ids
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("text", TEXTS)
def test_a_stream_never_shows_a_broken_character(language_model, text):
    tokenizer = language_model.tokenizer
    stream = tokenizer.stream()
    parts = [stream.feed(token) for token in tokenizer.encode(text)]
    assert "\ufffd" not in "".join(parts)
    assert "".join(parts) == text
    assert stream.close() == ""


def test_a_character_that_never_ends_is_replaced_at_the_end(language_model):
    tokenizer = language_model.tokenizer
    first, *rest = tokenizer.encode("👍🏽")
    stream = tokenizer.stream()
    assert rest
    assert stream.feed(first) == ""
    assert stream.close() == "\ufffd"
    assert tokenizer.piece(first).startswith("<F0 9F")


def test_a_conversation_is_written_by_the_models_own_template(language_model):
    tokenizer = language_model.tokenizer
    assert tokenizer.chat([{"role": "user", "content": "Hi"}]) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    (end,) = tokenizer.stop_tokens
    assert tokenizer.piece(end) == "<|im_end|>"


@pytest.mark.parametrize("dtype", CACHE_DTYPES)
def test_every_kv_dtype_answers_and_wide_ones_lose_little(language_model, dtype):
    tokens = language_model.tokenizer.encode(COPIED)[:24]
    cache = language_model.new_cache(dtype, capacity=24)
    stored = [language_model.forward(tokens[:20], cache)]
    stored += [language_model.forward([token], cache) for token in tokens[20:]]
    lost = np.abs(np.concatenate(stored) - language_model.forward(tokens)).max()
    assert np.isfinite(lost)
    assert lost < LOSSES.get(dtype, np.inf)


def test_the_cache_takes_what_the_calculator_says(language_model):
    cache = language_model.new_cache("bfloat16", capacity=100)
    assert cache.nbytes == 100 * 23_040
    assert (
        plan(language_model.config.to_json()).bytes(tokens=100, sequences=1, dtype="bfloat16")
        == cache.nbytes
    )


def test_a_prefix_reused_from_the_blocks_of_a_pool_changes_nothing(language_model):
    tokens = language_model.tokenizer.encode(COPIED + "Repeat it: ")
    pool = language_model.new_pool(n_blocks=8, block_size=8)
    first = pool.new_cache()
    language_model.forward(tokens[:-1], first, rows=0)
    again = pool.new_cache(tokens)
    assert again.length >= 16
    reused = language_model.forward(tokens[again.length :], again, rows=1)
    assert np.abs(reused - language_model.forward(tokens, rows=1)).max() < TOLERANCE


@pytest.mark.parametrize("k", [4, 12])
def test_speculation_at_temperature_0_gives_the_plain_text(language_model, k):
    settings = {"max_new_tokens": 40, "temperature": 0.0}
    plain = [token.id for token in generate(language_model, COPIED, **settings)]
    rounds = list(speculate(language_model, NGramDrafter(), COPIED, k=k, **settings))
    assert [token for one in rounds for token in one.tokens] == plain
    assert any(one.accepted for one in rounds)
