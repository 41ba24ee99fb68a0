"""``burler verify``: whether a tap keeps the rules of Singer."""

from __future__ import annotations

from typing import Any

import click

from burler.cli import completing
from burler.cli.helping import Choice, Command, argument, option
from burler.cli.options import CONFIG
from burler.cli.options_batch import allow_in

FORMS = ("text", "json", "junit", "sarif", "html")


RUNS, RULES, REPORT = "What is run", "Which rules", "The report"


@click.command(cls=Command)
@argument("app", required=False, shell_complete=completing.app)
@option(
    "-c", "--config", section=RUNS, multiple=True, metavar="FILE", help=CONFIG + " With -: its secrets are looked for."
)
@option("--catalog", section=RUNS, metavar="FILE", help="Catalog for the runs; without APP: verify this catalog alone.")
@option(
    "-s",
    "--state",
    section=RUNS,
    metavar="FILE",
    help="State that the first run begins with (with -: that it was given).",
)
@option("--exec", "command", section=RUNS, metavar="COMMAND", help="Any tap's command: 'tap-foo --config c.json'.")
@option(
    "--earlier-state",
    section=RUNS,
    multiple=True,
    metavar="FILE",
    help="A state of an earlier version, which must be accepted.",
)
@option(
    "--select",
    "select_",
    section=RULES,
    multiple=True,
    metavar="RULES",
    shell_complete=completing.rules,
    show_default="all",
    help="Only these rules: C,B302.",
)
@option(
    "--ignore",
    section=RULES,
    multiple=True,
    metavar="RULES",
    shell_complete=completing.rules,
    help="Not these: H, B324.",
)
@option("--max-records", section=RUNS, type=click.IntRange(min=1), metavar="N", help="End each run after N rows.")
@option(
    "--max-seconds",
    section=RUNS,
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="End each run after S s.",
)
@option("--resume/--no-resume", section=RUNS, default=True, help="Run again from STATEs of the first run.")
@option("--behaviour/--no-behaviour", section=RUNS, default=True, help="Look at signals, flags, errors: a dozen runs.")
@option("--requests/--no-requests", section=RUNS, default=True, help="Note the HTTP requests of APP.")
@allow_in(RUNS)
@option("--strict", section=RULES, is_flag=True, default=None, help="Exit code 1 also for warnings.")
@option("--baseline", section=RULES, metavar="FILE", help="Findings in this file are known, and do not count.")
@option("--write-baseline", section=RULES, metavar="FILE", help="Write what is found into a baseline, and end with 0.")
@option("--format", "form", section=REPORT, type=Choice(FORMS), default="text", help="Form of the report.")
@option(
    "--report",
    section=REPORT,
    multiple=True,
    metavar="FILE",
    help="Further reports, by name: .json .xml .sarif .html .txt",
)
@option("--rules", section=RULES, is_flag=True, help="List all rules.")
@option(
    "--explain",
    section=RULES,
    metavar="RULE",
    shell_complete=completing.rules,
    help="Say what a rule is about, why it hurts and how to mend it.",
)
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
