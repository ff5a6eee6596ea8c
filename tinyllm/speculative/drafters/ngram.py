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
    certain, and kept where it is what p draws.
    """

    def __init__(self, longest: int = 8, shortest: int = 2) -> None:
        if not 1 <= shortest <= longest:
            raise SettingError(
                f"n-gram lengths need 1 <= shortest <= longest, not {shortest} and {longest}"
            )
        self.longest = longest
        self.shortest = shortest

    def start(self, run: RunShape) -> "NGramDraft":
        """A draft that has read nothing."""
        return NGramDraft(self.longest, self.shortest, run)


class NGramDraft:
    """The text of one run as a string with a character for each token.

    Python's search in a few thousand characters takes less time than keeping an index of n-grams.
    """

    def __init__(self, longest: int, shortest: int, run: RunShape) -> None:
        self._longest = longest
        self._shortest = shortest
        self._vocab_size = run.vocab_size
        self._text = ""

    @property
    def footprint(self) -> Footprint:
        """No weights; the text, as Python stores it."""
        return Footprint(0, getsizeof(self._text))

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """The tokens after the latest occurrence of the longest suffix, k or none."""
        tokens = self.foresee(sequence, k)
        return Proposal(tokens, [certain(token, self._vocab_size) for token in tokens])

    def foresee(self, sequence: Sequence[int], k: int) -> list[int]:
        """What propose() would, without its laws.

        Where the copied stretch reaches the end of the sequence it goes on with its own copy,
        so a run of spaces or a repeated line is proposed whole.
        """
        self._text += "".join(map(chr, sequence[len(self._text) :]))
        place = self._place()
        if place is None:
            return []
        period = len(sequence) - place
        return [sequence[place + i % period] for i in range(k)]

    def commit(self, sequence: Sequence[int]) -> None:
        """Nothing to do: what is new is read when a proposal is asked for."""

    def _place(self) -> int | None:
        """Where the token stands that followed the longest suffix before."""
        text, place = self._text, None
        last = len(text) - 1  # what ends there has no follower
        for n in range(self._shortest, min(self._longest, last) + 1):
            start = text.rfind(text[-n:], 0, last)
            if start < 0:  # then no longer one occurs
                break
            place = start + n
        return place
