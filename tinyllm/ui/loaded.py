"""The models in memory, one of each for all sessions, and how one comes there.

Their weights are read-only, so sessions share them; a language model is read under a bar.
"""

from threading import Lock

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from threadpoolctl import threadpool_limits

import tinyllm
from tinyllm.experiments.request import prompt_ids
from tinyllm.experiments.settings import RunConfig, Settings
from tinyllm.layers import Array
from tinyllm.loading import MODELS, Loaded, load_weights, loading
from tinyllm.model import Transformer
from tinyllm.prompt import prompt_tokens
from tinyllm.speculative import Drafter, named
from tinyllm.ui.text import _, busy, format_bytes, literal


@st.cache_resource(show_spinner=False)
def one_thread() -> bool:
    """Hold BLAS to one thread for the life of the server; two are slower on small models."""
    threadpool_limits(1, "blas")
    return True


@st.cache_resource(show_spinner=False)
def _models() -> dict[str, Transformer]:
    """The models in memory, by name, one for all sessions; their weights are read-only."""
    one_thread()
    return {}


@st.cache_resource(show_spinner=False)
def _one_loads() -> Lock:
    return Lock()


def model(name: str) -> Transformer:
    """A model by the name it is stored under, loaded once for all sessions."""
    known = _models()
    if name not in known:
        with _one_loads():
            if name not in known:
                known[name] = tinyllm.load_model(name)
    return known[name]


def prepare(config: Settings, place: DeltaGenerator) -> None:
    """Have the language model of these settings in memory, and see that their prompt fits it.

    While it is read, a bar shows how far that is and what memory it takes. Raises TinyllmError,
    naming what is wrong.
    """
    choice = config.chosen_model
    if choice.characters:
        return
    if choice.name not in _models():
        _load(choice.name, place)
    if isinstance(config, RunConfig):
        target = model(choice.name)
        prompt_tokens(prompt_ids(config.prompt, target), target, config.tokens)


def _load(name: str, place: DeltaGenerator) -> None:
    """Load a language model, layer by layer; other visitors who ask for it wait their turn."""
    lock, sentence = _one_loads(), _("Loading {name}: {size} of memory, layer {layer} of {all}")
    while not lock.acquire(timeout=0.1):
        place.html(busy(_("Another visitor's model is being loaded ...")))
    try:
        if name in _models():
            return
        place.html(busy(_("Reading {name} from the disk ...").format(name=name)))
        for event in loading(name):
            if isinstance(event, Loaded):
                _models()[name] = event.model
            else:
                words = {"size": format_bytes(event.nbytes), "layer": event.layers}
                text = sentence.format(name=name, all=event.of, **words)
                place.progress(event.layers / event.of, literal(text))
    finally:
        lock.release()
    place.empty()


@st.cache_resource(show_spinner=False)
def stored_weights(name: str) -> dict[str, Array]:
    """A shipped model's weights as they are stored, for the plain engine."""
    return load_weights(MODELS / name, model(name).config)


def drafter(config: RunConfig) -> Drafter | Transformer:
    """What proposes in a run."""
    return named(config.drafter, model, config.target)
