"""The process as a whole: who owns stdout, how errors become exit codes, and how it ends."""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from burler import logs
from burler.errors import BurlerError, OutputClosed, PartialError, StorageError
from burler.settings import Settings
from burler.suggest import nearest

if TYPE_CHECKING:
    from burler.engine.run.sync import SyncResult
    from burler.sinks import LineWriter

logger = logging.getLogger(__name__)

GRACE_SECONDS = 2.0
_FAILURES = 10  # of a stream, each with a line of its own
_PLACE = 300  # characters of a failure's place
_process: dict[str, bool] = {"ours": False}

EXIT_CODES = (
    "Exit codes: 0 done, or stopped by one SIGTERM/SIGINT with the last STATE out; 1 a stream failed, input data "
    "is broken, or the report can't be written; 2 usage or config; 3 lock lost; 4 the reader closed our output; "
    "143/130 signalled twice, or stopped while stdout was blocked for 10 s."
)


def start() -> None:
    """Logs to stderr; without one they go nowhere, rather than into the next file that is opened. As PID 1, the
    first process of a container, SIGTERM ends it from here on."""
    _process["ours"] = True
    if os.getpid() == 1:
        _end_at_sigterm()
    if sys.stderr is None:
        fd = os.open(os.devnull, os.O_WRONLY)
        if fd != 2:
            os.dup2(fd, 2)
        sys.stderr = os.fdopen(2, "w", closefd=False)
    logs.configure()


def _end_at_sigterm() -> None:
    """The kernel gives PID 1 no default actions: until a run has handlers of its own, SIGTERM would be lost, and the
    container would be killed once its grace period is over."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))


def tell_terminal(what: str) -> None:
    """Say that ``what`` is read from a terminal: nobody may have meant to, and a prompt does not come."""
    if sys.stdin is not None and sys.stdin.isatty():
        logger.info("reading %s from the terminal; Ctrl-D ends them", what)


def end(code: int) -> NoReturn:
    """End the process. What threads or exit functions of the user print from here on goes to stderr; a signal that
    comes now has nothing left to stop."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(number, signal.SIG_IGN)
    if sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(2, 1)
    atexit.register(gc.freeze)  # Python would look for garbage among all that was loaded, up to 0.1 s, before it goes
    sys.exit(code)


def end_within(seconds: float, code: int) -> None:
    """End the process at the latest in so many seconds, even if a thread of the user's can't be woken."""

    def wait() -> None:
        time.sleep(seconds)
        os._exit(code)

    threading.Thread(target=wait, name="burler-end", daemon=True).start()


def stdout_on_terminal() -> bool:
    """Whether people see what goes to stdout; to be asked before ``own_stdout``, inside of which it is stderr."""
    try:
        return os.isatty(1)
    except OSError:
        return False


@contextlib.contextmanager
def own_stdout() -> Iterator[LineWriter]:
    """A writer that owns stdout. Meanwhile whatever else prints there, child processes included, goes to
    stderr, so that nothing can come between two messages. In a process of burler's own (see ``start``) it goes there
    to the end: a thread of the tap may still print.

    Raises:
        StorageError: stdout is closed.
    """
    from burler.sinks import LineWriter

    if sys.stdout is None:  # Python found no open file there when it started
        raise StorageError("stdout is closed; there is nowhere to write to.")
    try:
        fd = os.dup(1)
    except OSError as error:
        raise StorageError(f"stdout can't be written: {error.strerror}.") from None
    saved = sys.stdout
    os.dup2(2, 1)
    _flush(saved)  # what the tap printed before goes to stderr, too
    sys.stdout = sys.stderr
    try:
        yield LineWriter(fd)
    finally:
        _flush(saved)
        if not _process["ours"]:
            sys.stdout = saved
            os.dup2(fd, 1)
        os.close(fd)


