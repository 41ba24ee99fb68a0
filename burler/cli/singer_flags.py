"""A tap's own command, with the flags every Singer orchestrator knows."""

from __future__ import annotations

from typing import Any

import click

import burler
from burler import hangups
from burler.cli import process, running
from burler.cli.helping import Choice, option
from burler.cli.options import FORMS, CommandWithSettings, run_options
from burler.declare.tap import Tap

ELSE = "In place of a run"


def main(tap: Tap, args: list[str] | None = None) -> None:
    """Parse Singer's flags and run the tap; ends the process with the documented exit code."""
    process.start()
    process.end(process.click_exit(_command(tap), args, tap.name))


def _help(tap: Tap) -> str:
    """What the tap is, and how it is run."""
    return f"""{tap.description or f"The Singer tap {tap.name}."}

\b
{tap.name} --config config.json --discover > catalog.json
{tap.name} --config config.json --catalog catalog.json --state state.json | target-anything
{tap.name} --about
"""


def _command(tap: Tap) -> click.Command:
    @click.command(
        name=tap.name,
        cls=CommandWithSettings,
        help=_help(tap),
        context_settings={"obj": lambda: list(tap._registry.names)},  # for completion
        epilog=process.EXIT_CODES,
    )
    @run_options
    @option("-d", "--discover", "discover", section=ELSE, is_flag=True, help="Print the catalog and end.")
    @option(
        "--about",
        section=ELSE,
        is_flag=False,
        flag_value="text",
        type=Choice(FORMS),
        help="Say what the tap is and end: --about, --about=json, --about=markdown, --about=meltano.",
    )
    @option("--format", "form", section=ELSE, type=Choice(FORMS), help="The form of --about, as other taps spell it.")
    @option("--version", section=ELSE, is_flag=True, help="Print the tap's version and end.")
    def command(
        *, about: str | None, form: str | None, version: bool, discover: bool, config: tuple[str, ...], **rest: Any
    ) -> int:
        if version or about or discover:
            hangups.release(None)
        if version:
            click.echo(f"{tap.name} {tap.version or 'without a version'} (burler {burler.__version__})")
            return 0
        if about:
            return running.about_command(tap.seal, form or about)
        if discover:
            return running.discover_command(tap.seal, config)
        return running.run_command(tap.seal, config=config, **rest)

    return command
