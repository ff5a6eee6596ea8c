"""What a pitfall is, what it is measured with, and what is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tinyllm.layers import Array
from tinyllm.model import Transformer

PROMPT = "def __init__(self,"


@dataclass(frozen=True, slots=True)
class Bench:
    """The models and settings that all pitfalls share. `weights` are the target's as stored."""

    target: Transformer
    draft: Transformer
    weights: Mapping[str, Array] = field(repr=False)
    prompt: str = PROMPT
    k: int = 4
    tokens: int = 96  # new ones, where text is made
    seed: int = 0

    @property
    def prompt_tokens(self) -> list[int]:
        """The prompt's token ids."""
        return self.target.tokenizer.encode(self.prompt)


@dataclass(frozen=True, slots=True)
class Result:
    """The fault's result and the right one."""

    measure: str  # what the two are
    wrong: str
    right: str
    engine: str  # what the engine says (its message) or does instead


@dataclass(frozen=True, slots=True)
class Bars:
    """The two results by token, k or kind."""

    labels: tuple[str, ...]
    wrong: tuple[float, ...]
    right: tuple[float, ...]
    what: str = ""  # they show, where it is not the result's own measure


@dataclass(frozen=True, slots=True)
class Texts:
    """The two results as new tokens."""

    wrong: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def first_difference(self) -> int | None:
        """Index of the first token that differs; None when there is none."""
        pairs = zip(self.wrong, self.right, strict=False)
        for place, (one, other) in enumerate(pairs):
            if one != other:
                return place
        shorter = min(len(self.wrong), len(self.right))
        return None if len(self.wrong) == len(self.right) else shorter


@dataclass(frozen=True, slots=True)
class Seen:
    """One pitfall measured: its results, and what a page draws."""

    result: Result
    bars: Bars | None = None
    texts: Texts | None = None


@dataclass(frozen=True, slots=True)
class Pitfall:
    """One fault: how it is measured, its code, and the engine's code that has it right."""

    name: str
    measure: Callable[[Bench], Seen]
    fault: Callable[..., object]
    right: Callable[..., object]


@dataclass(frozen=True, slots=True)
class PitfallRow:
    """A pitfall's results under its name."""

    name: str
    measure: str
    wrong: str
    right: str
    engine: str

    @classmethod
    def of(cls, name: str, seen: Seen) -> "PitfallRow":
        """The row of a measured pitfall."""
        one = seen.result
        return cls(name, one.measure, one.wrong, one.right, one.engine)
