"""The row of controls of a run, and messages instead of tracebacks.

Its widgets stand in widgets.py, one a field of the page's Settings, so an address is a run. A
value the address gets wrong is dropped and said so; a prompt that cannot be run keeps its text
and the last good run stays on the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tinyllm.errors import TinyllmError
from tinyllm.experiments import models
from tinyllm.experiments.models import ModelChoice
from tinyllm.experiments.settings import RunConfig, Settings
from tinyllm.ui import address, loaded, state
from tinyllm.ui.state import Result
from tinyllm.ui.text import _, literal
from tinyllm.ui.widgets import ADOPTED, Widgets, model_menu, prompt_box, run_widgets

# Of columns; sliders take 2.1.
_WIDTHS = {
    "context": 4.0,
    "kv_dtype": 1.9,
    "kv_heads": 1.75,
    "lengths": 3.4,
    "model": 2.2,
    "prompt": 4.2,
}
_ROW_HEIGHT = 68  # the least that Streamlit gives a text area
_PRESSED = "_pressed_run"


def _first_prompt(model: ModelChoice) -> str:
    return model.prompt


def _never(_config: Any) -> bool:
    return False


def control_row(
    page: str,
    main: Sequence[str],
    more: Sequence[str],
    begin: state.Begin[Result],
    *,
    kind: type[Settings] = RunConfig,
    widgets: Callable[[ModelChoice], Widgets] = run_widgets,
    at_once: Callable[[Any], bool] = _never,
    prompt_of: Callable[[ModelChoice], str] = _first_prompt,
    **fixed: Any,
) -> state.Play[Result]:
    """The row of controls, `main` in view and `more`, if any, in a popover, and their run.

    `kind` are the page's settings and `widgets` its controls by field, for a model; where one can
    be chosen, it stands first. `begin` makes a run. One that is worked out `at_once` has no Stop.
    `prompt_of` a model is the page's own to begin with. `fixed` settings have no control on this
    page. What is wrong is said, and the page's last good settings stay.
    """
    # Always there, filled or not: an element that comes and goes would remount what follows.
    messages = st.container()
    widths = [*(_WIDTHS.get(name, 2.1) for name in main), *([1.5] if more else []), 1.85]
    columns = st.columns(widths, vertical_alignment="bottom")
    values: dict[str, Any] = dict(fixed)
    wrong: dict[str, str] = {}
    if "model" in main:
        wrong = address.wrong_parameters(kind, ["model"], models.chosen(models.DEFAULT))
        with columns[main.index("model")]:
            values["model"] = model_menu(prompt_of)
    model = _chosen(values.get("model", models.DEFAULT), messages)
    others = [field for field in main if field != "model"]
    if not st.session_state.pop(ADOPTED, False):
        wrong |= address.wrong_parameters(kind, [*others, *more], model)
    boxes = widgets(model)
    if "prompt" in main:  # where there is no room for sample prompts below it
        boxes = {**boxes, "prompt": partial(prompt_box, _ROW_HEIGHT, model, prompt_of(model))}
    for field in others:
        with columns[main.index(field)]:
            values[field] = boxes[field]()
    if more:
        label = _("Prompt etc.") if "prompt" in more else _("More")
        with columns[-2], st.popover(label, width="stretch"):
            for field in more:
                values[field] = boxes[field]()
    example: dict[str, Any] = dict(fixed)
    if kind is RunConfig:
        values = {"tokens": model.tokens[0]} | values
        example = _run_example(model, prompt_of) | fixed
    with messages:
        config, good = _validated(page, kind, values, example)
        address.warn(page, wrong, asdict(config))
    # Settings that make no run start none: what was good before stays on the page.
    pressed = bool(st.session_state.pop(_PRESSED, False)) and good
    play = _begun(page, config, begin, pressed, at_once, messages)
    with columns[-1]:
        _buttons(play, at_once(play.config))
    return play


def _chosen(name: str, messages: DeltaGenerator) -> ModelChoice:
    """A model by name; the page ends here when what is on the disk under it cannot be read."""
    try:
        return models.chosen(name)
    except TinyllmError as error:
        messages.error(literal(str(error)))
        st.stop()


def _run_example(model: ModelChoice, prompt_of: Callable[[ModelChoice], str]) -> dict[str, Any]:
    """What a page shows until it is given settings that make a run."""
    return {"model": model.name, "prompt": prompt_of(model), "tokens": model.tokens[0]}


def _begun(
    page: str,
    config: Settings,
    begin: state.Begin[Result],
    pressed: bool,
    at_once: Callable[[Any], bool],
    messages: DeltaGenerator,
) -> state.Play[Result]:
    """The run of these settings; of the last that could be begun when these cannot."""
    key, place = f"_ran_{page}", st.empty()
    try:
        loaded.prepare(config, place)
        play = state.chosen(page, config, begin, pressed, place if at_once(config) else None)
    except TinyllmError as error:  # a model that is missing or does not fit, a prompt too long
        before: Settings | None = st.session_state.get(key)
        if before is None or before == config:
            messages.error(literal(str(error)))
            st.stop()
        sentence = _("{problem}. Shown below is the last run that could be made.")
        messages.error(literal(sentence.format(problem=_capital(str(error)))))
        return state.chosen(page, before, begin, False, place if at_once(before) else None)
    st.session_state[key] = config
    return play


def _capital(problem: str) -> str:
    return problem[:1].upper() + problem[1:]


def _buttons(play: state.Play[Any], at_once: bool) -> None:
    """Run, and Stop where there is something to stop; G and S press them."""
    with st.container(horizontal=True, gap="small", wrap=False):
        st.button(_("Run"), type="primary", shortcut="g", on_click=_press, key="_run")
        if not at_once:
            st.button(
                _("Stop"),
                shortcut="s",
                disabled=not play.running,
                on_click=_halt,
                args=(play,),
                key="_stop",
            )


def try_this(ideas: Mapping[str, Settings]) -> None:
    """Buttons that set the controls to something worth seeing, by what it shows."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"**{_('Try this.')}**", width="content")
        for number, (idea, config) in enumerate(ideas.items()):
            st.button(idea, key=f"_idea_{number}", on_click=_set_controls, args=(config,))


def _set_controls(config: Settings) -> None:
    """Set what an idea changes and leave the rest; callbacks may, scripts may not."""
    for field, value in _changes(config).items():
        if field in st.session_state:
            st.session_state[field] = value


def _changes(config: Settings) -> dict[str, Any]:
    """The fields that are not as in settings of which nothing is said."""
    usual = asdict(type(config)())
    return {name: value for name, value in asdict(config).items() if value != usual[name]}


def _press() -> None:
    st.session_state[_PRESSED] = True


def _halt(play: state.Play[Any]) -> None:
    play.stopped = True


def _validated(
    page: str, kind: type[Settings], values: dict[str, Any], example: dict[str, Any]
) -> tuple[Settings, bool]:
    """The settings and True if they make a run, else the last that did, under a message."""
    key = f"_good_{page}"
    try:
        config = kind(**{name: value for name, value in values.items() if value is not None})
    except TinyllmError as error:
        good: Settings | None = st.session_state.get(key)
        if good is None:
            good = kind(**example)
            sentence = _("{problem}. Until then the page shows its own example.")
        else:
            sentence = _("{problem}. Shown below is the last run that could be made.")
        st.error(literal(sentence.format(problem=_capital(str(error)))))
        return good, False
    st.session_state[key] = config
    return config, True
