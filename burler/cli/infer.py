"""``burler infer``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from burler.cli import process
from burler.cli.helping import Choice, Command, argument, option
from burler.errors import DataError, UsageError

if TYPE_CHECKING:
    from burler.schema.infer import Inference
    from burler.schema.samples import Collector

logger = logging.getLogger(__name__)
_SHOWN = 10


@click.command(cls=Command)
@argument("files", nargs=-1, metavar="[FILE]...")
@option("--stream", metavar="NAME", help="Only this stream of a tap's messages.")
@option("--rows", metavar="PATH", help="Where the records lie in each document: data.items")
@option("--limit", type=click.IntRange(min=1), metavar="N", help="Take at most N records (of each stream).")
@option(
    "--input",
    "kind",
    type=Choice(["auto", "records", "messages"]),
    default="auto",
    help="What comes in; auto looks at the first document.",
)
@option("--nullable", is_flag=True, help="Let every field be null, also those that never were.")
@option(
    "--map-keys",
    type=click.IntRange(min=1),
    default=200,
    metavar="N",
    help="An object below the record with more different keys than this is a map.",
)
@option(
    "--formats",
    default="date-time,date",
    metavar="LIST",
    help="Formats to look for: date-time, date, time, uuid; or none.",
)
def infer(files: tuple[str, ...], **options: Any) -> int:
    """Print the JSON Schema of records in FILEs or on stdin: JSON lines, arrays, or a tap's messages; also gzipped.

    \b
    curl -s https://example.com/contacts | burler infer --rows data.items > contacts.schema.json
    tap-anything --config c.json | burler infer --stream contacts
    """
    return infer_command(files, **options)


def infer_command(
    files: tuple[str, ...] = (),
    *,
    stream: str | None = None,
    rows: str | None = None,
    limit: int | None = None,
    kind: str = "auto",
    nullable: bool = False,
    map_keys: int = 200,
    formats: str = "date-time,date",
) -> int:
    """Print a schema; of messages of several streams an object of stream names and schemas.

    Raises:
        UsageError: a file that can't be read, or a wrong option.
        DataError: input that is broken, or without any record.
    """
    from burler.cli.progress import progress
    from burler.schema.samples import Collector

    names = [name.strip() for name in formats.split(",") if name.strip() and name.strip() != "none"]
    try:
        collector = Collector(rows=rows, stream=stream, limit=limit, kind=kind, map_keys=map_keys, formats=names)
    except ValueError as error:
        raise UsageError(f"infer: {error}") from None
    with progress(lambda: _taken(collector)):
        _read_all(files or ("-",), collector)
    if not collector.by_stream:
        raise DataError(f"infer: {_shown(files)}: {collector.nothing()}")
    schemas = {name: _finish(name, inference, nullable) for name, inference in collector.by_stream.items()}
    process.print_json(next(iter(schemas.values())) if len(schemas) == 1 else schemas)
    return 0


def _taken(collector: Collector) -> str:
    records = sum(one.records for one in list(collector.by_stream.values()))
    return f"{records:,} records read" if records else ""


def _shown(files: tuple[str, ...]) -> str:
    return ", ".join(files[:3]) + (", ..." if len(files) > 3 else "") if files else "stdin"


def _read_all(files: tuple[str, ...], collector: Collector) -> None:
    from burler.schema.infer_read import read_documents

    for name in files:
        shown = "stdin" if name == "-" else name
        try:
            with _open(name) as file:
                collector.take_all(read_documents(file))
        except OSError as error:
            raise UsageError(f"infer: {shown} can't be read: {error.strerror or error}.") from None
        except DataError as error:
            raise DataError(f"{shown}, {error}") from None
        if collector.full:
            return


@contextmanager
def _open(name: str) -> Iterator[BinaryIO]:
    if name != "-":
        with Path(name).open("rb") as file:
            yield file
        return
    if sys.stdin is None:
        raise UsageError("infer: stdin is closed. Pipe records in, or name a file.")
    process.tell_terminal("records")
    yield sys.stdin.buffer


def _finish(name: str | None, inference: Inference, nullable: bool) -> dict[str, Any]:
    """A schema; what it can't say for want of values is said on stderr."""
    where = f"stream '{name}': " if name is not None else ""
    paths = inference.untyped
    if paths:
        them = ("it is", "its type", "it") if len(paths) == 1 else ("they are", "their types", "them")
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        logger.warning(
            "%sno value was seen of %s%s; %s left open ({}): write %s by hand if you know %s",
            where,
            ", ".join(paths[:_SHOWN]),
            more,
            *them,
        )
    try:
        return inference.schema(nullable=nullable)
    except DataError as error:
        raise DataError(f"{where}{error}") from None
