import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.config import ModelConfig
from tinyllm.errors import SettingError, TokenError
from tinyllm.model import Transformer, random_weights
from tinyllm.prompt import prompt_tokens, stop_tokens
from tinyllm.tokenizer import ALPHABET, CharTokenizer

TOKENIZER = CharTokenizer()


def test_the_alphabet_is_newline_and_printable_ascii():
    assert len(ALPHABET) == 96
    assert all(symbol == "\n" or symbol.isprintable() for symbol in ALPHABET)


@given(st.text(ALPHABET))
def test_round_trip(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.text())
def test_any_text_is_encoded_or_refused_by_name(text):
    outside = set(text) - set(ALPHABET)
    if outside:
        with pytest.raises(TokenError, match=r"U\+"):
            TOKENIZER.encode(text)
    assert TOKENIZER.encode(TOKENIZER.keep_known(text)) is not None


def test_the_message_names_the_symbols_and_the_place():
    with pytest.raises(TokenError, match=r"remove 'é' \(U\+00E9\), '\\t' .* at character 3"):
        TOKENIZER.encode("caé\té")


@pytest.mark.parametrize("token", [1.5, "a", True, None, [[1]], np.float32(2), np.True_])
def test_what_is_no_whole_number_is_no_token(token):
    for row in ([token], [1, token], token):
        with pytest.raises(TokenError, match="a row of whole numbers from 0 to 95: "):
            TOKENIZER.decode(row)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
def test_numpys_whole_numbers_are_tokens(dtype):
    ids = np.arange(96).astype(dtype)
    assert TOKENIZER.decode(ids) == TOKENIZER.decode(ids.tolist()) == ALPHABET


@pytest.mark.parametrize("token", [-1, 96])
def test_unknown_ids_are_refused(token):
    with pytest.raises(TokenError, match=r"outside 0\.\.95"):
        TOKENIZER.decode([token])


@given(st.text(ALPHABET))
def test_a_stream_gives_the_text_symbol_by_symbol(text):
    stream = TOKENIZER.stream()
    ids = TOKENIZER.encode(text)
    assert [stream.feed(token) for token in ids] == list(text) == [*map(TOKENIZER.piece, ids)]
    assert stream.close() == ""


def test_characters_know_no_conversation():
    assert not TOKENIZER.can_chat
    assert not TOKENIZER.stop_tokens
    with pytest.raises(SettingError, match="knows no conversation: give a prompt"):
        TOKENIZER.chat([{"role": "user", "content": "Hello"}])


def test_a_models_prompt_is_encoded_by_its_own_tokenizer():
    class Upper(CharTokenizer):
        def encode(self, text: str) -> list[int]:
            return super().encode(text.upper())

    model = Transformer(ModelConfig(), random_weights(ModelConfig()), tokenizer=Upper())
    assert prompt_tokens("def", model, 1) == TOKENIZER.encode("DEF")
    assert stop_tokens("e", model) == set(TOKENIZER.encode("E"))
