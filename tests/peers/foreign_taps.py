"""Three taps that others wrote, each on a library of its own years, and what they read: a REST API, an S3 server,
a PostgreSQL database, all on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgres_server import Database

from support.servers import Asked, serving

USERS = [
    {
        "id": n,
        "name": ["", "K\u00f6ln \U0001f600", 'a "quoted", \\ text', None][n % 4],
        "score": [0.1, -2.5e-7, 12345678.25, 0.0][n % 4],
        "is_open": n % 3 == 0,
        "updated_at": f"2024-05-01T{n // 60:02}:{n % 60:02}:07Z",
    }
    for n in range(250)
]
_TABLE = """
create schema shop;
create table shop.orders (id bigint primary key, price numeric(30, 4), made_at timestamptz, day date, note text,
    open boolean, anything jsonb, tags text[]);
insert into shop.orders select n, (n * 1234567890123.0001)::numeric(30, 4),
    timestamptz '2024-05-01 00:00:00+00' + n * interval '1 second 250 milliseconds', date '2024-02-29' + n,
    case n % 4 when 0 then null when 1 then '' else 'order ' || n || E' \u00fc,\\n"x"' end, n % 3 = 0,
    jsonb_build_object('n', n, 'deep', jsonb_build_array(n, null, 'x')), array['a', n::text]
from generate_series(1, 300) n;
"""


@dataclass(frozen=True)
class ForeignTap:
    """A tap that is ready to run: its command and environment, and how many rows each stream has."""

    command: list[Any]
    rows: Mapping[str, int]
    environment: Mapping[str, str] = field(default_factory=dict)
    writes_time_extracted: bool = True


def _users(asked: Asked) -> list[dict[str, Any]]:
    start = int(asked.query.get("offset", 0))
    return USERS[start : start + int(asked.query.get("limit", 100))]


@contextlib.contextmanager
def api() -> Iterator[str]:
    """A REST API with pages; its URL."""
    with serving(_users) as server:
        yield server.url


def rest(programs: Path, folder: Path, url: str) -> ForeignTap:
    """``tap-rest-api-msdk``, on the Singer SDK of 2024."""
    config = {
        "api_url": url,
        "streams": [{"name": "users", "path": "/users", "primary_keys": ["id"], "num_inference_records": 250}],
        "records_path": "$.[*]",
        "pagination_request_style": "simple_offset_paginator",
        "pagination_response_style": "offset",
        "pagination_page_size": 100,
        "pagination_initial_offset": 0,
        "offset_records_jsonpath": "$",
        "next_page_token_path": "$",
    }
    return ForeignTap([programs / "tap-rest-api-msdk", *_config(folder, "rest", config)], {"users": 250})


def postgres(programs: Path, folder: Path, database: Database) -> ForeignTap:
    """``meltanolabs-tap-postgres``, on the Singer SDK of today. Makes the table that it reads."""
    database.execute("drop schema if exists shop cascade", _TABLE)
    config = {**database.settings, "filter_schemas": ["shop"], "use_singer_decimal": False}
    command = [programs / "tap-postgres", *_config(folder, "postgres", config)]
    return ForeignTap([*command, "--catalog", _all_selected(folder, command, {})], {"shop-orders": 300})


def s3_csv(programs: Path, folder: Path, server: Any) -> ForeignTap:
    """``pipelinewise-tap-s3-csv``, on the singer-python of before. Makes the files that it reads."""
    for day in range(3):
        lines = ["id,city,price", *(f'{day}-{n},"K\u00f6ln, ""{n}""",{n}.50' for n in range(100))]
        server.put(f"exports/cities-{day}.csv", "\n".join(lines).encode() + b"\n")
    tables = [
        {"table_name": "cities", "search_prefix": "exports", "search_pattern": "cities-", "key_properties": ["id"]}
    ]
    config = {
        "start_date": "2000-01-01T00:00:00Z",
        "bucket": server.bucket,
        "aws_endpoint_url": server.endpoint_url,
        "aws_access_key_id": server.key,
        "aws_secret_access_key": server.secret,
        "tables": tables,
    }
    command = [programs / "tap-s3-csv", *_config(folder, "s3-csv", config)]
    # It first asks AWS itself for the bucket; a proxy that is not there keeps that on this machine.
    environment = {**server.environment, "HTTPS_PROXY": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    selected = ["--properties", _all_selected(folder, command, environment)]
    return ForeignTap([*command, *selected], {"cities": 300}, environment, writes_time_extracted=False)


def _config(folder: Path, name: str, config: Mapping[str, Any]) -> list[Any]:
    path = folder / f"config-{name}.json"
    path.write_text(json.dumps(config))
    return ["--config", path]


def _all_selected(folder: Path, command: list[Any], environment: Mapping[str, str]) -> Path:
    """A catalog of all that the tap discovers."""
    found = subprocess.run([*command, "--discover"], check=True, capture_output=True, env={**os.environ, **environment})
    catalog = json.loads(found.stdout)
    for stream in catalog["streams"]:
        for entry in stream["metadata"]:
            entry["metadata"]["selected"] = True
    path = folder / "catalog.json"
    path.write_text(json.dumps(catalog))
    return path
