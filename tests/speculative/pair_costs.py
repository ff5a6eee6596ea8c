"""Costs of pairs that AutoK is tried on."""

from tinyllm.speculative import Costs

TOKENS = 96
WIDTHS = range(1, 10)
COSTS = {
    "cheap": Costs(0.02, dict.fromkeys(WIDTHS, 1.0)),
    "large": Costs(
        0.06, {n: 1 + 0.09 * (n - 1) for n in WIDTHS}, 0.01, 0.01, 0.015, 0.05, 0.3, resuming=0.15
    ),
    "small": Costs(0.25, {n: 1 + 0.22 * (n - 1) for n in WIDTHS}, 0.02, 0.06, 0.05, 0.2, 0.2),
    "steep": Costs(0.09, {1: 1.0} | {n: 2 + 0.06 * (n - 2) for n in WIDTHS if n > 1}, 0.1, 0.1),
    "dear": Costs(0.7, {n: float(n) for n in WIDTHS}),  # pays never
}
