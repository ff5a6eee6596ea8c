"""The memory calculator in a real browser: first view, clicks on charts, links, downloads."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ARTEFACTS, Visit
from tests.browser.parts import CHARTS
from tests.browser.server import Server

SIZES = ((1280, 720), (1920, 1080), (390, 844))


def settle(page: Page) -> None:
    """Wait until both charts are drawn."""
    page.locator(CHARTS).nth(1).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_first_view(visit: Visit, scheme: str) -> None:
    page = visit("memory", scheme=scheme)
    settle(page)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)
        page.screenshot(path=ARTEFACTS / f"memory-{width}x{height}-{scheme}.png")
        sideways = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
        assert sideways <= 0
        if width >= 1280:
            box = page.get_by_text("What to notice").first.bounding_box()
            assert box is not None
            assert box["y"] + 2 * box["height"] <= height


def test_deep_link_on_a_fresh_server(visit: Visit, fresh_server: Server) -> None:
    query = "model=openai%2Fgpt-oss-20b&context=131072&requests=2&panel=Command"
    page = visit(f"memory?{query}", address=fresh_server.address)
    expect(page.get_by_text("vllm serve openai/gpt-oss-20b").first).to_be_visible()
    expect(page.get_by_role("spinbutton", name="Context, tokens")).to_have_value("131072")


def test_a_click_on_the_capacity_chart_chooses(visit: Visit) -> None:
    page = visit("memory")
    settle(page)
    nodes = page.evaluate(
        "() => [...document.querySelectorAll('.tinyllm-plot')].map((n) => (n.mine = true)).length"
    )
    area = page.locator(".tinyllm-plot").nth(1).locator(".nsewdrag").first
    box = area.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page).to_have_url(re.compile(r"context=\d+"))
    expect(page).to_have_url(re.compile(r"requests=\d+"))
    box_of_context = page.get_by_role("spinbutton", name="Context, tokens")
    expect(box_of_context).not_to_have_value("32768")
    context = int(box_of_context.input_value())
    assert 1_024 < context < 16_384
    kept = "() => [...document.querySelectorAll('.tinyllm-plot')].filter((n) => n.mine).length"
    assert page.evaluate(kept) == nodes == 2


def test_a_click_on_the_memory_chart_chooses_the_context(visit: Visit) -> None:
    page = visit("memory")
    settle(page)
    box = page.locator(".tinyllm-plot").first.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    expect(page.get_by_role("spinbutton", name="Context, tokens")).to_have_value("16384")
    expect(page.get_by_role("spinbutton", name="Requests at once")).to_have_value("16")


def test_the_address_keeps_the_choice_over_a_reload(visit: Visit) -> None:
    page = visit("memory?requests=4")
    settle(page)
    page.get_by_role("radio", name="llama.cpp").click()
    expect(page).to_have_url(re.compile("engine=llama.cpp"))
    page.get_by_role("tab", name="Command").click()
    expect(page.get_by_text("llama-server -m model.gguf").first).to_be_visible()
    page.reload()
    expect(page.get_by_text("llama-server -m model.gguf").first).to_be_visible()
    expect(page.get_by_role("spinbutton", name="Requests at once")).to_have_value("4")


def test_a_pasted_config_stays_in_the_link(visit: Visit) -> None:
    page = visit("memory")
    page.get_by_role("button", name="Your file").first.click()
    box = page.get_by_role("textbox", name="or paste a config.json")
    box.fill(
        '{"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 64}'
    )
    box.press("Control+Enter")
    expect(page).to_have_url(re.compile("config="))
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.get_by_text("2 layers × 4 KV heads × (64 + 64) × 2 B").first).to_be_visible()


def test_charts_and_tables_can_be_taken_away(visit: Visit) -> None:
    page = visit("memory?panel=Data+and+link")
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="growth as CSV").click()
    assert download.value.suggested_filename == "tinyllm-memory-growth.csv"
    with page.expect_download() as download:
        page.get_by_role("button", name="Charts as PNG").click()
    assert download.value.suggested_filename.endswith(".png")
