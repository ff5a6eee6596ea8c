"""KV heads: fewer of them read fewer bytes, and what that costs in quality."""

import streamlit as st

from tinyllm.attention import attend_row
from tinyllm.experiments import attention_step
from tinyllm.experiments.attention_step import TURNS
from tinyllm.experiments.head_quality import variants
from tinyllm.experiments.kv_heads import HeadsRecord, watch
from tinyllm.experiments.rows import flat
from tinyllm.experiments.settings import RunConfig
from tinyllm.training.uptraining import pool_heads
from tinyllm.ui import controls, formulas, heads, layout, loaded, state
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _

ensure_entry()
PAGE = "kv_heads"
HEIGHT = 430


def begin(config: RunConfig) -> state.Play[HeadsRecord]:
    """Attention steps and trained models, a turn of each at a time."""
    known = variants()
    models = [loaded.model(one.name) for one in known]
    return state.Play(config, watch(models, config.context), HeadsRecord(known))


def show() -> None:
    """Everything that moves: the two charts, tiles, what to notice."""
    record = state.step(PAGE, play)
    reading, quality, numbers = st.columns([2, 2, 1])
    with reading:
        figure = heads.attention_figure(record.attention)
        plot(figure, "attention_chart", alt=heads.attention_chart(record), height=HEIGHT)
    with quality:
        figure = heads.quality_figure(record.quality)
        plot(figure, "quality_chart", alt=heads.quality_chart(record), height=HEIGHT)
    with numbers:
        heads.tiles(record)
    layout.notice(heads.notice(record))


layout.heading(_("Fewer KV heads: less to keep, less to read, and hardly worse text"))
play = controls.control_row(PAGE, ("context",), (), begin)
record, config = play.result, play.config
state.ticking(show, play)
layout.timing(play, TURNS)
controls.try_this(
    {
        _("A cache that fits the processor's own: 1,024 tokens"): RunConfig(context=1024),
        _("Twice the article's context: 8,192 tokens"): RunConfig(context=8192),
    }
)

layout.below(
    reading=_(
        "Every KV head (G) keeps a key and a value of D numbers for each of S tokens, whatever "
        "the number of query heads (H = {heads}) that share them. Decoding one token multiplies "
        "little and reads all of it, so its time follows the bytes; some remains that does not, "
        "the softmax of every query head. The models on the right were trained twice: from "
        "scratch with fewer KV heads, for as many steps as the {most}-head model, and from that "
        "model, its heads replaced by the mean of each group and trained further (uptraining): "
        "counted with the model they began from, these had more steps. Each point is one run with "
        "one seed, so how far the two ways lie apart may be chance. The cards in assets/models "
        "tell the steps of each, and its loss by position."
    ).format(heads=attention_step.QUERY_HEADS, most=record.known[0].config.n_kv_head),
    formula=formulas.heads_bytes(record.attention, config.context),
    code=(attend_row, pool_heads),
    sources=(
        *layout.SOURCES,
        _("The loss of every model on all unseen files stands on its card in assets/models."),
    ),
    export={
        "attention": [flat(row) for row in record.attention],
        "quality": [flat(row) for row in record.quality],
    },
    settings=config,
)
