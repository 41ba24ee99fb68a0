"""Make a class-data archive (``archive``) by an export of a lake that is made for it, in processes of their own.

An archive is worth most when it was trained on the work that follows: so what runs is burler's own export, with and
without keys, of rows of every common type. ``python -m burler.spark.training`` trains for this Python and this
Java, and says nothing: it is what a first ``burler export`` leaves behind in the background.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from burler.errors import BurlerError, StorageError, UsageError
from burler.localfile import FileLock
from burler.spark import launch
from burler.spark.archive import NEEDED_BYTES, SWITCH, Archive, archive_for, is_on, tidy
from burler.spark.java import Java, find_java

_log = logging.getLogger("burler.spark")

_PROFILED_ROWS, _ROWS = 60_000, 1_000
"""Rows of each stream of the training lake: enough for hot loops to be compiled, where the archive keeps that."""

_TRAINING_SECONDS = 900
_LEAST_BYTES = 1 << 20
_MEGABYTE = 1_000_000

# What would have the training run in another Spark than the one that the archive is for.
_OTHERS = ("SPARK_HOME", "SPARK_REMOTE", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "MASTER")

_JOB = """\
import sys
from burler.spark import export, session
lake, out, options = sys.argv[1:4]
spark = session("burler training", {"spark.driver.extraJavaOptions": options, "spark.driver.memory": "1g"})
export(spark, lake, out, open_types="variant")  # with text, so few rows would need no Spark
"""


@dataclass(frozen=True, slots=True)
class Trained:
    """An archive that was made: its file, its size in bytes, and how long that took in seconds of wall time."""

    path: Path
    bytes: int
    seconds: float


def train(java: Java | None = None) -> Trained:
    """Make the archive of a Java and the installed Spark, in the place of one that is there.

    Raises:
        UsageError: no Java, no pyspark, no home for a cache; another process is at it.
        StorageError: the cache folder can't be written, or its disk has too little room.
    """
    started = time.monotonic()
    java = java or find_java()
    found = archive_for(java, launch.spark_home())
    if found is None:
        raise UsageError("there is no folder for a cache: set XDG_CACHE_HOME or HOME to an absolute path")
    home = found.path.parent
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(home / "lock", mode=0o600)
        if not lock.taken:  # two trainings at once would only take twice the time
            raise UsageError("another process is making Spark's start-up archive at this moment")
        with (
            lock,
            tempfile.TemporaryDirectory(dir=home, prefix="training-", ignore_cleanup_errors=True) as work,
        ):
            _check_room(home)
            made = _run(found, Path(work))
            found.put(made, {"java": java.version, "trained": dt.datetime.now(dt.UTC).isoformat(timespec="seconds")})
    except OSError as error:
        raise StorageError(f"Spark's start-up archive: {home} can't be written: {error.strerror}") from None
    tidy(found)
    return Trained(found.path, found.path.stat().st_size, time.monotonic() - started)


def offer() -> None:
    """After a command that started Spark without an archive: make one in the background, once.

    Nothing is done where archives are turned off, on machines of CI, or where the last try was less than a day ago.
    Never raises: an archive is no need.
    """
    with contextlib.suppress(Exception):
        java = launch.started_without_archive()
        if java is None or not is_on() or os.environ.get("CI"):
            return
        found = archive_for(java, launch.spark_home())
        if found is None or found.is_whole() or not _is_due(found.path.parent):
            return
        subprocess.Popen(
            [sys.executable, "-m", "burler.spark.training"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "JAVA_HOME": java.home},
            start_new_session=True,  # it outlives this command
        ).returncode = 0  # and is not waited for
        _log.info(
            "an archive is made in the background, once, with which Spark starts faster (%s=off turns it off)", SWITCH
        )


def main() -> None:
    """Train, out of everybody's way and without a word."""
    os.nice(19)
    with contextlib.suppress(BurlerError):
        train()


