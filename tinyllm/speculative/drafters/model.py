"""A smaller model of the same alphabet drafts, with a KV cache of its own."""

from collections.abc import Sequence

from tinyllm.errors import SettingError
from tinyllm.model import Transformer
from tinyllm.sampling import Sampler
from tinyllm.speculative.drafters.proposal import Footprint, Proposal, RunShape, draw_in_turn


class ModelDrafter:
    """A draft model. `kv_dtype` is its cache's, by default the run's."""

    def __init__(self, model: Transformer, kv_dtype: str | None = None) -> None:
        self.model = model
        self.kv_dtype = kv_dtype

    def start(self, run: RunShape) -> "ModelDraft":
        """SettingError for a model of another alphabet."""
        if self.model.config.vocab_size != run.vocab_size:
            raise SettingError(
                f"{self.model.name} has {self.model.config.vocab_size} symbols and the target "
                f"{run.vocab_size}: a drafter needs the target's alphabet"
            )
        return ModelDraft(self.model, self.kv_dtype or run.kv_dtype, run)


class ModelDraft:
    """The draft model in one run.

    After commit() its cache holds the whole committed sequence but the last token, exactly as the
    target's does between rounds, whatever was accepted.
    """

    def __init__(self, model: Transformer, kv_dtype: str | None, run: RunShape) -> None:
        self._model = model
        self._sampling = run.sampling
        self._fed: list[int] = []  # the tokens whose keys and values the cache holds
        self._agreed = 0  # how many of them are known to be committed
        self.cache = model.new_cache(kv_dtype, min(run.capacity, model.config.context_length))

    @property
    def footprint(self) -> Footprint:
        """The model's weights and its cache."""
        config, itemsize = self._model.config, self._model.dtype.itemsize
        return Footprint(config.n_parameters * itemsize, self.cache.nbytes)

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """k draws, each fed back; fewer where the draft model's own context ends."""
        last = sequence[-1]
        proposal = draw_in_turn(self._model, self.cache, last, k, self._sampling, sampler)
        self._fed += [last, *proposal.tokens][: len(proposal.tokens)]
        return proposal

    def commit(self, sequence: Sequence[int]) -> None:
        """Drop rejected tokens; feed what was committed and not yet fed.

        At first that is all there is. After full acceptance it is the last proposed token, which
        was drawn and never fed: without it the cache would lack a position and acceptance would
        collapse. After a round that another drafter served it is all that the round emitted.
        """
        wanted = sequence[: min(len(sequence) - 1, self.cache.capacity)]
        while self._agreed < min(len(self._fed), len(wanted)) and (
            self._fed[self._agreed] == wanted[self._agreed]
        ):
            self._agreed += 1
        self.cache.truncate(self._agreed)
        del self._fed[self._agreed :]
        missing = list(wanted[self._agreed :])
        if missing:
            self._model.forward(missing, self.cache, rows=0)
            self._fed += missing
            self._agreed = len(self._fed)
