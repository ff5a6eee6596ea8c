"""The real language model in a browser: chosen by name, watched live, and compared three ways."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import ARTEFACTS, PATIENCE_MS, Visit
from tests.browser.parts import stop_button

NAME = "SmolLM2-135M-Instruct"
LANES = ".tinyllm-lanes pre"


def test_one_question_three_ways(visit: Visit) -> None:
    page = visit("?tokens=16")
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name=NAME).click()
    expect(page.get_by_text(re.compile(f"Loading {NAME}: .* of memory"))).to_be_visible()
    expect(page).to_have_url(re.compile(f"model={NAME}"))
    expect(page.get_by_text("Live: the lane")).to_be_visible(timeout=3 * PATIENCE_MS)
    page.screenshot(path=ARTEFACTS / "home-language-model-live.png")
    page.wait_for_function(  # the lanes are written while they run
        f"""() => {{ const shown = document.querySelectorAll('{LANES}')[1].textContent.length;
        window.seen ??= shown; return shown > window.seen; }}"""
    )
    expect(page.get_by_text("All three lanes write the same")).to_be_visible(
        timeout=6 * PATIENCE_MS
    )
    texts = page.locator(LANES).all_text_contents()
    assert len(set(texts)) == 1
    assert "cache" in texts[0].lower()
    expect(page.get_by_role("button", name="Replay")).to_be_enabled()


def test_pieces_have_ids_and_the_run_stops(visit: Visit) -> None:
    page = visit(f"speculative?model={NAME}&tokens=24")
    expect(page.locator("h1")).to_contain_text("Draft k tokens")
    token = page.locator(".tinyllm-strip .tokens .t").nth(1)
    token.wait_for(timeout=3 * PATIENCE_MS)
    stop = stop_button(page)
    stop.click()
    expect(stop).to_be_disabled(timeout=2 * PATIENCE_MS)
    assert re.fullmatch(r"token \d+", token.get_attribute("title") or "")
    token.hover()
    panel = page.locator(".tinyllm-strip .inspect")
    expect(panel).to_contain_text(re.compile(r"token \d+"))
    page.screenshot(path=ARTEFACTS / "speculative-language-model.png")
