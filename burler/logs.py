"""Log lines and METRIC lines on stderr, in the form that singer-python made usual, behind their time.

singer-python's own module is not used for them: importing it takes a tenth of a second and replaces the
root logger's handlers. Tests hold our lines against it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import os
import re
import sys
import threading
import traceback
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any

from burler.call import short_path
from burler.config.secrets import masked, no_secrets
from burler.errors import BurlerError

logger = logging.getLogger("burler")

_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
_LINES, _CHARACTERS = 3, 600  # of an exception of somebody else's; it may quote a whole page of HTML


def mask_records() -> None:
    """Mask every record where it is made: handlers may be replaced later on (importing singer-python does that)."""
    make = logging.getLogRecordFactory()
    if getattr(make, "masks", False):
        return

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        try:
            no_secrets.filter(record)
        except Exception as error:  # arguments that don't fit their message: logging itself reports that
            record.msg, record.args = f"a log line that can't be formatted: {type(error).__name__}", ()
        return record

    factory.masks = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(factory)


def configure(level: str | None = None) -> None:
    """Send the log to stderr. Only the command line calls this; a library leaves logging alone.

    ``LOGGING_CONF_FILE`` (a logging.config file, as Singer tools read it) takes over if it is set and can be
    read: a run goes on without it, as rows are worth more than the form of the log.
    ``BURLER_LOG_LEVEL`` sets the level; INFO by default. What the tap's own loggers say comes in the same
    form, unless something has set up the root logger already.
    """
    mask_records()
    logging.captureWarnings(True)
    _hear_uncaught()
    conf_file = os.environ.get("LOGGING_CONF_FILE")
    if conf_file:
        _configure_by(conf_file)
    else:
        _configure(level)


def _configure_by(conf_file: str) -> None:
    from logging.config import fileConfig

    try:
        fileConfig(conf_file, disable_existing_loggers=False)
    except Exception as error:  # whatever its handlers' classes raise
        _configure(None)
        missing = "no such file" if isinstance(error, FileNotFoundError) else short(error)
        logger.warning("LOGGING_CONF_FILE: %s can't set up the log: %s. The log goes to stderr.", conf_file, missing)
        return
    for handler in [*logging.root.handlers, *logger.handlers]:
        handler.addFilter(no_secrets)


def _configure(level: str | None) -> None:
    own = logging.StreamHandler(sys.stderr)
    own.setFormatter(_Lines("%(asctime)s %(levelname)s %(message)s"))
    own.addFilter(no_secrets)
    chosen = (level or os.environ.get("BURLER_LOG_LEVEL") or "INFO").upper()
    logger.handlers[:] = [own]
    logger.propagate = False
    known = logging.getLevelNamesMapping()
    logger.setLevel(chosen if chosen in known else "INFO")
    if chosen not in known:
        logger.warning(
            "BURLER_LOG_LEVEL is '%s', which is no level: INFO, WARNING, ERROR or DEBUG. It is INFO.", chosen
        )
    if not logging.root.handlers:
        logging.root.addHandler(own)
        logging.root.setLevel(logger.level)
        for chatty in ("py4j", "urllib3", "botocore", "aiobotocore", "fsspec", "asyncio"):
            logging.getLogger(chatty).setLevel("WARNING")


def _hear_uncaught() -> None:
    """What nobody catches comes by way of the log: Python's own hooks would print secrets that stand in it. Hooks of
    the tap's stay."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _ended
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _thread_ended
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _unraisable


def _ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logger.critical("ended by an error that nothing caught", exc_info=(kind, error, trace))


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_type is SystemExit:
        return
    name = ended.thread.name if ended.thread is not None else "of no name"
    error = ended.exc_value or ended.exc_type()
    logger.error("thread '%s' was ended by an error", name, exc_info=(ended.exc_type, error, ended.exc_traceback))


def _unraisable(raised: sys.UnraisableHookArgs) -> None:
    error = raised.exc_value or raised.exc_type()
    found = (raised.exc_type, error, raised.exc_traceback)
    with contextlib.suppress(Exception):  # the object's own __repr__ may be what failed
        logger.warning("%s: %r", raised.err_msg or "Exception ignored in", raised.object, exc_info=found)


class _Lines(logging.Formatter):
    """``2026-01-02T03:04:05.678Z INFO what happened``. Names and values of a source do nothing to a terminal."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """When the line was made, in UTC."""
        made = dt.datetime.fromtimestamp(record.created, dt.UTC)
        return made.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def format(self, record: logging.LogRecord) -> str:
        """See logging."""
        return harmless(super().format(record))


def without_time(line: str) -> str:
    """A line of the log of a tap, which may be another process, without its time: one that repeats what was said."""
    return _TIME.sub("", line)


def harmless(text: str) -> str:
    """Text with names of others in it, for a terminal: control characters are spelled out."""
    return "".join(one if one.isprintable() or one in "\n\t" else repr(one)[1:-1] for one in text)


def short(error: BaseException) -> str:
    """An exception of somebody else's in a few lines: its type and its text, cut where it goes on and on."""
    try:
        text = masked(str(error))  # before lines are touched and cut: a secret may have several
    except Exception:  # its own __str__ is broken; the type still says something
        text = ""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    cut = "\n  ".join(line.strip() if i else line for i, line in enumerate(lines[:_LINES]))
    if len(lines) > _LINES or len(cut) > _CHARACTERS:
        cut = cut[:_CHARACTERS] + " ..."
    return f"{type(error).__name__}: {cut}" if cut else type(error).__name__


def in_one_line(error: BaseException, stream: str = "") -> str:
    """An error in one line: burler's own less the name of its stream, others with the place in the author's code."""
    if isinstance(error, BurlerError):
        return " ".join(masked(str(error)).removeprefix(f"stream '{stream}'").lstrip(",: ").split())
    place = place_of_error(error)
    return " ".join(f"{short(error)}{f' ({place})' if place else ''}".split())


def broken_import(error: BaseException) -> str:
    """What an import of somebody else's module raised: ``fails to import (tap_crm.py:3): NameError: ...``."""
    place = place_of_error(error)
    if isinstance(error, SyntaxError):
        place = f"{short_path(error.filename or '?')}:{error.lineno}"
    return f"fails to import{f' ({place})' if place else ''}: {short(error)}"


def place_of_error(error: BaseException) -> str | None:
    """``file:line`` of the innermost line of the author's own code that an exception passed through.

    Code of burler and of installed packages is left out where there is any other.
    """
    ours = str(FilePath(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    packages = tuple({sys.prefix, sys.base_prefix})
    own = [f for f in frames if not f.filename.startswith((*packages, "<")) and "site-packages" not in f.filename]
    if not own and error.__cause__ is not None:  # "generator raised StopIteration" has no frame of the author's
        return place_of_error(error.__cause__)
    chosen = (own or frames)[-1:]
    return f"{short_path(chosen[0].filename)}:{chosen[0].lineno}" if chosen else None
