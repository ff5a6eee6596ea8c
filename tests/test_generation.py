import pytest

from tinyllm.errors import ContextOverflowError, SettingError, TokenError
from tinyllm.generation import generate
from tinyllm.speculative import NGramDrafter, speculate


def text(model, *args, **kwargs):
    return model.tokenizer.decode(token.id for token in generate(model, *args, **kwargs))


def test_text_and_ids_are_the_same_prompt(target):
    ids = target.tokenizer.encode("import ")
    assert text(target, "import ") == text(target, ids)


def test_a_seed_repeats_itself(target):
    settings = {"temperature": 0.9, "top_k": 40, "top_p": 0.95}
    first = text(target, "class ", seed=3, **settings)
    assert first == text(target, "class ", seed=3, **settings)
    assert first != text(target, "class ", seed=4, **settings)


def test_tokens_stand_behind_the_prompt(target):
    tokens = list(generate(target, "def f(", max_new_tokens=5, temperature=1))
    assert [token.position for token in tokens] == [6, 7, 8, 9, 10]
    assert all(abs(token.p.sum() - 1) < 1e-12 and token.p[token.id] > 0 for token in tokens)


def test_a_stop_token_is_the_last(target):
    whole = text(target, "import ", max_new_tokens=30)
    for stop in set(whole):
        stopped = text(target, "import ", max_new_tokens=30, stop=stop)
        assert stopped == whole[: whole.index(stop) + 1]


def test_the_last_position_can_be_filled(target):
    assert len(text(target, [7] * 500, max_new_tokens=12)) == 12
    assert len(text(target, [7] * 511, max_new_tokens=1)) == 1


@pytest.mark.parametrize(
    "start", [generate, lambda m, p, **s: speculate(m, NGramDrafter(), p, **s)]
)
@pytest.mark.parametrize(
    ("prompt", "settings", "error", "message"),
    [
        ("", {}, TokenError, "the prompt is empty"),
        ([], {}, TokenError, "the prompt is empty"),
        ("naïve", {}, TokenError, "U\\+00EF"),
        ([96], {}, TokenError, "96 is outside 0..95"),
        (["a"], {}, TokenError, "a row of whole numbers from 0 to 95: 'str' object"),
        ([1.5], {}, TokenError, "a row of whole numbers from 0 to 95: 'float' object"),
        ([True], {}, TokenError, "True and False are no token ids"),
        (None, {}, TokenError, "'NoneType' object is not iterable"),
        ("x", {"stop": "→"}, TokenError, "U\\+2192"),
        (
            "x",
            {"max_new_tokens": 0},
            SettingError,
            "max_new_tokens must be a whole number at least 1",
        ),
        ("x", {"temperature": -1}, SettingError, "temperature"),
        ("x", {"seed": -1}, SettingError, "seed"),
        ("x", {"kv_dtype": "int3"}, SettingError, "KV dtype 'int3' is unknown"),
        ("x" * 500, {"max_new_tokens": 13}, ContextOverflowError, "at most 12 new tokens"),
        ("x" * 512, {"max_new_tokens": 1}, ContextOverflowError, "prompt to at most 511"),
    ],
)
def test_bad_requests_are_refused_before_the_first_token(
    target, start, prompt, settings, error, message
):
    with pytest.raises(error, match=message):
        start(target, prompt, **settings)
