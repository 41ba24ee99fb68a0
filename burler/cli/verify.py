"""``burler verify``: whether a tap keeps the rules of Singer."""

from __future__ import annotations

from typing import Any

import click

from burler.cli.options import CONFIG

FORMS = ("text", "json", "junit", "sarif", "html")


@click.command()
@click.argument("app", required=False)
@click.option("-c", "--config", multiple=True, metavar="FILE", help=CONFIG + " With -: its secrets are looked for.")
@click.option("--catalog", metavar="FILE", help="Catalog for the runs; without APP: verify this catalog alone.")
@click.option("-s", "--state", metavar="FILE", help="State that the first run begins with (with -: that it was given).")
@click.option("--exec", "command", metavar="COMMAND", help="Any tap's command: 'tap-foo --config c.json'.")
@click.option(
    "--earlier-state", multiple=True, metavar="FILE", help="A state of an earlier version, which must be accepted."
)
@click.option("--select", "select_", multiple=True, metavar="RULES", help="Only these rules: C,B302. [ALL]")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these: H, B324.")
@click.option("--max-records", type=click.IntRange(min=1), metavar="N", help="End each run after N rows.")
@click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="S", help="End each run after S s.")
@click.option("--resume/--no-resume", default=True, help="Run again from STATEs of the first run. [yes]")
@click.option("--behaviour/--no-behaviour", default=True, help="Look at signals, flags, errors: a dozen runs. [yes]")
@click.option("--requests/--no-requests", default=True, help="Note HTTP requests (with --exec: by a proxy). [yes]")
@click.option("--strict", is_flag=True, default=None, help="Exit code 1 also for warnings.")
@click.option("--baseline", metavar="FILE", help="Findings in this file are known, and do not count.")
@click.option("--write-baseline", metavar="FILE", help="Write what is found into a baseline, and end with 0.")
@click.option(
    "--format", "form", type=click.Choice(FORMS), default="text", show_default=True, help="Form of the report."
)
@click.option("--report", multiple=True, metavar="FILE", help="Further reports, by name: .json .xml .sarif .html .txt")
@click.option("--rules", is_flag=True, help="List all rules.")
@click.option("--explain", metavar="RULE", help="Say what a rule is about, why it hurts and how to mend it.")
def verify(app: str | None, **options: Any) -> int:
    """Verify a tap: discovery, a run, runs resumed from its STATEs, and how it behaves as a program.

    APP is a burler tap (see burler run); - reads the messages of any tap.

    \b
    burler verify tap_crm.py --config config.json
    burler verify --exec 'tap-gitlab --config config.json'
    tap-gitlab --config config.json | burler verify -
    burler verify --catalog catalog.json
    burler verify --explain B302

    Exit codes: 0 clean or warnings only, 1 errors (--strict: warnings too), 2 usage.
    """
    from burler.cli import verifying

    return verifying.verify_command(app, **options)
