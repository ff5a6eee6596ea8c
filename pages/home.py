"""Home: the race. One prompt, three ways to decode it, measured just now."""

from tinyllm.experiments.models import QUESTIONS
from tinyllm.experiments.race import RaceRecord, is_live, live_race, race, table, tokens_read
from tinyllm.experiments.request import prompt_ids
from tinyllm.experiments.settings import RunConfig
from tinyllm.generation import generate
from tinyllm.speculative import speculate
from tinyllm.ui import controls, findings, layout, loaded, state
from tinyllm.ui.lanes import race_lanes
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.text import _

ensure_entry()
PAGE = "home"

layout.heading(
    _("A cache makes the same text many times faster; a draft saves calls on top"),
    _("One prompt, one model, three ways to decode it, measured just now."),
)


def begin(config: RunConfig) -> state.Play[RaceRecord]:
    """The race: of a small model over in about a second and replayed, of a larger one live."""
    target, drafter = loaded.model(config.target), loaded.drafter(config)
    repeats = 3 if config.tokens <= 128 else 1
    live = is_live(target)
    events = live_race(config, target, drafter) if live else race(config, target, drafter, repeats)
    return state.Play(config, events, RaceRecord(target.tokenizer))


def show() -> None:
    """Everything that moves: the lanes and what to notice."""
    lanes = state.step(PAGE, play).lanes
    identity = play.began.isoformat()
    race_lanes(lanes, config, target, "race", identity=identity, live=play.running)
    layout.notice(findings.race(lanes, finished=play.ended))


play = controls.control_row(
    PAGE,
    ("model", "k", "tokens"),
    ("prompt", "kv_heads", "kv_dtype", "drafter"),
    begin,
    at_once=lambda config: not is_live(loaded.model(config.target)),
    temperature=0.0,
)
config, target = play.config, loaded.model(play.config.target)
state.ticking(show, play)
record = play.result.lanes
layout.timing(play, record[0].tokens_per_second.count)
controls.try_this(
    {
        _("A longer text: 256 tokens"): RunConfig(tokens=256),
        _("Guess twice as far: k = 8"): RunConfig(k=8),
        _("No draft model at all: prompt lookup"): RunConfig(drafter="ngram"),
    }
    if config.chosen_model.characters
    else {
        _("Much to copy: rewrite a text"): RunConfig(prompt=QUESTIONS["rewrite"]),
        _("Guess twice as far: k = 8"): RunConfig(k=8),
        _("A smaller cache: int8"): RunConfig(kv_dtype="int8"),
    },
)
read_uncached, read_cached = tokens_read(len(prompt_ids(config.prompt, target)), config.tokens)
layout.below(
    reading=_(
        "Without a cache, making token t of N after a prompt of P reads all the tokens before "
        "it again, so the work grows with the square of N. With the cache a step reads one. "
        "Speculation makes fewer steps: a call of the target gives between 1 and k + 1 tokens."
    ),
    formula=(
        r"\sum_{t=1}^{N} (P + t - 1) \quad\text{tokens read, against}\quad P + N - 1",
        rf"{read_uncached:,} \quad\text{{against}}\quad {read_cached:,}",
    ),
    code=(generate, speculate),
    sources=layout.SOURCES,
    export={"lanes": table(record)},
    settings=config,
)
