"""Further taps that others wrote, for ``burler verify``, and what they read: files and servers of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from foreign_taps import ForeignTap
from postgres_server import Database

from support.servers import Asked, serving

Answer = tuple[Any, dict[str, str]]
"""What is told as JSON, and further headers."""

EVENTS = [
    {"id": n, "what": f"event {n}", "updated_at": f"2024-05-0{1 + n // 100}T10:00:{n % 60:02}Z"} for n in range(250)
]
EVENTS.sort(key=lambda event: event["updated_at"])
_DAY = "2024-05-01T10:00:00Z"


def _events(path: str, asked: Mapping[str, str]) -> Answer:
    """Events from a moment on, in their order, by pages of 100."""
    page, since = int(asked.get("page", 0)), asked.get("since", "")[:19]
    found = [event for event in EVENTS if event["updated_at"][:19] >= since]
    return found[page * 100 : page * 100 + 100], {}


def _gitlab(path: str, asked: Mapping[str, str]) -> Answer:
    """Two projects of a GitLab server, with two pages of commits each."""
    words = path.strip("/").split("/")
    project, rest = int(words[1]), "/".join(words[2:])
    if not rest:
        where = {"id": 7, "kind": "group", "name": "shop", "path": "shop"}
        found = {
            "id": project,
            "name": f"project {project}",
            "created_at": _DAY,
            "last_activity_at": _DAY,
            "owner": None,
        }
        return {**found, "namespace": where, "topics": ["a"], "permissions": {}}, {}
    page = int(asked.get("page", "1"))
    commits = [
        {"id": f"{project}{n:07x}", "short_id": f"{n:07x}", "title": f"commit {n}", "created_at": _DAY}
        for n in range(40)
    ]
    known = {
        "repository/branches": [{"name": "main", "merged": False, "commit": {"id": "1"}}],
        "repository/commits": commits[page * 20 - 20 : page * 20],
        "issues": [
            {
                "id": project * 10 + n,
                "iid": n,
                "project_id": project,
                "labels": [],
                "updated_at": _DAY,
                "created_at": _DAY,
            }
            for n in range(3)
        ],
        "milestones": [{"id": project, "title": "one", "updated_at": _DAY, "created_at": _DAY}],
        "users": [{"id": 1, "username": "ada"}, {"id": 1 + project, "username": "bob"}],
    }
    pages = "2" if rest == "repository/commits" else "1"
    return known[rest], {"X-Total-Pages": pages}


@contextlib.contextmanager
def _server(answer: Callable[[str, Mapping[str, str]], Answer]) -> Iterator[str]:
    def reply(asked: Asked) -> tuple[int, dict[str, str], Any]:
        found, headers = answer(asked.path, asked.query)
        return 200, {"Content-Type": "application/json", **headers}, found

    with serving(reply) as server:
        yield server.url


def _config(folder: Path, config: Mapping[str, Any]) -> list[Any]:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return ["--config", path]


@contextlib.contextmanager
def gitlab(programs: Path, folder: Path) -> Iterator[ForeignTap]:
    """``tap-gitlab`` of 2018, on the singer-python of then: it knows no discovery."""
    with _server(_gitlab) as url:
        config = {"api_url": url, "private_token": "token-2x9Yq4Lw7Zt1", "start_date": "2024-01-01T00:00:00Z"}
        command = [programs / "tap-gitlab", *_config(folder, {**config, "projects": "1 2", "groups": ""})]
        yield ForeignTap(command, {"projects": 2, "commits": 80})


@contextlib.contextmanager
def events(programs: Path, folder: Path) -> Iterator[ForeignTap]:
    """``tap-rest-api``, on singer-python with arguments of its own: it knows no metadata."""
    schema = {"id": {"type": "integer"}, "what": {"type": ["null", "string"]}}
    schema |= {"updated_at": {"type": ["null", "string"], "format": "date-time"}}
    schemas = folder / "schemas"
    schemas.mkdir()
    (schemas / "events.json").write_text(json.dumps({"type": "object", "properties": schema}))
    with _server(_events) as url:
        config = {
            "url": url + "/{stream}?since={start_datetime}&page={current_page}",
            "streams": "events",
            "schema_dir": str(schemas),
            "items_per_page": 100,
            "datetime_keys": {"events": "updated_at"},
            "start_datetime": "2024-01-01T00:00:00+00:00",
            "end_datetime": "2025-01-01T00:00:00+00:00",
        }
        yield ForeignTap([programs / "tap-rest-api", *_config(folder, config)], {"events": 250})


_ORDERS = """
drop schema if exists shop cascade;
create schema shop;
create table shop.orders (id bigint primary key, price numeric(10, 2), made_at timestamptz, note text);
insert into shop.orders select n, n * 1.5, timestamptz '2024-05-01 00:00:00+00' + (n * 37 % 100) * interval '1 minute',
    'order ' || n from generate_series(1, 100) n;
