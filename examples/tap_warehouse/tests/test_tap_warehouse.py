"""tap_warehouse as its users run it: what arrives first, what is new, late or changed, and the export."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import tap_warehouse
from burler.testing import run_tap
from tap_warehouse.make import EVENTS_A_DAY, SALES_A_DAY, main, write_day
from tap_warehouse.server import TOKEN, Exports

FOLDER = Path(tap_warehouse.__file__).parent
OLD = 1_700_000_000


@pytest.fixture
def folder(tmp_path):
    """Three days of files that nobody is writing any more."""
    made = tmp_path / "in"
    make(made, "--days", "3")
    return made


@pytest.fixture
def server():
    with Exports(articles=300, seconds=0.15).running() as exports:
        yield exports


def make(folder, *arguments):
    main([str(folder), *arguments])
    for path in folder.rglob("*.jsonl"):
        os.utime(path, (OLD, OLD))


def run(folder, server=None, state=None, select=None, **config):
    url = "http://127.0.0.1:9" if server is None else server.url
    given = {"folder": str(folder), "base_url": url, "access_token": TOKEN, "poll_seconds": 0.05, **config}
    return run_tap(tap_warehouse.tap, given, state=state, select=select)


def counts(out):
    return Counter(message["stream"] for message in out.messages if message["type"] == "RECORD")


def test_the_first_run_brings_all_and_the_second_what_is_late_new_or_changed(folder, server):
    first = run(folder, server)
    assert not first.result.errors
    assert counts(first) == {"sales": 3 * SALES_A_DAY, "events": 3 * EVENTS_A_DAY, "stock": 300}
    nothing = run(folder, server, first.states[-1])
    assert counts(nothing) == {"stock": 300}

    make(folder, "--late", "1", "--correct", "3")
    write_day(folder, 9)
    second = run(folder, server, nothing.states[-1])
    assert not second.result.errors
    assert counts(second) == {"sales": 3 * SALES_A_DAY, "stock": 300}
    assert Counter(row["_file"][-9:-7] for row in second.records("sales")) == {
        "01": SALES_A_DAY,
        "03": SALES_A_DAY,
        "09": SALES_A_DAY,
    }
    assert {row["remark"] for row in second.records("sales") if row["_file"].endswith("03.csv.gz")} >= {"corrected"}


def test_sales_are_what_duckdb_reads(folder):
    wanted = duckdb.execute(
        "select sale_id, timezone('UTC', timezone('Europe/Berlin', sold_at::timestamp))::varchar, pieces, amount,"
        " remark from read_csv(?, delim=';', types={'amount': 'DECIMAL(18,2)'}, quote='\"', escape='\"',"
        " new_line='\\r\\n') order by sale_id",
        [str(folder / "sales-*.csv.gz")],
    ).fetchall()
    out = run(folder, select="sales")
    assert not out.result.errors
    found = [
        (
            row["sale_id"],
            row["sold_at"].replace("T", " ").removesuffix("Z"),
            row["pieces"],
            Decimal(str(row["amount"])),
            row["remark"],
        )
        for row in out.records("sales")
    ]
    assert sorted(found, key=lambda row: row[0]) == wanted and len(wanted) == 3 * SALES_A_DAY


def test_events_are_what_duckdb_reads(folder):
    wanted = duckdb.execute(
        "select device, \"at\"::varchar, kind, celsius from read_json(?, columns={'device': 'VARCHAR', 'at': 'VARCHAR',"
        " 'kind': 'VARCHAR', 'celsius': 'DOUBLE'}) order by \"at\", device",
        [str(folder / "events/**/*.jsonl")],
    ).fetchall()
    found = [
        (row["device"], row["at"], row["kind"], row["celsius"])
        for row in run(folder, select="events").records("events")
    ]
    assert sorted(found, key=lambda row: (row[1], row[0])) == wanted


def test_the_stock_is_what_the_server_made(folder, server, tmp_path):
    out = run(folder, server, select="stock")
    assert not out.result.errors and out.types.count("ACTIVATE_VERSION") == 2
    path = tmp_path / "stock.parquet"
    path.write_bytes(server.made())
    wanted = duckdb.execute(
        "select article, name, price, pieces, strftime(counted_at, '%Y-%m-%dT%H:%M:%SZ') from read_parquet(?)",
        [str(path)],
    ).fetchall()
    found = [
        (row["article"], row["name"], Decimal(str(row["price"])), row["pieces"], row["counted_at"])
        for row in out.records("stock")
    ]
    assert found == wanted
    looks = [line for line in server.log if line == "GET /exports/e1"]
    assert len(looks) >= 2, "it was waited for"


def test_an_export_that_fails_is_one_error_and_no_empty_table(folder, server):
    server.broken = True
    out = run(folder, server, select="stock")
    assert "out of paper" in str(out.result.errors["stock"])
    assert out.types.count("ACTIVATE_VERSION") <= 1 and not out.records("stock")


def test_an_export_that_takes_too_long_stays_for_the_next_run(folder, server):
    server.seconds = 10_000
    first = run(folder, server, select="stock", export_limit_seconds=0.2)
    assert "the stock was not ready after" in str(first.result.errors["stock"])
    server.jobs["e1"] = 0
    second = run(folder, server, first.states[-1], select="stock")
    assert len(second.records("stock")) == 300
    assert [line for line in server.log if line.startswith("POST")] == ["POST /exports"]


def test_a_broken_file_of_events_is_said_and_comes_once_it_is_mended(folder, caplog):
    path = folder / "events" / "2024" / "05" / "03.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    os.utime(path, (OLD, OLD))
    first = run(folder, select="events")
    assert not first.result.errors and "03.jsonl' is left out" in caplog.text and f"line {EVENTS_A_DAY}" in caplog.text
    path.write_bytes(whole)
    os.utime(path, (OLD, OLD))
    second = run(folder, state=first.states[-1], select="events")
    assert counts(second) == {"events": EVENTS_A_DAY}


def test_the_commands_of_the_readme_do_what_it_says(tmp_path):
    """In a folder and on a port of the test's own."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    ((?:python|burler) .*)", text, re.MULTILINE)
    assert len(commands) == 5
    with Exports(seconds=0.1).running() as server:
        config = json.loads((FOLDER / "config.sample.json").read_text())
        config |= {"folder": str(tmp_path / "in"), "base_url": server.url, "poll_seconds": 0.05}
        assert config["access_token"] == TOKEN
        (tmp_path / "config.json").write_text(json.dumps(config))
        root = FOLDER.parent.parent
        environment = {**os.environ, "PYTHONPATH": str(root), "NO_PROXY": "127.0.0.1"}
        for command in commands:
            if ".server" in command:
                continue
            command = command.replace("/tmp/warehouse", config["folder"])
            command = command.replace("examples/tap_warehouse/config.sample.json", "config.json")
            command = command.replace("examples/tap_warehouse", str(root / "examples" / "tap_warehouse"))
            command = re.sub("^python", sys.executable, command)
            command = re.sub("^burler", f"{sys.executable} -m burler", command)
            done = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            for path in (tmp_path / "in").rglob("*.jsonl"):
                os.utime(path, (OLD, OLD))

    def rows(name):
        lines = (tmp_path / name).read_text().splitlines()
        return Counter(json.loads(line)["stream"] for line in lines if '"RECORD"' in line[:40])

    assert rows("first.jsonl") == {"sales": 600, "events": 150, "stock": 1000}
    assert rows("second.jsonl") == {"sales": 400, "stock": 1000}
