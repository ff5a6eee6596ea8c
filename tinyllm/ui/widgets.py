"""The widgets of a run's fields: each is keyed by its field and bound to the URL parameter.

Ranges and choices come from the page's Settings, and follow the model; nothing is checked here.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.experiments import models
from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.settings import RunConfig, Settings
from tinyllm.ui.text import _

BIND: dict[str, Any] = {"bind": "query-params"}
ADOPTED = "_adopted"  # another model was chosen; the address still holds what went with the last
_BOX_HEIGHT = 110  # of the prompt, where there is room
_DEFAULT = models.chosen(models.DEFAULT)


def slider(
    field: str,
    label: str,
    step: float,
    help_text: str,
    form: str | None = None,
    kind: type[Settings] = RunConfig,
    model: ModelChoice = _DEFAULT,
    default: float | None = None,
) -> Any:
    """A slider over a field's range, from and to the ends that its Settings allow."""
    low, high = kind.ranges_for(model)[field]
    number = type(kind.default(field))
    value = number(kind.default(field) if default is None else default)
    held = st.session_state.get(field)
    if isinstance(held, int | float) and not low <= held <= high:  # another model's
        st.session_state[field] = value
    return st.slider(
        label, number(low), number(high), value, number(step), form, field, help_text, **BIND
    )


def _options(field: str, kind: type[Settings], model: ModelChoice) -> tuple[Any, ...]:
    """A field's choices; one that goes with another model only is given up."""
    options = kind.choices_for(model)[field]
    if field in st.session_state and st.session_state[field] not in options:
        st.session_state[field] = options[0]
    return options


def choice(
    field: str,
    label: str,
    help_text: str,
    kind: type[Settings] = RunConfig,
    model: ModelChoice = _DEFAULT,
) -> Any:
    """One of a field's choices, all in view."""
    options = _options(field, kind, model)
    return st.segmented_control(
        label,
        options,
        default=kind.default(field) or options[0],
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


def model_menu(prompt_of: Callable[[ModelChoice], str]) -> str:
    """Which model; `prompt_of` gives the prompt that a page begins with for each."""
    known = models.names()
    if st.session_state.get("model", models.DEFAULT) not in known:  # the calculator's, say
        st.session_state["model"] = models.DEFAULT
    text = _("A trained model of characters, or a language model that this machine has.")
    if missing := models.to_install():
        more = _("{names}: run make llm, then start the app again.")
        text = f"{text} {more.format(names=', '.join(missing))}"
    return str(
        st.selectbox(
            _("Model"),
            known,
            key="model",
            help=text,
            on_change=_adopt,
            args=(prompt_of,),
            filter_mode=None,
            **BIND,
        )
    )


def _adopt(prompt_of: Callable[[ModelChoice], str]) -> None:
    """After another model was chosen: what is usual with it."""
    st.session_state[ADOPTED] = True
    with suppress(TinyllmError):  # one that cannot be read has nothing of its own
        model = models.chosen(st.session_state["model"])
        own = {"prompt": prompt_of(model), "tokens": model.tokens[0]}
        own |= {"drafter": model.drafters[0], "kv_heads": model.kv_heads[0]}
        for field, value in own.items():
            if field in st.session_state:
                st.session_state[field] = value


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


def kv_heads(model: ModelChoice, kind: type[Settings] = RunConfig) -> Any:
    """The KV heads of the model, where it was trained with several numbers of them."""
    text = _("Key/value heads, which the query heads share; each number is a trained model.")
    return choice("kv_heads", _("KV heads"), text, kind, model)


def _context() -> Any:
    text = _("How many tokens the timed attention step reads; more takes more memory and time.")
    return choice("context", _("Cached tokens"), text)


def _drafter(model: ModelChoice) -> Any:
    text = _("A small trained model, or prompt lookup: what followed the same tokens before.")
    return choice("drafter", _("Drafter"), text, model=model)


def _set_prompt(prompt: str) -> None:
    st.session_state["prompt"] = prompt


def prompt_box(height: int, model: ModelChoice, default: str) -> Any:
    """The prompt, a page's own or the model's to begin with."""
    text = (
        _("Printable ASCII and line breaks; the models learnt from Python source code.")
        if model.characters
        else _("Any text. A model that was taught to answer gets it as a question.")
    )
    return st.text_area(_("Prompt"), default, key="prompt", height=height, help=text, **BIND)


def _prompt(model: ModelChoice) -> Any:
    value = prompt_box(_BOX_HEIGHT, model, model.prompt)
    with st.container(horizontal=True, gap="small"):
        for name, prompt in model.prompts.items():
            st.button(name, key=f"_prompt_{name}", on_click=_set_prompt, args=(prompt,))
    return value


def _tokens(model: ModelChoice) -> Any:
    text, usual = _("How many tokens to make."), model.tokens[0]
    return slider("tokens", _("New tokens"), 8, text, model=model, default=usual)


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


def run_widgets(model: ModelChoice) -> Widgets:
    """The controls of a run by field, for a model."""
    return {
        "k": _k,
        "temperature": _temperature,
        "kv_dtype": kv_dtype,
        "kv_heads": partial(kv_heads, model),
        "context": _context,
        "drafter": partial(_drafter, model),
        "prompt": partial(_prompt, model),
        "tokens": partial(_tokens, model),
        "seed": _seed,
        "top_k": _top_k,
        "top_p": _top_p,
    }
