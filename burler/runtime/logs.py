"""Log lines and METRIC lines on stderr, in the form that singer-python made usual (specs 11.6).

singer-python's own module is not used for them: importing it takes a tenth of a second and replaces the
root logger's handlers. Tests hold our lines against it.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import msgspec

from burler.config.secrets import scrub, secret_values

logger = logging.getLogger("burler")


class _OneLine(logging.Formatter):
    """``LEVEL message``, with secrets left out."""

    secrets: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The line (and, at DEBUG, a traceback)."""
        return scrub(super().format(record), self.secrets)


_formatter = _OneLine()


def configure(level: str | None = None) -> None:
    """Send burler's log to stderr. Only the command line calls this; a library leaves logging alone.

    ``LOGGING_CONF_FILE`` (a logging.config file, as Singer tools read it) takes over if it is set.
    ``BURLER_LOG_LEVEL`` sets the level; INFO by default.
    """
    conf_file = os.environ.get("LOGGING_CONF_FILE")
    if conf_file:
        from logging.config import fileConfig

        fileConfig(conf_file, disable_existing_loggers=False)
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter)
    logger.handlers[:] = [handler]
    logger.propagate = False
    chosen = (level or os.environ.get("BURLER_LOG_LEVEL") or "INFO").upper()
    logger.setLevel(chosen if chosen in logging.getLevelNamesMapping() else "INFO")


def hide(config: Any) -> None:
    """From here on the values of a config's secret-looking keys show as ``***`` in every log line."""
    _formatter.secrets = tuple(sorted(set(secret_values(config)), key=len, reverse=True))


def metric(kind: str, name: str, value: float, **tags: Any) -> None:
    """One METRIC line; ``kind`` is "counter" or "timer" (seconds)."""
    point = {"type": kind, "metric": name, "value": value, "tags": tags}
    logger.info("METRIC: %s", msgspec.json.encode(point).decode())
