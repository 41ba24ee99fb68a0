"""A writer that is killed, or finds the disk full, at each of its calls that change the disk; and what is left behind.

    python lake_kills.py FOLDER kill      prints a JSON object for each point
    python lake_kills.py FOLDER full
    python lake_kills.py FOLDER leave 7   kills one at this point and leaves it at that

Each point has a lake of its own. The writer is a forked process that kills itself, or whose calls fail from there on
(but ``unlink``, which needs no room). Then another writes into the same lake, and ``rebuild`` makes the manifest anew.
"""

from __future__ import annotations

import datetime as dt
import errno
import gzip
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from burler.errors import StorageError
from burler.lake import LakeWriter, LockSettings, RollSettings, care, open_store
from burler.singer.messages import Schema, State

CALLS = ("write", "fsync", "link", "replace", "unlink", "mkdir")
FLUSHES = 2
LONG = LockSettings(ttl_seconds=3600.0, timeout_seconds=20.0)  # nobody may have to wait for a ttl
NOON = dt.datetime(2024, 1, 2, 12, 0, 0, tzinfo=dt.UTC)
REAL = {name: getattr(os, name) for name in CALLS}


def write(folder: Path, first: int, flushes: int, out: Callable[[int], object]) -> None:
    """Commit a row at a time, numbered from ``first``; each that is acknowledged goes to ``out``."""
    store = open_store(str(folder))
    with LakeWriter(
        store, "t", emit_state=lambda state: out(state.value["n"]), settings=RollSettings(), locks=LONG
    ) as writer:
        writer.schema(Schema("s", {"properties": {"id": {"type": "integer"}}}))
        for number in range(first, first + flushes):
            line = b'{"type":"RECORD","stream":"s","record":{"id":%d}}\n' % number
            writer.record_line("s", line, NOON)
            writer.state(State({"n": number}))
            writer.flush()


def forked(
    work: Callable[[Callable[[int], object]], None], at: int | None = None, *, full: bool = False
) -> tuple[int, list[int], list[str]]:
    """(how the process ended, rows that it acknowledged, the calls it made). ``at``: which of the calls it dies before,
    or finds the disk full. The exit code is 10 if it says so."""
    acked_in, acked_out = os.pipe()
    calls_in, calls_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(acked_in)
            os.close(calls_in)
            _trap(at, full, lambda name: REAL["write"](calls_out, name.encode() + b"\n"))
            work(lambda number: REAL["write"](acked_out, b"%d\n" % number))
            code = 0
        except StorageError as error:
            code = 10 if "Make room" in str(error) else 11
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    os.close(acked_out)
    os.close(calls_out)
    with open(acked_in, "rb") as acked, open(calls_in, "rb") as calls:
        rows, names = [int(line) for line in acked], [line.decode().strip() for line in calls]
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), rows, names


def _trap(at: int | None, full: bool, tell: Callable[[str], object]) -> None:
    made = iter(range(1 << 30))

    def trapped(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            number = next(made)
            tell(name)
            if at == number and not full:
                os.kill(os.getpid(), signal.SIGKILL)
            if at is not None and number >= at and full and name != "unlink":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return REAL[name](*args, **options)

        return call

    for name in CALLS:
        setattr(os, name, trapped(name))


def rows_of(paths: list[Path]) -> list[int]:
    """The ids in data files, read by plain means."""
    lines = [line for path in paths for line in gzip.decompress(path.read_bytes()).splitlines()]
    return sorted(json.loads(line)["record"]["id"] for line in lines if b'"RECORD"' in line)


def listed(folder: Path) -> list[Path]:
    """The data files that the manifest names."""
    manifest = folder / "raw/t/s/manifest.json"
    return [manifest.parent / name for name in json.loads(manifest.read_bytes())["files"]] if manifest.exists() else []


def published(folder: Path) -> list[Path]:
    """All data files that a reader may see."""
    return [path for path in sorted(folder.rglob("*.singer.gz")) if not path.name.startswith(".")]


def is_torn(folder: Path) -> list[str]:
    """JSON files that are none."""
    torn = []
    for path in [*folder.rglob("*.json"), *folder.rglob("singerlake.lock")]:
        try:
            json.loads(path.read_bytes())
        except ValueError:
            torn.append(path.name)
    return torn


def point(folder: Path, at: int | None, *, full: bool) -> dict[str, Any]:
    """What one point leaves behind, and what comes after."""
    code, acked, calls = forked(lambda out: write(folder, 0, FLUSHES, out), at, full=full)
    told: dict[str, Any] = {"at": at, "code": code, "acked": acked, "calls": calls, "torn": is_torn(folder)}
    told["in manifest"] = rows_of(listed(folder))
    told["hidden"] = [path.name for path in folder.rglob(".tmp-*")]
    told["locks"] = [path.name for path in folder.rglob("singerlake.lock")]
    told["on disk"] = rows_of(published(folder))
    store = open_store(str(folder))
    if (folder / "raw/t/s").is_dir():
        told["orphans"] = len(set(published(folder)) - set(listed(folder)))
        told["found"] = sorted(one.kind for one in care.check(store).findings)
    begun = time.monotonic()
    told["next code"], told["next acked"], _ = forked(lambda out: write(folder, 100, 1, out))
    told["next seconds"] = time.monotonic() - begun
    told["next in manifest"] = rows_of(listed(folder))
    told["on disk at last"] = rows_of(published(folder))
    care.rebuild(store)
    told["rebuilt"] = rows_of(listed(folder))
    told["found at last"] = sorted(one.kind for one in care.check(store).findings)
    told["locks at last"] = [path.name for path in folder.rglob("singerlake.lock")]
    return told


def points(folder: Path, *, full: bool) -> Iterator[dict[str, Any]]:
    """Each point in turn; the first is a run that comes to its end."""
    whole = point(folder / "whole", None, full=full)
    yield whole
    for at, name in enumerate(whole["calls"]):
        if not full or name != "unlink":
            yield point(folder / str(at), at, full=full)


def main(folder: Path, how: str, *at: str) -> None:
    """See the module."""
    folder.mkdir(parents=True, exist_ok=True)
    if how == "leave":
        forked(lambda out: write(folder, 0, FLUSHES, out), int(at[0]))
        return
    for found in points(folder, full=how == "full"):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
