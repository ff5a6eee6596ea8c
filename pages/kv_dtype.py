"""KV dtype: what fewer bits per number save, and what they cost in quality and in time."""

import streamlit as st

from tinyllm.cache import Format
from tinyllm.cache.channels import ChannelStorage
from tinyllm.cache.quantised import TokenStorage, quantise
from tinyllm.cache.storage import Widening
from tinyllm.experiments import memory
from tinyllm.experiments.kv_dtype import LARGE, TOKENS, extent_for, texts, watch
from tinyllm.experiments.kv_dtype_record import FormatRecord, formats_table
from tinyllm.experiments.models import is_large
from tinyllm.experiments.rows import flat
from tinyllm.experiments.settings import RunConfig
from tinyllm.ui import controls, formats, formulas, layout, loaded, state
from tinyllm.ui import outliers as drawn
from tinyllm.ui.navigation import ensure_entry
from tinyllm.ui.plot import plot
from tinyllm.ui.text import _, busy

ensure_entry()
PAGE, MEASURED = "kv_dtype", "kv_dtype of every format"


def begin(config: RunConfig) -> state.Play[FormatRecord]:
    """A run to watch, format by format.

    The formats depend on the model alone. Once they are measured, new settings need new texts
    only; the same settings again mean that Run was pressed, and everything is measured anew.
    """
    model = loaded.model(config.target)
    measured = state.store(MEASURED).get(config.target)
    if measured is None:
        return state.Play(config, watch(config, model), FormatRecord())
    record = measured.result.restarted()
    if state.store(PAGE).get(config) is not None:
        return state.Play(config, watch(config, model), record)
    play = state.Play(config, texts(config, model), record)
    play.began = measured.began
    return play


def show() -> None:
    """Everything that moves: the two texts, chart, tiles, what to notice."""
    record = state.step(PAGE, play)
    if play.ended:
        state.store(MEASURED).put(config.target, play)
        state.store(PAGE).put(config, play)  # also one that ended before its first tick
    place = st.empty()  # there before it is filled: what comes and goes remounts what follows
    if record.texts is not None:
        place.html(formats.texts_html(record.texts, config.kv_dtype))
    chart, tiles = st.columns([4, 1])
    with chart:
        figure = formats.quality_figure(record, config.kv_dtype, shape)
        plot(figure, "quality_chart", alt=formats.quality_chart(record), height=330)
    with tiles:
        for name, value in formats.tiles(record, config.kv_dtype):
            st.metric(name, value)
    layout.notice(formats.notice(record, config.kv_dtype))
    if play.running:
        st.html(busy(formats.progress(record)))


layout.heading(_("Fewer bits per number: the cache shrinks long before quality does"))
play = controls.control_row(
    PAGE,
    ("model", "kv_dtype", "kv_heads"),
    ("prompt", "temperature", "seed", "top_k", "top_p"),
    begin,
)
config = play.config
target = loaded.model(config.target)
shape = target.config
state.ticking(show, play)
with st.container():  # there when it is empty, for the charts below
    if not play.running:
        layout.timing(play, extent_for(target).turns)
if extent_for(target) == LARGE:
    st.caption(formats.less_is_measured(LARGE))
controls.try_this(
    {
        _("Four bits: int4"): RunConfig(kv_dtype="int4"),
        _("A scale for every eight numbers: int4_g8"): RunConfig(kv_dtype="int4_g8"),
        _("Keys by channel: int4_channel"): RunConfig(kv_dtype="int4_channel"),
        _("Eight bits: int8"): RunConfig(kv_dtype="int8"),
    },
)

rows = drawn.section(target, config.kv_dtype, ready=not (is_large(shape) and play.running))

size = memory.cache_size(shape, config.kv_dtype, TOKENS)
layout.below(
    reading=_(
        "Every layer (L) and KV head (G) keeps a key and a value of D numbers of b bits for each "
        "of the S tokens, and for integers n scales, a float16 each. Keys by channel have D scales "
        "for every full block of 32 tokens (F tokens are in full blocks) and keep the newest W "
        "keys as float16. fp8 has a scale of 1 and saturates. Below, the formula for a prompt "
        "and its text beside the cache's own count and the sum of its arrays' nbytes; the table "
        "of memory in the data has all three for every format of every model."
    ),
    formula=formulas.cache_bytes(shape, TOKENS, config.kv_dtype, size),
    code=(Format, quantise, TokenStorage, ChannelStorage, Widening),
    sources=(
        _(
            "Z. Liu and others, *KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache*, "
            "ICML 2024, arXiv 2402.02750: keys by channel, values by token, the newest as floats."
        ),
        _(
            "P. Micikevicius and others, *FP8 Formats for Deep Learning*, 2022, arXiv 2209.05433: "
            "e4m3 without infinities, e5m2, and conversion that saturates."
        ),
        _(
            "T. Dettmers and others, *LLM.int8()*, NeurIPS 2022, arXiv 2208.07339: the large "
            "channels of large models."
        ),
        _("vLLM's documentation, *Quantized KV Cache*: fp8_e4m3 and fp8_e5m2 with a scale of 1."),
    ),
    export={
        "formats": formats_table(play.result),
        "outliers": list(map(flat, rows)),
        "memory": list(map(flat, memory.rows())),
    },
    settings=config,
)
