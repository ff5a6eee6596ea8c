"""Every error a user can cause, named. Each message says what is wrong and what would be right.

All derive from TinyllmError, so a page or a command catches one class and shows its text.
"""

from operator import index


class TinyllmError(ValueError):
    """Base of every error that a user's input can cause."""


class ConfigError(TinyllmError):
    """A model configuration that cannot be."""


class WeightsError(TinyllmError):
    """A weights file that is missing, damaged or of another shape."""


class TokenError(TinyllmError):
    """Text outside the alphabet, a token id outside the vocabulary, or an empty prompt."""


class TokenizerError(TinyllmError):
    """A tokenizer's files, or a chat template, that cannot be used."""


class MissingPackageError(TinyllmError):
    """Something that needs a package which is not installed."""


class CacheOverflowError(TinyllmError):
    """More tokens than the KV cache has room for."""


class CacheRangeError(TinyllmError):
    """A key or a value that the cache's stored type cannot hold."""


class ContextOverflowError(TinyllmError):
    """More tokens than the model has positions for."""


class SettingError(TinyllmError):
    """A setting (temperature, k, top-p, dtype, ...) outside its range."""


def whole_number(value: object, name: str, low: int, high: int | None = None) -> int:
    """`value` as an int (numpy's too) from low to high, else a SettingError that says so."""
    try:
        number = index(value)  # type: ignore[arg-type]  # what has no index is refused below
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < low or number > (high or number):
        wanted = f"at least {low}" if high is None else f"from {low} to {high}"
        raise SettingError(f"{name} must be a whole number {wanted}, not {value!r}")
    return number


class CorpusError(TinyllmError):
    """A training text that is too short or mostly outside the alphabet."""


class CheckpointError(TinyllmError):
    """A training checkpoint that does not fit the run that resumes it."""


class MemoryPlanError(TinyllmError):
    """A config.json, a layer plan or a setting from which the cache cannot be sized."""
