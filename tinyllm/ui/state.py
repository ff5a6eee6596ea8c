"""What outlives a script run: finished results, turns on the machine, and runs in play.

A run in play is a generator kept in the session and asked for its next items by a fragment that
ticks. Stopping is not asking: a moved slider, another page or a closed tab ends the ticks, and
no thread is left working. Timed work takes turns, so that visitors do not disturb each other.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from threading import BoundedSemaphore, Lock
from time import monotonic, sleep
from typing import Any, Generic, Protocol, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tinyllm.experiments.settings import Settings
from tinyllm.ui.text import _
from tinyllm.ui.tick import ask_again

Result = TypeVar("Result", bound="Taker")
PAUSE_SECONDS = 0.03  # between two ticks
SLICE_SECONDS = 0.12  # the engine's share of a tick
FIRST_SECONDS = 0.25  # and of a page's first picture
_KEEP = 48  # finished results
_PLAY = "_play"  # session key of the one run in play
_numbers = count()  # of ticks and of pages drawn


class Store(Generic[Result]):
    """The most recent finished results by their settings, shared by all sessions."""

    def __init__(self, keep: int = _KEEP) -> None:
        self._keep = keep
        self._results: OrderedDict[Hashable, Result] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Result | None:
        """The result of these settings, if there is one."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put(self, key: Hashable, result: Result) -> None:
        """Keep a result; the least recently used one makes room."""
        with self._lock:
            self._results[key] = result
            self._results.move_to_end(key)
            while len(self._results) > self._keep:
                self._results.popitem(last=False)


@st.cache_resource(show_spinner=False)
def store(name: str) -> Store[Any]:
    """The store of one page."""
    return Store()


@st.cache_resource(show_spinner=False)
def _turns() -> BoundedSemaphore:
    return BoundedSemaphore(1)


@contextmanager
def turn(touch: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Wait for this machine's turn to measure; `touch` runs while waiting, to let a stop in."""
    turns = _turns()
    while not turns.acquire(timeout=0.1):
        touch()
    try:
        yield
    finally:
        turns.release()


class Taker(Protocol):
    """A result that grows by the items of a run."""

    def take(self, event: Any) -> bool:
        """Take one item in; True when it is worth drawing by itself."""


class Play(Generic[Result]):
    """A run: its settings, what it has given so far, and the rest to ask for.

    The settings are of the page's own kind, which is what its `begin` takes.
    """

    def __init__(self, config: Any, events: Iterable[Any], result: Result) -> None:
        self.config = config
        self.result = result
        self.began = datetime.now()
        self.watched = False  # slowly, an item at a time, because the visitor pressed Run
        self.ended = False  # by itself
        self.stopped = False  # by the visitor
        self._events = iter(events)

    @property
    def running(self) -> bool:
        """Whether items are still to be asked for."""
        return not (self.ended or self.stopped)

    def advance(self, seconds: float = SLICE_SECONDS) -> None:
        """Take items until the time is up, or, when watched, until one is worth drawing."""
        end = monotonic() + seconds
        for event in self._events:
            worth = self.result.take(event)
            if (worth and self.watched) or monotonic() > end:
                return
        self.ended = True


Begin = Callable[[Any], Play[Result]]  # takes the page's kind of Settings


def chosen(
    page: str, config: Settings, begin: Begin[Result], pressed: bool, place: DeltaGenerator | None
) -> Play[Result]:
    """The run to show: a new one when Run was pressed, else the one in play with these settings,
    else a finished one, else a new one that hurries.

    So nobody meets an empty page, a moved control shows its result at once, and a run of other
    settings or of another page is dropped. With a `place` for its message the new run is worked
    out whole; else its first items are, and ticks bring the rest.
    """
    held_page, held = st.session_state.get(_PLAY, ("", None))
    if held is not None and held_page == page and held.config == config and not pressed:
        return held  # type: ignore[no-any-return]
    st.session_state.pop(_PLAY, None)
    stored = store(page).get(config)
    if stored is not None and not pressed:
        return stored  # type: ignore[no-any-return]
    play = begin(config)
    if place is not None:
        complete(play, place)
        store(page).put(config, play)
        return play
    play.watched = pressed
    st.session_state[_PLAY] = (page, play)
    if not pressed:
        with turn():
            play.advance(FIRST_SECONDS)
    return play


def complete(play: Play[Any], place: DeltaGenerator) -> None:
    """Take in all items of a run at once, with a message while it lasts.

    The message is written again for every slice of time: that is where Streamlit ends the
    script when the visitor moves a control, changes the page or closes the tab.
    """

    def touch() -> None:
        place.caption(_("Measuring in turn ..."))

    while not play.ended:
        touch()
        with turn(touch):
            play.advance()
        sleep(0.001)  # lets another visitor have the next turn
    place.empty()


def step(page: str, play: Play[Result]) -> Result:
    """One tick: let a running play give its next items; the result to draw.

    A play that ends by itself is stored.
    """
    if play.running:
        with turn():
            play.advance()
        if play.ended:
            store(page).put(play.config, play)
    return play.result


def ticking(draw: Callable[[], None], play: Play[Any]) -> None:
    """Draw in a fragment that runs again and again while the play runs.

    The tick after the end starts the page again, which ends the ticks.
    """
    ticks = play.running
    drawn = False

    def tick() -> None:
        nonlocal drawn
        draw()
        # Not in the first drawing: a page that starts again before it is whole loses its charts.
        if ticks and drawn and not play.running:
            st.rerun()
        ask_again(next(_numbers) if ticks else None, PAUSE_SECONDS, first=not drawn)
        drawn = True

    # A fragment is known by its function's name. Each run of the page has its own, so that a tick
    # of the page before finds nothing to draw; that none comes right behind a page's run is up to
    # tick.js. Streamlit logs that it could not find the fragment, and that is meant.
    tick.__qualname__ = f"tick_{next(_numbers)}"
    st.fragment(tick)()
