"""``burler new``."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from burler.cli.helping import Choice, Command, argument, option

if TYPE_CHECKING:
    from burler.scaffold.kinds import Kind
    from burler.scaffold.project import Project


@click.command(cls=Command)
@argument("name")
@option(
    "--kind",
    type=Choice(["rest", "database", "file"]),
    default="rest",
    help="What the tap reads: a REST API, a database's tables, or files of a folder.",
)
@option("--into", default=".", metavar="DIR", help="The folder to make it in; it is made where it is not there.")
def new(name: str, kind: str, into: str) -> int:
    """Make the project of a new tap in a folder NAME: it runs, discovers and tests green as it is.

    \b
    burler new tap-crm
    burler new tap-shop --kind database --into ~/taps
    """
    from burler.scaffold.kinds import KINDS
    from burler.scaffold.names import tap_name
    from burler.scaffold.project import make_project

    chosen = KINDS[kind]
    with _signals() as check:
        project = make_project(tap_name(name), chosen, into=Path(into), check=check)
    click.echo(_report(project, chosen), nl=False)
    return 0


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[], None]]:
    """SIGTERM and SIGINT only leave a note; the function that is given raises SystemExit if there is one.

    An exception out of a signal handler could come anywhere, also while what is half-made is being taken away. A second
    signal ends the process at once.
    """
    came: list[int] = []

    def note(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) > 1:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def check() -> None:
        if came:
            raise SystemExit(128 + came[0])

    if threading.current_thread() is not threading.main_thread():
        yield check  # signals are not ours
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(project: Project, kind: Kind) -> str:
    """What was made, and the next commands."""
    command = project.folder.name
    tap = f"{command} --config config.sample.json --discover"
    run = f"{kind.prepare[:-1].strip()} & {tap}; kill %1" if kind.prepare.endswith("&") else tap
    if kind.prepare and not kind.prepare.endswith("&"):
        run = f"{kind.prepare} && {tap}"
    lines = [f"made {project.folder}{os.sep} for {kind.about}:"]
    lines += [f"  {path}" for path in project.files]
    lines += ["", "next:", f"  cd {shlex.quote(str(project.folder))}", "  pip install -e '.[test]' && pytest"]
    return "\n".join([*lines, f"  {run}", "README.md says what to change to make it yours.", ""])
