"""The options of a run, once: ``burler run APP`` and a tap's own script take the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

import click

from burler.cli import completing
from burler.cli.common import lake_options_in
from burler.cli.flags import SETTINGS, option_of_setting
from burler.cli.helping import Choice, option
from burler.cli.helping import Command as Helped
from burler.settings import Settings, default_text

Command = TypeVar("Command", bound=Callable[..., Any])

FORMS = ("text", "json", "markdown", "meltano")
CONFIG = "Config file (JSON); several are merged. ENV: environment variables alone."

READ, WRITE, LOOK = "What is read", "Where it goes", "A look"
_ALL = "*"

SELECT = option(
    "--select",
    section=READ,
    multiple=True,
    callback=lambda _context, _option, given: ",".join(given) if given else None,
    metavar="PATTERNS",
    shell_complete=completing.streams_of_catalog,
    help="Streams and fields: 'contacts,contacts.name,!contacts.email'; may be given again.",
)
FULL_REFRESH = option(
    "--full-refresh",
    section=READ,
    is_flag=False,
    flag_value=_ALL,
    only_with_equals=True,
    callback=lambda _context, _option, given: given is not None and (given == _ALL or given),
    metavar="[=STREAMS]",
    help="Begin anew, whatever a state says: all streams, or --full-refresh=orders,items.",
)
_OPTIONS = (
    option("-c", "--config", section=READ, multiple=True, metavar="FILE", help=CONFIG),
    option("--catalog", section=READ, metavar="FILE", help="Catalog that says which streams and fields are wanted."),
    option("-p", "--properties", section=READ, metavar="FILE", help="Legacy form of --catalog."),
    SELECT,
    option(
        "-s",
        "--state",
        section=READ,
        metavar="FILE",
        help="Go on from it: a state, a STATE message, STATE lines. Without it a lake's own state counts.",
    ),
    FULL_REFRESH,
    option(
        "--sink",
        section=WRITE,
        default="stdout",
        metavar="SINK",
        shell_complete=completing.sink,
        help="stdout, lake:URL, or spark:OUT (tables).",
    ),
    option(
        "--lake",
        section=WRITE,
        metavar="URL",
        shell_complete=completing.folders,
        show_default="OUT/_lake",
        help="With --sink spark:OUT, the lake that rows land in.",
    ),
    lake_options_in(WRITE),
    option("-o", "--out-file", section=WRITE, metavar="FILE", help="File that always holds the latest state."),
    option(
        "--report",
        section=WRITE,
        metavar="FILE",
        help="File for a report of the run: a page with plots if its name ends with .html, else JSON.",
    ),
    option(
        "--test",
        section=LOOK,
        is_flag=False,
        flag_value="records",
        type=Choice(["records", "schema"]),
        help="A few rows of each stream (--limit 5), and no STATE. --test=schema: SCHEMA messages only.",
    ),
    option(
        "--limit",
        section=LOOK,
        type=click.IntRange(min=1),
        metavar="N",
        help="N rows of each stream, and no STATE.",
    ),
)


def run_options(command: Command) -> Command:
    """Decorator: the options of a run. Those that stand for settings, as far as they are given, reach the command
    together, as ``flags``: a mapping from the setting to its value or text."""

    @functools.wraps(command)
    def with_settings(**options: Any) -> Any:
        said = {item.name: options.pop(item.name) for item in SETTINGS}
        return command(**options, flags={name: value for name, value in said.items() if value is not None})

    decorated: Any = with_settings
    for made in reversed((*_OPTIONS, *map(option_of_setting, SETTINGS))):
        decorated = made(decorated)
    return cast(Command, decorated)


class CommandWithSettings(Helped):
    """A command whose ``--help`` also lists the settings of a run, from the one table."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The settings, then what the command says at its end."""
        rows = [
            (item.name, f"{item.metadata['about']}  [default: {default_text(item)}]")
            for item in fields(Settings)
            if item not in SETTINGS
        ]
        with formatter.section("Settings (they stand in the config, beside the tap's own keys)"):
            formatter.write_dl(rows)
        super().format_epilog(ctx, formatter)
