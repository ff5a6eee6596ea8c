"""Costs of pairs that AutoK is tried on."""

from tinyllm.speculative import Costs

TOKENS = 96
WIDTHS = range(1, 10)
FLAT = dict.fromkeys(WIDTHS, 1.0)
COSTS = {
    "cheap": Costs(c=0.02, verification=FLAT),
    "large": Costs(
        c=0.06,
        verification={n: 1 + 0.09 * (n - 1) for n in WIDTHS},
        asking=0.01,
        per_round=0.01,
        per_proposal=0.015,
        catch_up=0.05,
        cold=0.3,
        resuming=0.15,
    ),
    "small": Costs(
        c=0.25,
        verification={n: 1 + 0.22 * (n - 1) for n in WIDTHS},
        asking=0.02,
        per_round=0.06,
        per_proposal=0.05,
        catch_up=0.2,
        cold=0.1,
        reading=0.1,
    ),
    "steep": Costs(
        c=0.09,
        verification={1: 1.0} | {n: 2 + 0.06 * (n - 2) for n in WIDTHS if n > 1},
        asking=0.1,
        per_round=0.1,
    ),
    "silence": Costs(c=0.02, verification=FLAT, asking=0.02, silent=0.3),  # dearer than a round
    "lookup": Costs(
        c=0.003,
        verification={1: 1.0} | {n: 1.5 + 0.1 * (n - 2) for n in WIDTHS if n > 1},
        asking=0.06,
        per_round=0.25,
        per_proposal=0.013,
        cold=0.2,
        silent=0.11,
        resuming=0.35,
    ),
    "uneven": Costs(c=0.02, verification={1: 1.0, 2: 2.5, 3: 1.8, 4: 1.9}, asking=0.02),
    "dear": Costs(c=0.7, verification={n: float(n) for n in WIDTHS}),  # pays never
}
