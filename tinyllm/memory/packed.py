"""A config.json inside a link: compact JSON, deflated, in the letters that an address may hold.

What a link brings is untrusted: its length and what it inflates to are limited, and what comes out
is read like any pasted file.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

from tinyllm.errors import MemoryPlanError
from tinyllm.memory.files import MOST_CONFIG_BYTES, parse_config

MOST_LINK_CHARACTERS = 6_000


def pack(config: Mapping[str, Any]) -> str | None:
    """The config as text for a link; None when no link can carry it."""
    text = json.dumps(config, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    content = zlib.compress(text.encode("utf-8", "surrogatepass"), 9)
    packed = base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")
    return packed if len(packed) <= MOST_LINK_CHARACTERS else None


def unpack(packed: str) -> dict[str, Any]:
    """The config of a link; MemoryPlanError when it is damaged or too large."""
    if len(packed) > MOST_LINK_CHARACTERS:
        raise MemoryPlanError(f"config in a link has at most {MOST_LINK_CHARACTERS:,} characters")
    try:
        content = base64.b64decode(packed + "=" * (-len(packed) % 4), b"-_", validate=True)
        inflater = zlib.decompressobj()
        text = inflater.decompress(content, MOST_CONFIG_BYTES)
        if not inflater.eof:
            raise MemoryPlanError("config in the link is cut off or too large")
    except (binascii.Error, ValueError, zlib.error) as error:
        if isinstance(error, MemoryPlanError):
            raise
        raise MemoryPlanError("config in the link is damaged: copy the whole link") from error
    return parse_config(text)
