"""What a visitor sees of paging: the waste of all ways to reserve, then the block map of a stream.

Turns the events of serving.py into pictures and plain numbers. Draws nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tinyllm.experiments.paging import PagingConfig, WasteRow, rows
from tinyllm.experiments.serving import (
    ROOM,
    ServingStep,
    mean_length,
    serve,
    steps_between_requests,
    usual_requests,
)
from tinyllm.memory.lengths import Lengths

FRAMES = 100  # pictures of a run, about


@dataclass(frozen=True, slots=True)
class BlockMap:
    """The pool's blocks for display, each list by block."""

    owners: list[int]  # number of the oldest sequence that holds it, -1: none
    holders: list[int]
    tokens: list[int]  # in it; a cached block is full
    cached: list[bool]


def block_map(event: ServingStep, block_size: int) -> BlockMap:
    """What lies where after a step."""
    n_blocks = len(event.holders)
    found = BlockMap([-1] * n_blocks, list(event.holders), [0] * n_blocks, [False] * n_blocks)
    for sequence in reversed(event.running):  # the oldest has the last word
        for place, block in enumerate(sequence.blocks):
            found.owners[block] = sequence.number
            found.tokens[block] = min(block_size, sequence.tokens - place * block_size)
    for block in event.cached:
        found.cached[block] = True
        found.tokens[block] = block_size
    return found


def watch(config: PagingConfig) -> Iterator[tuple[WasteRow, ...] | ServingStep]:
    """What a page shows: the waste of all ways to reserve, then a stream of requests served.

    The first picture needs all those rows, so they are one event.
    """
    lengths, seed = config.distribution, config.seed
    yield tuple(rows(lengths, seed=seed))
    yield from serve(lengths, block_size=config.block_size, shared=config.shared, seed=seed)


@dataclass(slots=True)
class PagingRecord:
    """The rows and steps so far; the last step with its map."""

    frame_steps: int  # steps between two pictures
    rows: tuple[WasteRow, ...] = ()
    steps: list[dict[str, object]] = field(default_factory=list)
    last: ServingStep | None = None
    most_running: int = 0
    drawn: int | None = None  # step of the last picture

    def take(self, event: tuple[WasteRow, ...] | ServingStep) -> bool:
        """Take one item in; a step is worth drawing now and then."""
        if not isinstance(event, ServingStep):
            self.rows = event
            return False
        self.last = event
        self.most_running = max(self.most_running, len(event.running))
        self.steps.append(counts(event))
        if self.drawn is not None and event.step < self.drawn + self.frame_steps:
            return False
        self.drawn = event.step
        return True

    def row(self, block_size: int) -> WasteRow:
        """The waste of blocks of a size."""
        return self.rows[block_size]  # behind that of slabs


def frame_steps(lengths: Lengths, room: int = ROOM) -> int:
    """Steps between two pictures, so that a run of the default length has about FRAMES."""
    mean = mean_length(lengths)
    total = usual_requests(mean, room) * steps_between_requests(mean, room) + mean / 2
    return max(1, round(total / FRAMES))


def counts(event: ServingStep) -> dict[str, object]:
    """A step in plain numbers, for export."""
    used = len(event.holders) - event.holders.count(0)
    return {
        "step": event.step,
        "event": event.event,
        "running": len(event.running),
        "waiting": event.waiting,
        "blocks_used": used,
        "blocks_shared": used - event.holders.count(1),
        "blocks_cached": len(event.cached),
        "blocks_blank": len(event.holders) - used - len(event.cached),
        "served": event.served,
        "prompt_tokens": event.prompt_tokens,
        "reused_tokens": event.reused_tokens,
        "copied_blocks": event.copied_blocks,
        "preemptions": event.preemptions,
    }
