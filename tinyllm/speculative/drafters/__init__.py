"""Drafters: what proposes the tokens that the target then checks. One file a drafter."""

from tinyllm.speculative.drafters.early_exit import EarlyExitDrafter
from tinyllm.speculative.drafters.fallback import FallbackDrafter
from tinyllm.speculative.drafters.heads import HEADS_FILE, HeadsDrafter, load_heads
from tinyllm.speculative.drafters.model import ModelDraft, ModelDrafter
from tinyllm.speculative.drafters.names import (
    ALL_DRAFTERS,
    DRAFTERS,
    SURE,
    available,
    draft_of,
    heads_of,
    named,
)
from tinyllm.speculative.drafters.ngram import NGramDraft, NGramDrafter
from tinyllm.speculative.drafters.proposal import (
    Draft,
    Drafter,
    Footprint,
    Proposal,
    RunShape,
    footprint_of,
)

__all__ = [
    "ALL_DRAFTERS",
    "DRAFTERS",
    "HEADS_FILE",
    "SURE",
    "Draft",
    "Drafter",
    "EarlyExitDrafter",
    "FallbackDrafter",
    "Footprint",
    "HeadsDrafter",
    "ModelDraft",
    "ModelDrafter",
    "NGramDraft",
    "NGramDrafter",
    "Proposal",
    "RunShape",
    "available",
    "draft_of",
    "footprint_of",
    "heads_of",
    "load_heads",
    "named",
]
