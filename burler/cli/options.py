"""The options of a run, once: ``burler run APP`` and a tap's own script take the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar, cast

import click

from burler.cli.flags import SETTINGS, TailOption, option
from burler.cli.lakes_common import lake_options
from burler.settings import Settings, default_text

Command = TypeVar("Command", bound=Callable[..., Any])

FORMS = ("text", "json", "markdown", "meltano")
CONFIG = "Config file (JSON); several are merged. ENV: environment variables alone."
_TAIL = "Tail (each is a setting, too: in the config with _ for -; an option here comes before it)"

_OPTIONS = (
    click.option("-c", "--config", multiple=True, metavar="FILE", help=CONFIG),
    click.option("--catalog", metavar="FILE", help="Catalog that says which streams and fields are wanted."),
    click.option("-p", "--properties", metavar="FILE", help="Legacy form of --catalog."),
    click.option(
        "-s", "--state", metavar="FILE", help="State to go on from: a state, a STATE message, or STATE lines."
    ),
    click.option("--select", metavar="PATTERNS", help="Streams and fields: 'contacts,contacts.name,!contacts.email'."),
    click.option(
        "--sink", default="stdout", show_default=True, metavar="SINK", help="stdout, lake:URL, or spark:OUT (tables)."
    ),
    click.option("--lake", metavar="URL", help="With --sink spark:OUT, the lake that rows land in. [OUT/_lake]"),
    lake_options,
    click.option("-o", "--out-file", metavar="FILE", help="File that always holds the latest state."),
    click.option(
        "--report",
        metavar="FILE",
        help="File for a report of the run: a page with plots if its name ends with .html, else JSON.",
    ),
    click.option(
        "--test",
        is_flag=False,
        flag_value="records",
        type=click.Choice(["records", "schema"]),
        help="A few rows of each stream (--limit 5), and no STATE. --test=schema: SCHEMA messages only.",
    ),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="N rows of each stream, and no STATE."),
)


def run_options(command: Command) -> Command:
    """Decorator: the options of a run. Those that stand for settings, as far as they are given, reach the command
    together, as ``flags``: a mapping from the setting to its value or text."""

    @functools.wraps(command)
    def with_settings(**options: Any) -> Any:
        said = {item.name: options.pop(item.name) for item in SETTINGS}
        return command(**options, flags={name: value for name, value in said.items() if value is not None})

    decorated: Any = with_settings
    for made in reversed((*_OPTIONS, *map(option, SETTINGS))):
        decorated = made(decorated)
    return cast(Command, decorated)


class CommandWithSettings(click.Command):
    """A command whose ``--help`` also lists the settings of a run, from the one table (specs 11.28)."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, then those of tail under a heading of their own."""
        super().format_options(ctx, formatter)
        with formatter.section(_TAIL):
            formatter.write_dl([param.row(ctx) for param in self.get_params(ctx) if isinstance(param, TailOption)])

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
