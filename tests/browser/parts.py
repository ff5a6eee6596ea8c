"""What browser tests find on every page, and what they wait for."""

import time

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PATIENCE_MS

TOKENS = ".tinyllm-strip .tokens .t"
CHARTS = ".tinyllm-plot[data-drawn] .main-svg"
QUIET_SECONDS = 1.5


def run_button(page: Page) -> Locator:
    return page.locator(".st-key-_run button")


def stop_button(page: Page) -> Locator:
    return page.locator(".st-key-_stop button")


def settle(page: Page) -> None:
    """Wait until everything is drawn and no run is going on."""
    drawn = (".tinyllm-lanes input", ".tinyllm-pitfall", '[data-testid="stCode"] code', CHARTS)
    page.locator(", ".join(drawn)).first.wait_for()
    stop = stop_button(page)
    if stop.count():
        expect(stop).to_be_disabled(timeout=3 * PATIENCE_MS)  # ten formats are ten measurements


def mark_charts(page: Page) -> int:
    """Mark the chart nodes, to know them again; how many there are."""
    return page.evaluate(
        "() => { const all = document.querySelectorAll('.tinyllm-plot');"
        "all.forEach((node) => (node.mine = true)); return all.length; }"
    )


def marked_charts(page: Page) -> int:
    """How many of the nodes marked before are still there."""
    return page.evaluate(
        "() => [...document.querySelectorAll('.tinyllm-plot')].filter((n) => n.mine).length"
    )


class Traffic:
    """The frames that a page and its server send each other from now on."""

    def __init__(self, page: Page) -> None:
        self.asked: list[object] = []  # by the page: a click, or the next tick of a run
        self.heard: list[object] = []  # by the page, from the server
        self._page = page
        session = page.context.new_cdp_session(page)
        session.on("Network.webSocketFrameSent", lambda frame: self.asked.append(frame))
        session.on("Network.webSocketFrameReceived", lambda frame: self.heard.append(frame))
        session.send("Network.enable")

    def await_ticks(self, number: int) -> None:
        """Wait until the page has asked so many times more, however slow it is with it."""
        end = time.monotonic() + PATIENCE_MS / 1000
        enough = len(self.asked) + number
        while len(self.asked) < enough:
            assert time.monotonic() < end, f"{enough - len(self.asked)} of {number} still to come"
            self._page.wait_for_timeout(50)