"""


def incremental_postgres(programs: Path, folder: Path, database: Database) -> ForeignTap:
    """``pipelinewise-tap-postgres``, which reads a table by a key of its own choice; the rows lie in no order."""
    database.execute(_ORDERS)
    config = {**database.settings, "dbname": database.name}
    config |= {"filter_schemas": "shop", "default_replication_method": "FULL_TABLE"}
    command = [programs / "tap-postgres", *_config(folder, config)]
    found = subprocess.run([*command, "--discover"], check=True, capture_output=True)
    catalog = json.loads(found.stdout)
    for stream in catalog["streams"]:
        (root,) = (entry["metadata"] for entry in stream["metadata"] if not entry["breadcrumb"])
        root |= {"selected": True, "replication-method": "INCREMENTAL", "replication-key": "made_at"}
    path = folder / "catalog.json"
    path.write_text(json.dumps(catalog))
    return ForeignTap([*command, "--catalog", path], {"orders": 100})


def jsonl(programs: Path, folder: Path) -> ForeignTap:
    """``tap-jsonl``, on the Singer SDK of today: two files, one stream."""
    for day in range(2):
        lines = [json.dumps({"id": day * 50 + n, "name": f"n{n}", "on": f"2024-05-0{day + 1}"}) for n in range(50)]
        path = folder / f"day{day}.jsonl"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1714521600 + 86400 * day,) * 2)  # the tap goes by when a file was changed
    config = {"path": str(folder / "*.jsonl"), "stream_name": "days", "primary_keys": ["id"]}
    return ForeignTap([programs / "tap-jsonl", *_config(folder, config)], {"days": 100})


def csv_folder(programs: Path, folder: Path) -> ForeignTap:
    """``tap-csv-folder``, on the folders of the Singer SDK of 2024: two files, each a stream."""
    where = folder / "files"
    where.mkdir()
    for name in ("cities", "streets"):
        lines = ["id,name", *(f"{n},{name} {n}" for n in range(60))]
        (where / f"{name}.csv").write_text("\r\n".join(lines) + "\r\n")
    config = {"filesystem": "local", "path": str(where), "read_mode": "one_stream_per_file"}
    return ForeignTap([programs / "tap-csv-folder", *_config(folder, config)], {"cities": 60, "streets": 60})


def dbf(programs: Path, folder: Path) -> ForeignTap:
    """``tap-dbf``: a table of dBase."""
    where = folder / "files"
    where.mkdir()
    _write_dbf(where / "parts.dbf", [(f"part {n}", n, n % 3 == 0, f"202405{1 + n % 28:02}") for n in range(80)])
    config = {"path": str(where / "*.dbf")}
    return ForeignTap([programs / "tap-dbf", *_config(folder, config)], {"parts": 80})


def _write_dbf(path: Path, rows: list[tuple[str, int, bool, str]]) -> None:
    fields = [(b"NAME", b"C", 20), (b"COUNT", b"N", 8), (b"SOLD", b"L", 1), (b"MADE", b"D", 8)]
    size = 1 + sum(length for _name, _kind, length in fields)
    head = struct.pack("<BBBBIHH20x", 3, 124, 5, 1, len(rows), 32 + 32 * len(fields) + 1, size)
    for name, kind, length in fields:
        head += struct.pack("<11sc4xBB14x", name, kind, length, 0)
    body = b"".join(
        b" " + name.encode().ljust(20) + str(count).encode().rjust(8) + (b"T" if sold else b"F") + made.encode()
        for name, count, sold, made in rows
    )
    path.write_bytes(head + b"\r" + body + b"\x1a")
