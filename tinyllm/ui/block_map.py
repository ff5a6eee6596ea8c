"""The block map: every block of a pool as a cell that shows whose it is and how full.

A letter marks one sequence's block, a number with a frame how many share it, a dashed edge a free
block whose prefix can be found again: never hue alone. A component draws it on a canvas.
"""

from dataclasses import asdict
from html import escape

import streamlit as st

from tinyllm.experiments.paging_record import BlockMap
from tinyllm.ui.plot import FRONTEND
from tinyllm.ui.text import _

_mount = st.components.v2.component(
    "tinyllm_block_map",
    html='<div class="tinyllm-blocks"></div>',
    css=(FRONTEND / "block_map.css").read_text("utf-8"),
    js=(FRONTEND / "block_map.js").read_text("utf-8"),
    isolate_styles=False,
)


def legend_html() -> str:
    """Every kind of cell with its name."""
    kinds = (
        ("used", "A", _("one sequence's")),
        ("part", "", _("partly empty")),
        ("shared", "2", _("shared by so many")),
        ("cached", "", _("free, prefix can be found again")),
        ("blank", "", _("blank")),
    )
    return " ".join(
        f'<span class="k"><span class="b b-{kind}">{sign}</span> {escape(name)}</span>'
        for kind, sign, name in kinds
    )


def block_map(
    cells: BlockMap, block_size: int, key: str, *, status: str, alt: str, height: int = 190
) -> None:
    """Draw a map, or update it in place, above a line about its state.

    `alt` says in words what it shows.
    """
    _mount(
        key=key,
        data={
            "map": asdict(cells) | {"block_size": block_size},
            "legend": legend_html(),
            "height": height,
            "status": status,
            "alt": alt,
            "words": {
                "inspect": _("Point at a block, or use the arrow keys."),
                "used": _(
                    "Block {block}: sequence {letter} (number {sequence}), {tokens} of {size} "
                    "tokens."
                ),
                "shared": _(
                    "Block {block}: shared by {holders} sequences, {tokens} of {size} tokens."
                ),
                "cached": _(
                    "Block {block}: free; its {size} tokens stay until the room is needed."
                ),
                "blank": _("Block {block}: free and blank."),
            },
        },
    )
