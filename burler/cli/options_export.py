"""The options of ``burler export``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from burler.cli import completing
from burler.cli.common import lake_options_in
from burler.cli.helping import Choice, option
from burler.cli.sizes import SizeType

Command = TypeVar("Command", bound=Callable[..., Any])

READ, TABLES, SPARK = "What is read", "The tables", "Spark"

_OPTIONS = (
    option(
        "--stream",
        "--streams",
        "streams",
        section=READ,
        multiple=True,
        metavar="NAMES",
        shell_complete=completing.streams_of_lake,
        help="Only these streams: names with commas between them; may be given again.",
    ),
    option(
        "--tap-id",
        "taps",
        section=READ,
        multiple=True,
        metavar="ID",
        shell_complete=completing.taps_of_lake,
        help="Only this tap; may be given again.",
    ),
    option(
        "--mode",
        section=TABLES,
        type=Choice(["append", "upsert"]),
        help="append: every row, all history. upsert: streams with keys alone. By default the latest row of each key, "
        "and of streams without keys the rows of the active version.",
    ),
    option(
        "--format",
        section=TABLES,
        default="delta",
        metavar="NAME",
        shell_complete=completing.one_of("delta", "parquet", "iceberg", "jdbc"),
        help="delta, parquet, iceberg, jdbc, or any format of Spark.",
    ),
    option(
        "--option",
        "options",
        section=TABLES,
        multiple=True,
        metavar="KEY=VALUE",
        help="For the format; may be given again.",
    ),
    option("--since", section=READ, metavar="TIME", help="Pass over files whose rows were all extracted before TIME."),
    option(
        "--partition-by",
        section=TABLES,
        multiple=True,
        metavar="COLUMNS",
        help="Columns that a table's files are split by.",
    ),
    option(
        "--file-size",
        "file_bytes",
        section=TABLES,
        type=SizeType(),
        metavar="SIZE",
        help="Size to aim at for a table's files: 64MiB.",
    ),
    option(
        "--max-bad-rows",
        section=TABLES,
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="So many rows of a stream may hold a value that its column can't; they go to OUT/_quarantine.",
    ),
    option(
        "--timestamps",
        section=TABLES,
        type=Choice(["micros", "text"]),
        default="micros",
        help="text: date-times as they were written.",
    ),
    option(
        "--open-types",
        section=TABLES,
        type=Choice(["text", "variant"]),
        default="text",
        help="Type of columns that the schema leaves open.",
    ),
    option(
        "--engine",
        section=SPARK,
        type=Choice(["burler", "session"]),
        default="burler",
        help="session: write with the Delta or Iceberg of the Spark session itself.",
    ),
    option("--master", section=SPARK, metavar="URL", show_default="local[*]", help="Spark master."),
    option("--remote", section=SPARK, metavar="URL", help="Spark Connect: sc://host:port, local[N], or sail."),
    lake_options_in(READ),
)


def export_options(command: Command) -> Command:
    """Decorator: the options of an export."""
    decorated: Any = command
    for made in reversed(_OPTIONS):
        decorated = made(decorated)
    return cast(Command, decorated)
