"""The name of a new tap: what may be one, and what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass

from burler.errors import UsageError

MOST_CHARACTERS = 64
_NAME = re.compile(r"tap(-[a-z0-9]+)+")


@dataclass(frozen=True, slots=True)
class TapName:
    """A tap's name in its two spellings: ``tap-crm`` the command, ``tap_crm`` the package."""

    command: str

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return self.command.replace("-", "_")


def tap_name(given: str) -> TapName:
    """``tap-crm``, or ``tap_crm``, which is the same.

    Raises:
        UsageError: anything else, with what to write instead.
    """
    name = given.replace("_", "-")
    if _NAME.fullmatch(name) and len(name) <= MOST_CHARACTERS:
        return TapName(name)
    shown = repr(given if len(given) <= MOST_CHARACTERS else given[:MOST_CHARACTERS] + "...")
    near = _near(given)
    if near is None:
        cure = f"Give one of at most {MOST_CHARACTERS} characters, like tap-crm."
    else:
        cure = f"Did you mean: burler new {near}"
    if "/" in given or "\\" in given:
        cure += "  (--into says in which folder)"
    raise UsageError(
        f"{shown} is no name for a tap: that is 'tap-', then small letters a-z, digits and single hyphens.\n  {cure}"
    )


def _near(given: str) -> str | None:
    """The nearest name that would do."""
    last = re.split(r"[/\\]", given.strip("/\\"))[-1]
    words = [word for word in re.split(r"[^a-z0-9]+", last.lower()) if word]
    name = "-".join(words if words[:1] == ["tap"] else ["tap", *words])
    return name if _NAME.fullmatch(name) and len(name) <= MOST_CHARACTERS else None
