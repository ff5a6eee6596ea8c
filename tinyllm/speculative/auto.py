"""k chosen round by round: the most tokens per cost that the run so far lets one expect.

Counts proposals and verdicts, weighs them with given Costs and reads no clock, so the same seed
and costs make the same run. Loss against plain decoding is bounded by a ledger: nothing is tried
whose cost could be more than is left of it. Where a try is dear and proposals are certain, a look
at them comes first: the plain steps that follow show what would have been kept. Not in the ledger
is what a draft reads before its first round, and behind a pause longer than the one that was
timed: hundredths of a step a token.
"""

from collections.abc import Sequence
from math import ceil

from tinyllm.speculative.costs import Costs

AUTO = "auto"

# The most that a run may lose, of what plain decoding costs.
LOSS = 0.03
_LENGTH = 96  # tokens; a run is granted at once what it may lose on so many
# What the loop itself does for so many tokens counts as lost from the beginning. It was measured to
# take about as long as to ask for proposals and to judge them so many times.
OWN_ROUNDS = 3

_DECAY = 0.98  # of what was counted, a round or a plain step
_GUESS = 0.8  # an acceptance before anything was counted: hopeful, as it takes a round to know
_WATCHED_GUESS = 0.5  # and where it takes a look
_WEIGHT = 3.0  # tests that the guess is worth
_POOLED = 10.0  # tests that the acceptance at all places is worth at one of them

_DEAR = 0.25  # steps; a try that may lose more is not made where a look tells as much

_FIRST_PAUSE = 4  # plain steps after a try that did not pay
_FIRST_WATCH = 2  # and after the first look
_LONGER = 3  # times the pause before, where that did not change anything
_LAST_PAUSE = 64  # none is longer, unless the ledger allows no other try for as long
_FOREVER = 2**62


