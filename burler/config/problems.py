"""What is wrong with a config, gathered until all of it is known, then said in one error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from burler.config.environment import variable_of
from burler.config.secrets import Path, scrub
from burler.errors import ConfigError

_LINES, _CHARACTERS = 3, 600  # of an exception of somebody else's
_MOST = 30  # lines; a list of objects that are all wrong would fill the screen


@dataclass(slots=True)
class Problems:
    """``missing``: paths of keys that must be there. ``said``: one sentence for each other problem, without values.

    ``secrets``: what must not show in the words of somebody else's check.
    """

    secrets: tuple[str, ...] = ()
    missing: list[Path] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def add(self, sentence: str) -> None:
        """Note a problem, once."""
        if sentence not in self.said:
            self.said.append(sentence)

    def lack(self, path: Iterable[Any]) -> None:
        """Note a missing key, once."""
        found = tuple(map(str, path))
        if found not in self.missing:
            self.missing.append(found)

    def __bool__(self) -> bool:
        return bool(self.missing or self.said)

    def refuse(self, error: BaseException) -> None:
        """Note an exception of somebody else's check: its type and text, cut where it goes on and on."""
        try:
            text = scrub(str(error), self.secrets)  # before lines are touched: a secret may have several
        except Exception:  # its own __str__ is broken; the type still says something
            text = ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        cut = "\n  ".join(lines[:_LINES])
        if len(lines) > _LINES or len(cut) > _CHARACTERS:
            cut = cut[:_CHARACTERS] + " ..."
        self.add(f"config refused: {type(error).__name__}" + (f": {cut}" if cut else ""))

    def raise_if_any(self, tap_name: str, *, variables: bool = True) -> None:
        """Raise what was found.

        Raises:
            ConfigError: every problem on a line of its own; secrets of the config are masked in it.
        """
        if not self:
            return
        lines = [_lacks(tap_name, self.missing, variables=variables)] if self.missing else []
        lines += self.said
        if len(lines) > _MOST:
            lines[_MOST:] = [f"... and {len(lines) - _MOST} more"]
        raise ConfigError(scrub(f"{tap_name}: " + "\n  ".join(lines), self.secrets))


def dotted(path: Iterable[Any]) -> str:
    """``db.hosts.0`` of ``("db", "hosts", 0)``."""
    return ".".join(map(str, path))


def _lacks(tap_name: str, missing: list[Path], *, variables: bool) -> str:
    keys = ", ".join(f"'{dotted(path)}'" for path in missing)
    # No variable can set a key inside a list.
    settable = [path for path in missing if not any(step.isdecimal() for step in path)] if variables else []
    cure = f" or set {', '.join(variable_of(tap_name, path) for path in settable)}" if settable else ""
    return f"config lacks {keys}. Put it into the --config file{cure}"
