"""Early exit: the target's own first layers draft, with its final norm and head.

Self-speculation as in LayerSkip (Elhoushi et al. 2024, arXiv 2404.16710), here without the
training that makes early layers speak. It takes no weights and no cache of its own: what the
first layers leave in the target's cache while they draft is what verification would put there.
"""

from collections.abc import Sequence

from tinyllm.cache import FirstLayers
from tinyllm.errors import SettingError
from tinyllm.sampling import Sampler
from tinyllm.speculative.drafters.proposal import Footprint, Proposal, RunShape, draw_in_turn


class EarlyExitDrafter:
    """Drafts with the first `layers` of the target, by default half of them."""

    def __init__(self, layers: int | None = None) -> None:
        self.layers = layers

    def start(self, run: RunShape) -> "EarlyExitDraft":
        """SettingError for more layers than the target can leave out."""
        return EarlyExitDraft(self.layers, run)


class EarlyExitDraft:
    """The first layers in one run, writing ahead into the target's cache."""

    def __init__(self, layers: int | None, run: RunShape) -> None:
        if run.target is None or run.cache is None:
            raise SettingError("early exit drafts with the target: start it through speculate()")
        half = max(1, run.target.config.n_layer // 2)
        self.model = run.target.first_layers(half if layers is None else layers)
        self.cache = FirstLayers(run.cache, self.model.config)
        self._sampling = run.sampling

    @property
    def footprint(self) -> Footprint:
        """Nothing of its own."""
        return Footprint(0, self.cache.nbytes)

    def propose(self, sequence: Sequence[int], k: int, sampler: Sampler) -> Proposal:
        """k draws, each fed back, from where the target's cache ends."""
        self.cache.follow()
        return draw_in_turn(self.model, self.cache, sequence[-1], k, self._sampling, sampler)

    def commit(self, sequence: Sequence[int]) -> None:
        """Nothing to do: the target's cache holds what was committed, and nothing else."""
