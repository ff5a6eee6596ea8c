"""A stream of requests served from one block pool: they come, share, grow a token at a time, go.

A simulation of the memory alone: real block tables, no model, and every running sequence makes a
token in each step. Requests come about as fast as they can be served. One is admitted if it
leaves a free block for each that runs; when none is free all the same, the youngest sequence gives
its blocks back and waits, to be computed or found again. vLLM does so, with a fixed reserve.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from tinyllm.cache.block_table import BlockTable
from tinyllm.cache.blocks import BlockPool
from tinyllm.errors import CacheOverflowError
from tinyllm.experiments.paging import ARTICLE_LENGTHS, LONGEST, draw
from tinyllm.memory.lengths import Lengths

ROOM = 4 * LONGEST  # tokens of the pool
KINDS = 3  # of requests; those of a kind begin with the same tokens
TWO_ANSWERS = 0.2  # share of requests that want a second answer to their prompt
MOST_REQUESTS = 400


@dataclass(frozen=True, slots=True)
class Running:
    """One running sequence: its blocks in order, and the tokens in them."""

    number: int
    blocks: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class ServingStep:
    """The pool after a step that changed its map; counts are of the whole run so far."""

    step: int  # tokens there was time for since the first request
    event: str  # the rarest of what happened: "preempted", "left", "came" or "grew"
    running: tuple[Running, ...]
    waiting: int  # requests
    holders: tuple[int, ...]  # of every block
    cached: tuple[int, ...]  # free blocks with a known prefix
    served: int  # sequences at their end
    prompt_tokens: int
    reused_tokens: int  # of the prompt tokens, those that were in the pool already
    copied_blocks: int  # on write
    preemptions: int


@dataclass(slots=True)
class _Job:
    """What is to be fed, then made."""

    prompt: list[int]
    new_tokens: int
    answers: int = 1


@dataclass(slots=True)
class _Sequence:
    number: int
    table: BlockTable
    new_tokens: int  # still to be made


@dataclass(slots=True)
class _Server:
    """The pool, who runs, oldest first, and who waits."""

    pool: BlockPool
    fresh: Iterator[int]  # tokens that nobody else has
    running: list[_Sequence] = field(default_factory=list)
    waiting: deque[_Job] = field(default_factory=deque)
    numbers: Iterator[int] = field(default_factory=count)
    events: set[str] = field(default_factory=set)  # of this step
    full: bool = False  # nobody can be admitted before a sequence leaves
    served: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    copied_blocks: int = 0
    preemptions: int = 0

    def admit(self) -> None:
        """Start who waits, first come first served, while their prompts fit."""
        while self.waiting and not self.full:
            job, table = self.waiting[0], BlockTable(self.pool)
            reused = table.reuse(job.prompt)
            if not self._fits(table, len(job.prompt) - reused):
                table.truncate(0)
                self.full = True
                return
            table.commit(job.prompt[reused:])
            self.waiting.popleft()
            self.prompt_tokens += len(job.prompt)
            self.reused_tokens += reused
            self.events.add("came")
            tables = [table, *(table.fork() for _ in range(job.answers - 1))]
            self.running += [_Sequence(next(self.numbers), one, job.new_tokens) for one in tables]

    def _fits(self, table: BlockTable, n_new: int) -> bool:
        try:
            table.reserve(n_new)
        except CacheOverflowError:
            return False
        return self.pool.free >= len(self.running)

    def grow(self) -> None:
        """One more token for every running sequence; who has made all its tokens leaves."""
        for sequence in self.running.copy():
            if sequence not in self.running:
                continue  # preempted for an older one
            if not sequence.new_tokens:
                self.running.remove(sequence)
                sequence.table.truncate(0)
                self.full = False
                self.served += 1
                self.events.add("left")
            elif self._make_room(sequence):
                sequence.table.commit([next(self.fresh)])
                sequence.new_tokens -= 1

    def _make_room(self, sequence: _Sequence) -> bool:
        """Reserve room for a token, at the price of younger sequences; False if it went itself."""
        held = len(sequence.table.blocks)
        while True:
            try:
                copied = sequence.table.reserve(1)
            except CacheOverflowError:
                youngest = self.running.pop()
                self.waiting.appendleft(_Job(youngest.table.tokens.copy(), youngest.new_tokens))
                youngest.table.truncate(0)
                self.full = False
                self.preemptions += 1
                self.events.add("preempted")
                if youngest is sequence:
                    return False
            else:
                self.copied_blocks += copied is not None
                if copied or len(sequence.table.blocks) > held:
                    self.events.add("grew")
                return True

    def state(self, step: int) -> ServingStep:
        """The pool as it is now."""
        order = ("preempted", "left", "came", "grew")
        return ServingStep(
            step,
            next(event for event in order if event in self.events),
            tuple(
                Running(one.number, tuple(one.table.blocks), len(one.table.tokens))
                for one in self.running
            ),
            len(self.waiting),
            tuple(self.pool.holders),
            self.pool.cached,
            self.served,
            self.prompt_tokens,
            self.reused_tokens,
            self.copied_blocks,
            self.preemptions,
        )


def serve(
    lengths: Lengths = ARTICLE_LENGTHS,
    *,
    block_size: int = 16,
    shared: int = 128,
    room: int = ROOM,
    requests: int | None = None,
    seed: int = 0,
) -> Iterator[ServingStep]:
    """Serve requests until the last one is admitted; an event for each step that changes the map.

    Half of a request's length is its prompt, which begins with the `shared` tokens of its kind.
    By default there are requests for five times the room.
    """
    random = Random(seed)
    mean = mean_length(lengths, seed)
    if requests is None:
        requests = round(usual_requests(mean, room))
    fresh = count(KINDS * LONGEST)
    server = _Server(BlockPool(room // block_size, block_size), fresh)
    gap = steps_between_requests(mean, room)
    due = 0.0
    for step in count():
        while requests and due <= step:
            server.waiting.append(_job(lengths, shared, fresh, random))
            requests -= 1
            due += random.expovariate(1 / gap)
        server.admit()
        server.grow()
        if server.events:
            yield server.state(step)
            server.events.clear()
        if not (requests or server.waiting):
            return


def mean_length(lengths: Lengths, seed: int = 0) -> float:
    """Mean of a thousand drawn lengths, at least a token."""
    return max(1.0, float(draw(lengths, seed=seed).mean()))


def usual_requests(mean: float, room: int) -> float:
    """Requests for five times the room."""
    return min(MOST_REQUESTS, 5 * room / mean)


def steps_between_requests(mean: float, room: int) -> float:
    """Mean steps from one request to the next, at which the pool is about full.

    A sequence runs for half its length and holds three quarters of it on average.
    """
    return 0.4 * mean**2 / room


def _job(lengths: Lengths, shared: int, fresh: Iterator[int], random: Random) -> _Job:
    length = max(1, lengths.draw(random))
    prompt = -(-length // 2)
    kind = random.randrange(KINDS)
    begins = [kind * LONGEST + place for place in range(min(shared, prompt))]
    answers = 2 if random.random() < TWO_ANSWERS else 1
    return _Job(
        begins + [next(fresh) for _ in range(prompt - len(begins))], length - prompt, answers
    )
