"""Speculative decoding: drafters, the acceptance rule, the loop, its counters and its theory."""

from tinyllm.speculative.counters import Counters
from tinyllm.speculative.decoding import MAX_K, Round, SpeculativeDecoder, speculate
from tinyllm.speculative.drafters import DRAFTERS, Drafter, ModelDrafter, NGramDrafter, named

__all__ = [
    "DRAFTERS",
    "MAX_K",
    "Counters",
    "Drafter",
    "ModelDrafter",
    "NGramDrafter",
    "Round",
    "SpeculativeDecoder",
    "named",
    "speculate",
]
