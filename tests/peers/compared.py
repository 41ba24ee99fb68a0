"""The four programs of docs/comparison.md, each run twice as its users run it: all orders, then what is new.

As a script, ``python tests/peers/compared.py [NAME ...]``: installs each into an environment of its own, and prints a
table: lines, rows of both runs, seconds of the whole process.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "comparison"
NEW = {"id": 8, "customer": "Hal", "total": 36.0, "updated_at": "2026-01-08T12:00:00Z"}
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Run:
    """What a run gave: the rows that it wrote, and the seconds of its whole process."""

    rows: Rows
    seconds: float


def lines_of(name: str) -> int:
    """The lines of a program that are not empty."""
    return sum(1 for line in (HERE / name).read_text().splitlines() if line.strip())


def _called(command: list[Any], folder: Path, **environment: str) -> tuple[str, float]:
    begun = time.monotonic()
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "NO_PROXY": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    seconds = time.monotonic() - begun
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout, seconds


def _singer(command: list[Any], folder: Path) -> Run:
    """A Singer tap, from the last STATE of its run before."""
    state = folder / "state.json"
    given = ["--state", state] if state.exists() else []
    said, seconds = _called([*command, "--config", folder / "config.json", *given], folder)
    messages = [json.loads(line) for line in said.splitlines()]
    state.write_text(json.dumps([one["value"] for one in messages if one["type"] == "STATE"][-1]))
    return Run([one["record"] for one in messages if one["type"] == "RECORD"], seconds)


def burler(folder: Path, _python: Any = None) -> Run:
    """``tap_shop.py``."""
    return _singer([sys.executable, "-m", "burler", "run", HERE / "tap_shop.py"], folder)


def singer_sdk(folder: Path, python: Any) -> Run:
    """``tap_shop_sdk.py``."""
    return _singer([python, HERE / "tap_shop_sdk.py"], folder)


def dlt(folder: Path, python: Any) -> Run:
    """``shop_dlt.py``; the rows are those of its table, after the run."""
    url = json.loads((folder / "config.json").read_text())["url"]
    home = {"DLT_DATA_DIR": str(folder / "dlt"), "RUNTIME__DLTHUB_TELEMETRY": "false", "URL": url}
    _said, seconds = _called([python, HERE / "shop_dlt.py"], folder, **home)
    ask = (
        "import duckdb, json; db = duckdb.connect('shop.duckdb'); "
        "db.execute(\"set timezone='UTC'; select * exclude (_dlt_load_id, _dlt_id) from raw.orders order by id\"); "
        "print(json.dumps([dict(zip([c[0] for c in db.description], row)) for row in db.fetchall()], default=str))"
    )
    rows, _ = _called([python, "-c", ask], folder)
    return Run(json.loads(rows), seconds)


def airbyte(folder: Path, python: Any) -> Run:
    """``shop_airbyte.yaml``, run by the CDK's own command."""
    program = Path(python).parent / "source-declarative-manifest"
    stream = {"name": "orders", "json_schema": {}, "supported_sync_modes": ["full_refresh", "incremental"]}
    entry = {"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append_dedup"}
    (folder / "catalog.json").write_text(json.dumps({"streams": [entry]}))
    words = ["read", "--manifest-path", HERE / "shop_airbyte.yaml", "--config", folder / "config.json"]
    state = folder / "state.json"
    words += ["--catalog", folder / "catalog.json", *(["--state", state] if state.exists() else [])]
    said, seconds = _called([program, *words], folder)
    messages = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    state.write_text(json.dumps([one["state"] for one in messages if one["type"] == "STATE"][-1:]))
    return Run([one["record"]["data"] for one in messages if one["type"] == "RECORD"], seconds)


PROGRAMS: Mapping[str, tuple[str, Callable[[Path, Any], Run]]] = {
    "burler": ("tap_shop.py", burler),
    "singer-sdk": ("tap_shop_sdk.py", singer_sdk),
    "dlt": ("shop_dlt.py", dlt),
    "airbyte-cdk": ("shop_airbyte.yaml", airbyte),
}


def _version(name: str, python: Path | str) -> str:
    if name == "burler":
        return importlib.metadata.version("singer-burler")
    ask = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()


def main(*names: str) -> None:
    """Run those that are named, or all: each must bring the same rows."""
    import compared_shop
    import peers_environment

    sys.stdout.write("| program | version | lines | rows | rows of the second run | seconds of each |\n")
    sys.stdout.write("|---|---|---|---|---|---|\n")
    for name, (file, run) in PROGRAMS.items():
        if names and name not in names:
            continue
        python = sys.executable if name == "burler" else peers_environment.make_compared(name) / "python"
        with tempfile.TemporaryDirectory() as folder, compared_shop.serving() as server:
            (Path(folder) / "config.json").write_text(json.dumps({"url": server.url}))
            first = run(Path(folder), python)
            server.rows.append(NEW)
            second = run(Path(folder), python)
        assert [row["id"] for row in first.rows] == list(range(1, 8)), first.rows
        assert second.rows[-1]["id"] == 8, second.rows
        cells = [name, _version(name, python), lines_of(file), len(first.rows), len(second.rows)]
        cells.append(f"{first.seconds:.1f}, {second.seconds:.1f}")
        sys.stdout.write("| " + " | ".join(map(str, cells)) + " |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
