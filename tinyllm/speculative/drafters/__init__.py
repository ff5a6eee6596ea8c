"""Drafters: what proposes the tokens that the target then checks. One file a drafter."""

from tinyllm.speculative.drafters.early_exit import EarlyExitDrafter
from tinyllm.speculative.drafters.fallback import FallbackDrafter
from tinyllm.speculative.drafters.model import ModelDraft, ModelDrafter
from tinyllm.speculative.drafters.names import ALL_DRAFTERS, DRAFTERS, SURE, draft_of, named
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
    "SURE",
    "Draft",
    "Drafter",
    "EarlyExitDrafter",
    "FallbackDrafter",
    "Footprint",
    "ModelDraft",
    "ModelDrafter",
    "NGramDraft",
    "NGramDrafter",
    "Proposal",
    "RunShape",
    "draft_of",
    "footprint_of",
    "named",
]
