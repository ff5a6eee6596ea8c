"""Speculative decoding: drafters, the acceptance rule, the loop, its counters and its theory."""

from tinyllm.speculative.counters import Counters
from tinyllm.speculative.decoding import MAX_K, Round, SpeculativeDecoder, speculate
from tinyllm.speculative.drafters import (
    ALL_DRAFTERS,
    DRAFTERS,
    Drafter,
    EarlyExitDrafter,
    FallbackDrafter,
    ModelDrafter,
    NGramDrafter,
    named,
)

__all__ = [
    "ALL_DRAFTERS",
    "DRAFTERS",
    "MAX_K",
    "Counters",
    "Drafter",
    "EarlyExitDrafter",
    "FallbackDrafter",
    "ModelDrafter",
    "NGramDrafter",
    "Round",
    "SpeculativeDecoder",
    "named",
    "speculate",
]
