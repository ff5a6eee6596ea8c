"""The block pool: who holds which block, and which full blocks can be found again by their tokens.

It counts and finds; the keys and values lie in paged.py. A block that nobody holds keeps a known
prefix until its room is needed: blank blocks are taken first, then the least recently used prefix.
PagedAttention: Kwon et al. 2023, arXiv 2309.06180; prefix caching as vLLM and nano-vllm do it.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence

from tinyllm.errors import whole_number

LARGEST_BLOCK = 128  # tokens


def chained_hash(parent: "Prefix | None", tokens: tuple[int, ...]) -> int:
    """Hash of a block's tokens and of all before them, at the price of one block."""
    return hash((parent and hash(parent), tokens))


class Prefix:
    """The tokens of a full block and, by its parent, of all blocks before it.

    Two are equal only token by token; equal hashes alone prove nothing.
    """

    __slots__ = ("_hash", "parent", "tokens")

    def __init__(self, parent: "Prefix | None", tokens: Sequence[int]) -> None:
        self.parent = parent
        self.tokens = tuple(tokens)
        self._hash = chained_hash(parent, self.tokens)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        one: Prefix | None = self
        two = other if isinstance(other, Prefix) else None
        while one is not two:
            if one is None or two is None or one.tokens != two.tokens:
                return False
            one, two = one.parent, two.parent
        return True


class BlockPool:
    """Blocks 0..n_blocks-1 of block_size tokens each; a block is used while anyone holds it."""

    def __init__(self, n_blocks: int, block_size: int) -> None:
        """Raises SettingError for no block, or for a size outside 1..128."""
        self.n_blocks = whole_number(n_blocks, "n_blocks", 1)
        self.block_size = whole_number(block_size, "block_size", 1, LARGEST_BLOCK)
        self.holders = [0] * self.n_blocks  # sequences that hold a block
        self._blank = deque(range(self.n_blocks))
        # Free, with a prefix; the least recently used first.
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._prefix_of: dict[int, Prefix] = {}
        self._block_of: dict[Prefix, int] = {}

    @property
    def free(self) -> int:
        """Blocks that nobody holds: blank, or cached for whoever begins alike."""
        return len(self._blank) + len(self._cached)

    @property
    def used(self) -> int:
        """Blocks that at least one sequence holds."""
        return sum(count > 0 for count in self.holders)

    @property
    def cached(self) -> tuple[int, ...]:
        """Free blocks that hold a known prefix, in the order in which they would be evicted."""
        return tuple(self._cached)

    def take(self) -> int:
        """A free block for one holder; a cached one forgets its prefix. Needs free > 0."""
        if not self._blank:
            self.forget(next(iter(self._cached)))
        block = self._blank.popleft()
        self.holders[block] = 1
        return block

    def share(self, block: int) -> int:
        """One more holder of a block that is used or cached."""
        self._cached.pop(block, None)
        self.holders[block] += 1
        return block

    def release(self, block: int) -> None:
        """One holder fewer; without any the block is free, and cached if its prefix is known."""
        self.holders[block] -= 1
        if self.holders[block]:
            return
        if block in self._prefix_of:
            self._cached[block] = None
        else:
            self._blank.append(block)

    def find(self, prefix: Prefix) -> tuple[int, Prefix] | None:
        """The block that holds these tokens behind these, if there is one, and its own Prefix.

        Who goes on from that one is compared by identity, not back to the first token.
        """
        block = self._block_of.get(prefix)
        return None if block is None else (block, self._prefix_of[block])

    def publish(self, block: int, prefix: Prefix) -> Prefix:
        """Let a full block be found; of two with the same tokens only the first is."""
        found = self.find(prefix)
        if found is not None:
            return found[1]
        self._block_of[prefix] = block
        self._prefix_of[block] = prefix
        return prefix

    def forget(self, block: int) -> None:
        """Let a block no longer be found: it is about to hold something else."""
        prefix = self._prefix_of.pop(block, None)
        if prefix is not None:
            del self._block_of[prefix]
        if block in self._cached:
            del self._cached[block]
            self._blank.append(block)
