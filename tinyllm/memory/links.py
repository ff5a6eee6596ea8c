"""A choice as the query of an address and back, with the visitor's own config.json packed in it.

What is wrong in a query is named; nothing of it is opened or fetched.
"""

import json
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.choice import OWN, Choice, from_query
from tinyllm.memory.files import parse_config
from tinyllm.memory.packed import MOST_LINK_CHARACTERS, pack, unpack
from tinyllm.memory.subject import Subject, of_preset, of_text

CONFIG = "config"
_MOST_FIELDS = 40


@dataclass(frozen=True, slots=True)
class Pinned:
    """A choice that is kept, and the text of its model when it is no preset."""

    choice: Choice
    config: str = ""

    @property
    def subject(self) -> Subject:
        """The model; MemoryPlanError when its text cannot be sized."""
        return of_text(self.config) if self.choice.model == OWN else of_preset(self.choice.model)

    def query(self) -> str:
        """As the query of an address; MemoryPlanError when its config.json is too long for one."""
        fields = self.choice.to_query()
        if self.choice.model == OWN:
            packed = pack(parse_config(self.config))
            if packed is None:
                raise MemoryPlanError(
                    f"the config.json is too long for a link: more than {MOST_LINK_CHARACTERS:,} "
                    "characters when packed"
                )
            fields[CONFIG] = packed
        return urlencode(fields)


def read_query(query: str) -> Pinned:
    """A kept choice from its query; MemoryPlanError names what is wrong."""
    if len(query) > MOST_LINK_CHARACTERS + 2_000:
        raise MemoryPlanError("a choice in a link is too long")
    try:
        fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise MemoryPlanError(f"a choice in a link cannot be read: {error}") from error
    packed = fields.pop(CONFIG, "")
    choice = from_query(fields)
    pinned = Pinned(choice, packed and config_text(packed))
    pinned.subject  # noqa: B018  # sized once here, so that what is wrong is said now
    return pinned


def config_text(packed: str) -> str:
    """The text of a config.json that came in a link."""
    return json.dumps(unpack(packed), indent=1)
