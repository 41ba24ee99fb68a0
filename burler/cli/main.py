"""``python -m burler`` and the script ``burler``."""

from __future__ import annotations

from typing import Any

import click

import burler
from burler.cli import completing, process
from burler.cli.batch_clean import clean
from burler.cli.batches import batch
from burler.cli.completion import completion
from burler.cli.extracts import extract
from burler.cli.helping import Choice, Group, argument, option
from burler.cli.infer import infer
from burler.cli.lakes import lake
from burler.cli.new import new
from burler.cli.options import CONFIG, FORMS, CommandWithSettings, run_options
from burler.cli.options_export import export_options
from burler.cli.spark_cli import spark
from burler.cli.states import state
from burler.cli.verify import verify


@click.group(
    cls=Group,
    help="""Singer taps, their raw lake, and tables made of it on Spark.

\b
burler new tap-crm
burler run tap_crm.py --config config.json | target-anything
burler run tap_crm.py --config config.json --sink lake:./lake
burler export ./lake ./tables
burler COMMAND --help
""",
    epilog=process.EXIT_CODES,
)
@click.version_option(burler.__version__, prog_name="burler")
def cli() -> None:
    """The group; its help is above."""


@cli.command()
@argument("app", shell_complete=completing.app)
@option("-c", "--config", multiple=True, metavar="FILE", help=CONFIG)
def discover(app: str, config: tuple[str, ...]) -> int:
    """Print the catalog of APP.

    APP is a file (tap_crm.py), a folder or module (tap_crm), module:attribute, or an installed tap's command (tap-crm).

    \b
    burler discover tap_crm.py --config config.json > catalog.json
    burler discover tap-crm --config config.json > catalog.json
    """
    from burler.appref import load_app
    from burler.cli import running

    return running.discover_command(lambda: load_app(app), config)


@cli.command(cls=CommandWithSettings, epilog=process.EXIT_CODES)
@argument("app", shell_complete=completing.app)
@run_options
def run(app: str, **options: Any) -> int:
    """Sync APP: Singer messages on stdout, or its data into a lake.

    APP is a file (tap_crm.py), a folder or module (tap_crm), module:attribute, or an installed tap's command (tap-crm).

    \b
    burler run tap_crm.py --config config.json | target-anything
    burler run tap_crm.py --config config.json --sink lake:./lake
    """
    from burler.appref import load_app
    from burler.cli import running

    return running.run_command(lambda: load_app(app), **options)


@cli.command()
@argument("app", shell_complete=completing.app)
@option("--format", "form", type=Choice(FORMS), default="text", help="How it is shown.")
def about(app: str, form: str) -> int:
    """Say what APP is: its config, settings, streams, and what each delivers.

    APP is a file (tap_crm.py), a folder or module (tap_crm), module:attribute, or an installed tap's command (tap-crm).

    \b
    burler about tap_crm.py
    burler about tap_crm.py --format markdown > tap-crm.md
    """
    from burler.appref import load_app
    from burler.cli import running

    return running.about_command(lambda: load_app(app), form)


@cli.command()
@argument("lake_path", metavar="LAKE")
@argument("out", shell_complete=completing.folders)
@export_options
def export(lake_path: str, out: str, **options: Any) -> int:
    """Make tables in OUT of a lake, with Spark: the latest row of each key.

    LAKE is a lake's folder or URL, or a file of Singer messages with BATCH. Only what is new since the last export is
    read; readers of a table see the old version or the new one.

    \b
    burler export ./lake ./tables
    burler export ./lake ./tables --streams commits --mode append --partition-by branch
    burler export ./lake jdbc:postgresql://db/crm --format jdbc --option user=crm
    """
    from burler.cli import exports

    return exports.export_command(lake_path, out, **options)


batch.add_command(clean)
cli.add_command(batch)
cli.add_command(completion)
cli.add_command(extract)
cli.add_command(infer)
cli.add_command(lake)
cli.add_command(new)
cli.add_command(spark)
cli.add_command(state)
cli.add_command(verify)


def main(args: list[str] | None = None) -> None:
    """Run the command line; ends the process with the documented exit code."""
    process.start()
    process.end(process.click_exit(cli, args, "burler"))
