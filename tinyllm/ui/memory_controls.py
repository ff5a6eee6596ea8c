"""Controls of the memory calculator: a Choice and its model, from widgets bound to the address.

Every field of Choice is the key of one widget and the name of one URL parameter. What an address
gets wrong is dropped and named; a model that cannot be sized keeps its text, and the last good
choice stays on the page. Nothing a visitor writes is opened as a path or an address.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.memory.assessment import Assessment, assess
from tinyllm.memory.choice import CHOICES, ENGINES, FIELDS, LLAMACPP, OWN, RANGES, VLLM, Choice
from tinyllm.memory.choice import problem_of as problem_of_choice
from tinyllm.memory.gpus import gpus
from tinyllm.memory.links import Pinned
from tinyllm.memory.presets import presets
from tinyllm.ui.memory_address import (
    SAID,
    TEXT,
    own_file,
    take_linked_text,
    write_link,
    wrong_parameters,
)
from tinyllm.ui.text import _, literal
from tinyllm.ui.widgets import BIND

STOPS = sorted({2**power * half // 2 for power in range(8, 24) for half in (2, 3)} | {2**24})
_GOOD = "_good_memory"


def _default(field: str) -> Any:
    return Choice.__dataclass_fields__[field].default


def current(field: str) -> Any:
    """The value of a control that may not have been drawn yet in this run."""
    if field in st.session_state:
        return st.session_state[field]
    raw = st.query_params.get(field)
    if raw is None or problem_of_choice(field, raw) is not None:
        return _default(field)
    return type(_default(field))(raw) if not isinstance(_default(field), bool) else raw == "true"


def set_controls(choice: Choice) -> None:
    """Set every control; for callbacks, which run before widgets are drawn."""
    for field in FIELDS:
        st.session_state[field] = getattr(choice, field)


def set_place(tokens: float, requests: float | None = None) -> None:
    """Take context, and requests when given, from a place on a chart."""
    context, number = place_of(tokens, 1 if requests is None else requests)
    st.session_state["context"] = context
    if requests is not None:
        st.session_state["requests"] = number


def place_of(tokens: float, requests: float) -> tuple[int, int]:
    """A place as one would write it: tokens to a 32nd of their power of two, within the ranges."""
    (shortest, longest), (fewest, most) = RANGES["context"], RANGES["requests"]
    tokens = min(max(tokens, shortest), longest)
    step = max(int(shortest), 1 << max(0, int(tokens).bit_length() - 6))
    return round(tokens / step) * step, round(min(max(requests, fewest), most))


def _select(field: str, label: str, options: Sequence[str], help_text: str) -> Any:
    index = options.index(_default(field)) if _default(field) in options else 0
    return st.selectbox(label, options, index, key=field, help=help_text, **BIND)


def _number(field: str, label: str, help_text: str, step: float = 1) -> Any:
    low, high = RANGES[field]
    kind = type(_default(field))
    form = "%g" if kind is float else None
    value = st.number_input(
        label,
        kind(low),
        kind(high),
        _default(field),
        kind(step),
        form,
        field,
        help_text,
        **BIND,
    )
    return _default(field) if value is None else value


def _switch(field: str, label: str, help_text: str) -> Any:
    return st.toggle(label, _default(field), key=field, help=help_text, **BIND)


def choose(panels: Sequence[str]) -> tuple[Pinned, Assessment]:
    """Draw the controls; what they choose, or the last good choice under what is wrong."""
    messages = st.container()
    take_linked_text()
    wrong = wrong_parameters(panels)
    values: dict[str, Any] = {}
    first = st.columns([2.9, 3.1, 1.9, 2.3, 1.35, 1.15], vertical_alignment="bottom")
    with first[0]:
        text = _("Public models; take the last entry for a file of your own.")
        values["model"] = _select("model", _("Model"), (*presets(), OWN), text)
    with first[1]:
        values["engine"] = st.segmented_control(
            _("Engine"),
            tuple(ENGINES),
            default=_default("engine"),
            required=True,
            key="engine",
            help=_("Whose rules: each engine reserves in its own way."),
            width="stretch",
            **BIND,
        )
    with first[2]:
        wrong += _cache_type(values)
    with first[3]:
        text = _("By the memory that the driver exposes. More GPUs under More.")
        values["gpu"] = _select("gpu", _("GPU"), tuple(gpus()), text)
    with first[4], st.popover(_("Your file"), width="stretch"):
        own_file()
    with first[5], st.popover(_("More"), width="stretch"):
        _more(values)
    _sizes(values)
    wrong += st.session_state.pop(SAID, [])
    with messages:
        for sentence in wrong:
            st.warning(literal(sentence))
        return _validated(values)


def _cache_type(values: dict[str, Any]) -> list[str]:
    """The cache types of the engine; a sentence when the one asked for is another engine's."""
    options, said = ENGINES[values["engine"]], []
    wanted = current("kv_type")
    if wanted not in options:
        nearest = "float16" if values["engine"] == LLAMACPP else _default("kv_type")
        sentence = _("{engine} has no cache type {wanted}. {nearest} is taken instead.")
        said = [sentence.format(engine=values["engine"], wanted=wanted, nearest=nearest)]
        st.session_state["kv_type"] = nearest
    text = _("How the cache stores a number, scales included.")
    values["kv_type"] = _select("kv_type", _("KV dtype"), options, text)
    return said


