"""The three numbers side by side, and how many requests fit."""

import streamlit as st

from tinyllm.memory.assessment import Assessment
from tinyllm.ui.memory_findings import decimal, place
from tinyllm.ui.text import _, format_bytes, format_count


def tiles(here: Assessment) -> None:
    """Logical, reserved, pool, and requests; each in GiB and in GB."""
    where = place(here)
    columns = st.columns(4)
    with columns[0]:
        text = _("Bytes that the tokens of all requests take, layer by layer.")
        _tile(_("Logical: what tokens keep"), here.logical_bytes, where, text)
    with columns[1]:
        text = _("Bytes that the engine must be able to give these requests at full length.")
        reserved = None if here.served is None else here.served.reserved_bytes
        _tile(_("Reserved for the requests"), reserved, where, text)
    with columns[2]:
        text = _(
            "What the engine allocates in all, from what weights leave; buffers and graphs are "
            "assumed at the large end of an interval unless their figure is given under More."
        )
        pool = None if here.served is None else here.served.pool_bytes
        _tile(_("Pool: what is allocated"), pool, where, text)
    with columns[3]:
        text = _("Requests of the whole context at once, on all replicas.")
        fits = "-" if here.fits is None else format_count(here.fits)
        most = _most(here)
        st.metric(
            _("Requests that fit"), fits, most, delta_color="off", delta_arrow="off", help=text
        )


def _tile(label: str, count: int | None, where: str, text: str) -> None:
    value = "-" if count is None else format_bytes(count)
    small = (
        _("not known")
        if count is None
        else _("{size} on {where}").format(size=decimal(count), where=where)
    )
    st.metric(label, value, small, delta_color="off", delta_arrow="off", help=text)


def _most(here: Assessment) -> str:
    """How sure the pool is."""
    room = here.room
    if room.pool_low is None or room.pool_high is None:
        return _("the pool is not known")
    if room.given:
        return _("pool as given")
    sentence = _("estimated: {low} to {high} left")
    return sentence.format(low=format_bytes(room.pool_low), high=format_bytes(room.pool_high))