def _flush(file: IO[str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        file.flush()


_NUMBERS = re.compile(r"is not a valid (integer|float)(?: range)?")  # click's words for what somebody else asked for

_COMMANDS = {"--discover": "burler discover APP", "--about": "burler about APP", "--version": "burler --version"}
"""Options of a tap's own command that are commands of burler's."""
_SETTINGS = frozenset(item.name for item in fields(Settings))


def click_exit(command: click.Command, args: list[str] | None, name: str) -> int:
    """Run a click command whose functions return exit codes; all errors become exit codes."""

    def action() -> int:
        try:
            code = command.main(args=args, prog_name=name, standalone_mode=False)
        except click.exceptions.Exit as ended:
            return ended.exit_code
        except click.exceptions.Abort:
            return _interrupted()
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            return 2
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else _path(command, args, name)
            logger.critical("%s See: %s --help", _said(error), path)
            return 2
        return code if isinstance(code, int) else 0

    return exit_on_error(action)


def _path(command: click.Command, args: list[str] | None, name: str) -> str:
    """The command that the arguments begin with, for errors of click's that do not know where they come from."""
    path = [name]
    for word in sys.argv[1:] if args is None else args:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        command = command.commands[word]
        path.append(word)
    return " ".join(path)


def _said(error: click.ClickException) -> str:
    """What click says; of options that are spelt alike only the nearest, where click has the first by the alphabet."""
    if isinstance(error, click.NoSuchOption) and error.option_name in _COMMANDS:
        return f"{error.message} Did you mean: {_COMMANDS[error.option_name]}?"
    if isinstance(error, click.NoSuchOption) and (key := error.option_name.lstrip("-").replace("-", "_")) in _SETTINGS:
        return f"{error.message} '{key}' is a key of the config."
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        return f"{error.message} Did you mean '{nearest(error.option_name, error.possibilities, cutoff=0)}'?"
    return _NUMBERS.sub(
        lambda found: "is no whole number" if found[1] == "integer" else "is no number", error.format_message()
    )


def _interrupted() -> int:
    """One line for who pressed Ctrl-C; the exit code."""
    logger.warning("stopped by SIGINT (Ctrl-C) before it was done")
    return 130


def code_of(error: BaseException) -> int:
    """The exit code of a process that an exception ends."""
    if isinstance(error, BurlerError):
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        return OutputClosed.exit_code
    if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
        return 130
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return 2 if isinstance(error, click.ClickException) else 1


def exit_on_error(action: Callable[[], int]) -> int:
    """Run a command; an error becomes one CRITICAL line and its exit code, without a traceback.

    ``BURLER_LOG_LEVEL=DEBUG`` shows the traceback, too.
    """
    try:
        return action()
    except OutputClosed as error:
        logger.warning("%s", error)
        return error.exit_code
    except BurlerError as error:
        logger.debug("traceback", exc_info=True)
        logger.critical("%s", str(error))
        return error.exit_code
    except BrokenPipeError:
        # Something of ours that is printed plainly (a table): keep Python from trying again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OutputClosed.exit_code
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:
        logger.debug("traceback", exc_info=True)
        place = logs.place_of_error(error)
        at = f" ({place})" if place else ""
        logger.critical("%s%s. BURLER_LOG_LEVEL=DEBUG shows the whole way there.", logs.short(error), at)
        return 1


def report_errors(result: SyncResult) -> int:
    """The CRITICAL lines of what failed, and the exit code.

    A stream of which parts failed has a line for each of the first ten, and one that counts the rest.
    """
    for stream, error in result.errors.items():
        if isinstance(error, PartialError):
            for failure in error.failures[:_FAILURES]:
                _critical(failure.stream, failure.error, failure.where)
            more = len(error.failures) - _FAILURES
            if more > 0:
                logger.critical("%s: ... and %d more; --report FILE lists them", stream, more)
        else:
            _critical(stream, error)
    return result.exit_code


def _critical(stream: str, error: BaseException, where: str | None = None) -> None:
    part = "" if where is None else f": {where[:_PLACE]}".replace("\n", " ")
    if isinstance(error, BurlerError):
        logger.critical("%s%s: %s", stream, part, str(error).removeprefix(f"stream '{stream}': "))
    else:
        place = logs.place_of_error(error)
        logger.critical("%s%s%s: %s", stream, part, f" ({place})" if place else "", logs.short(error))
    logger.debug("stream '%s'%s", stream, part, exc_info=error)


@contextlib.contextmanager
def printing() -> Iterator[Callable[[str], None]]:
    """What prints a line for people on stdout. Where that fails, the work goes on in silence, and ends with an error.

    Raises:
        OutputClosed: nobody reads it. StorageError: it can't be written.
    """
    failure: OSError | None = None

    def say(text: str) -> None:
        nonlocal failure
        if failure is None:
            try:
                click.echo(text)
            except OSError as error:
                failure = error
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere

    yield say
    if isinstance(failure, BrokenPipeError):
        raise OutputClosed("the reader of stdout has gone")
    if failure is not None:
        raise StorageError(f"stdout can't be written: {failure.strerror}.")


def print_json(value: Any) -> None:
    """Pretty JSON on stdout, where nothing of the user's runs beside it.

    Raises:
        OutputClosed: nobody reads it (click by itself would end the process with 1).
    """
    try:
        # As bytes: JSON is UTF-8, whatever the locale says.
        sys.stdout.flush()
        sys.stdout.buffer.write(pretty(value))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere
        raise OutputClosed("the reader of stdout has gone") from None


def pretty(value: Any) -> bytes:
    """A value as indented JSON with a line end."""
    import msgspec

    from burler.singer.messages import encode

    return msgspec.json.format(encode(value), indent=2) + b"\n"
