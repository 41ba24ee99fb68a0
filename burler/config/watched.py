"""Configs whose secrets are kept out of every line of the log, every error and every report."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable
from typing import Any

from burler.config.secrets import Path, raw_secrets, scrub, spellings


class Clean(str):
    """A line that is clean already, and whose form must stay."""

    __slots__ = ()


class NoSecrets(logging.Filter):
    """Leaves secrets out of every line of a handler, whatever its formatter."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: tuple[str, ...] = ()
        self._watched: tuple[tuple[Any, tuple[Path, ...]], ...] = ()
        self._raw: frozenset[str] = frozenset()

    def watch(self, config: Any, marked: Iterable[Path], *, more: bool) -> None:
        """Hide the secrets of a config, and those that come into it later on."""
        if not more:
            self._watched, self._raw, self.secrets = (), frozenset(), ()
        self._watched = (*self._watched, (config, tuple(marked)))
        self.look()

    def look(self) -> None:
        """Learn the secrets that have come into the configs; those that were there before stay hidden."""
        try:
            now = {text for config, marked in self._watched for text in raw_secrets(config, marked=marked)}
        except RuntimeError:  # a thread of the tap's is changing the config just now
            return
        new = now - self._raw
        if new:
            self._raw = self._raw | new
            found = {spelled for text in self._raw for spelled in spellings(text)}
            self.secrets = tuple(sorted(found, key=len, reverse=True))

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record where a secret stands in it."""
        self.look()
        if self.secrets and not isinstance(record.msg, Clean):
            message = record.getMessage()
            clean = scrub(message, self.secrets)
            if clean != message:
                record.msg, record.args = clean, ()
            if record.exc_info and record.exc_info[0] is not None:
                text = record.exc_text or "".join(traceback.format_exception(*record.exc_info)).rstrip()
                record.exc_text = scrub(text, self.secrets)
        return True


no_secrets = NoSecrets()
"""The one watcher of this process: logs are of the process, too."""


def hide(config: Any, *, marked: Iterable[Path] = (), more: bool = False) -> None:
    """From here on secrets of a config show as ``***`` in every log line: the values of its secret-looking keys and
    those at the ``marked`` paths.

    The config itself is watched: a token that the tap refreshes in it is hidden from then on, and the old one stays
    hidden. ``more`` adds a config to those that are hidden already; else it takes their place.
    """
    no_secrets.watch(config, marked, more=more)


def clean(text: str) -> str:
    """A text without the secrets that are known now (see :func:`hide`), for whoever cuts it afterwards."""
    no_secrets.look()
    return scrub(text, no_secrets.secrets)
