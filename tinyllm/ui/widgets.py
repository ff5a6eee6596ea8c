"""The widgets of a run's fields: each is keyed by its field and bound to the URL parameter.

Ranges and choices come from the page's Settings; nothing is checked here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from tinyllm.experiments.settings import DEFAULT_PROMPT, PROMPTS, RunConfig, Settings
from tinyllm.ui.text import _

BIND: dict[str, Any] = {"bind": "query-params"}
_BOX_HEIGHT = 110  # of the prompt, where there is room


def slider(
    field: str,
    label: str,
    step: float,
    help_text: str,
    form: str | None = None,
    kind: type[Settings] = RunConfig,
) -> Any:
    """A slider over a field's range, from and to the ends that its Settings allow."""
    low, high = kind.ranges[field]
    default = kind.default(field)
    number = type(default)
    return st.slider(
        label, number(low), number(high), default, number(step), form, field, help_text, **BIND
    )


def choice(field: str, label: str, help_text: str, kind: type[Settings] = RunConfig) -> Any:
    """One of a field's choices, all in view."""
    return st.segmented_control(
        label,
        kind.choices[field],
        default=kind.default(field),
        required=True,
        key=field,
        help=help_text,
        width="stretch",
        **BIND,
    )


def menu(field: str, label: str, help_text: str, kind: type[Settings] = RunConfig) -> Any:
    """One of a field's choices, which are too many to be all in view."""
    return st.selectbox(
        label, kind.choices[field], key=field, help=help_text, filter_mode=None, **BIND
    )


def _k() -> Any:
    text = _("How many tokens the drafter proposes before the target checks them in one call.")
    return slider("k", _("k, proposals a round"), 1, text)


def _temperature() -> Any:
    text = _("0 always takes the most likely token. Higher spreads the choice.")
    return slider("temperature", _("Temperature"), 0.1, text, "%.1f")


def kv_dtype(kind: type[Settings] = RunConfig) -> Any:
    """The format of the cache, of those that a page's settings allow."""
    text = _(
        "How the cache stores its numbers. int8 and int4 add a float16 scale per head and token, "
        "_g8 one for every 8 dimensions; _channel scales keys by dimension over 32 tokens."
    )
    return menu("kv_dtype", _("KV dtype"), text, kind)


def _kv_heads() -> Any:
    text = _(
        "Key/value heads of the target. The 4 query heads share them; each is a trained model."
    )
    return choice("kv_heads", _("KV heads"), text)


def _context() -> Any:
    text = _("How many tokens the timed attention step reads; more takes more memory and time.")
    return choice("context", _("Cached tokens"), text)


def _drafter() -> Any:
    text = _("A small trained model, or prompt lookup: what followed the same characters before.")
    return choice("drafter", _("Drafter"), text)


def _set_prompt(name: str) -> None:
    st.session_state["prompt"] = PROMPTS[name]


def prompt_box(height: int, default: str = DEFAULT_PROMPT) -> Any:
    text = _("Printable ASCII and line breaks; the models learnt from Python source code.")
    return st.text_area(_("Prompt"), default, key="prompt", height=height, help=text, **BIND)


def _prompt() -> Any:
    value = prompt_box(_BOX_HEIGHT)
    with st.container(horizontal=True, gap="small"):
        for name in PROMPTS:
            st.button(name, key=f"_prompt_{name}", on_click=_set_prompt, args=(name,))
    return value


def _tokens() -> Any:
    return slider("tokens", _("New tokens"), 8, _("How many tokens to make."))


def number(field: str, label: str, help_text: str, kind: type[Settings] = RunConfig) -> Any:
    """A whole number within a field's range."""
    low, high = kind.ranges[field]
    default = kind.default(field)
    return st.number_input(
        label, int(low), int(high), default, 1, key=field, help=help_text, **BIND
    )


def _seed() -> Any:
    return number("seed", _("Seed"), _("Same seed, same tokens."))


def _top_k() -> Any:
    return slider("top_k", _("top-k"), 1, _("Keep the k most likely tokens; 0 keeps all."))


def _top_p() -> Any:
    text = _("Keep the most likely tokens that together reach this probability; 1 keeps all.")
    return slider("top_p", _("top-p"), 0.05, text, "%.2f")


Widgets = Mapping[str, Callable[[], Any]]
RUN_WIDGETS: Widgets = {
    "k": _k,
    "temperature": _temperature,
    "kv_dtype": kv_dtype,
    "kv_heads": _kv_heads,
    "context": _context,
    "drafter": _drafter,
    "prompt": _prompt,
    "tokens": _tokens,
    "seed": _seed,
    "top_k": _top_k,
    "top_p": _top_p,
}
