"""Paging and prefill in a real browser: the map moves, stops, answers, and charts stay."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.parts import (
    CHARTS,
    QUIET_SECONDS,
    mark_charts,
    marked_charts,
    run_button,
    settle,
    stop_button,
)

MAP = ".tinyllm-blocks canvas[data-used]"
STATUS = ".tinyllm-blocks .status"


def steps_so_far(page: Page) -> int:
    return int(page.locator(STATUS).inner_text().split()[1].rstrip(":"))


def test_the_map_plays_and_stops(visit: Visit) -> None:
    page = visit("paging")
    settle(page)
    page.locator(MAP).wait_for()
    last = steps_so_far(page)
    run_button(page).click()
    expect(stop_button(page)).to_be_enabled()
    page.wait_for_function(
        f"() => parseInt(document.querySelector('{STATUS}').textContent.split(' ')[1]) < {last}"
    )
    first = steps_so_far(page)
    page.wait_for_function(
        f"() => parseInt(document.querySelector('{STATUS}').textContent.split(' ')[1]) > {first}"
    )
    stop_button(page).click()
    expect(stop_button(page)).to_be_disabled()
    held = steps_so_far(page)
    assert held < last
    page.wait_for_timeout(QUIET_SECONDS * 1000)
    assert steps_so_far(page) == held


def test_a_block_says_whose_it_is(visit: Visit) -> None:
    page = visit("paging?block_size=64")
    settle(page)
    canvas, told = page.locator(MAP), page.locator(".tinyllm-blocks .inspect")
    expect(told).to_contain_text("Point at a block")
    canvas.hover(position={"x": 5, "y": 5})
    expect(told).to_contain_text("Block 0:")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("Block 1:")
    page.keyboard.press("End")
    expect(told).to_contain_text("Block 127:")
    page.keyboard.press("Home")
    expect(told).to_contain_text("Block 0:")
    assert "Map of 128 blocks" in (canvas.get_attribute("aria-label") or "")


@pytest.mark.parametrize("path", ["paging?lengths=fixed&block_size=128", "prefill?prefix=96&own=8"])
def test_a_run_to_its_end_keeps_the_charts(visit: Visit, path: str) -> None:
    page = visit(path)
    settle(page)
    charts = mark_charts(page)
    run_button(page).click()
    expect(stop_button(page)).to_be_enabled()
    settle(page)
    assert marked_charts(page) == charts > 0


def test_a_moved_slider_draws_another_map_in_the_same_charts(visit: Visit) -> None:
    page = visit("paging?block_size=127")
    settle(page)
    charts = mark_charts(page)
    page.get_by_role("slider", name="Block size").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        f"() => document.querySelector('{MAP}').ariaLabel.startsWith('Map of 64 blocks')"
    )
    settle(page)
    assert marked_charts(page) == charts == 1


def test_pasted_lengths_are_kept_with_what_to_do(visit: Visit) -> None:
    page = visit("paging?lengths=yours")
    settle(page)
    page.get_by_role("button", name="More").click()
    box = page.get_by_role("textbox", name="Yours: CSV of lengths")
    box.fill("100\nmany")
    box.press("Control+Enter")
    expect(page.get_by_test_id("stAlert")).to_contain_text("one whole number")
    expect(box).to_have_value("100\nmany")
    assert page.locator(CHARTS).count() > 0
