"""Values that JSON has and many targets have not (M219)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_DEPTH = 100


def places_of_nul(value: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """The fields of a record whose text holds the character NUL, each once; names of fields count as well."""
    found: dict[str, None] = {}
    if isinstance(value, str):
        if "\0" in value:
            found[path or "(record)"] = None
    elif depth > _DEPTH:
        pass
    elif isinstance(value, dict):
        for name, below in value.items():
            place = (f"{path}.{name}" if path else name).replace("\0", "\\u0000")
            if "\0" in name:
                found[place] = None
            found.update(dict.fromkeys(places_of_nul(below, place, depth + 1)))
    elif isinstance(value, list):
        for below in value:
            found.update(dict.fromkeys(places_of_nul(below, f"{path}[]", depth + 1)))
    yield from found
