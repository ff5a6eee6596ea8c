"""Pages in Streamlit's own test runner: the real scripts and engine, no browser."""

import re
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds, for busy machines; a page takes less than one
PAGES = ("home", "kv_cache", "kv_dtype", "speculative", "exactness", "sweep", "pitfalls")


def open_page(page: str, **parameters: str | list[str]) -> AppTest:
    """Open a page as a new visitor, with URL parameters; a list gives one several times."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    for name, value in parameters.items():
        app.query_params[name] = value
    app.switch_page(f"pages/{page}.py")
    return app.run()


def finished(app: AppTest) -> AppTest:
    """The page after the end of its run, however many ticks a busy machine needs for it."""
    while any(one.key == "_stop" and not one.disabled for one in app.button):
        app.run()
    return app


def complaints(app: AppTest) -> list[str]:
    """What the page says is wrong, as a visitor reads it: without Markdown's backslashes."""
    said = [element.value for element in (*app.error, *app.warning)]
    return [re.sub(r"\\(.)", r"\1", sentence) for sentence in said]


def well(app: AppTest) -> AppTest:
    """The page, after a look that it drew everything and raised nothing."""
    assert [element.message for element in app.exception] == []
    assert len(app.title) == 1
    assert any("What to notice" in element.value for element in app.markdown)
    return app
