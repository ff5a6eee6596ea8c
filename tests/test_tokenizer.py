import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.errors import TokenError
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


@pytest.mark.parametrize("token", [-1, 96])
def test_unknown_ids_are_refused(token):
    with pytest.raises(TokenError, match=r"outside 0\.\.95"):
        TOKENIZER.decode([token])
