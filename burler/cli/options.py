"""The options of a run, once: ``burler run APP`` and a tap's own script take the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

FORMS = ("text", "json", "markdown")
CONFIG = "Config file (JSON); several are merged. ENV: environment variables alone."

_OPTIONS = (
    click.option("-c", "--config", multiple=True, metavar="FILE", help=CONFIG),
    click.option("--catalog", metavar="FILE", help="Catalog that says which streams and fields are wanted."),
    click.option("-p", "--properties", metavar="FILE", help="Legacy form of --catalog."),
    click.option(
        "-s", "--state", metavar="FILE", help="State to go on from: a state, a STATE message, or STATE lines."
    ),
    click.option(
        "--ignore-source-state",
        is_flag=True,
        help="Fetch everything, also what the source says has not changed (ETags and the like).",
    ),
    click.option("--select", metavar="PATTERNS", help="Streams and fields: 'contacts,contacts.name,!contacts.email'."),
    click.option("--sink", default="stdout", show_default=True, metavar="SINK", help="stdout or lake:PATH."),
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
    """Decorator: the options of a run."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class CommandWithSettings(click.Command):
    """A command whose ``--help`` also lists the settings of a run, from the one table (specs 11.28)."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The settings, then what the command says at its end."""
        from dataclasses import fields

        from burler.settings import Settings

        rows = []
        for item in fields(Settings):
            default = "none" if item.default is None else str(item.default).lower()
            rows.append((item.name, f"{item.metadata['about']}  [default: {default}]"))
        with formatter.section("Settings (they stand in the config, beside the tap's own keys)"):
            formatter.write_dl(rows)
        super().format_epilog(ctx, formatter)
