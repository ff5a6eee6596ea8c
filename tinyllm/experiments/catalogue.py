"""Every experiment by its name: what it shows, and its rows with the models that ship.

`bench`, the report and the page that compares with the article all read from here. A row comes
as soon as it is measured; to stop, do not ask for the next one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tinyllm.experiments import (
    answers,
    cached_decoding,
    call_cost,
    decode,
    exactness,
    forecast,
    head_quality,
    kv_dtype,
    kv_heads,
    language_model,
    memory,
    outliers,
    paging,
    pitfalls,
    prefill,
    prefix,
    sweep,
)
from tinyllm.experiments.rows import Row, flat
from tinyllm.loading import MODELS, load_model, load_weights
from tinyllm.speculative import named


@dataclass(frozen=True, slots=True)
class Experiment:
    """One measurement that can be asked for by name."""

    name: str
    shows: str  # in a clause, for --help and the report
    rows: Callable[[], Iterator[Row]]
    optional: bool = False  # needs what `make llm` installs, and is no part of a report


def _decode() -> Iterator[Row]:
    """Times, then ratios, then cached against uncached logits."""
    target = load_model("target")
    weights = load_weights(MODELS / target.name, target.config)
    return (figure.row() for figure in decode.rows(target, load_model("draft"), weights))


def _kv_cache() -> Iterator[Row]:
    """Equality, steps by position, a whole generation."""
    return map(flat, cached_decoding.rows(load_model("target")))


def _kv_heads() -> Iterator[Row]:
    """Attention steps by KV heads, then the trained variants."""
    known = head_quality.variants()
    return map(flat, kv_heads.rows(known, [load_model(one.name) for one in known]))


def _guide() -> Iterator[Row]:
    """The guide's questions, answered in short measurements."""
    known = head_quality.variants()
    variants = [load_model(one.name) for one in known]
    asked = answers.Asked(load_model("target"), load_model("draft"), known, variants)
    return (answer.row() for answer in answers.rows(asked))


def _prefill() -> Iterator[Row]:
    """The article's two lengths."""
    return map(flat, prefill.rows(load_model("target")))


def _prefix() -> Iterator[Row]:
    """The article's prefix and request."""
    return map(flat, prefix.rows(load_model("target")))


def _paging() -> Iterator[Row]:
    """The article's thousand requests, by way of reserving."""
    return map(flat, paging.rows())


def _kv_dtype() -> Iterator[Row]:
    """A large channel's damage, then every format of the cache."""
    target = load_model("target")
    yield from map(flat, outliers.rows(target))
    yield from map(flat, kv_dtype.rows(target))


def _memory() -> Iterator[Row]:
    """Every format for the cache of every shipped model's shape."""
    return map(flat, memory.rows())


def _exactness() -> Iterator[Row]:
    """The article's three prefixes, 200,000 draws each."""
    return map(flat, exactness.rows(load_model("target"), load_model("draft")))


def _call_cost() -> Iterator[Row]:
    """The target's calls by width, then the draft's."""
    return map(flat, call_cost.rows(load_model("target"), load_model("draft")))


def _speculative() -> Iterator[Row]:
    """Every k at every temperature."""
    return map(flat, sweep.rows(load_model("target"), load_model("draft")))


def _forecast() -> Iterator[Row]:
    """Every k of every pair that is here."""
    for target, drafter in forecast.shipped_pairs():
        pair = load_model(target), named(drafter)
        yield from map(flat, forecast.rows(*pair, drafter))


def _pitfalls() -> Iterator[Row]:
    """Every fault beside what is right."""
    target = load_model("target")
    weights = load_weights(MODELS / target.name, target.config)
    bench = pitfalls.Bench(target, load_model("draft"), weights)
    return map(flat, pitfalls.rows(bench))


def _llm() -> Iterator[Row]:
    """The packaged language model, with the bounds it is held to."""
    return (figure.row() for figure in language_model.rows())


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("decode", "the engine's calls against a plain reference engine", _decode),
        Experiment("kv-cache", "steps and generations with and without the cache", _kv_cache),
        Experiment("prefill", "a prompt in one call against token by token", _prefill),
        Experiment("prefix", "a shared prefix recomputed, copied or shared by blocks", _prefix),
        Experiment("kv-heads", "what fewer KV heads save, and cost in quality", _kv_heads),
        Experiment("kv-dtype", "every format of the cache: bytes, texts, loss, time", _kv_dtype),
        Experiment("paging", "what slabs and blocks reserve and never fill", _paging),
        Experiment("memory", "bytes by formula against bytes of the arrays", _memory),
        Experiment(
            "exactness", "the acceptance rule's output law against the target's", _exactness
        ),
        Experiment("call-cost", "target calls of several tokens, and a draft call", _call_cost),
        Experiment("speculative", "speed-up over k and temperature, against theory", _speculative),
        Experiment("forecast", "speed-up by k, said beforehand and measured", _forecast),
        Experiment("llm", "a real language model: calls, prefix reuse, prompt lookup", _llm, True),
        Experiment("pitfalls", "known faults done on purpose, beside what is right", _pitfalls),
        Experiment("guide", "the article's questions, answered with numbers from here", _guide),
    )
}


def reported() -> list[str]:
    """Names of the experiments that need nothing but the checkout, in the report's order."""
    return [name for name, experiment in EXPERIMENTS.items() if not experiment.optional]
