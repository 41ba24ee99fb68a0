"""The taps that others wrote, made ready and verified: by a test, and by ``verify_taps.py``."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import foreign_taps
import peers_environment
import verify_sources
from foreign_taps import ForeignTap
from postgres_server import Database

_LONGEST = 600.0


@dataclass(frozen=True)
class Servers:
    """What taps may read from: functions that give how to connect."""

    postgres: Callable[[], Database]
    s3: Callable[[], Any]


@dataclass(frozen=True)
class Tap:
    """A tap by the name of its environment.

    Attributes:
        made: gives it, ready to run.
        given_catalog: it is verified with the catalog of its command, which chooses something; else with its own.
    """

    name: str
    package: str
    library: str
    made: Callable[[Path, Path, Servers], contextlib.AbstractContextManager[ForeignTap]]
    given_catalog: bool = False


@contextlib.contextmanager
def _rest(programs: Path, folder: Path, _servers: Servers) -> Iterator[ForeignTap]:
    with foreign_taps.api() as url:
        yield foreign_taps.rest(programs, folder, url)


def _of_files(make: Callable[[Path, Path], ForeignTap]) -> Callable[..., contextlib.nullcontext[ForeignTap]]:
    return lambda programs, folder, _servers: contextlib.nullcontext(make(programs, folder))


def _of_server(
    make: Callable[[Path, Path], contextlib.AbstractContextManager[ForeignTap]],
) -> Callable[..., contextlib.AbstractContextManager[ForeignTap]]:
    return lambda programs, folder, _servers: make(programs, folder)


def _s3_csv(programs: Path, folder: Path, servers: Servers) -> contextlib.nullcontext[ForeignTap]:
    return contextlib.nullcontext(foreign_taps.s3_csv(programs, folder, servers.s3()))


def _postgres(programs: Path, folder: Path, servers: Servers) -> contextlib.nullcontext[ForeignTap]:
    return contextlib.nullcontext(foreign_taps.postgres(programs, folder, servers.postgres()))


def _incremental(programs: Path, folder: Path, servers: Servers) -> contextlib.nullcontext[ForeignTap]:
    return contextlib.nullcontext(verify_sources.incremental_postgres(programs, folder, servers.postgres()))


TAPS = [
    Tap("rest", "tap-rest-api-msdk", "Singer SDK of 2024", _rest),
    Tap("", "meltanolabs-tap-postgres", "Singer SDK", _postgres),
    Tap("s3-csv", "pipelinewise-tap-s3-csv", "pipelinewise-singer-python 1", _s3_csv),
    Tap("gitlab", "tap-gitlab 0.5", "singer-python 5", _of_server(verify_sources.gitlab)),
    Tap("events", "tap-rest-api", "singer-python 6", _of_server(verify_sources.events)),
    Tap("incremental-postgres", "pipelinewise-tap-postgres", "pipelinewise-singer-python 1", _incremental, True),
    Tap("jsonl", "tap-jsonl", "Singer SDK", _of_files(verify_sources.jsonl)),
    Tap("csv-folder", "tap-csv-folder", "Singer SDK of 2024", _of_files(verify_sources.csv_folder)),
    Tap("dbf", "tap-dbf", "Singer SDK", _of_files(verify_sources.dbf)),
]


def programs_of(tap: Tap) -> Path:
    """The bin folder of a tap's environment; made when it is needed first.

    Raises:
        NotInstalled: see ``peers_environment``.
    """
    return peers_environment.make_tap(tap.name) if tap.name else peers_environment.make()


def verified(tap: Tap, folder: Path, servers: Servers, *options: str) -> dict[str, Any]:
    """What ``burler verify --exec`` says of a tap: its JSON."""
    with tap.made(programs_of(tap), folder, servers) as ready:
        command = list(map(str, ready.command))
        bare = command[:3]  # the program and its config
        catalog = ["--catalog", command[-1]] if tap.given_catalog else []
        words = [sys.executable, "-m", "burler", "verify", "--exec", shlex.join(bare), *catalog, "--format", "json"]
        done = subprocess.run(
            [*words, *options],
            env={**os.environ, **ready.environment},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
    assert done.returncode in (0, 1), done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def found_in(verification: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    """The findings: (rule, stream, field) -> message."""
    return {
        (one["code"], one.get("stream") or "", one.get("path") or ""): one["message"]
        for one in verification["findings"]
    }
