"""What all commands share: reading files, stdout, errors to exit codes."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from burler.declare.tap import Tap
from burler.errors import BurlerError, CatalogError, OutputClosed, StateError, StorageError
from burler.runtime import logs
from burler.runtime.sync import SyncResult
from burler.singer.state import parse_state
from burler.sinks.stdout import LineWriter

logger = logging.getLogger(__name__)


EXIT_CODES = (
    "Exit codes: 0 done, or stopped by one SIGTERM/SIGINT with the last STATE out; 1 a stream failed or input "
    "data is broken; 2 usage or config; 3 lock lost; 4 the reader closed our output; 143/130 signalled "
    "twice, or stopped while stdout was blocked for 10 s."
)


def click_exit(command: click.Command, args: list[str] | None, name: str) -> int:
    """Run a click command whose functions return exit codes; all errors become exit codes."""

    def action() -> int:
        try:
            code = command.main(args=args, prog_name=name, standalone_mode=False)
        except click.exceptions.Exit as end:
            return end.exit_code
        except click.exceptions.Abort:
            return 130
        except click.ClickException as error:
            error.show()
            return 2
        return code if isinstance(code, int) else 0

    return exit_on_error(action)


@contextlib.contextmanager
def own_stdout() -> Iterator[LineWriter]:
    """A writer that owns stdout. Meanwhile whatever else prints there, child processes included, goes to
    stderr, so that nothing can come between two messages."""
    sys.stdout.flush()
    fd = os.dup(1)
    saved = sys.stdout
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield LineWriter(fd)
    finally:
        sys.stdout = saved
        os.dup2(fd, 1)
        os.close(fd)


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
        logger.critical("%s", error)
        return error.exit_code
    except BrokenPipeError:
        # Something of ours that is printed plainly (a catalog, a table): keep Python from trying again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OutputClosed.exit_code
    except KeyboardInterrupt:
        return 130


def report_errors(result: SyncResult) -> int:
    """The CRITICAL line of each stream that failed, and the exit code (PLANNING: error handling)."""
    for stream, error in result.errors.items():
        text = str(error)
        if not isinstance(error, BurlerError):
            text = f"{type(error).__name__}: {error}"
        logger.critical("%s: %s", stream, text.removeprefix(f"stream '{stream}': "))
        logger.debug("stream '%s'", stream, exc_info=error)
    return result.exit_code


def print_json(value: Any) -> None:
    """Pretty JSON on stdout."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def read_catalog(catalog: str | None, properties: str | None) -> Any:
    """``--catalog``, else ``--properties``; both given: the catalog wins, with one warning (specs 11.5).

    Raises:
        CatalogError: missing, unreadable, or not JSON.
    """
    if catalog and properties:
        logger.warning("--catalog and --properties are both given; --properties is not read")
    path = catalog or properties
    if path is None:
        return None
    try:
        return msgspec.json.decode(Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise CatalogError(f"catalog {path} can't be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CatalogError(f"catalog {path} is not JSON: {error}.") from None


def read_state(path: str | None) -> dict[str, Any] | None:
    """``--state``: a state object, a STATE message, or a file of STATE lines of which the last counts.

    Raises:
        StateError: missing, unreadable, or none of these.
    """
    if path is None:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StateError(
            f"state file {path} can't be read: {error.strerror}. Leave --state out to start from the beginning."
        ) from None
    return parse_state(content, source=f"state file {path}")


def state_file(path: str) -> Callable[[dict[str, Any]], None]:
    """``--out-file``: a function that replaces a file by the latest state, atomically."""
    target = Path(path)
    if not target.parent.is_dir():
        raise StateError(f"--out-file {path}: the folder {target.parent} does not exist.")

    def write(value: dict[str, Any]) -> None:
        try:
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
                file.write(msgspec.json.encode(value) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                Path(file.name).chmod(target.stat().st_mode & 0o7777)
            else:
                Path(file.name).chmod(0o666 & ~_umask())
            Path(file.name).replace(target)
        except OSError as error:
            raise StorageError(f"--out-file {path} can't be written: {error.strerror}.") from None

    return write


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def describe_tap(tap: Tap) -> dict[str, Any]:
    """What ``--about`` says."""
    from dataclasses import fields

    from burler.config.spec import known_keys
    from burler.settings import Settings

    return {
        "name": tap.name,
        "version": tap.version,
        "description": tap.description,
        "config": list(known_keys(tap.config_spec)),
        "streams": [
            {
                "name": spec.tap_stream_id,
                "replication_method": spec.replication_method,
                "key_properties": list(spec.key_properties),
                "replication_key": spec.replication_key,
            }
            for spec in tap.seal().values()
        ],
        "settings": {
            item.name: {"default": item.default, "about": item.metadata["about"]} for item in fields(Settings)
        },
    }


def setup_logs() -> None:
    """Logs to stderr."""
    logs.configure()
