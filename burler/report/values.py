"""What stands in a report: JSON values without secrets, and texts that do not go on and on."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from burler import logs
from burler.config.secrets import masked
from burler.errors import BurlerError

TEXT = 300
"""Characters of a place, or of a bookmark that is text."""


def described(error: BaseException, stream: str | None = None) -> dict[str, Any]:
    """An exception for a report: its type, its message in a few lines and without secrets, and where in the author's
    code it came from, where that says something."""
    name = type(error).__name__
    message = logs.short(error).removeprefix(name).removeprefix(": ")
    if stream is not None:
        message = message.removeprefix(f"stream '{stream}': ")
    place = None if isinstance(error, BurlerError) else logs.place_of_error(error)
    return {"type": name, "message": plain(message), "place": plain(place)}


def cut(text: str, most: int = TEXT) -> str:
    """A text of ``most`` characters at the most."""
    text = text if len(text) <= most else text[:most] + " ..."
    return str(plain(text))


def value_of(value: Any, most: int | None = None) -> Any:
    """A bookmark or a name as a JSON value, without secrets; a text is cut after ``most`` characters."""
    if isinstance(value, str):
        text = masked(value)
        return plain(text) if most is None else cut(text, most)
    other = plain(value)
    return value_of(other, most) if isinstance(other, str) else other


def values_of(values: list[Any]) -> list[Any]:
    """As :func:`value_of` with ``TEXT``, for many at once: to look for the secrets costs more than to compare."""
    joined = "\n;\n".join(value for value in values if isinstance(value, str))
    if masked(joined) == joined:
        return [plain(value) for value in values]
    return [value_of(value, TEXT) for value in values]


def plain(value: Any) -> Any:
    """A JSON value; half a surrogate pair, which JSON in UTF-8 has no form for, is spelled out."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    return plain(str(value))
