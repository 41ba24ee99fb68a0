"""``python -m burler`` and the script ``burler``."""

from __future__ import annotations

from typing import Any

import click

import burler
from burler.cli import process


@click.group(
    help="Singer taps, their raw lake, and tables made of it on Spark.",
    epilog=process.EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(burler.__version__, prog_name="burler")
def cli() -> None:
    """The group; its help is above."""


@cli.command()
@click.argument("app")
@click.option("-c", "--config", multiple=True, metavar="FILE", help="Config file (JSON); several are merged.")
def discover(app: str, config: tuple[str, ...]) -> int:
    """Print the catalog of APP.

    APP is a file (tap_crm.py), a module (tap_crm), module:attribute, or an installed tap's command.
    """
    from burler.cli import apps, running

    return running.discover_command(lambda: apps.load_app(app), config)


@cli.command()
@click.argument("app")
@click.option("-c", "--config", multiple=True, metavar="FILE", help="Config file (JSON); several are merged.")
@click.option("--catalog", metavar="FILE", help="Catalog that says which streams and fields are wanted.")
@click.option("-p", "--properties", metavar="FILE", help="Legacy form of --catalog.")
@click.option("-s", "--state", metavar="FILE", help="State to go on from: a state, a STATE message, or STATE lines.")
@click.option("--select", metavar="PATTERNS", help="Streams and fields: 'contacts,contacts.name,!contacts.email'.")
@click.option("--sink", default="stdout", show_default=True, metavar="SINK", help="stdout or lake:PATH.")
@click.option("-o", "--out-file", metavar="FILE", help="File that always holds the latest state.")
def run(app: str, **options: Any) -> int:
    """Sync APP: Singer messages on stdout, or its data into a lake.

    \b
    burler run tap_crm.py --config config.json | target-anything
    burler run tap_crm.py --config config.json --sink lake:./lake > state.jsonl
    """
    from burler.cli import apps, running

    return running.run_command(lambda: apps.load_app(app), **options)


@cli.group()
def lake() -> None:
    """A raw lake of Singer messages."""


@lake.command("write")
@click.argument("path")
@click.option("--tap-id", metavar="ID", help="Folder of this tap in the lake.")
@click.option("--max-file-bytes", type=click.IntRange(min=1), help="Close a file at this size, before compression.")
@click.option("--max-file-records", type=click.IntRange(min=1), help="Close a file at this many records.")
@click.option("--max-file-age-seconds", type=float, help="Close a file at this age.")
def lake_write(path: str, tap_id: str | None, **roll: Any) -> int:
    """Write the messages of any tap on stdin into the lake at PATH; STATE comes out once it is safe.

    \b
    tap-anything --config c.json | burler lake write ./lake --tap-id tap-anything >> state.jsonl
    """
    from burler.cli import lakes

    return lakes.write_command(path, tap_id, roll)


@cli.command()
@click.argument("lake_path", metavar="LAKE")
@click.argument("out")
@click.option("--stream", "streams", multiple=True, metavar="NAME", help="Only this stream; may be given again.")
@click.option("--tap-id", "taps", multiple=True, metavar="ID", help="Only this tap; may be given again.")
@click.option("--master", metavar="URL", help="Spark master; local[*] by default.")
def export(lake_path: str, out: str, **options: Any) -> int:
    """Make Delta tables in OUT of a lake, with Spark: the latest row of each key.

    Only what is new since the last export is read.
    """
    from burler.cli import exports

    return exports.export_command(lake_path, out, **options)


def main(args: list[str] | None = None) -> None:
    """Run the command line; ends the process with the documented exit code."""
    process.start()
    process.end(process.click_exit(cli, args, "burler"))
