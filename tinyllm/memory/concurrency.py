"""Requests of real lengths that a vLLM pool holds at once, beside the log's all-at-full-length.

Requests are put into the pool one after the other until one does not fit; the pool is emptied and
filled again, and the counts are what is reported. Each is counted at its end, when it is longest.
Blocks of a shared prefix are held once by layers that keep every token.
"""

from dataclasses import dataclass
from random import Random

from tinyllm.memory.engines.vllm import Pool
from tinyllm.memory.lengths import Workload

_DRAWS = 60_000  # in all; one fill of a pool takes as many as fit
_MOST_FILLS = 500
_EVERY_TOKEN = ("full", "latent", "index")


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Requests that fit at once; a pool of the same length on and on has a closed form."""

    mean: float
    in_95_percent: int  # of the fills, at least so many fit
    closed_form: int | None
    at_full_length: float  # the figure of the start-up log
    fills: int
    too_long: float  # share of requests beyond --max-model-len, counted as if cut to it


def requests_that_fit(
    pool: Pool, workload: Workload, seed: int = 0, max_num_seqs: int | None = None
) -> Concurrency:
    """Fill the pool with requests of the workload; max_num_seqs caps every count."""
    limit = pool.settings.max_model_len
    shared = shared_blocks(pool, min(workload.shared_prefix, limit))
    room = max(0, pool.num_blocks - 1 - shared)  # vLLM keeps one block back
    random, only = Random(seed), workload.only
    draws = range(_DRAWS)
    lengths = [workload.draw(random) if only is None else only for _ in draws]
    known: dict[int, int] = {}
    for tokens in set(lengths):
        known[tokens] = max(1, held_blocks(pool, min(tokens, limit)) - shared)
    counts = _fills([known[tokens] for tokens in lengths], room)
    cap = pool.num_blocks if max_num_seqs is None else max_num_seqs
    counts = sorted(min(count, cap) for count in counts)
    exact = None
    if only is not None:
        exact = min(cap, room // max(1, held_blocks(pool, min(only, limit)) - shared))
    return Concurrency(
        mean=sum(counts) / len(counts),
        in_95_percent=counts[len(counts) // 20],
        closed_form=exact,
        at_full_length=min(pool.max_concurrency, cap),
        fills=len(counts),
        too_long=sum(tokens > limit for tokens in lengths) / len(lengths),
    )


def held_blocks(pool: Pool, tokens: int) -> int:
    """Blocks of all groups that a request of that many tokens holds."""
    states = pool.settings.state_blocks
    return sum(group.specs[0].held(tokens, states) for group in pool.groups)


def shared_blocks(pool: Pool, prefix: int) -> int:
    """Whole blocks of the prefix in groups that keep every token."""
    groups = [group for group in pool.groups if group.kind in _EVERY_TOKEN]
    return sum(prefix // group.block_size for group in groups)


def _fills(sizes: list[int], room: int) -> list[int]:
    """How many of the requests fit, fill after fill; a pool larger than all draws goes round."""
    total = sum(sizes)
    if total <= room:  # one fill takes every draw: as many rounds as go in, by the mean
        return [room * len(sizes) // total]
    counts, draws = [], iter(sizes)
    taken = count = 0
    for size in draws:
        if taken + size > room:
            counts.append(count)
            taken = count = 0
            if len(counts) == _MOST_FILLS:
                break
            if size > room:
                continue
        taken, count = taken + size, count + 1
    return counts
