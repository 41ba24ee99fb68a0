"""What a bug is: pieces of the correct tap, and what stands in their place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, put in by replacing text that occurs exactly once.

    `subtle`: one run, looked at alone, shows messages that are all as they should be.
    """

    name: str
    what: str
    edits: tuple[tuple[str, str], ...]
    subtle: bool = False

    def put_into(self, source: str) -> str:
        """The source with the bug."""
        for old, new in self.edits:
            found = source.count(old)
            if found != 1:
                raise ValueError(f"{self.name}: the piece occurs {found} times, not once:\n{old}")
            source = source.replace(old, new)
        return source
