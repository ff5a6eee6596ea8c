"""The pages as a visitor and a speaker meet them, in a real browser."""

import re
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Download, expect

from tests.browser.conftest import ARTEFACTS, Visit
from tests.browser.parts import (
    CHARTS,
    TOKENS,
    mark_charts,
    marked_charts,
    settle,
    stop_button,
)
from tests.browser.server import Server
from tinyllm.experiments.settings import KV_DTYPES

PAGES = (
    "",
    "kv_cache",
    "prefill",
    "kv_heads",
    "kv_dtype",
    "paging",
    "speculative",
    "exactness",
    "sweep",
    "forecast",
    "drafters",
    "guide",
    "article",
    "pitfalls",
)
SIZES = ((1280, 720), (1920, 1080), (390, 844))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path or "home")
def test_first_view(visit: Visit, path: str, scheme: str) -> None:
    page = visit(path, scheme=scheme)
    if path in ("sweep", "forecast"):  # a long run, and nothing below depends on its end
        page.locator(CHARTS).nth(1).wait_for()
        stop_button(page).click()
    settle(page)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)  # charts follow their container
        page.screenshot(path=ARTEFACTS / f"{path or 'home'}-{width}x{height}-{scheme}.png")
        sideways = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
        assert sideways <= 0
        if width >= 1280:
            box = page.get_by_text("What to notice").first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= height  # the first view needs no scrolling


def test_deep_link_on_a_fresh_server(visit: Visit, fresh_server: Server) -> None:
    page = visit("speculative?k=6&kv_dtype=int8", address=fresh_server.address)
    expect(page.get_by_role("slider", name="k, proposals")).to_have_attribute("value", "6")
    expect(page.get_by_text("Make fewer calls").first).to_be_visible()  # our navigation
    expect(page.locator("h1")).to_contain_text("Draft k tokens")


def test_another_format_keeps_the_charts_and_every_point(visit: Visit) -> None:
    page = visit("kv_dtype")
    settle(page)
    charts = mark_charts(page)
    points = page.locator(".tinyllm-plot").first.locator(".scatterlayer .textpoint")
    names = sorted(text.strip() for text in points.all_text_contents())
    assert names == sorted(KV_DTYPES)
    expect(page.get_by_text("float32 is what the other formats are held against")).to_be_visible()
    page.get_by_role("combobox", name="KV dtype").click()
    page.get_by_role("option", name="int4", exact=True).click()
    expect(page).to_have_url(re.compile("kv_dtype=int4$"))
    expect(page.get_by_text("int4 holds 112 tokens in 50,176 bytes")).to_be_visible()
    assert points.count() == len(KV_DTYPES)  # measured once, not again for another choice
    assert marked_charts(page) == charts == 2


def _is_saved_as(suffix: str, download: Download) -> bool:
    return download.suggested_filename.endswith(suffix)


def test_charts_are_saved_as_files(visit: Visit, tmp_path: Path) -> None:
    page = visit("speculative?tokens=40")
    settle(page)
    page.get_by_role("tab", name="Data").click()
    for kind, beginning in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("HTML", b"<!doctype html>")):
        # One file for each chart, or one for all: the first of the wanted kind.
        of_kind = partial(_is_saved_as, f".{kind.lower()}")
        with page.expect_download(of_kind) as download:
            page.get_by_role("button", name=f"Charts as {kind}").click()
        saved = tmp_path / download.value.suggested_filename
        download.value.save_as(saved)
        assert saved.read_bytes().startswith(beginning)
    page.goto(saved.as_uri())
    expect(page.locator("figure .main-svg").first).to_be_visible()
    assert page.locator("figure").count() == 2


def test_distributions_at_a_token(visit: Visit) -> None:
    page = visit("speculative?tokens=40")
    settle(page)
    panel = page.locator(".tinyllm-strip .inspect")
    page.locator(TOKENS).nth(0).hover()
    first = panel.inner_text()
    assert "target p" in first
    page.locator(TOKENS).nth(2).click()
    assert panel.inner_text() != first
    page.locator(".tinyllm-strip .tokens").focus()
    page.keyboard.press("Home")
    assert panel.inner_text() == first


