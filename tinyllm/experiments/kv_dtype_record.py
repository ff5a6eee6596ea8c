"""What fewer bits cost, as far as it is measured: a row for each format, and the run's own texts.

Takes the events of experiments/kv_dtype.py one by one; measures nothing itself.
"""

from dataclasses import dataclass, field

from tinyllm.cache import CACHE_DTYPES
from tinyllm.experiments.rows import Row, flat
from tinyllm.experiments.texts import agreement
from tinyllm.experiments.timing import Progress, Spread


@dataclass(frozen=True, slots=True)
class FormatRow:
    """What one format costs, against float32."""

    dtype: str
    bits: int
    keys_by_channel: bool
    tokens: int  # a prompt and what follows it
    nbytes: int  # of a cache for so many tokens
    formula_bytes: int
    agree: bool  # these two, and the arrays
    bytes_per_token: float  # of a cache for the whole context
    prompts: int
    identical: int  # prompts with the same text to the last token
    first_divergence: float  # mean over prompts; a text that never parts counts as its length
    max_logit_difference: float  # along float32's tokens
    loss: float  # nats per token
    loss_increase: float
    loss_error: float  # standard error of the increase, over windows
    step_seconds: Spread  # of one step near the context's end
    reference_step_seconds: Spread  # of float32, in turn


@dataclass(frozen=True, slots=True)
class Texts:
    """The run's own prompt, continued from a float32 cache and from one in its format."""

    reference: str
    text: str

    @property
    def same(self) -> int:
        """Characters before the first difference."""
        return agreement(self.reference, self.text)


@dataclass(slots=True)
class FormatRecord:
    """What a run has given so far."""

    texts: Texts | None = None
    formats: dict[str, FormatRow] = field(default_factory=dict)
    progress: Progress | None = None

    def take(self, event: Texts | Progress | FormatRow) -> bool:
        """Take one event in; True for a format, which is worth drawing by itself."""
        if isinstance(event, Progress):
            self.progress = event
            return False
        self.progress = None
        if isinstance(event, Texts):
            self.texts = event
        else:
            self.formats[event.dtype] = event
        return isinstance(event, FormatRow)

    def restarted(self) -> "FormatRecord":
        """Without the texts; what was measured stays until it is measured anew."""
        return FormatRecord(formats=dict(self.formats))


def formats_table(record: FormatRecord) -> list[Row]:
    """The formats as flat rows, for export."""
    ordered = sorted(record.formats.values(), key=lambda row: CACHE_DTYPES.index(row.dtype))
    return [flat(row) for row in ordered]
