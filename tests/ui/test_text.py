"""Text for people: what a link holds is shown, never obeyed."""

import re

import pytest

from tinyllm.ui.text import literal


@pytest.mark.parametrize(
    "text",
    [
        "![x](http://127.0.0.1/x.png)",
        "[click](http://example.org)",
        "<b>bold</b> :red[red] $x^2$ `code` ~~gone~~ *a* _b_",
        "# heading",
        "| a | b |",
        "back\\slash",
    ],
)
def test_markdown_is_shown_letter_by_letter(text):
    shown = literal(text)
    assert re.sub(r"\\(.)", r"\1", shown) == text
    for symbol in "![](<:$`*_#|":
        assert f"\\{symbol}" in shown or symbol not in text
        assert not re.search(rf"(?<!\\){re.escape(symbol)}", shown)


def test_what_is_quoted_has_an_end():
    assert len(literal("1" * 5000)) < 500