class AutoK:
    """Which k the next round of one run should have, and how many plain steps come before it."""

    def __init__(self, costs: Costs, tokens: int, certain: bool = False) -> None:
        """For a run of at most `tokens` tokens. Where its proposals are `certain` and a try is
        dear, it begins with a look at them and a pause."""
        self._costs = [costs.round(n) for n in range(costs.longest + 1)]
        self._catch_up = costs.catch_up
        self._returning, self._resuming = costs.returning, costs.resuming
        own = OWN_ROUNDS * (costs.asking + costs.per_round)
        self._granted = LOSS * min(tokens, _LENGTH) - own
        self._rate = LOSS - own / _LENGTH  # of what may be lost, a token
        self._accepted = [0.0] * costs.longest  # rounds whose proposal i was kept, discounted
        self._tested = [0.0] * costs.longest
        self._asked = self._answered = 1.0  # rounds that asked for proposals, and that got some
        self._loss = 0.0  # steps spent beyond one a token; below 0 when won
        self._made = 0  # tokens
        self._k = self._pause = self._watched = 0
        # Whether the next round is behind plain steps; or the first, which finds the processor's
        # caches as cold.
        self._behind = True
        # What finding out may lose at least, by a try or by a look; None where no k pays though all
        # is kept.
        self._stake: float | None = None
        self._watching = False  # whether looks come before tries
        paying = [cost for n, cost in enumerate(self._costs) if cost + self._catch_up < n + 1]
        if paying and self._rate > 0:
            try_one = min(paying) - 1 + self._returning + self._resuming
            self._watching = certain and try_one > _DEAR
            self._stake = self._look if self._watching else max(try_one, self._look)
        self._guess = _WATCHED_GUESS if self._watching else _GUESS
        self._first_pause = _FIRST_WATCH if self._watching else _FIRST_PAUSE
        self._next_pause = self._first_pause
        if self._watching:
            self._rest()
        else:
            self._plan()

    @property
    def k(self) -> int:
        """Of the next round, when there is no pause; tell learn() of it."""
        return self._k

    @property
    def pause(self) -> int:
        """Plain steps to make before the next round, or before asking again; tell paused()."""
        return self._pause

    @property
    def watched(self) -> int:
        """Proposals to look at before a pause, at most; 0 where that would tell nothing."""
        return self._watched

    def paused(self, made: Sequence[int], foreseen: Sequence[int]) -> None:
        """What a pause made, and the `watched` proposals from before it."""
        self._made += len(made)
        self._behind = True
        self._fade(len(made))
        if self._watching:
            if self._saw(made, foreseen):
                self._plan()
            else:  # no reason to think better of them
                self._rest()
            return
        # A round, though it does not seem to pay, if it can pay and be afforded.
        self._pause = 0
        self._k, _ = self._best()
        if not self._k:
            self._rest()

    def learn(self, proposed: int, accepted: int) -> None:
        """What a round made of its proposals."""
        self._loss += self._costs[proposed] - accepted - 1
        if proposed:
            self._loss += self._catch_up * (proposed == accepted) + self._returning * self._behind
            self._behind = False
        else:  # a plain step
            self._resume()
        self._made += accepted + 1
        self._fade(1)
        self._count(proposed, accepted)
        self._plan()

    @property
    def _look(self) -> float:
        """Steps that a look costs: measured to be what it costs to ask in vain."""
        return self._costs[0] - 1

    def _saw(self, made: Sequence[int], foreseen: Sequence[int]) -> int:
        """How many of the proposals that were looked at a round would have kept."""
        if not self._watched:
            return 0
        kept = 0
        for proposal, token in zip(foreseen, made, strict=False):
            if proposal != token:
                break
            kept += 1
        self._loss += self._look
        self._count(len(foreseen), kept)
        return kept

    def _fade(self, steps: int) -> None:
        """What was counted counts less, at places that were not tested since, too."""
        faded = _DECAY**steps
        self._accepted = [faded * count for count in self._accepted]
        self._tested = [faded * count for count in self._tested]

    def _count(self, proposed: int, accepted: int) -> None:
        self._asked = self._asked * _DECAY + 1
        self._answered = self._answered * _DECAY + (proposed > 0)
        for i in range(min(accepted + 1, proposed)):
            self._tested[i] += 1
            self._accepted[i] += i < accepted

    def _plan(self) -> None:
        """Settle on the best k, or on a pause where none pays."""
        self._k, value = self._best()
        if value > 1:
            self._pause, self._next_pause = 0, self._first_pause
        else:
            self._resume()
            self._rest()

    def _resume(self) -> None:
        """Plain steps follow."""
        if not self._behind:
            self._loss += self._resuming
            self._behind = True

    def _rest(self) -> None:
        """Plain steps for a while: no fewer than until the ledger allows to find out again."""
        self._pause = self._next_pause
        self._next_pause = min(_LONGER * self._next_pause, _LAST_PAUSE)
        self._watched = 0
        if self._stake is None:
            self._pause = _FOREVER
            return
        lost = self._loss + self._stake
        if lost > self._allowed:
            self._pause = max(self._pause, ceil(lost / self._rate) - self._made)
        elif self._watching:
            self._watched = min(len(self._tested), self._pause)

    @property
    def _allowed(self) -> float:
        """Steps that may be lost by now."""
        return max(self._granted, self._rate * self._made)

    def _worst(self, cost: float) -> float:
        """Steps that a round of such a cost loses with nothing kept, or nothing to propose."""
        return max(cost + self._returning * self._behind, self._costs[0]) - 1

    def _best(self) -> tuple[int, float]:
        """The k of the most tokens a step, and these; of those that pay if all is kept, and
        whose loss, should nothing be kept, the ledger allows. (0, 0) if there is none."""
        silent, *costs = self._costs
        catch_up, turning = self._catch_up, self._returning + self._resuming
        purse = self._allowed - self._loss - self._resuming
        share = self._answered / self._asked
        pooled = (sum(self._accepted) + self._guess * _WEIGHT) / (sum(self._tested) + _WEIGHT)
        best, most = 0, 0.0
        survival, tokens = 1.0, 1.0  # of all k proposals, and expected of the round
        places = zip(costs, self._accepted, self._tested, strict=True)
        for k, (cost, accepted, tested) in enumerate(places, 1):
            survival *= (accepted + _POOLED * pooled) / (tested + _POOLED)
            tokens += survival
            if self._worst(cost) > purse or cost + catch_up >= k + 1:  # dear, or a loss anyway
                continue
            # Where the drafter is often silent, rounds stand alone among plain steps.
            spoken = cost + survival * catch_up + (1 - share) * turning
            value = (1 + share * (tokens - 1)) / (share * spoken + (1 - share) * silent)
            if value > most:
                best, most = k, value
        return best, most
