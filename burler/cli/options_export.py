"""The options of ``burler export``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from burler.cli.lakes_common import lake_options
from burler.cli.sizes import SizeType

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--stream", "--streams", "streams", multiple=True, metavar="NAMES",
        help="Only these streams: names with commas between them; may be given again.",
    ),
    click.option("--tap-id", "taps", multiple=True, metavar="ID", help="Only this tap; may be given again."),
    click.option(
        "--mode", type=click.Choice(["append", "upsert"]),
        help="append: every row, all history. upsert: streams with keys alone. By default the latest row of each key, "
        "and of streams without keys the rows of the active version.",
    ),
    click.option(
        "--format", default="delta", show_default=True, metavar="NAME",
        help="delta, parquet, iceberg, jdbc, or any format of Spark.",
    ),
    click.option(
        "--option", "options", multiple=True, metavar="KEY=VALUE", help="For the format; may be given again."
    ),
    click.option("--since", metavar="TIME", help="Pass over files whose rows were all extracted before TIME."),
    click.option(
        "--partition-by", multiple=True, metavar="COLUMNS", help="Columns that a table's files are split by."
    ),
    click.option(
        "--file-size", "file_bytes", type=SizeType(), metavar="SIZE", help="Size to aim at for a table's files: 64MiB."
    ),
    click.option(
        "--max-bad-rows", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
        help="So many rows of a stream may hold a value that its column can't; they go to OUT/_quarantine.",
    ),
    click.option(
        "--timestamps", type=click.Choice(["micros", "text"]), default="micros", show_default=True,
        help="text: date-times as they were written.",
    ),
    click.option(
        "--open-types", type=click.Choice(["text", "variant"]), default="text", show_default=True,
        help="Type of columns that the schema leaves open.",
    ),
    click.option(
        "--engine", type=click.Choice(["burler", "session"]), default="burler", show_default=True,
        help="session: write with the Delta or Iceberg of the Spark session itself.",
    ),
    click.option("--master", metavar="URL", help="Spark master; local[*] by default."),
    click.option("--remote", metavar="URL", help="Spark Connect: sc://host:port, local[N], or sail."),
    lake_options,
)  # fmt: skip


def export_options(command: Command) -> Command:
    """Decorator: the options of an export."""
    decorated: Any = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return cast(Command, decorated)
