"""One server and one Chromium for all browser tests; every visitor is a fresh context.

Whatever a test does, its visitor must meet no exception and send nothing off this machine.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from tests import chromium
from tests.browser.server import ROOT, Server, serving

# Generous, for machines that are busy or small; what is waited for usually takes a blink.
PATIENCE_MS = 45_000
expect.set_options(timeout=PATIENCE_MS)

ARTEFACTS = ROOT / "tests" / "artefacts"
Visit = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium.find()
    if path is None:
        pytest.fail(chromium.HOW_TO_GET_ONE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    ARTEFACTS.mkdir(exist_ok=True)
    with serving(ARTEFACTS / "server.log") as running:
        yield running


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """visit("speculative?k=2", width=390, height=844, scheme="dark") opens a page and waits."""
    contexts = []
    strangers: list[str] = []
    faults: list[str] = []

    def note(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data", "file") and parts.hostname != "localhost":
            strangers.append(request.url)

    def open_one(
        path: str = "",
        *,
        width: int = 1280,
        height: int = 720,
        scheme: str = "light",
        address: str | None = None,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            service_workers="block",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{address or server.address}/{path}")
        page.get_by_text("What to notice").first.wait_for()
        return page

    yield open_one
    exceptions = sum(
        page.locator('[data-testid="stException"]').count()
        for context in contexts
        for page in context.pages
    )
    for context in contexts:
        context.close()
    assert exceptions == 0
    assert faults == []
    assert strangers == []


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    """A server that nobody has visited yet."""
    with serving(tmp_path / "server.log") as running:
        yield running


@pytest.fixture
def slow_server(tmp_path: Path) -> Iterator[Server]:
    """A server that is late with what a script has drawn."""
    with serving(tmp_path / "server.log", slowly=True) as running:
        yield running
