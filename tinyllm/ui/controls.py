"""Controls of a run, their values in the address, and messages instead of tracebacks.

Every control is keyed by its field of the page's Settings (RunConfig, unless it says otherwise)
and bound to the URL parameter of that name, so an address is a run. A value the address gets
wrong is dropped and said so; a prompt that cannot be run keeps its text and the last good run
stays on the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import streamlit as st

from tinyllm.errors import TinyllmError
from tinyllm.experiments.settings import (
    DEFAULT_PROMPT,
    PROMPTS,
    RunConfig,
    Settings,
    problem_of,
)
from tinyllm.ui import state
from tinyllm.ui.state import Result
from tinyllm.ui.text import _, literal

# Of columns; sliders take 2.1.
_WIDTHS = {"kv_dtype": 1.9, "kv_heads": 1.75, "lengths": 3.4, "prompt": 4.2, "context": 4.0}
_ROW_HEIGHT = 68  # the least that Streamlit gives a text area
_PRESSED = "_pressed_run"
_BIND: dict[str, Any] = {"bind": "query-params"}


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
        label, number(low), number(high), default, number(step), form, field, help_text, **_BIND
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
        **_BIND,
    )


def menu(field: str, label: str, help_text: str, kind: type[Settings] = RunConfig) -> Any:
    """One of a field's choices, which are too many to be all in view."""
    return st.selectbox(
        label, kind.choices[field], key=field, help=help_text, filter_mode=None, **_BIND
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


def _prompt_box(height: int, default: str = DEFAULT_PROMPT) -> Any:
    text = _("Printable ASCII and line breaks; the models learnt from Python source code.")
    return st.text_area(_("Prompt"), default, key="prompt", height=height, help=text, **_BIND)


def _prompt() -> Any:
    value = _prompt_box(110)
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
        label, int(low), int(high), default, 1, key=field, help=help_text, **_BIND
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


def _wrong_parameters(kind: type[Settings], names: Sequence[str]) -> dict[str, str]:
    """What is wrong with URL parameters of this page, by field; ask before the widgets drop them.

    One prompt is left alone: its text is the visitor's, and the page says what is wrong with it.
    """
    problems = {}
    for field in names:
        given = st.query_params.get_all(field)
        if given and (field != "prompt" or len(given) > 1):
            problem = problem_of(field, given, kind)
            if problem is not None:
                problems[field] = problem
    return problems


def control_row(
    page: str,
    main: Sequence[str],
    more: Sequence[str],
    begin: state.Begin[Result],
    *,
    kind: type[Settings] = RunConfig,
    widgets: Widgets = RUN_WIDGETS,
    at_once: bool = False,
    prompt: str = DEFAULT_PROMPT,
    **fixed: Any,
) -> state.Play[Result]:
    """The row of controls, `main` in view and `more`, if any, in a popover, and their run.

    `kind` are the page's settings and `widgets` its controls by field. `begin` makes a run. One
    that is worked out `at_once` has no Stop. `prompt` is the page's own to begin with, where it
    stands in the row. `fixed` settings have no control on this page. What is wrong is said, and
    the page's last good settings stay.
    """
    # Always there, filled or not: an element that comes and goes would remount what follows.
    messages = st.container()
    values: dict[str, Any] = dict(fixed)
    wrong = _wrong_parameters(kind, [*main, *more])
    popover = [1.5] if more else []
    widths = [*(_WIDTHS.get(name, 2.1) for name in main), *popover, 0.9 if at_once else 1.85]
    columns = st.columns(widths, vertical_alignment="bottom")
    for column, field in zip(columns, main, strict=False):
        with column:
            in_row = field == "prompt"  # where there is no room for sample prompts below it
            values[field] = _prompt_box(_ROW_HEIGHT, prompt) if in_row else widgets[field]()
    if more:
        label = _("Prompt etc.") if "prompt" in more else _("More")
        with columns[-2], st.popover(label, width="stretch"):
            for field in more:
                values[field] = widgets[field]()
    example = fixed | ({"prompt": prompt} if kind is RunConfig else {})
    with messages:
        config, good = _validated(page, kind, values, example)
        warn(page, wrong, asdict(config))
    place = st.empty()
    # Settings that make no run start none: what was good before stays on the page.
    pressed = bool(st.session_state.pop(_PRESSED, False)) and good
    try:
        play = state.chosen(page, config, begin, pressed, place if at_once else None)
    except TinyllmError as error:  # a model that is missing or damaged
        messages.error(literal(str(error)))
        st.stop()
    with columns[-1]:
        _buttons(play, at_once)
    return play


def warn(page: str, wrong: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Say what was wrong in the address, until the visitor moves the control concerned.

    `wrong` holds a problem by control, `values` what every control of the page shows now.
    """
    key = f"_wrong_{page}"
    said: dict[str, tuple[str, Any]] = st.session_state.get(key, {})
    said = said | {field: (problem, values[field]) for field, problem in wrong.items()}
    still = {field: one for field, one in said.items() if values[field] == one[1]}
    st.session_state[key] = still
    sentence = _("{problem}. This page uses {value}.")
    for problem, value in still.values():
        st.warning(literal(sentence.format(problem=problem, value=repr(value))))


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


def choose(field: str, label: str, options: Sequence[str], help_text: str) -> str:
    """A choice that is no setting of a run; the address carries its text as `field`.

    A text in the address that is none of the options is said, until another one is chosen.
    """
    key = f"_wrong_{field}"
    raw = st.query_params.get(field)
    messages = st.container()
    chosen = str(st.selectbox(label, options, key=field, help=help_text, **_BIND))
    if raw is not None and raw not in options:
        st.session_state[key] = raw[:40], chosen
    given, instead = st.session_state.get(key, ("", ""))
    if instead == chosen:
        sentence = _(
            "there is no {field} {given!r} and this page uses {chosen!r}: choose one of {options}"
        )
        listed = ", ".join(options)
        said = sentence.format(field=field, options=listed, given=given, chosen=chosen)
        messages.warning(literal(said))
    return chosen


def try_this(ideas: Mapping[str, Settings]) -> None:
    """Buttons that set the controls to something worth seeing, by what it shows."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"**{_('Try this.')}**", width="content")
        for number, (idea, config) in enumerate(ideas.items()):
            st.button(idea, key=f"_idea_{number}", on_click=_set_controls, args=(config,))


def _set_controls(config: Settings) -> None:
    """Set what an idea changes and leave the rest; callbacks may, scripts may not."""
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name in st.session_state and value != field.default:
            st.session_state[field.name] = value


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
        problem = str(error)[:1].upper() + str(error)[1:]
        st.error(literal(sentence.format(problem=problem)))
        return good, False
    st.session_state[key] = config
    return config, True
