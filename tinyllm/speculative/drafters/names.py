"""Drafters by name, as the command line and an address of the app carry them."""

from collections.abc import Callable
from pathlib import Path

from tinyllm.loading import MODELS, load_model
from tinyllm.model import Transformer
from tinyllm.speculative.drafters.early_exit import EarlyExitDrafter
from tinyllm.speculative.drafters.fallback import FallbackDrafter
from tinyllm.speculative.drafters.heads import HEADS_FILE, load_heads
from tinyllm.speculative.drafters.model import ModelDrafter
from tinyllm.speculative.drafters.ngram import NGramDrafter
from tinyllm.speculative.drafters.proposal import Drafter

DRAFTERS = ("draft", "ngram")  # the two that need nothing but the prompt and a small model
ALL_DRAFTERS = (*DRAFTERS, "draft-ngram", "early-exit", "heads")

# Before a draft model, prompt lookup speaks only where it has much to go by.
SURE = NGramDrafter(longest=16, shortest=12)


def draft_of(target: str) -> str:
    """Name of the shipped draft model for a target: base has its own, all others share one."""
    return "base-draft" if Path(target).name == "base" else "draft"


def heads_of(target: str) -> Path:
    """Folder of the heads that were trained for a target."""
    return MODELS / f"{Path(target).name}-medusa"


def available(target: str) -> tuple[str, ...]:
    """The names of ALL_DRAFTERS that ship for a target: heads are not trained for every one."""
    heads = (heads_of(target) / HEADS_FILE).exists()
    return tuple(name for name in ALL_DRAFTERS if name != "heads" or heads)


def named(
    name: str, load: Callable[[str], Transformer] = load_model, target: str = "target"
) -> Drafter | Transformer:
    """A drafter by name for a target by name; what is not in ALL_DRAFTERS is a model to `load`."""
    if name == "ngram":
        return NGramDrafter()
    if name == "draft-ngram":
        return FallbackDrafter(SURE, ModelDrafter(load(draft_of(target))))
    if name == "heads":
        return load_heads(heads_of(target))
    if name == "early-exit":
        return EarlyExitDrafter()
    return load(draft_of(target) if name == "draft" else name)
