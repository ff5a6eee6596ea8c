"""Speculative decoding: drafters, the acceptance rule, the loop, its counters and its theory."""

from tinyllm.speculative.auto import AUTO
from tinyllm.speculative.costs import Costs
from tinyllm.speculative.counters import Counters
from tinyllm.speculative.decoding import Round, SpeculativeDecoder
from tinyllm.speculative.drafters import (
    ALL_DRAFTERS,
    DRAFTERS,
    Drafter,
    EarlyExitDrafter,
    FallbackDrafter,
    HeadsDrafter,
    ModelDrafter,
    NGramDrafter,
    named,
)
from tinyllm.speculative.round_times import calibrate
from tinyllm.speculative.run import MAX_K, speculate
from tinyllm.speculative.tree import MAX_WIDTH, TreeDecoder
from tinyllm.speculative.verification import RULES

__all__ = [
    "ALL_DRAFTERS",
    "AUTO",
    "DRAFTERS",
    "MAX_K",
    "MAX_WIDTH",
    "RULES",
    "Costs",
    "Counters",
    "Drafter",
    "EarlyExitDrafter",
    "FallbackDrafter",
    "HeadsDrafter",
    "ModelDrafter",
    "NGramDrafter",
    "Round",
    "SpeculativeDecoder",
    "TreeDecoder",
    "calibrate",
    "named",
    "speculate",
]
