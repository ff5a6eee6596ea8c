"""k chosen round by round: the most tokens per cost that the run so far lets one expect.

Counts proposals and verdicts, weighs them with given Costs and reads no clock, so the same seed
and costs make the same run. Loss against plain decoding is bounded by a ledger: nothing is tried
whose cost could be more than is left of it. Certain proposals need no try: a look at them, and the
plain steps that follow show what would have been kept. Not in the ledger is what a draft reads
before its first round, and behind a pause longer than the one that was timed: hundredths of a step
a token.
"""

from collections.abc import Sequence
from math import ceil

from tinyllm.speculative.costs import Costs

AUTO = "auto"

# Of what plain decoding costs: the most that a run may lose, the loop's own work in it. That was
# measured to be about what it takes to ask for proposals and to judge them so many times.
LOSS, OWN = 0.03, 3
_LENGTH = 96  # tokens; a run is granted at once what it may lose on so many

_DECAY = 0.98  # of what was counted, a round
# An acceptance before anything was counted, hopeful where it takes a round to know better, and the
# tests that it is worth.
_GUESS, _WATCHED_GUESS, _WEIGHT = 0.8, 0.5, 3.0
_POOLED = 10.0  # tests that the acceptance at all places is worth at one of them
# A try that may lose more steps than this is not made where watching tells as much.
_DEAR = 0.25
# Plain steps after a try that did not pay, and before the first round of what is watched; every
# further pause is so many times as long, up to the last, or as long as the ledger allows no try.
_FIRST_PAUSE, _FIRST_WATCH, _LONGER, _LAST_PAUSE, _FOREVER = 4, 2, 3, 64, 2**62


class AutoK:
    """Which k the next round of one run should have, and how many plain steps come before it."""

    def __init__(self, costs: Costs, tokens: int, certain: bool = False) -> None:
        """For a run of at most `tokens` tokens. Proposals that are `certain` are watched in pauses,
        with one of which the run begins."""
        places = costs.longest
        self._costs = [costs.round(n) for n in range(places + 1)]
        self._catch_up = costs.catch_up
        self._returning, self._resuming = costs.returning, costs.resuming
        self._granted = LOSS * min(tokens, _LENGTH)
        self._accepted = [0.0] * places  # rounds whose proposal i was kept, discounted
        self._tested = [0.0] * places
        self._asked = self._answered = 1.0  # rounds that asked for proposals, and that got some
        # Steps spent beyond one a token; below 0 when won.
        self._loss = OWN * (costs.asking + costs.per_round)
        self._made = 0  # tokens
        self._k = self._pause = self._watched = 0
        # Whether the next round is behind plain steps; or the first, which finds the processor's
        # caches as cold.
        self._behind = True
        paying = [cost for n, cost in enumerate(self._costs) if cost + self._catch_up < n + 1]
        # What the cheapest try loses with nothing kept; None where none pays with all kept.
        self._cheapest: float | None = None
        if paying:
            self._cheapest = min(paying) - 1 + self._returning + self._resuming
        self._guess, self._first_pause = _GUESS, _FIRST_PAUSE
        self._watches = 0
        if certain and self._cheapest and self._cheapest > _DEAR:
            self._watches = places
            self._cheapest = self._costs[0] - 1
            self._guess, self._first_pause = _WATCHED_GUESS, _FIRST_WATCH
        self._next_pause = self._first_pause
        if self._watches:
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
        kept = 0
        if self._watched:
            self._loss += self._costs[0] - 1
            for proposal, token in zip(foreseen, made, strict=False):
                if proposal != token:
                    break
                kept += 1
            self._count(len(foreseen), kept)
        if self._watches and not kept:  # no reason to think better of them
            self._rest()
            return
        # What was counted before counts less.
        faded = _DECAY ** len(made)
        self._accepted = [faded * count for count in self._accepted]
        self._tested = [faded * count for count in self._tested]
        if self._watches:
            self._plan()
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
        self._count(proposed, accepted)
        self._plan()

    def _count(self, proposed: int, accepted: int) -> None:
        self._asked = self._asked * _DECAY + 1
        self._answered = self._answered * _DECAY + (proposed > 0)
        for i in range(min(accepted + 1, proposed)):
            self._tested[i] = self._tested[i] * _DECAY + 1
            self._accepted[i] = self._accepted[i] * _DECAY + (i < accepted)

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
        """Plain steps for a while: no fewer than until the ledger allows another try."""
        self._pause = self._next_pause
        self._next_pause = min(_LONGER * self._next_pause, _LAST_PAUSE)
        if self._cheapest is None:
            self._pause = _FOREVER
            return
        tried = self._loss + self._cheapest
        affordable = tried <= max(self._granted, LOSS * self._made)
        if not affordable:
            self._pause = max(self._pause, ceil(tried / LOSS) - self._made)
        self._watched = min(self._watches, self._pause) if affordable else 0

    def _best(self) -> tuple[int, float]:
        """The k of the most tokens a step, and these; of those that pay if all is kept, and
        whose loss, should nothing be kept, the ledger allows. (0, 0) if there is none."""
        silent, *costs = self._costs
        catch_up, turning = self._catch_up, self._returning + self._resuming
        purse = max(self._granted, LOSS * self._made) - self._loss
        purse -= self._resuming + self._returning * self._behind
        share = self._answered / self._asked
        pooled = (sum(self._accepted) + self._guess * _WEIGHT) / (sum(self._tested) + _WEIGHT)
        best, most = 0, 0.0
        survival, tokens = 1.0, 1.0  # of all k proposals, and expected of the round
        places = zip(costs, self._accepted, self._tested, strict=True)
        for k, (cost, accepted, tested) in enumerate(places, 1):
            if cost - 1 > purse:
                break
            survival *= (accepted + _POOLED * pooled) / (tested + _POOLED)
            tokens += survival
            if cost + catch_up >= k + 1:  # a loss though all is kept
                continue
            # Where the drafter is often silent, rounds stand alone among plain steps.
            spoken = cost + survival * catch_up + (1 - share) * turning
            value = (1 + share * (tokens - 1)) / (share * spoken + (1 - share) * silent)
            if value > most:
                best, most = k, value
        return best, most
