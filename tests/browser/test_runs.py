"""Runs in play: begun, stopped, and ended by what the visitor does meanwhile."""

import re
import time

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ARTEFACTS, Visit
from tests.browser.parts import (
    CHARTS,
    QUIET_SECONDS,
    TOKENS,
    Traffic,
    mark_charts,
    marked_charts,
    run_button,
    settle,
    stop_button,
)
from tests.browser.server import Server


def test_run_then_stop(visit: Visit) -> None:
    page = visit("speculative")
    settle(page)
    whole = page.locator(TOKENS).count()
    run_button(page).click()
    stop = stop_button(page)
    expect(stop).to_be_enabled()
    # Counted by the page itself: between two questions to it the strip may be drawn anew.
    count = f"const n = document.querySelectorAll('{TOKENS}').length"
    running = page.wait_for_function(f"() => {{ {count}; return 0 < n && n < {whole} && n; }}")
    page.wait_for_function(f"() => {{ {count}; return n > {running.json_value()}; }}")
    stop.click()
    expect(stop).to_be_disabled()
    held = page.locator(TOKENS).count()
    assert held < whole
    page.wait_for_timeout(QUIET_SECONDS * 1000)
    assert page.locator(TOKENS).count() == held


@pytest.mark.parametrize("path", ["speculative", "kv_cache", "kv_dtype", "kv_heads"])
def test_a_run_to_its_end_keeps_the_charts(visit: Visit, path: str) -> None:
    page = visit(path + "?tokens=40")
    settle(page)
    charts = mark_charts(page)
    run_button(page).click()
    expect(stop_button(page)).to_be_enabled()
    page.wait_for_timeout(600)
    page.screenshot(path=ARTEFACTS / f"{path}-running.png")
    settle(page)
    assert marked_charts(page) == charts > 0


def test_ticks_keep_the_charts_of_a_slow_server(visit: Visit, slow_server: Server) -> None:
    """As on a busy machine; with a tick every 0.15 s both charts were lost in one run of four."""
    page = visit("kv_heads", address=slow_server.address)
    page.locator(CHARTS).nth(1).wait_for()
    settle(page)
    charts = mark_charts(page)
    traffic = Traffic(page)
    for _ in range(6):
        run_button(page).click()
        expect(stop_button(page)).to_be_enabled()
        traffic.await_ticks(5)
        stop_button(page).click()
        settle(page)
        assert marked_charts(page) == charts == 2


def test_a_moved_slider_ends_the_run_and_shows_its_result(visit: Visit) -> None:
    page = visit("speculative?tokens=200")
    settle(page)
    charts = mark_charts(page)
    run_button(page).click()
    expect(stop_button(page)).to_be_enabled()
    page.get_by_role("slider", name="k, proposals").focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("k=5"))
    settle(page)
    assert page.locator(TOKENS).count() >= 200  # whole, not played
    assert marked_charts(page) == charts == 2


def test_another_page_ends_the_run(visit: Visit) -> None:
    page = visit("speculative?tokens=200")
    settle(page)
    traffic = Traffic(page)
    run_button(page).click()
    expect(stop_button(page)).to_be_enabled()
    traffic.await_ticks(5)  # a run in play is asked for again and again
    page.get_by_text("Reuse what is computed").first.click()
    page.get_by_role("menuitem", name="KV cache").first.click()
    expect(page.locator("h1")).to_contain_text("Without a cache")
    settle(page)
    page.wait_for_timeout(1000)
    traffic.heard.clear()
    page.wait_for_timeout(QUIET_SECONDS * 1000)
    assert traffic.heard == []
    expect(page.locator(".tinyllm-strip")).to_have_count(0)
    expect(stop_button(page)).to_be_disabled()


def test_a_closed_tab_leaves_no_work(visit: Visit, fresh_server: Server) -> None:
    page = visit("speculative?tokens=200", address=fresh_server.address)
    traffic = Traffic(page)
    run_button(page).click()  # before the first run is over: the second must tick all the same
    expect(stop_button(page)).to_be_enabled()
    traffic.await_ticks(5)
    began, before = time.monotonic(), fresh_server.cpu_seconds()
    traffic.await_ticks(10)
    seconds, in_play = time.monotonic() - began, fresh_server.cpu_seconds() - before
    page.close()
    time.sleep(1)
    before = fresh_server.cpu_seconds()
    time.sleep(seconds)
    after = fresh_server.cpu_seconds() - before
    assert after < in_play / 4, (in_play, after)


def test_others_stay_responsive(visit: Visit) -> None:
    def seconds_to_open(path: str) -> float:
        start = time.monotonic()
        visit(path).locator(CHARTS).first.wait_for()
        return time.monotonic() - start

    alone = seconds_to_open("kv_cache?kv_dtype=float16")
    busy = visit("speculative?tokens=200&seed=5")
    run_button(busy).click()
    beside = seconds_to_open("kv_cache?kv_dtype=int8")
    assert beside < 3 * alone + 3
    expect(stop_button(busy)).to_be_enabled()


def test_a_sweep_fills_its_map_and_stops(visit: Visit) -> None:
    page = visit("sweep?tokens=8")
    page.locator(CHARTS).first.wait_for()
    page.wait_for_function("() => document.querySelectorAll('.heatmap-label').length >= 18")
    stop = stop_button(page)
    if stop.is_enabled():
        stop.click()
    expect(stop).to_be_disabled()
    expect(page.get_by_text("What to notice").first).to_be_visible()
