"""Typed access to a config.json, for readers that must never guess.

Every value is checked against its accepted range and every refusal names its key. Fields remembers
which keys were read, so that the plan can refuse one that nobody read. It knows no architecture.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyllm.errors import MemoryPlanError

MOST_LAYERS = 1_024
MOST_HEADS = 4_096
MOST_WIDTH = 1_048_576
MOST_TOKENS = 2**40


def shown(value: object) -> str:
    """A value as an error may quote it: whole when short, cut when long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """`value` as an int from `low` to `high`; MemoryPlanError names it otherwise."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise MemoryPlanError(
        f"{name} must be a whole number from {low:,} to {high:,}, not {shown(value)}"
    )


@dataclass(slots=True)
class Fields:
    """One object of a config.json: `path` says where it stands, `read` what was looked at."""

    values: Mapping[str, object]
    path: str = ""
    read: set[str] = field(default_factory=set)
    # Values that the model class takes when a key is absent, and those that were needed.
    defaults: Mapping[str, int] = field(default_factory=dict)
    defaulted: dict[str, int] = field(default_factory=dict)

    def name(self, key: str) -> str:
        """The key as a message shows it, with the object it stands in."""
        return f"{self.path}{key}"

    def get(self, key: str) -> object:
        """The raw value, None when absent; the key counts as read."""
        self.read.add(key)
        if key not in self.values and key in self.defaults:
            self.defaulted[key] = self.defaults[key]
            return self.defaults[key]
        return self.values.get(key)

    def absent(self, *keys: str) -> bool:
        """Whether none of the keys is written at all, not even as null."""
        self.read.update(keys)
        return not any(key in self.values or key in self.defaults for key in keys)

    def has(self, key: str) -> bool:
        """Whether the key is given and not null; the key counts as read."""
        return self.get(key) is not None

    def ignore(self, *keys: str) -> None:
        """Count keys as read that are known not to matter here."""
        self.read.update(keys)

    def whole(
        self, *keys: str, low: int = 1, high: int = MOST_WIDTH, default: int | None = None
    ) -> int:
        """The first of `keys` that is given, else `default`, else MemoryPlanError."""
        found = [key for key in keys if self.has(key)]
        if found:
            return whole_number(self.name(found[0]), self.get(found[0]), low, high)
        if default is not None:
            return default
        others = f" (or {', '.join(keys[1:])})" if keys[1:] else ""
        raise MemoryPlanError(
            f"{self.name(keys[0])}{others} is missing: a whole number from {low:,} to {high:,}"
        )

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false; absent and null give the default."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        raise MemoryPlanError(f"{self.name(key)} must be true or false, not {shown(value)}")

    def text(self, key: str, default: str = "") -> str:
        """A string; absent and null give the default."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        raise MemoryPlanError(f"{self.name(key)} must be text, not {shown(value)}")

    def items(self, key: str) -> list[object]:
        """A list of at most MOST_LAYERS items; MemoryPlanError when absent or something else."""
        value = self.get(key)
        if isinstance(value, list | tuple) and len(value) <= MOST_LAYERS:
            return list(value)
        raise MemoryPlanError(
            f"{self.name(key)} must be a list of at most {MOST_LAYERS:,} items, not {shown(value)}"
        )

    def wholes(self, key: str, count: int, low: int, high: int, spare: bool = False) -> list[int]:
        """A list of `count` whole numbers, one per layer; `spare` allows more at the end."""
        items = self.per_layer(key, count, spare)
        return [whole_number(f"{self.name(key)}[{i}]", v, low, high) for i, v in enumerate(items)]

    def names(self, key: str, count: int, spare: bool = False) -> list[str]:
        """A list of `count` strings, one per layer; `spare` allows more at the end."""
        items = self.per_layer(key, count, spare)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise MemoryPlanError(
                    f"{self.name(key)}[{index}] must be the name of a layer type, not {shown(item)}"
                )
        return [str(item) for item in items]

    def per_layer(self, key: str, count: int, spare: bool = False) -> list[object]:
        """A list with one item per layer; `spare` allows more at the end, for layers that draft."""
        items = self.items(key)
        if len(items) == count or (spare and len(items) > count):
            return items[:count]
        raise MemoryPlanError(
            f"{self.name(key)} must have one item per layer, {count} in all, not {len(items)}"
        )

    def section(self, key: str) -> "Fields | None":
        """The object under a key as Fields of its own; None when absent or null."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, Mapping):
            return Fields(value, f"{self.name(key)}.")
        raise MemoryPlanError(f"{self.name(key)} must be an object, not {shown(value)}")
