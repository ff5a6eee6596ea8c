"""All pages in one list, in the order of understanding and of a talk.

A page whose file does not exist yet does not appear. Files in pages/ also wake Streamlit's own
page discovery when the first visitor of a fresh server comes by a deep link: it runs the page
file and leaves app.py out. `ensure_entry()`, first line of every page, notices that and sends
the visitor through the navigation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from tinyllm.ui import presenter
from tinyllm.ui.text import _

ROOT = Path(__file__).resolve().parents[2]
_BYPASSED = "_bypassed"
_inside: ContextVar[bool] = ContextVar("inside_app", default=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page: the stem of its file (its address) and its name in the navigation."""

    stem: str
    title: str

    @property
    def path(self) -> Path:
        return ROOT / "pages" / f"{self.stem}.py"


SECTIONS: dict[str, tuple[Entry, ...]] = {
    "": (Entry("home", _("Home")),),
    _("Reuse what is computed"): (
        Entry("kv_cache", _("KV cache")),
        Entry("prefill", _("Prefill")),
    ),
    _("Shrink the cache"): (
        Entry("kv_heads", _("KV heads")),
        Entry("kv_dtype", _("KV dtype")),
        Entry("paging", _("Paging")),
    ),
    _("Make fewer calls"): (
        Entry("speculative", _("Speculative decoding")),
        Entry("exactness", _("Exactness")),
        Entry("sweep", _("When it wins")),
        Entry("forecast", _("Will it win?")),
        Entry("drafters", _("Drafters")),
    ),
    _("Tools"): (
        Entry("memory", _("Memory calculator")),
        Entry("guide", _("Guide")),
        Entry("article", _("Article")),
        Entry("pitfalls", _("Pitfalls")),
        Entry("train", _("Train")),
    ),
}


def entries() -> list[Entry]:
    """The pages that exist, in order."""
    return [entry for section in SECTIONS.values() for entry in section if entry.path.exists()]


def entry_of(stem: str) -> Entry:
    """The entry of a page by its stem, whether its file exists yet or not."""
    return next(entry for section in SECTIONS.values() for entry in section if entry.stem == stem)


def page(entry: Entry) -> StreamlitPage:
    """Streamlit's page of an entry; the address is the file's stem."""
    return st.Page(entry.path, title=entry.title, default=entry.stem == "home")


def _navigate() -> StreamlitPage:
    sections = {
        title: [page(entry) for entry in section if entry.path.exists()]
        for title, section in SECTIONS.items()
    }
    shown = {title: pages for title, pages in sections.items() if pages}
    return st.navigation(shown, position="hidden" if presenter.active() else "top")


@contextmanager
def _entered() -> Iterator[None]:
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def run() -> None:
    """Navigate and run the chosen page: all that app.py does."""
    current = _navigate()
    st.set_page_config(
        page_title=f"{current.title} · tinyllm" if current.title else "tinyllm",
        page_icon=str(ROOT / "assets" / "images" / "icon.png"),
        layout="wide",
        # With an entry in it the menu shows, and in it the choice between light and dark.
        menu_items={"About": _("tinyllm: the speed and memory of LLM inference, live in numpy.")},
    )
    presenter.start()
    with _entered():
        current.run()
    _clicker(current.title)


def ensure_entry() -> None:
    """First line of a page: when app.py was bypassed, start again through the navigation."""
    if _inside.get():
        st.session_state.pop(_BYPASSED, None)
        return
    if st.session_state.get(_BYPASSED):
        st.error(_("This file is a page. Start the app with: streamlit run app.py"))
        st.stop()
    st.session_state[_BYPASSED] = True
    _navigate()
    st.rerun()


def _clicker(title: str) -> None:
    """In presenter mode, hidden links that PageUp and PageDown press."""
    if not presenter.active():
        return
    pages = entries()
    here = next(index for index, entry in enumerate(pages) if entry.title == title)
    neighbours = {"previous": here - 1, "next": here + 1}
    for name, index in neighbours.items():
        if 0 <= index < len(pages):
            with st.container(key=f"presenter_{name}"):
                st.page_link(page(pages[index]), query_params={presenter.PARAMETER: "true"})
    names = {name: 0 <= index < len(pages) for name, index in neighbours.items()}
    presenter.listen(names["previous"], names["next"])
