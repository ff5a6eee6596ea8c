"""Prompt lookup: the drafter without a model. It copies what followed the same tokens before."""

from collections.abc import Sequence
from sys import getsizeof

from tinyllm.errors import SettingError
from tinyllm.sampling import Sampler, certain
from tinyllm.speculative.drafters.proposal import Footprint, Proposal, RunShape


class NGramDrafter:
    """Prompt lookup (Saxena 2023): propose what followed the same n-gram earlier.

    The longest suffix of the sequence, from `longest` down to `shortest` tokens, that occurs
    earlier in prompt or output; its latest occurrence wins. q is one-hot: the proposal is
    certain, so a rejected position is drawn from p without the proposed token.
    """

    def __init__(self, longest: int = 8, shortest: int = 2) -> None:
        if not 1 <= shortest <= longest:
            raise SettingError(
                f"n-gram lengths need 1 <= shortest <= longest, not {shortest} and {longest}"
            )
        self.longest = longest
        self.shortest = shortest

    def start(self, prompt: Sequence[int], run: RunShape) -> "NGramDraft":
        """Index the prompt."""
        return NGramDraft(self.longest, self.shortest, prompt, run)


class NGramDraft:
    """The index of one run: for each n-gram, where the token after its latest place stands."""

    def __init__(self, longest: int, shortest: int, prompt: Sequence[int], run: RunShape) -> None:
        self._lengths = range(longest, shortest - 1, -1)
        self._vocab_size = run.vocab_size
        self._follower: dict[tuple[int, ...], int] = {}
        self._indexed = 1  # n-grams that end at or before this token have been seen
        self.commit(prompt)

    @property
    def footprint(self) -> Footprint:
        """No weights; the index, as Python stores it."""
        entries = sum(map(getsizeof, self._follower))
        return Footprint(0, getsizeof(self._follower) + entries)

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """The tokens after the latest occurrence of the longest suffix, k or none.

        Where the copied stretch reaches the end of the sequence it goes on with its own copy,
        so a run of spaces or a repeated line is proposed whole.
        """
        for n in self._lengths:
            place = self._follower.get(tuple(sequence[-n:]))
            if place is not None:
                period = len(sequence) - place
                tokens = [sequence[place + i % period] for i in range(k)]
                return Proposal(tokens, [certain(token, self._vocab_size) for token in tokens])
        return Proposal([], [])

    def commit(self, sequence: Sequence[int]) -> None:
        """Index the n-grams that end before the last token: only they have a follower."""
        for end in range(self._indexed, len(sequence)):
            for n in self._lengths:
                if n <= end:
                    self._follower[tuple(sequence[end - n : end])] = end
        self._indexed = max(self._indexed, len(sequence))
