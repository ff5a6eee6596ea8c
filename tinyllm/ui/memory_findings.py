"""Sentences of the memory calculator with a choice's own numbers; nothing is typed in."""

from collections.abc import Sequence
from typing import Any

from tinyllm.memory.arithmetic import Term
from tinyllm.memory.assessment import Assessment
from tinyllm.memory.curves import Capacity, Growth
from tinyllm.memory.savings import Saving
from tinyllm.ui.memory_figures import kind_name
from tinyllm.ui.text import _, format_bytes, format_count, literal


def both_units(count: int) -> str:
    """Bytes in binary and in decimal units, which public threads mix up."""
    return _("{binary} ({gigabytes:,.2f} GB)").format(
        binary=format_bytes(count), gigabytes=count / 1e9
    )


def decimal(count: int) -> str:
    """Bytes in decimal units."""
    return _("{gigabytes:,.2f} GB").format(gigabytes=count / 1e9)


def place(assessment: Assessment) -> str:
    """Where figures are of."""
    if assessment.room.gpus > 1:
        return _("all {gpus} GPUs together").format(gpus=assessment.room.gpus)
    divided = assessment.choice.tp * assessment.choice.pp > 1
    return _("each GPU") if divided else _("the GPU")


def notice(assessment: Assessment, savings: Sequence[Saving]) -> str:
    """The one thing to notice about a choice."""
    choice, here, served = assessment.choice, assessment.room, assessment.served
    requests, context = format_count(choice.requests), format_count(choice.context)
    if served is None:
        sentence = _(
            "{requests} requests of {context} tokens keep {logical}; {engine} itself is not sized: "
            "{why}."
        )
        return sentence.format(
            requests=requests,
            context=context,
            logical=format_bytes(assessment.logical_bytes),
            engine=choice.engine,
            why=literal(assessment.unknown),
        )
    if served.fits is None:
        sentence = _(
            "{requests} requests of {context} tokens keep {logical}. Whether they fit depends on "
            "the weights: give the number of parameters, or the engine's KV cache memory, under "
            "More."
        )
        logical = format_bytes(assessment.logical_bytes)
        return sentence.format(requests=requests, context=context, logical=logical)
    if here.weight_bytes is not None and here.weight_bytes > here.usable_bytes:
        sentence = _(
            "The weights alone take {weights} of {place}, and {usable} may be used: more GPUs, or "
            "smaller weights, come before any cache."
        )
        return sentence.format(
            weights=format_bytes(here.weight_bytes),
            place=place(assessment),
            usable=format_bytes(here.usable_bytes),
        )
    values = {
        "requests": requests,
        "context": context,
        "fits": format_count(assessment.fits or 0),
        "logical": format_bytes(assessment.logical_bytes),
        "pool": format_bytes(here.pool_low or 0),
        "engine": choice.engine,
    }
    if served.refusals:
        sentence = _("{engine} refuses this: {why}.")
        return sentence.format(engine=choice.engine, why=literal(served.refusals[0]))
    if choice.requests <= (assessment.fits or 0):
        sentence = _(
            "{requests} requests of {context} tokens keep {logical} and fit; up to {fits} of that "
            "length would, in the {pool} that are left."
        )
        return sentence.format(**values)
    enough = [saving for saving in savings if (saving.fits or 0) >= choice.requests]
    best = enough[0] if enough else max(savings, key=lambda one: one.more or 0, default=None)
    if best is None or not best.more:
        sentence = _(
            "{requests} requests of {context} tokens keep {logical}, and {pool} are left: {fits} "
            "fit at full length, the others wait."
        )
        return sentence.format(**values)
    sentence = _(
        "{requests} requests of {context} tokens keep {logical}, and {pool} are left: {fits} fit "
        "at full length. One change makes that {then}: {what}."
    )
    return sentence.format(**values, then=format_count(best.fits or 0), what=best.what)


def growth_chart(growth: Growth, assessment: Assessment) -> str:
    """The growth chart in words."""
    parts = ", ".join(
        _("{kind} {size}").format(kind=kind_name(kind), size=format_bytes(size))
        for kind, size in assessment.kinds.items()
    )
    sentence = _(
        "Memory against context up to {end} tokens. At {context} tokens {requests} requests keep "
        "{parts}; {gpu} has {memory}."
    )
    return sentence.format(
        end=format_count(growth.tokens[-1]),
        context=format_count(assessment.choice.context),
        requests=format_count(assessment.requests),
        parts=parts,
        gpu=assessment.room.device.name,
        memory=format_bytes(assessment.room.memory_bytes),
    )


def capacity_chart(capacity: Capacity) -> str:
    """The capacity curve in words."""
    known = [
        (tokens, requests)
        for tokens, requests in zip(capacity.tokens, capacity.requests, strict=True)
        if requests is not None
    ]
    if not known:
        return _("How many requests fit is not known for this choice.")
    sentence = _(
        "Requests that fit against context: {most} of {short} tokens, {least} of {long} tokens."
    )
    (short, most), (long, least) = known[0], known[-1]
    numbers = map(format_count, (most, short, least, long))
    return sentence.format(**dict(zip(("most", "short", "least", "long"), numbers, strict=True)))


def term_rows(terms: Sequence[Term]) -> list[dict[str, Any]]:
    """The formula of each kind of layer, as rows of a table."""
    return [
        {
            _("layers"): kind_name(term.kind),
            _("formula"): term.formula,
            _("bytes"): format_count(term.bytes),
            _("size"): both_units(term.bytes),
            _("where the numbers come from"): term.rule,
        }
        for term in terms
    ]


def saving_rows(savings: Sequence[Saving]) -> list[dict[str, Any]]:
    """What each change would gain, as rows of a table."""
    unknown = _("not known")
    return [
        {
            _("change"): saving.what,
            _("reserved bytes saved"): both_units(saving.saved_bytes),
            _("requests that fit"): unknown if saving.fits is None else format_count(saving.fits),
            _("more than now"): unknown if saving.more is None else f"{saving.more:+,}",
        }
        for saving in savings
    ]


def doubts(assessment: Assessment) -> list[str]:
    """What is not certain about this choice, a sentence each."""
    sentences, subject, device = [], assessment.subject, assessment.room.device
    if not subject.verified:
        sentence = _("{name}: its config.json could not be read, so its shape is not verified.")
        sentences.append(sentence.format(name=literal(subject.name)))
    if not device.verified:
        sentence = _("{gpu}: its memory is from a data sheet, not from a driver.")
        sentences.append(sentence.format(gpu=device.name))
    longest = subject.longest
    if longest is not None and assessment.choice.context > longest:
        sentence = _("{name} was made for {longest} tokens; the context is longer.")
        sentences.append(sentence.format(name=literal(subject.name), longest=format_count(longest)))
    return sentences