def _sizes(values: dict[str, Any]) -> None:
    """Context as a slider over powers of two and as a number, and requests."""
    columns = st.columns([6, 2, 2], vertical_alignment="bottom")
    with columns[1]:
        text = _("Tokens of the longest request, prompt and output together.")
        values["context"] = _number("context", _("Context, tokens"), text, 1024)
    with columns[2]:
        text = _("Requests that hold their whole context at once.")
        values["requests"] = _number("requests", _("Requests at once"), text)
    with columns[0]:
        st.session_state["_stop"] = min(STOPS, key=lambda stop: abs(stop - values["context"]))
        st.select_slider(
            _("Context"),
            STOPS,
            key="_stop",
            format_func=lambda tokens: f"{tokens / 1024:g}K",
            on_change=lambda: set_place(st.session_state["_stop"]),
            help=_("Powers of two and a half; a click on a chart sets it too."),
        )


def _more(values: dict[str, Any]) -> None:
    """What has a good default: several GPUs, weights, the pool, and engine flags."""
    left, right = st.columns(2)
    engine = current("engine")
    with left:
        text = _("GPUs that divide the heads; llama.cpp divides the layers among them.")
        values["tp"] = _number("tp", _("Tensor parallel"), text)
        values["pp"] = _number("pp", _("Pipeline parallel"), _("GPUs that divide the layers."))
        text = _("Replicas, each with all the weights and a cache of its own.")
        values["dp"] = _number("dp", _("Data parallel"), text)
        text = _("GiB that the engine said are available for the cache; 0 estimates it.")
        values["pool_gib"] = _number("pool_gib", _("KV cache memory, GiB"), text, 0.5)
        text = _("Share of the GPU that the engine may use.")
        values["utilisation"] = _number("utilisation", _("Utilisation"), text, 0.01)
    with right:
        text = _("How weights are stored, block scales included.")
        values["weights"] = _select("weights", _("Weights"), CHOICES["weights"], text)
        text = _("Of a model of your own; 0 takes the public count.")
        values["parameters"] = _number("parameters", _("Parameters"), text, 1_000_000)
        text = _("llama.cpp stores values apart from keys.")
        values["v_type"] = _select("v_type", _("V dtype (llama.cpp)"), CHOICES["v_type"], text)
        text = _("vLLM: tokens of one step; 0 takes its default for the GPU.")
        values["batched"] = _number("batched", _("Batched tokens (vLLM)"), text, 1024)
        text = _("vLLM: two batches in flight.")
        values["async_scheduling"] = _switch("async_scheduling", _("Async scheduling"), text)
        text = _("vLLM: states are kept at block ends too.")
        values["prefix_caching"] = _switch("prefix_caching", _("Prefix caching"), text)
        text = _("llama.cpp: all slots share one cache (-kvu).")
        values["kv_unified"] = _switch("kv_unified", _("Unified KV (llama.cpp)"), text)
    if engine != VLLM:
        st.caption(_("Flags of one engine change nothing in the others."))


def _validated(values: dict[str, Any]) -> tuple[Pinned, Assessment]:
    """The choice if it can be sized, else the last that could, under a message."""
    config = st.session_state.get(TEXT, "") if values["model"] == OWN else ""
    values |= {field: current(field) for field in FIELDS if field not in values}
    try:
        if values["model"] == OWN and not config.strip():
            sentence = _("No model is given: paste a config.json or upload one under Your file")
            raise TinyllmError(sentence)
        found = Pinned(Choice(**values), config)
        assessment = assess(found.choice, found.subject)
    except TinyllmError as error:
        good: Pinned = st.session_state.get(_GOOD) or Pinned(Choice())
        sentence = _("This cannot be sized: {problem}. Shown below is {name} as it was.")
        st.error(literal(sentence.format(problem=error, name=good.subject.name)))
        return good, assess(good.choice, good.subject)
    st.session_state[_GOOD] = found
    write_link(found)
    return found, assessment