def test_the_race_plays_pauses_and_ends_with_one_text(visit: Visit) -> None:
    page = visit("")
    settle(page)
    scrub = page.get_by_role("slider", name="Position in the replay")
    page.wait_for_function("() => document.querySelector('.tinyllm-lanes input').value > 20")
    page.get_by_role("button", name="Pause").click()
    at = scrub.input_value()
    page.wait_for_timeout(300)
    assert scrub.input_value() == at
    scrub.fill("1000")
    texts = page.locator(".tinyllm-lanes pre").all_text_contents()
    assert len(texts) == 3
    assert len(set(texts)) == 1
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_the_theme_can_be_switched_on_the_page(visit: Visit) -> None:
    page = visit("speculative?tokens=40")
    settle(page)
    charts = mark_charts(page)
    light = page.locator(CHARTS).first.locator("text").first.get_attribute("style")
    page.get_by_test_id("stMainMenu").click()
    page.get_by_text("Dark").first.click()
    dark = page.locator(CHARTS).first.locator("text").first
    expect(dark).not_to_have_attribute("style", light or "")
    assert marked_charts(page) == charts


def test_a_wrong_prompt_is_kept_with_what_to_do(visit: Visit) -> None:
    page = visit("speculative")
    page.get_by_text("Prompt etc.").click()
    box = page.get_by_label("Prompt", exact=True)
    box.fill("caf\u00e9")
    box.press("Control+Enter")
    expect(page.get_by_test_id("stAlert")).to_contain_text("remove '\u00e9'")
    expect(box).to_have_value("caf\u00e9")
    assert page.locator(TOKENS).count() > 0


def test_presenter_mode(visit: Visit) -> None:
    page = visit("?present=true")
    expect(page.get_by_text("Make fewer calls")).to_have_count(0)
    settle(page)
    page.screenshot(path=ARTEFACTS / "home-presenting.png")
    page.wait_for_function("() => window.tinyllmKeys")
    for stem, claim in (
        ("kv_cache", "Without a cache"),
        ("prefill", "A prompt is read in one call"),
        ("kv_heads", "Fewer KV heads"),
        ("kv_dtype", "Fewer bits"),
        ("paging", "A slab for every request"),
        ("speculative", "Draft k tokens"),
    ):
        page.keyboard.press("PageDown")
        expect(page.locator("h1")).to_contain_text(claim)
        settle(page)
        page.screenshot(path=ARTEFACTS / f"{stem}-presenting.png")
    page.keyboard.press("g")
    expect(stop_button(page)).to_be_enabled()
    page.keyboard.press("s")
    expect(stop_button(page)).to_be_disabled()
    expect(page.get_by_text("Make fewer calls")).to_have_count(0)


def test_the_numbers_can_be_taken_away(visit: Visit) -> None:
    page = visit("speculative?tokens=40")
    settle(page)
    page.get_by_role("tab", name="Data").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="rounds as CSV").click()
    assert download.value.suggested_filename == "tinyllm-rounds.csv"


def test_a_visitors_prefix_is_drawn(visit: Visit) -> None:
    page = visit("exactness")
    settle(page)
    charts = mark_charts(page)
    shown = page.get_by_test_id("stMetricValue")
    before = shown.nth(2).inner_text()
    box = page.get_by_label("Prompt", exact=True)
    box.fill("import ")
    box.press("Control+Enter")
    expect(shown.nth(2)).not_to_have_text(before)
    settle(page)
    expect(shown.first).to_have_text("200,000")
    assert marked_charts(page) == charts == 2


def test_a_pitfall_is_chosen_and_shared_by_its_address(visit: Visit) -> None:
    page = visit("pitfalls?tokens=24")
    expect(page.locator(".tinyllm-pitfall")).to_contain_text("CacheOverflowError")
    page.get_by_role("combobox", name="Pitfall").click()
    page.get_by_role("option", name="forgotten truncate").click()
    expect(page).to_have_url(re.compile(r"pitfall=forgotten(\+|%20)truncate"))
    expect(page.locator(".tinyllm-pitfall .text")).to_have_count(2)
    expect(page.get_by_text("class ForgottenTruncate")).to_be_visible()


def test_the_guide_leads_from_a_symptom_to_its_page(visit: Visit) -> None:
    page = visit("guide?slow_tokens=false")
    expect(page.get_by_text("Nothing is ticked")).to_be_visible()
    page.get_by_text("Long contexts do not fit").click()
    expect(page).to_have_url(re.compile("long_context=true"))
    expect(page.get_by_text("--kv-cache-dtype fp8", exact=True)).to_be_visible()
    page.get_by_text("llama.cpp", exact=True).click()
    expect(page.get_by_text("-ctk q8_0 -ctv q8_0 -fa on")).to_be_visible()
    expect(page).to_have_url(re.compile("engine=llama.cpp"))
    page.get_by_test_id("stPageLink").get_by_text("KV heads").click()
    expect(page.locator("h1")).to_contain_text("Fewer KV heads")
