"""``tap | target`` with batch files between them: the source, a target as a process, and what it has loaded."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from postgres_server import Database

from support.cli import burler, script

PROGRAMS = Path(__file__).parent / "programs"
TEXTS = ["", " ", "null", "a,b\n\"c\"; 'd'\t\\", "\u00fc\u4e2d\U0001f600\u2028", "1.0", "true", None]
Rows = list[dict[str, Any]]


def write_source(folder: Path, *, later: bool = False) -> None:
    """What the tap reads. ``later``: as it is some time after: more orders, some changed, two kinds gone."""
    folder.mkdir(exist_ok=True)
    orders: Rows = [{"id": n, "updated_at": _moment(n), "note": f"order {n}"} for n in range(130)]
    kinds: Rows = [_kind(n) for n in range(40)]
    if later:
        orders += [{"id": n, "updated_at": _moment(n + 50), "note": "later"} for n in range(100, 160)]
        kinds = kinds[2:]
    log: Rows = [{"at": _moment(n), "line": TEXTS[n % len(TEXTS)]} for n in range(30)]
    some: Rows = [{"id": n, "anything": {"a": [n, {"b": None}]}, "counts": {"x": n, "y": 2}} for n in range(3)]
    for name, rows in {"orders": orders, "kinds": kinds, "log": log, "open": some}.items():
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        # Decimals are written as the digits that they are: a float would have others.
        lines = lines.replace('"<', "").replace('>"', "")
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def _moment(n: int) -> str:
    return f"2024-05-01T{n // 60:02}:{n % 60:02}:07.{'25' if n % 2 else '123456'}Z"


def _kind(n: int) -> dict[str, Any]:
    bigs = [2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 0, None]
    prices = ["<0.10>", "<-12345678901234567890.12>", "<7>", "<0.00>", None]
    row = {
        "id": 3_000_000_000 + n,
        "big": bigs[n % len(bigs)],
        "price": prices[n % len(prices)],
        "ratio": [0.1, -2.5e-7, 1e15, 3, None][n % 5],
        "is_open": [True, False, None][n % 3],
        "text": TEXTS[n % len(TEXTS)],
        "made_at": [_moment(n), "1999-12-31T23:59:59Z", "2024-02-29T12:00:00+02:00", None][n % 4],
        "day": ["2024-02-29", "1970-01-01", None][n % 3],
        "address": [
            {"city": "K\u00f6ln", "floor": 2**40, "geo": {"lat": 1}},
            {"city": "", "floor": None, "geo": None},
            None,
        ][n % 3],
        "tags": [["a", "", None, "\u00fc,\n"], [], None][n % 3],
        "parts": [[{"n": 1}, {"n": 2**40}], [], None][n % 3],
    }
    if n % 7 == 6:
        del row["text"], row["address"]
    return row


class Pipe:
    """A tap and a target that meet in a folder.

    Args:
        environment: what both need beside this process's own: a store's address and credentials.
    """

    def __init__(self, folder: Path, peers: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder, self.peers = folder, peers
        # A PostgreSQL column of the target has no zone: what it stores depends on that of the session.
        self.environment = {**os.environ, "PGTZ": "UTC", "NO_PROXY": "127.0.0.1", **(environment or {})}

    def tap(
        self, source: Path, batch_config: dict[str, Any] | None, *args: str, state: str = "", suffix: str = ""
    ) -> list[bytes]:
        """The lines of messages of a run of ``tap_batched.py``; a failure is an AssertionError."""
        config, given = self.folder / "config.json", self.folder / "state.json"
        config.write_text(json.dumps({} if batch_config is None else {"batch_config": batch_config}))
        given.write_text(state or "{}")
        words = ["--config", config, "--state", given, *args]
        environment = {**self.environment, "SOURCE": str(source), "SUFFIX": suffix}
        done = script(PROGRAMS / "tap_batched.py", *words, **environment)
        assert done.code == 0, done.stderr[-3000:]
        return done.stdout.splitlines(keepends=True)

    def burler(self, *words: Any, given: bytes = b"") -> bytes:
        """``burler ...`` to its end; what it wrote."""
        done = burler(*words, stdin=given, **self.environment)
        assert done.code == 0, done.stderr[-3000:]
        return done.stdout

    def load(self, target: list[Any], lines: list[bytes]) -> str:
        """A target's run over messages; the last STATE that it wrote."""
        return self.run(target, b"".join(lines)).decode().splitlines()[-1]

    def run(self, command: list[Any], given: bytes, **more: str) -> bytes:
        """A process to its end; what it wrote."""
        done = self.ended(command, given, **more)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return done.stdout

    def ended(self, command: list[Any], given: bytes, **more: str) -> subprocess.CompletedProcess[bytes]:
        """A process at its end, whatever that was."""
        environment = {**self.environment, **more}
        return subprocess.run(command, input=given, capture_output=True, env=environment, check=False)


class Files:
    """The target of ``target_files.py``."""

    def __init__(self, folder: Path, pipe: Pipe) -> None:
        folder.mkdir()
        self.folder = folder
        config = folder / "config.json"
        config.write_text(json.dumps({"folder": str(folder), "add_record_metadata": True}))
        self.command = [pipe.peers / "python", PROGRAMS / "target_files.py", "--config", config]

    def rows(self, stream: str) -> Rows:
        """In the order in which they were loaded."""
        return parsed((self.folder / f"{stream}.jsonl").read_text(encoding="utf-8").strip().split("\n"))


class Tables:
    """``target-postgres`` into a PostgreSQL schema of its own."""

    def __init__(self, folder: Path, pipe: Pipe, postgres: Database, name: str, **settings: Any) -> None:
        self.name, self._database = name, postgres
        config = folder / f"config-{name}.json"
        config.write_text(json.dumps({**postgres.settings, "default_target_schema": name, **settings}))
        self.command = [pipe.peers / "target-postgres", "--config", config]

    def rows(self, stream: str) -> Rows:
        """In the order of their texts."""
        told = self._database.ask(f'select to_json(t)::text from {self.name}."{stream}" t')
        found = parsed([text for (text,) in told])
        return sorted(found, key=lambda row: json.dumps(own([row]), default=str))


def parsed(lines: list[str]) -> Rows:
    """Rows with exact numbers, as which 1 and 1.00 are equal."""
    return [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines if line]


def own(rows: Rows) -> Rows:
    """Rows without what the SDK adds."""
    return [{name: value for name, value in row.items() if not name.startswith("_sdc_")} for row in rows]


def without_nulls(value: Any) -> Any:
    """For formats of columns, in which null and absent are one."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value


def messages(lines: list[bytes]) -> list[dict[str, Any]]:
    """Of lines."""
    return [json.loads(line) for line in lines]
