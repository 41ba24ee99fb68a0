"""A tap's own command, with the flags every Singer orchestrator knows."""

from __future__ import annotations

from typing import Any

import click

import burler
from burler.cli import common, process, running
from burler.declare.tap import Tap


def main(tap: Tap, args: list[str] | None = None) -> None:
    """Parse Singer's flags and run the tap; ends the process with the documented exit code."""
    process.start()
    process.end(process.click_exit(_command(tap), args, tap.name))


def _command(tap: Tap) -> click.Command:
    @click.command(name=tap.name, help=tap.description or f"The Singer tap {tap.name}.", epilog=process.EXIT_CODES)
    @click.option("-c", "--config", multiple=True, metavar="FILE", help="Config file (JSON); several are merged.")
    @click.option("-d", "--discover", "discover", is_flag=True, help="Print the catalog and end.")
    @click.option("--catalog", metavar="FILE", help="Catalog that says which streams and fields are wanted.")
    @click.option("-p", "--properties", metavar="FILE", help="Legacy form of --catalog.")
    @click.option("-s", "--state", metavar="FILE", help="State to go on from.")
    @click.option("--select", metavar="PATTERNS", help="Streams and fields: 'contacts,!contacts.email'.")
    @click.option("--sink", default="stdout", show_default=True, metavar="SINK", help="stdout or lake:PATH.")
    @click.option("-o", "--out-file", metavar="FILE", help="File that always holds the latest state.")
    @click.option("--about", is_flag=True, help="Print what the tap is, as JSON, and end.")
    @click.option("--version", is_flag=True, help="Print the tap's version and end.")
    def command(*, about: bool, version: bool, discover: bool, config: tuple[str, ...], **rest: Any) -> int:
        if version:
            click.echo(f"{tap.name} {tap.version or 'without a version'} (burler {burler.__version__})")
            return 0
        if about:
            process.print_json(common.describe_tap(tap))
            return 0
        if discover:
            return running.discover_command(lambda: tap, config)
        return running.run_command(lambda: tap, config=config, **rest)

    return command
