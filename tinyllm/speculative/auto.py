"""k chosen round by round: the most tokens per cost that the run so far lets one expect.

Counts proposals and verdicts, weighs them with given Costs and reads no clock, so the same seed
and costs make the same run. Loss against plain decoding is bounded by a ledger: nothing is tried
whose cost could be more than is left of it. Not in the ledger is what a draft reads before its
first round, and behind a pause longer than the one that was timed: hundredths of a step a token.
"""

from math import ceil

from tinyllm.speculative.costs import Costs

AUTO = "auto"

# Of what plain decoding costs: the most that trying may lose. The loop itself takes up to another
# hundredth where a step is very short.
LOSS = 0.02
_LENGTH = 96  # tokens; a run is granted at once what it may lose on so many

_DECAY = 0.98  # of what was counted, a round
_GUESS, _WEIGHT = 0.8, 3.0  # an acceptance before anything was counted, and the tests it is worth
_POOLED = 10.0  # tests that the acceptance at all places is worth at one of them
# Plain steps after a try that did not pay; every further pause is twice as long, up to the last, or
# as long as the ledger allows no other try.
_FIRST_PAUSE, _LAST_PAUSE, _FOREVER = 4, 64, 2**62


class AutoK:
    """Which k the next round of one run should have, and how many plain steps come before it."""

    def __init__(self, costs: Costs, tokens: int) -> None:
        """For a run of at most `tokens` tokens."""
        places = costs.longest
        self._costs = [costs.round(n) for n in range(places + 1)]
        self._catch_up, self._returning = costs.catch_up, costs.returning
        paying = [cost for n, cost in enumerate(self._costs) if cost + self._catch_up < n + 1]
        # What the cheapest try loses with nothing kept; None where none pays with all kept.
        self._cheapest = min(paying) - 1 + self._returning if paying else None
        self._granted = LOSS * min(tokens, _LENGTH)
        self._accepted = [0.0] * places  # rounds whose proposal i was kept, discounted
        self._tested = [0.0] * places
        self._asked = self._answered = 1.0  # rounds that asked for proposals, and that got some
        self._loss = 0.0  # steps spent beyond one a token; below 0 when won
        self._made = 0  # tokens
        self._pause = 0  # plain steps until the next try
        self._next_pause = _FIRST_PAUSE
        self._k = 0
        # Whether the next round is behind plain steps; or the first, which finds the processor's
        # caches as cold.
        self._behind = True
        self._plan()

    @property
    def k(self) -> int:
        """Of the next round, when pause() has given 0; tell learn() of it."""
        return self._k

    def pause(self) -> int:
        """Plain steps to make before the next round, or before asking again; they count as made."""
        steps, self._pause = self._pause, 0
        if steps:
            self._made += steps
            self._behind = True
            self._try(steps)
        return steps

    def learn(self, proposed: int, accepted: int) -> None:
        """What a round made of its proposals."""
        kept_all = 0 < proposed == accepted
        self._loss += self._costs[proposed] - accepted - 1 + self._catch_up * kept_all
        self._loss += self._returning * self._behind
        self._behind = False
        self._made += accepted + 1
        self._asked = self._asked * _DECAY + 1
        self._answered = self._answered * _DECAY + (proposed > 0)
        for i in range(min(accepted + 1, proposed)):
            self._tested[i] = self._tested[i] * _DECAY + 1
            self._accepted[i] = self._accepted[i] * _DECAY + (i < accepted)
        self._plan()

    def _plan(self) -> None:
        """Settle on the best k, or on a pause where none pays."""
        self._k, value = self._best()
        if value > 1:
            self._next_pause = _FIRST_PAUSE
        else:
            self._rest()
            self._next_pause = min(2 * self._next_pause, _LAST_PAUSE)

    def _try(self, steps: int) -> None:
        """Settle on the best k after a pause of so many steps, though it does not seem to pay; what
        was counted before counts less. Pause again where none can pay or be afforded."""
        faded = _DECAY**steps
        self._accepted = [faded * count for count in self._accepted]
        self._tested = [faded * count for count in self._tested]
        self._k, _ = self._best()
        if not self._k:
            self._rest()

    def _rest(self) -> None:
        """Plain steps for a while: no fewer than until the ledger allows another try."""
        self._pause = self._next_pause
        if self._cheapest is None:
            self._pause = _FOREVER
        elif self._loss + self._cheapest > self._granted:
            allowed_at = ceil((self._loss + self._cheapest) / LOSS)  # tokens made
            self._pause = max(self._pause, allowed_at - self._made)

    def _best(self) -> tuple[int, float]:
        """The k of the most tokens a step, and these; of those that pay if all is kept, and
        whose loss, should nothing be kept, the ledger allows. (0, 0) if there is none."""
        purse = max(self._granted, LOSS * self._made) - self._loss
        purse -= self._returning * self._behind
        share = self._answered / self._asked
        pooled = (sum(self._accepted) + _GUESS * _WEIGHT) / (sum(self._tested) + _WEIGHT)
        best, most = 0, 0.0
        survival, tokens = 1.0, 1.0  # of all k proposals, and expected of the round
        for i, cost in enumerate(self._costs[1:]):
            if cost - 1 > purse:
                break
            survival *= (self._accepted[i] + _POOLED * pooled) / (self._tested[i] + _POOLED)
            tokens += survival
            if cost + self._catch_up >= i + 2:  # a loss though all is kept
                continue
            cost = share * (cost + survival * self._catch_up) + (1 - share) * self._costs[0]
            value = (1 + share * (tokens - 1)) / cost
            if value > most:
                best, most = i + 1, value
        return best, most
