"""A real language model by the clock: steps, verifications, speculation and a shared prefix.

Each figure is measured in turn with what it is compared with, and stands beside the bound it is
held to. Greedy texts with and without speculation are compared token by token. Prints nothing.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Literal

import numpy as np

from tinyllm.experiments.decode import Figure
from tinyllm.experiments.timing import Case, Spread, in_turn, timed
from tinyllm.generation import generate
from tinyllm.loading import Loaded, loading
from tinyllm.model import Transformer
from tinyllm.speculative import speculate
from tinyllm.speculative.costs import Costs
from tinyllm.speculative.drafters import NGramDrafter
from tinyllm.speculative.round_times import calibrate

NAME = "SmolLM2-135M-Instruct"
CACHED = 100  # tokens in the cache before a step
# Where texts repeat themselves much follows from little: long proposals, from three tokens on.
DRAFTER, K = NGramDrafter(longest=8, shortest=3), 12
NEW_TOKENS = 120

_CLASS = """class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        return self.balance

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
        return self.balance
"""
_TEXT = (
    "The lighthouse at Cape Morin was built in 1874 by the engineer Louis Barbet. It stands forty "
    "metres above the sea and its lamp can be seen from thirty kilometres away. For ninety years "
    "a keeper and his family lived in the small stone house beside the tower. Since 1964 the lamp "
    "has been lit by a machine, and the house is now a museum that is open from April to October."
)
_RECIPE = (
    "1. Heat the oven to 180 degrees.\n2. Mix the flour, the sugar and the butter.\n"
    "3. Add the eggs and the milk.\n4. Pour the mixture into a round tin.\n"
    "5. Bake the cake for forty minutes.\n6. Let the cake cool before you serve it."
)
COPYING = {
    "code": "Add a docstring to each method of this class and give the whole class again:\n\n"
    f"```python\n{_CLASS}```",
    "text": f"Correct any mistakes in this text and write it out again in full:\n\n{_TEXT}",
    "recipe": f"Repeat this recipe word for word:\n\n{_RECIPE}",
}
PROSE = "Write a short story about a child who finds a letter in a bottle on the beach."
SYSTEM_TOKENS, QUESTION = 400, "How high does the lamp stand above the sea?"


def rows(name: str = NAME, turns: int = 12) -> Iterator[Figure]:
    """Loading, calls, prefix reuse, speculation; WeightsError where the model is not installed."""
    start = perf_counter()
    *_, last = loading(name)
    assert isinstance(last, Loaded)
    yield Figure("load", "s", Spread.of([perf_counter() - start]), at_most=6)
    yield from calls(last.model, turns)
    yield from prefix_reuse(last.model)
    yield from speculation(last.model)
    peak = peak_bytes()
    if peak is not None:
        yield Figure("peak memory of the process", "GB", Spread.of([peak / 1e9]), at_most=1.4)


def calls(model: Transformer, turns: int) -> Iterator[Figure]:
    """Steps and verifications, in steps, and the step beside reading its weights once."""
    fed = model.tokenizer.encode(_TEXT + _RECIPE + _CLASS)
    cache = model.new_cache(capacity=CACHED + 16)
    model.forward(fed[:CACHED], cache, rows=0)

    def call(n_rows: int) -> Case:
        new = fed[CACHED : CACHED + n_rows]

        def run() -> None:
            model.forward(new, cache)
            cache.truncate(CACHED)

        return Case(run, 3)

    # As many bytes as a step reads, in products as large as the model's, of one matrix.
    length = 4096
    n_read = model.config.n_parameters + (0 if model.config.tied_head else -_embedding(model))
    matrix = np.ones((n_read // length // 4, length), np.float32)
    vector = np.ones(length, np.float32)
    seconds = in_turn(
        {
            "stream": Case(lambda: matrix.dot(vector), 4),
            **{f"{n} rows": call(n) for n in (1, 2, 5, 9, 13)},
        },
        turns,
        warm_up=1,
    )
    times = {name: np.array(found) for name, found in seconds.items()}
    times["stream"] *= 4  # the matrix is a quarter of the model
    yield Figure("reading the weights once", "ms", Spread.of(1e3 * times["stream"]))
    yield Figure("step", "ms", Spread.of(1e3 * times["1 rows"]))
    step = times["1 rows"]
    yield Figure("step: readings", "ratio", Spread.of(step / times["stream"]), at_most=1.3)
    for n, bound in ((2, None), (5, 1.35), (9, 1.7), (13, None)):
        ratio = Spread.of(times[f"{n} rows"] / step)
        yield Figure(f"{n} rows: steps", "ratio", ratio, at_most=bound)


def _embedding(model: Transformer) -> int:
    """Parameters of the token embedding, of which a step reads one row."""
    return model.config.vocab_size * model.config.width


def prefix_reuse(model: Transformer, turns: int = 3) -> Iterator[Figure]:
    """Time to the first token behind a prefix of SYSTEM_TOKENS: computed anew, or copied."""
    text = model.tokenizer.encode(" ".join([_TEXT, _RECIPE, _CLASS] * 2))
    question = model.tokenizer.encode(QUESTION)
    prefix = text[:SYSTEM_TOKENS]
    held = model.new_cache(capacity=len(prefix))
    model.forward(prefix, held, rows=0)

    def anew() -> None:
        cache = model.new_cache(capacity=SYSTEM_TOKENS + 64)
        model.forward([*prefix, *question], cache, rows=1)

    def copied() -> None:
        cache = model.new_cache(capacity=SYSTEM_TOKENS + 64)
        cache.copy_from(held)
        model.forward(question, cache, rows=1)

    found = in_turn({"anew": Case(anew), "copied": Case(copied)}, turns)
    ratio = Spread.of(a / b for a, b in zip(found["anew"], found["copied"], strict=True))
    name = f"first token behind {len(prefix)} known ones: times sooner"
    yield Figure(name, "ratio", ratio, at_least=8)


@dataclass(frozen=True, slots=True)
class Pair:
    """One prompt, decoded plainly and by speculation, in turn."""

    same_text: bool
    tokens: int
    target_calls: int
    speedups: tuple[float, ...]  # by the clock, one a turn


def speculation(model: Transformer, turns: int = 3) -> Iterator[Figure]:
    """Copying with a fixed k, prose with k chosen as it goes."""
    best = 0.0
    for name, message in COPYING.items():
        pair = decoded_both_ways(model, message, K, turns)
        best = max(best, median(pair.speedups))
        yield Figure(_told(f"copying {name}, k = {K}", pair), "ratio", Spread.of(pair.speedups))
    yield Figure("best of the three", "ratio", Spread.of([best]), at_least=1.6)
    prompt = _chat(model, PROSE)
    costs = calibrate(model, DRAFTER, prompt)
    # Nearer its bound than the others: two turns more.
    pair = decoded_both_ways(model, PROSE, "auto", turns + 2, costs)
    yield Figure(
        _told("free prose, k chosen as it goes", pair),
        "ratio",
        Spread.of(pair.speedups),
        at_least=0.97,
    )


def decoded_both_ways(
    model: Transformer,
    message: str,
    k: int | Literal["auto"],
    turns: int,
    costs: Costs | None = None,
) -> Pair:
    """A greedy answer of at most NEW_TOKENS tokens, plainly and with DRAFTER, a call of each in
    turn: a machine that changes its pace changes it for both, and neither finds anything of such
    a model in the processor's caches."""
    prompt = _chat(model, message)
    settings: dict[str, Any] = {
        "max_new_tokens": NEW_TOKENS,
        "stop": model.tokenizer.stop_tokens,
    }
    plainly = partial(generate, model, prompt, **settings)
    drafted = partial(speculate, model, DRAFTER, prompt, k=k, costs=costs, **settings)
    same, speedups = True, []
    for _ in range(turns):
        # Tokens and seconds alone are kept: the laws of a large vocabulary are megabytes a round.
        tokens: list[int] = []
        text: list[int] = []
        n_rounds, plain_seconds, seconds = 0, 0.0, 0.0
        for plain, one in zip_longest(timed(plainly), timed(drafted)):
            if plain is not None:
                tokens.append(plain[0].id)
                plain_seconds += plain[1]
            if one is not None:
                text += one[0].tokens
                n_rounds += 1
                seconds += one[1]
        speedups.append(plain_seconds / seconds)
        same &= text == tokens
    return Pair(same, len(tokens), n_rounds, tuple(speedups))


def _told(what: str, pair: Pair) -> str:
    same = "same text" if pair.same_text else "OTHER TEXT"
    return f"{what}: {pair.tokens} tokens in {pair.target_calls} calls, {same}: times faster"


def _chat(model: Transformer, message: str) -> list[int]:
    tokenizer = model.tokenizer
    return tokenizer.encode(tokenizer.chat([{"role": "user", "content": message}]))


def peak_bytes() -> int | None:
    """The most memory this process has held at a time; None where the system does not tell.

    Linux tells it of the program; getrusage there counts what ran in the process before it too.
    """
    told = Path("/proc/self/status")
    if told.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", told.read_text("utf-8"))
        return None if found is None else 1024 * int(found[1])
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return None
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
