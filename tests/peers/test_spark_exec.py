"""Taps that others wrote, read by Spark through ``exec``: the rows are those that the same taps give a target of
others' when they are piped into it.

By night: ``exec`` with a program of our own is tested with Spark on each push (tests/spark).
"""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from batch_pipes import Pipe
from test_lake_taps import TAPS

STREAMS = {"rest": "users", "tables": "shop-orders", "s3_csv": "cities"}


@pytest.fixture(scope="module")
def spark():
    """A session of Spark's for this file."""
    from burler.spark import session

    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}
    made = session("foreign taps", conf, master="local[2]")
    yield made
    made.stop()


def plain(value):
    """A value of Spark's as JSON would have it."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    return value.normalize() if isinstance(value, Decimal) else value


def like(value, found):
    """A value that a target has stored, in the form that ``found`` has for it."""
    if isinstance(found, dt.datetime):
        moment = dt.datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    if isinstance(found, dt.date):
        return dt.datetime.fromisoformat(value).date()
    if isinstance(found, str) and not isinstance(value, str | None):
        return json.dumps(value, default=str)  # an open type: its text is JSON
    if isinstance(found, float):
        return float(value)  # a number is the nearest double
    if isinstance(value, Decimal | int) and not isinstance(value, bool) and not isinstance(found, int):
        return Decimal(value).normalize()
    return value


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("name", TAPS)
def test_rows_equal_those_of_the_taps_own_output_in_a_target(
    tmp_path, spark, peers, old_peers, postgres, s3_server, name
):
    stream = STREAMS[name]
    with TAPS[name](tmp_path, peers, postgres, s3_server) as tap:
        pipe = Pipe(tmp_path, peers, tap.environment)
        lines = pipe.run(tap.command, b"", **tap.environment)
        program, _flag, config = map(str, tap.command[:3])
        names = {word: value for word, value in tap.environment.items() if "KEY" not in word}
        command = shlex.join(["env", *(f"{word}={value}" for word, value in names.items()), program])
        options = {"exec": command, "config": config, "stream": stream}
        frame = spark.read.format("burler").options(**options).load()
        found = [row.asDict(recursive=True) for row in frame.collect()]
        few = frame.select(frame.columns[0]).limit(3).collect()
    expected = loaded(pipe, old_peers, tmp_path, lines, stream)
    assert len(found) == len(expected) == tap.rows[stream]
    assert len(few) == 3
    key = "id"
    rows = {row[key]: row for row in map(plain, found)}
    for row in expected:
        mine = rows.pop(like(row[key], 0) if name == "tables" else row[key])
        assert set(row) <= set(mine)
        for field, value in mine.items():
            theirs = like(row.get(field), value)
            assert value == theirs or (isinstance(value, str) and json.loads(value) == json.loads(theirs)), field
    assert not rows


def loaded(pipe, old_peers, folder: Path, lines: bytes, stream: str):
    """The rows that ``target-jsonl`` has written."""
    out, config = folder / "target", folder / "target.json"
    out.mkdir()
    config.write_text(json.dumps({"destination_path": str(out), "do_timestamp_file": False}))
    pipe.run([old_peers / "target-jsonl", "--config", config], lines)
    (path,) = out.glob(f"{stream}*.jsonl")
    return [json.loads(line, parse_float=Decimal) for line in path.read_text().splitlines()]
