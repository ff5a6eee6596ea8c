"""The planner's controls, charts and sentences: models that are not here, from what one assumes.

Every field of PlanSettings is the key of one widget and the name of one URL parameter.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import streamlit as st

from tinyllm.experiments import models
from tinyllm.experiments.planner import (
    BYTES_PER_PARAMETER,
    BatchPlan,
    KPlan,
    PlanSettings,
    fast_gpus,
)
from tinyllm.experiments.published import PublishedRow
from tinyllm.ui import address
from tinyllm.ui.figures import MARGIN, heading, line
from tinyllm.ui.forecast import LEGEND, level
from tinyllm.ui.plot import Figure
from tinyllm.ui.text import _, format_bytes, format_count, format_seconds
from tinyllm.ui.widgets import BIND, choice, slider

_FIELDS = tuple(PlanSettings.__dataclass_fields__)


def choose() -> PlanSettings:
    """Draw the controls; what an address gets wrong is dropped and said."""
    messages = st.container()
    wrong = address.wrong_parameters(PlanSettings, _FIELDS, models.chosen(models.DEFAULT))
    kind = PlanSettings
    columns = st.columns([2.6, 2, 2, 2, 2, 1.5], vertical_alignment="bottom")
    with columns[0]:
        text = _("What checking several tokens costs: one step, a line, or a GPU's roofline.")
        values: dict[str, Any] = {"curve": choice("curve", _("Cost of checking"), text, kind)}
    with columns[1]:
        text = _("The share of tested proposals that the target accepts.")
        values["alpha"] = slider("alpha", _("Acceptance rate α"), 0.01, text, "%.2f", kind)
    with columns[2]:
        text = _("A draft call, in target steps.")
        values["c"] = slider("c", _("Cost of a draft call, c"), 0.005, text, "%.3f", kind)
    with columns[3]:
        values["k"] = slider("k", _("k, proposals a round"), 1, _("In a round."), None, kind)
    with columns[4]:
        text = _("Sequences that are decoded together; only the roofline depends on it.")
        values["batch"] = slider("batch", _("Batch size"), 1, text, None, kind)
    with columns[5], st.popover(_("GPU, model"), width="stretch"):
        text = _("Those whose bandwidth and operations a public source gives.")
        names, usual = kind.choices["gpu"], kind.default("gpu")
        values["gpu"] = st.selectbox(
            _("GPU of the roofline"), names, names.index(usual), key="gpu", help=text, **BIND
        )
        text = _("Of the target, in bfloat16; what one GPU cannot hold is divided among several.")
        values["billions"] = _real("billions", _("Parameters, billions"), text, 1.0)
        text = _("GiB of KV cache that one sequence reads in a step; 0 for short contexts.")
        values["cache_gib"] = _real("cache_gib", _("KV cache a sequence, GiB"), text, 0.25)
        text = _("Of a step, for each further token.")
        values["slope"] = slider("slope", _("Slope of the line"), 0.01, text, "%.2f", kind)
    plan = kind(**{name: value for name, value in values.items() if value is not None})
    with messages:
        address.warn("forecast_plan", wrong, asdict(plan))
    return plan


def _real(field: str, label: str, help_text: str, step: float) -> Any:
    low, high = PlanSettings.ranges[field]
    default = PlanSettings.default(field)
    return st.number_input(label, low, high, default, step, "%g", key=field, help=help_text, **BIND)


def k_figure(plans: Sequence[KPlan], k: int) -> Figure:
    """Speed-up by k: if checking cost one step, on the chosen curve, and the k chosen."""
    ks = [plan.k for plan in plans]
    here = next(plan for plan in plans if plan.k == k)
    hover = _("k = %{x}: %{y:.2f} × plain")
    flat = line(ks, [plan.flat for plan in plans], hover, color="$2", dash="dash")
    curve = line(ks, [plan.speedup for plan in plans], hover, color="$1")
    data = [
        flat | {"name": _("if checking cost one step"), "showlegend": True},
        curve | {"name": _("at this cost of checking"), "showlegend": True},
        {
            "type": "scatter",
            "mode": "markers",
            "showlegend": False,
            "x": [k],
            "y": [here.speedup],
            "marker": {"size": 12, "color": "$1", "symbol": "diamond"},
            "hovertemplate": hover + "<extra></extra>",
        },
    ]
    top = max(1.2, *(plan.flat for plan in plans))
    return {
        "data": data,
        "layout": _layout(_("Speed against plain, by k"), top)
        | {"xaxis": {"title": {"text": _("k, proposals a round")}, "dtick": 2}},
    }


def batch_figure(plans: Sequence[BatchPlan], plan: PlanSettings) -> Figure:
    """Speed-up by batch size: at the k chosen, and at the best k of each batch."""
    batches = [one.batch for one in plans]
    hover = _("batch %{x}: %{y:.2f} × plain")
    chosen = line(batches, [one.speedup for one in plans], hover, color="$1")
    best = line(
        batches,
        [one.best_speedup for one in plans],
        _("batch %{x}: %{y:.2f} × plain at k = %{customdata}"),
        color="$0",
        dash="dot",
    ) | {"customdata": [one.best_k for one in plans]}
    data = [
        best | {"name": _("best k of each batch, 0 if none wins"), "showlegend": True},
        chosen | {"name": _("k = {k}").format(k=plan.k), "showlegend": True},
    ]
    top = max(1.2, *(one.best_speedup for one in plans))
    ticks = {"type": "log", "tickvals": batches, "ticktext": [str(one) for one in batches]}
    return {
        "data": data,
        "layout": _layout(_("Speed against plain, by batch size"), top)
        | {"xaxis": ticks | {"title": {"text": _("sequences decoded together")}}},
    }


def _layout(title: str, top: float) -> dict[str, Any]:
    return {
        "margin": MARGIN,
        "yaxis": {"range": [0, top * 1.12], "nticks": 6},
        "legend": LEGEND,
        "shapes": [level(1)],
        "annotations": [heading(title, 1)],
    }


def k_alt(plans: Sequence[KPlan]) -> str:
    """The chart over k in words."""
    shown = "; ".join(f"k {plan.k}: {plan.speedup:.2f}" for plan in plans)
    return _("Planned speed against plain decoding by k. {list}.").format(list=shown)


def batch_alt(plans: Sequence[BatchPlan]) -> str:
    """The chart over batch sizes in words."""
    shown = "; ".join(f"batch {plan.batch}: {plan.speedup:.2f}" for plan in plans)
    return _("Planned speed against plain decoding by batch size. {list}.").format(list=shown)


def finding(plan: PlanSettings, by_k: Sequence[KPlan], by_batch: Sequence[BatchPlan]) -> str:
    """What the plan comes to, and where its batch ends the win."""
    here = next(one for one in by_k if one.k == plan.k)
    best = max(by_k, key=lambda one: one.speedup)
    lost = next((one.batch for one in by_batch if one.speedup < 1), None)
    words = {
        "k": plan.k,
        "n": plan.k + 1,
        "cost": here.call_cost,
        "calls": here.tokens_per_call,
        "speedup": here.speedup,
        "batch": plan.batch,
        "best": best.k,
        "most": best.speedup,
        "lost": lost,
        "batches": by_batch[-1].batch,
    }
    if plan.curve != "roofline":
        sentence = _(
            "A call of {n} tokens costs {cost:.2f} steps and brings {calls:.2f} tokens: k = {k} "
            "runs at {speedup:.2f} times plain speed, and the best is k = {best} with {most:.2f}. "
            "This curve knows no batch; the roofline does."
        )
    elif lost == by_batch[0].batch:
        sentence = _(
            "At batch size {batch} a call of {n} tokens costs {cost:.2f} steps: k = {k} "
            "runs at {speedup:.2f} times plain speed, and the best is k = {best} with {most:.2f}. "
            "At every batch size, even one, k = {k} is slower than plain decoding."
        )
    elif lost is None:
        sentence = _(
            "At batch size {batch} a call of {n} tokens costs {cost:.2f} steps: k = {k} "
            "runs at {speedup:.2f} times plain speed, and the best is k = {best} with {most:.2f}. "
            "Up to a batch of {batches}, k = {k} is never slower than plain decoding."
        )
    else:
        sentence = _(
            "At batch size {batch} a call of {n} tokens costs {cost:.2f} steps: k = {k} "
            "runs at {speedup:.2f} times plain speed, and the best is k = {best} with {most:.2f}. "
            "The batch takes the win away: from {lost} on, k = {k} is slower than plain decoding."
        )
    return sentence.format(**words)


def basis(plan: PlanSettings) -> str | None:
    """What the roofline is made of; None for a curve without one."""
    if plan.curve != "roofline":
        return None
    gpu, roofline = fast_gpus()[plan.gpu], plan.roofline
    step = roofline.seconds(plan.batch)
    return _(
        "{gpu}: {bandwidth:.2f} TB/s and {operations} TFLOP/s in bfloat16 ({source}). {billions:g} "
        "billion parameters in {bytes_each} bytes each are {weights}; a step takes {step} at the "
        "least, {rate} tokens/s for each sequence. While the weights come, {free} tokens can be "
        "worked on. Attention's operations and the gaps between kernels are left out."
    ).format(
        gpu=plan.gpu,
        bandwidth=(gpu.bytes_per_second or 0) / 1e12,
        operations=format_count((gpu.operations_per_second or 0) / 1e12),
        source=gpu.speed_source,
        billions=plan.billions,
        bytes_each=BYTES_PER_PARAMETER,
        weights=format_bytes(roofline.weight_bytes),
        step=format_seconds(step),
        rate=format_count(1 / step),
        free=format_count(roofline.tokens_for_nothing),
    )


def published_table(rows: Sequence[PublishedRow]) -> list[dict[str, str]]:
    """Printed numbers beside ours, as they are shown."""
    return [
        {
            _("source"): row.source,
            _("number"): row.number,
            _("published"): row.published,
            _("computed"): _interval(row.low, row.high),
            _("agrees"): _("yes") if row.agrees else _("no"),
        }
        for row in rows
    ]


def _interval(low: float, high: float) -> str:
    return f"{low:.5g}" if low == high else f"{low:.3f} - {high:.3f}"
