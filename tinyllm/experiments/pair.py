"""bench speculative --pair: what a target and its drafters reach here, held to their bounds.

A step against one reading of its weights, verification against a step, then the speed of every
drafter at a few k against the engine's fastest plain decoding, in turn. Draws and prints nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from tinyllm.experiments.decode import CACHED, Figure, engine_call
from tinyllm.experiments.drafters import entrants, way_of
from tinyllm.experiments.prompts import COPYING_PROMPT, validation_prompts, validation_text
from tinyllm.experiments.timing import Case, Spread, in_turn
from tinyllm.generation import generate
from tinyllm.loading import load_model
from tinyllm.model import Transformer
from tinyllm.speculative import AUTO, Drafter, calibrate, speculate
from tinyllm.speculative.drafters import draft_of

KS = (2, 4, 8, 12)  # `bench forecast` has every k from 1 to 8
TURNS, REPEATS = 60, 3
TEMPERATURE, TOKENS = 0.7, 96
WIDTH = 2  # of trees
BOUNDED = "base"  # the pair that the bounds are of: its weights outgrow the processor's caches


def rows(target_name: str) -> Iterator[Figure]:
    """Every figure of a pair; without its bound for the pairs that have none."""
    target = load_model(target_name)
    drafters = entrants(target_name)
    figures = calls(target), speeds(target, drafters), copying(target, drafters["ngram"])
    automatic = auto(target, load_model(draft_of(target_name)))
    for figure in chain(*figures, automatic):
        yield figure if target_name == BOUNDED else replace(figure, at_least=None, at_most=None)


def calls(target: Transformer, turns: int = TURNS) -> Iterator[Figure]:
    """A step, a reading of its weights, and verification of 5 and 9 rows."""
    fed = target.tokenizer.encode(validation_text()[: CACHED + 16])
    widths = {"step": 1, "5 rows": 5, "9 rows": 9}
    cases = {"stream of the weights": stream(target)}
    cases |= {name: engine_call(target, fed, CACHED, width) for name, width in widths.items()}
    seconds = in_turn(cases, turns, warm_up=2)
    for name, times in seconds.items():
        yield Figure(name, "ms", Spread.of(1000 * one for one in times))
    bounds = (
        ("step", "stream of the weights", 1.35),
        ("5 rows", "step", 1.6),
        ("9 rows", "step", 2.0),
    )
    for above, below, most in bounds:
        pairs = zip(seconds[above], seconds[below], strict=True)
        yield Figure(
            f"{above} / {below}", "ratio", Spread.of(a / b for a, b in pairs), at_most=most
        )


def stream(target: Transformer) -> Case:
    """One matrix-vector product that reads as many bytes as all products of a step do."""
    config = target.config
    looked_up = (config.vocab_size + config.context_length) * config.width  # a row each, no product
    matrix = np.ones(
        ((config.n_parameters - looked_up) // config.width, config.width), target.dtype
    )
    vector = np.ones(config.width, target.dtype)
    return Case(partial(matrix.dot, vector), calls=20)


def speeds(
    target: Transformer,
    drafters: Mapping[str, Drafter],
    prompts: Sequence[str] | None = None,
    ks: Sequence[int] = KS,
    repeats: int = REPEATS,
) -> Iterator[Figure]:
    """Speed of every drafter at each of ks over all prompts, tokens drawn; then the best."""
    settings = {"temperature": TEMPERATURE}
    found = []
    for name, drafter in drafters.items():
        runs = {k: partial(speculate, target, drafter, k=k, **way_of(name, WIDTH)) for k in ks}
        spreads = against_plain(target, runs, prompts or validation_prompts(), settings, repeats)
        found += [Figure(_cell(name, k), "ratio", spread) for k, spread in spreads.items()]
        yield from found[-len(spreads) :]
    best = max(found, key=lambda figure: figure.spread.median)
    yield replace(best, name=f"best: {best.name}", at_least=1.7)


def copying(target: Transformer, lookup: Drafter, repeats: int = REPEATS) -> Iterator[Figure]:
    """Prompt lookup at k = 8 on a text that repeats itself; the bound is at temperature 0."""
    for temperature, bound in ((0.0, 1.7), (TEMPERATURE, None)):
        runs = {8: partial(speculate, target, lookup, k=8)}
        settings = {"temperature": temperature}
        spread = against_plain(target, runs, [COPYING_PROMPT], settings, 3 * repeats)[8]
        name = f"copying at temperature {temperature:g}: {_cell('ngram', 8)}"
        yield Figure(name, "ratio", spread, at_least=bound)


def auto(target: Transformer, draft: Transformer, repeats: int = REPEATS) -> Iterator[Figure]:
    """k chosen round by round at the measured costs, prompt by prompt: none should lose."""
    costs = calibrate(target, draft, validation_prompts()[0], temperature=TEMPERATURE)
    runs = {AUTO: partial(speculate, target, draft, k="auto", costs=costs)}
    settings = {"temperature": TEMPERATURE}
    by_prompt = {
        prompt: against_plain(target, runs, [prompt], settings, 3 * repeats)[AUTO]
        for prompt in validation_prompts()
    }
    worst = min(by_prompt, key=lambda prompt: by_prompt[prompt].median)
    yield Figure(f"auto k, worst prompt {worst!r}: speed", "ratio", by_prompt[worst], at_least=0.97)


def _cell(drafter: str, k: int) -> str:
    return f"{drafter}, k = {k}: speed"


Run = Callable[..., Iterable[Any]]
Key = TypeVar("Key")


def against_plain(
    target: Transformer,
    runs: Mapping[Key, Run],
    prompts: Sequence[str],
    settings: Mapping[str, Any],
    repeats: int,
) -> dict[Key, Spread]:
    """Seconds of plain decoding over each run's, all prompts together, a figure a repeat.

    Everything decodes one prompt in turn before the next, plain decoding first and last: the
    mean of the two is what a run is held against.
    """
    ratios: dict[Key, list[float]] = {key: [] for key in runs}
    for seed in range(repeats):
        plain, spent = 0.0, dict.fromkeys(runs, 0.0)
        shared = {"max_new_tokens": TOKENS, "seed": seed} | dict(settings)
        for prompt in prompts:
            before = _seconds(partial(generate, target, prompt, **shared))
            for key, run in runs.items():
                spent[key] += _seconds(partial(run, prompt, **shared))
            plain += (before + _seconds(partial(generate, target, prompt, **shared))) / 2
        for key, seconds in spent.items():
            ratios[key].append(plain / seconds)
    return {key: Spread.of(values) for key, values in ratios.items()}


def _seconds(begin: Callable[[], Iterable[Any]]) -> float:
    start = perf_counter()
    for _ in begin():
        pass
    return perf_counter() - start
