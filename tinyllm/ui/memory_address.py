"""A model of the visitor's own, and the address: what it holds, and what is wrong in it.

A config.json is pasted, uploaded, or came packed in the address; of a GGUF file the header's keys
are kept as text. Nothing is opened as a path or fetched.
"""

import difflib
from collections.abc import Sequence
from dataclasses import fields

import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.experiments import models
from tinyllm.experiments.settings import RunConfig
from tinyllm.memory.choice import FIELDS, OWN, problem_of
from tinyllm.memory.files import parse_config
from tinyllm.memory.gguf_header import MAGIC
from tinyllm.memory.links import CONFIG, Pinned, config_text
from tinyllm.memory.packed import pack
from tinyllm.memory.subject import header_text
from tinyllm.ui import presenter
from tinyllm.ui.text import _

PANEL = "panel"
COMPARE = "compare"
TEXT = "_config_text"
SAID = "_said_memory"  # what a callback has to say in the next run
_OTHERS = {CONFIG, PANEL, COMPARE, presenter.PARAMETER, "embed", "embed_options"}
_ELSEWHERE = {field.name for field in fields(RunConfig)}  # left over from other pages


def own_file() -> None:
    """A pasted or uploaded config.json, or the first megabytes of a GGUF file."""
    st.file_uploader(
        _("config.json, or the beginning of a GGUF file (head -c 7M)"),
        ("json", "gguf"),
        key="_upload",
        on_change=_take_upload,
    )
    st.text_area(
        _("or paste a config.json"),
        key=TEXT,
        height=260,
        on_change=_take_text,
        persist_state="session",
        help=_("Read here and kept in the link; never written to a disk."),
    )


def _take_text() -> None:
    if st.session_state[TEXT].strip():
        st.session_state["model"] = OWN


def _take_upload() -> None:
    """An upload's text in place of the pasted one."""
    upload = st.session_state["_upload"]
    if upload is None:
        return
    content = upload.getvalue()
    try:
        is_gguf = content[: len(MAGIC)] == MAGIC
        text = header_text(content) if is_gguf else content.decode("utf-8")
    except UnicodeDecodeError:
        st.session_state[SAID] = [_("The file is neither UTF-8 text nor a GGUF file.")]
        return
    except TinyllmError as error:
        st.session_state[SAID] = [str(error)]
        return
    st.session_state[TEXT], st.session_state["model"] = text, OWN


def take_linked_text() -> None:
    """A config.json that came with the address, once."""
    packed = st.query_params.get(CONFIG)
    if packed is None or st.session_state.get(TEXT) or st.session_state.get("_config_read"):
        return
    st.session_state["_config_read"] = True
    try:
        st.session_state[TEXT] = config_text(packed)
    except TinyllmError as error:
        st.session_state[SAID] = [str(error)]


def write_link(found: Pinned) -> None:
    """Keep the address whole: the visitor's own config.json goes with it when it fits."""
    packed = None
    if found.choice.model == OWN:
        packed = pack(parse_config(found.config))
    if packed is None:
        if CONFIG in st.query_params:
            del st.query_params[CONFIG]
    elif st.query_params.get(CONFIG) != packed:
        st.query_params[CONFIG] = packed


def wrong_parameters(panels: Sequence[str]) -> list[str]:
    """Sentences about parameters of the address that are wrong or unknown; each is said once."""
    sentences = []
    for name in list(st.query_params):
        raw, times = st.query_params[name], len(st.query_params.get_all(name))
        if times > 1 and name != COMPARE:
            sentence = _("{name} is given {times} times: give it once. {raw} is taken.")
            sentences.append(sentence.format(name=name, times=times, raw=repr(raw[:60])))
        if name in FIELDS and (name, raw) not in _of_the_lab():
            problem = problem_of(name, raw)
            if problem is not None:
                sentences.append(_("{problem}. The address was corrected.").format(problem=problem))
        elif name == PANEL and raw not in panels:
            sentence = _("{name} must be one of {known}, not {raw}. The address was corrected.")
            known = ", ".join(panels)
            sentences.append(sentence.format(name=PANEL, known=known, raw=repr(raw[:60])))
        elif name not in _OTHERS | _ELSEWHERE:
            sentences.append(_unknown(name))
            del st.query_params[name]
    return sentences


def _of_the_lab() -> set[tuple[str, str]]:
    """What other pages may have left in a parameter that this one has too."""
    return {("model", name) for name in models.names()}


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, (*FIELDS, *_OTHERS), n=1)
    if close:
        sentence = _("The address has a parameter {name} that is not known: perhaps {close}.")
        return sentence.format(name=repr(name[:60]), close=close[0])
    sentence = _("The address has a parameter {name} that is not known: it was left out.")
    return sentence.format(name=repr(name[:60]))
