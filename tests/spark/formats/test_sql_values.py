"""Values of SQL types at their extremes: PostgreSQL, tap, lake, export, and PostgreSQL again, which says: equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli import burler

SAME = "{e}::text::{type} is not distinct from {s}"
AS_TEXT = "{e}::text is not distinct from {s}::text"
AS_JSON = "{e}::jsonb is not distinct from {s}::jsonb"
TO_JSON = "{e}::jsonb is not distinct from to_jsonb({s})"
VALUES = {  # type -> (how both are compared, values as SQL literals)
    "boolean": (SAME, ["true", "false"]),
    "smallint": (SAME, ["-32768", "32767"]),
    "integer": (SAME, ["-2147483648", "2147483647"]),
    "bigint": (SAME, ["-9223372036854775808", "9223372036854775807"]),
    "real": (SAME, ["3.4028235e38", "1e-37", "-0.5", "1.1"]),
    "double precision": (SAME, ["1.7976931348623157e308", "5e-324", "0.1", "-123456789.123456789"]),
    "numeric(10,2)": (SAME, ["99999999.99", "-99999999.99"]),
    "numeric(38,10)": (SAME, ["9999999999999999999999999999.9999999999", "-0.0000000001"]),
    "numeric(38,0)": (SAME, ["99999999999999999999999999999999999999", "-1"]),
    "numeric(12,0)": (SAME, ["999999999999", "-1"]),
    "text": (
        SAME,
        [
            "''",
            "'café ☕ 😀'",
            "E'tab\\tline\\r\\nquote\"back\\\\slash''\\u0001'",
            "'\\N'",
            "'NULL'",
            "repeat('x',9000)",
        ],
    ),
    "varchar(20)": (SAME, ["'abc'", "''"]),
    "char(4)": (SAME, ["'ab'", "''"]),
    "bytea": (SAME, ["'\\x'", "'\\x00ff5c22'"]),
    "date": (SAME, ["'0001-01-01'", "'9999-12-31'"]),
    "time": (SAME, ["'24:00'", "'10:11:12.123456'"]),
    "timetz": (SAME, ["'10:11:12.123456+05:30'"]),
    "timestamp": (SAME, ["'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"]),
    "timestamptz": (SAME, ["'0001-01-01 00:00:00+00'", "'9999-12-31 23:59:59.999999+00'", "'2024-03-31 02:30+02'"]),
    "uuid": (SAME, ["'ffffffff-ffff-ffff-ffff-ffffffffffff'"]),
    "interval": (SAME, ["'178000000 years'", "'-1 year 2 mons -3 days 04:05:06.789'"]),
    "inet": (SAME, ["'192.168.0.1/24'", "'::1'"]),
    "cidr": (SAME, ["'10.0.0.0/8'"]),
    "macaddr": (SAME, ["'08:00:2b:01:02:03'"]),
    "int4range": (SAME, ["'[1,5)'", "'empty'"]),
    "money": (SAME, ["'-92233720368547758.08'"]),
    "bit(3)": (SAME, ["B'101'"]),
    "point": (AS_TEXT, ["'(1.5,2)'"]),
    "xml": (AS_TEXT, ["'<a>b</a>'"]),
    "json": (AS_JSON, ["""'{"b": 1.10, "a": [12345678901234567890.5, null]}'""", "'5'"]),
    "jsonb": (AS_JSON, ["""'{"b": {"c": 1e400}, "a": [true, "é\\n"]}'""", "'[]'"]),
    "integer[]": (TO_JSON, ["'{}'", "'{1,NULL,-2147483648}'"]),
    "text[]": (TO_JSON, ["""'{"a b","c\\"d",NULL,""}'"""]),
    "boolean[]": (TO_JSON, ["'{t,f,NULL}'"]),
}
APP = """
import burler
tap = burler.tap("tap-shop")

@tap.client
def client(config):
    return burler.sql.Database(config["url"])

@tap.discover
def find(client):
    return client.discover()

@tap.sync("*")
def rows(client, stream):
    return client.pages(stream)
"""


@pytest.fixture(scope="module")
def exported_values(server: Any, tmp_path_factory: Any) -> tuple[str, Path]:
    """A database with the values, and a lake that a tap filled from it."""
    from support import postgres

    database = server.new_database()
    columns = ", ".join(f'"{name}" {name}' for name in VALUES)
    rows = max(len(values) for _, values in VALUES.values()) + 1  # the last row is null but for its key
    server.execute(f"create table public.source (id int primary key, {columns})", database=database)
    for at in range(rows):
        named = {name: values[at] for name, (_, values) in VALUES.items() if at < len(values)}
        names, literals = "".join(f', "{name}"' for name in named), "".join(f", {one}" for one in named.values())
        server.execute(f"insert into public.source (id{names}) values ({at}{literals})", database=database)
    folder = tmp_path_factory.mktemp("values")
    (folder / "tap_shop.py").write_text(APP)
    (folder / "config.json").write_text(json.dumps({"url": server.url(database)}))
    done = burler("run", "tap_shop.py", "--config", "config.json", "--sink", "lake:lake", cwd=folder)
    assert done.code == 0, done.stderr
    assert postgres.PASSWORD not in done.stderr
    return database, folder / "lake"


@pytest.mark.parametrize("engine", ["arrow", "spark"])
def test_every_value_comes_back_equal(
    engine: str, exported_values: tuple[str, Path], server: Any, spark: Any, monkeypatch: Any
) -> None:
    from burler.spark import export
    from support import postgres
    from support.internals import export_options

    if engine == "spark":
        monkeypatch.setattr(export_options, "SMALL_ROWS", 0)
    database, lake = exported_values
    url = f"postgresql://burler@127.0.0.1:{server.port}/{database}"
    options = {"password": postgres.PASSWORD, "schema": f"back {engine}"}
    [result] = export(spark, str(lake), url, format="jdbc", options=options)
    count = server.ask("select count(*) from public.source", database)[0][0]
    assert result.rows_read == result.rows_written == count
    wrong = []
    [(table,)] = server.ask(f'select table_name from "back {engine}".burler_exports', database)
    for name, (compare, _) in VALUES.items():
        same = compare.format(e=f'e."{name}"', s=f's."{name}"', type=name)
        asked = (
            f'select id, s."{name}"::text, e."{name}"::text from public.source s full join "back {engine}"."{table}" e '
        )
        wrong += [(name, *row) for row in server.ask(f"{asked} using (id) where ({same}) is not true", database)]
    assert wrong == []
