"""A plain and a speculative run of one text, with a clock between the parts of every round.

The loop and the drafters are the real ones; the target and the draft are wrapped so that their
calls are timed. What is done with the times is round_times.py's business.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tinyllm.attention import Tree
from tinyllm.cache import KVCache
from tinyllm.generation import Token, generate
from tinyllm.layers import Array
from tinyllm.model import Transformer
from tinyllm.sampling import RandomSampler, Sampler, certain
from tinyllm.speculative.decoding import SpeculativeDecoder
from tinyllm.speculative.drafters import Draft, Drafter, ModelDrafter, Proposal, RunShape

Clock = Callable[[], float]

PATIENCE = 6  # rounds in which a drafter may have nothing, one after the other


@dataclass(frozen=True, slots=True)
class RoundTime:
    """One round of k proposals, or of none: then all is `rest`. Seconds."""

    k: int
    answered: bool  # all proposals are the drafter's; else it had fewer
    kept_all: bool
    drafting: float  # the proposals
    verifying: float  # the target's call
    feeding: float  # the draft learns what was decided
    rest: float  # distributions, verdicts, draws, and the loop itself

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.drafting + self.verifying + self.feeding + self.rest


class Rehearsal:
    """A plain and a speculative run of one text, a token and a round at a time, again and again."""

    def __init__(
        self,
        target: Transformer,
        drafter: Drafter | Transformer,
        tokens: list[int],
        run: RunShape,
        seed: int,
        clock: Clock,
    ) -> None:
        self._target = _TimedModel(target, clock)
        self._drafter = ModelDrafter(drafter) if isinstance(drafter, Transformer) else drafter
        self._tokens = tokens
        self._run = run
        self._sampler = RandomSampler(seed)
        self._clock = clock
        self._plain: Iterator[Token] = iter(())
        self._plain_left = 0

    def begin(self) -> None:
        """A new speculative run; that target and draft read the prompt is nobody's round."""
        self._decoder = SpeculativeDecoder(
            self._target,
            self._drafter,
            self._tokens,
            self._run,
            frozenset(),
            self._sampler,
        )
        self._decoder.catch_up()
        self._draft = _TimedDraft(self._decoder.draft, self._run.vocab_size, self._clock)
        self._decoder.draft = self._draft

    def rounds(self, k: int) -> list[RoundTime]:
        """A round of k proposals behind those in which the drafter has none, as in a real run, but
        no more than PATIENCE."""
        times: list[RoundTime] = []
        for _ in range(PATIENCE):
            silent = self._silent_round(k)
            if silent is None:
                break
            times.append(silent)
        return [*times, self.round(k)]

    def _silent_round(self, k: int) -> RoundTime | None:
        """A round in which the drafter has nothing, timed whole: next to a short step a clock
        around every part shows. None where it has proposals."""
        if not self._room(k + 1):
            self.begin()
        decoder = self._decoder
        decoder.draft, decoder.target = self._draft.draft, self._target.model
        start = self._clock()
        event = decoder.round(k)
        seconds = self._clock() - start
        decoder.draft, decoder.target = self._draft, self._target
        return None if event.proposed else RoundTime(0, False, False, 0.0, 0.0, 0.0, seconds)

    def round(self, k: int) -> RoundTime:
        """A round of k proposals; a new run is begun when there is no more room."""
        if not self._room(k + 1):
            self.begin()
            self._decoder.round(k)
        draft, target, clock = self._draft, self._target, self._clock
        draft.answered = True
        draft.drafting = draft.feeding = draft.padding = target.seconds = 0.0
        start = clock()
        event = self._decoder.round(k)
        total = clock() - start - draft.padding
        return RoundTime(
            k=k,
            answered=draft.answered,
            kept_all=event.accepted == k,
            drafting=draft.drafting,
            verifying=target.seconds,
            feeding=draft.feeding,
            rest=total - draft.drafting - draft.feeding - target.seconds,
        )

    def round_among_steps(self, before: int, k: int, behind: int) -> tuple[RoundTime, float]:
        """A round between so many plain steps of the same run: its times, and the seconds of the
        steps behind it."""
        if not self._room(before + k + 1 + behind):
            self.begin()
        self._steps(before)
        time = self.round(k)
        start = self._clock()
        self._steps(behind)
        return time, self._clock() - start

    def _steps(self, n: int) -> None:
        decoder = self._decoder
        decoder.target = self._target.model  # no clock in it
        for _ in decoder.steps(n):
            pass
        decoder.target = self._target

    def _room(self, tokens: int) -> bool:
        return len(self._decoder.sequence) + tokens <= self._run.capacity

    def plain_token(self) -> tuple[float, float]:
        """Seconds of a token of plain decoding, and of the target's call in it."""
        if not self._plain_left:
            self._plain_left = self._run.capacity - len(self._tokens)
            self._plain = self._plain_run(self._plain_left)
            next(self._plain)  # its call is the prefill
            self._plain_left -= 1
        self._plain_left -= 1
        self._target.seconds = 0.0
        start = self._clock()
        next(self._plain)
        return self._clock() - start, self._target.seconds

    def _plain_run(self, tokens: int) -> Iterator[Token]:
        sampling = self._run.sampling
        return generate(
            self._target,
            self._tokens,
            max_new_tokens=tokens,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            kv_dtype=self._run.kv_dtype,
            sampler=self._sampler,
        )


class _TimedModel(Transformer):
    """A model, sharing everything with the one it stands for, that adds up its calls' seconds."""

    def __init__(self, model: Transformer, clock: Clock) -> None:
        self.__dict__.update(vars(model))
        self.model = model
        self.seconds = 0.0
        self._clock = clock

    def forward(
        self,
        tokens: Sequence[int],
        cache: KVCache | None = None,
        rows: int | None = None,
        hidden: list[Array] | None = None,
        tree: Tree | None = None,
    ) -> Array:
        """Of the model, timed."""
        start = self._clock()
        logits = super().forward(tokens, cache, rows, hidden, tree)
        self.seconds += self._clock() - start
        return logits


class _TimedDraft:
    """A draft whose seconds are added up, and who always proposes k tokens.

    Where the draft has fewer, token 0 fills up: the target's call must be as long as is timed.
    """

    def __init__(self, draft: Draft, vocab_size: int, clock: Clock) -> None:
        self.draft = draft
        self.observe = getattr(draft, "observe", None)
        self._certain = certain(0, vocab_size)
        self._clock = clock
        self.answered = True
        self.drafting = self.feeding = self.padding = 0.0

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """k tokens."""
        start = self._clock()
        proposal = self.draft.propose(sequence, k, sampler)
        end = self._clock()
        self.drafting += end - start
        missing = k - len(proposal.tokens)
        self.answered = not missing
        proposal = Proposal(proposal.tokens + [0] * missing, proposal.q + [self._certain] * missing)
        self.padding += self._clock() - end
        return proposal

    def commit(self, sequence: Sequence[int]) -> None:
        """Timed too."""
        start = self._clock()
        self.draft.commit(sequence)
        self.feeding += self._clock() - start