def _is_due(home: Path) -> bool:
    """Whether to try: one try a day, told by a file, so that a machine where it fails is left in peace."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    tried = home / "tried"
    if tried.exists() and time.time() - tried.stat().st_mtime < 86_400:
        return False
    tried.touch()
    _check_room(home)
    return True


def _check_room(home: Path) -> None:
    free = shutil.disk_usage(home).free
    if free < NEEDED_BYTES:
        raise StorageError(
            f"Spark's start-up archive: {home} has {free // _MEGABYTE:,} MB free and making one needs "
            f"{NEEDED_BYTES // _MEGABYTE:,}. Make room, or set XDG_CACHE_HOME to another disk"
        )


def _run(archive: Archive, work: Path) -> Path:
    """Export a lake that is made for it; the JVM writes the archive when it ends."""
    out = work / archive.path.name
    env = {key: value for key, value in os.environ.items() if key not in _OTHERS}
    env |= {"JAVA_HOME": archive.java.home, SWITCH: "off"}
    with (work / "log").open("w+b") as log:
        _fill(work / "lake", _PROFILED_ROWS if archive.holds_profiles else _ROWS, env, log)
        options = shlex.join(archive.training_options(out))
        command = [sys.executable, "-c", _JOB, str(work / "lake"), str(work / "out"), options]
        code = _process(command, env, log)
        if code or not out.is_file() or out.stat().st_size < _LEAST_BYTES:
            log.seek(0)
            said = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
            raise StorageError(
                f"Spark's start-up archive was not made (exit code {code}): {said[-1][:200] if said else 'no word'}"
            )
    return out


def _process(command: list[str], env: dict[str, str], log: IO[bytes], stdin: int = subprocess.DEVNULL) -> int:
    try:
        done = subprocess.run(
            command, env=env, stdin=stdin, stdout=log, stderr=log, timeout=_TRAINING_SECONDS, check=False
        )
        return done.returncode
    except subprocess.TimeoutExpired:
        raise StorageError("Spark's start-up archive took more than 15 minutes and was given up") from None


def _fill(lake: Path, rows: int, env: dict[str, str], log: IO[bytes]) -> None:
    """A lake of one keyed stream and one without keys, written by ``burler lake write``."""
    messages = lake.with_suffix(".jsonl")
    with messages.open("w", encoding="utf-8") as file:
        for stream, keys in (("users", ["id"]), ("events", [])):
            schema = {"type": "SCHEMA", "stream": stream, "schema": _SCHEMA, "key_properties": keys}
            file.write(json.dumps({**schema, "bookmark_properties": ["updated_at"]}) + "\n")
            for number in range(rows):
                message = {"type": "RECORD", "stream": stream, "record": _record(number), "time_extracted": _TIME}
                file.write(json.dumps(message) + "\n")
        file.write('{"type": "STATE", "value": {}}\n')
    command = [sys.executable, "-m", "burler", "lake", "write", str(lake), "--tap-id", "training"]
    with messages.open("rb") as file:
        if _process(command, env, log, file.fileno()):
            raise StorageError(f"Spark's start-up archive: {lake} could not be filled")
    messages.unlink()


_TIME = "2024-01-01T00:00:00.000000Z"
_TEXT = {"type": ["null", "string"]}
_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": _TEXT,
        "note": _TEXT,
        "score": {"type": ["null", "number"]},
        "price": {"type": ["null", "number"], "multipleOf": 0.01},
        "active": {"type": ["null", "boolean"]},
        "born": {"type": ["null", "string"], "format": "date"},
        "updated_at": {"type": ["null", "string"], "format": "date-time"},
        "address": {"type": ["null", "object"], "properties": {"city": _TEXT, "zip": _TEXT}},
        "tags": {"type": ["null", "array"], "items": {"type": "integer"}},
        "labels": {"type": ["null", "object"], "additionalProperties": _TEXT},
    },
}


def _record(number: int) -> dict[str, object]:
    return {
        "id": number * 7919 % 50_021,  # some come twice
        "name": f"name {number}",
        "note": None if number % 5 else f"a longer text, number {number}, as notes are",
        "score": number / 7,
        "price": number % 100_000 / 100,
        "active": number % 2 == 0,
        "born": f"19{number % 90 + 10}-{number % 12 + 1:02}-{number % 28 + 1:02}",
        "updated_at": f"2024-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.{number:06}Z",
        "address": {"city": f"city {number % 1000}", "zip": f"{number % 100_000:05}"},
        "tags": [number, number + 1],
        "labels": {"kind": f"k{number % 10}"},
    }


if __name__ == "__main__":
    main()
