"""Configs whose secrets are kept out of every line of the log, every error and every report."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Iterable
from typing import Any

from burler.config.secrets import Path, raw_secrets, scrub, spellings

_MOST = 1000  # texts given to add(); what was forgotten is a token that has long run out


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
        self._added: dict[str, set[str]] = {}
        self._lock = threading.RLock()  # tokens are fetched in all threads, and each line of the log asks

    def add(self, text: str) -> None:
        """Hide a text that stands in no config, whichever configs come and go."""
        with self._lock:
            if self._added.pop(text, None) is None and len(self._added) >= _MOST:
                del self._added[next(iter(self._added))]
            self._added[text] = spellings(text)
            self._gather()

    def watch(self, config: Any, marked: Iterable[Path], *, more: bool) -> None:
        """Hide the secrets of a config, and those that come into it later on."""
        with self._lock:
            if not more:
                self._watched, self._raw = (), frozenset()
                self._gather()
            self._watched = (*self._watched, (config, tuple(marked)))
            self.look()

    def look(self) -> None:
        """Learn the secrets that have come into the configs; those that were there before stay hidden."""
        with self._lock:
            try:
                now = {text for config, marked in self._watched for text in raw_secrets(config, marked=marked)}
            except RuntimeError:  # a thread of the tap's is changing the config just now
                return
            new = now - self._raw
            if new:
                self._raw = self._raw | new
                self._gather()

    def _gather(self) -> None:
        found = {spelled for text in self._raw for spelled in spellings(text)}.union(*self._added.values())
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
