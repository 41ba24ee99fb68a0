"""One export, by burler's own session in this process, by Spark Connect and by Sail in theirs: equal tables.

pyspark holds classic sessions or Connect's in one process, never both: hence a process for each of the others. It is a
script in a folder of its own, run from another one, with a tap in the script and one beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from burler.spark import export
from support.internals import export_options
from tests.spark.conftest import Lake
from tests.spark.extract.extracted import PARTS, app

BESIDE = """\
import burler

tap = burler.tap("tap-beside")


@tap.sync("rows", key_properties=["id"], schema={"properties": {"id": {"type": "integer"}}})
def rows():
    yield [{"id": n} for n in range(7)]
"""
SCRIPT = """\
import json
import sys
import threading

import beside
import burler
from burler.spark import capabilities, export, extract, read, session, upsert
from support.internals import export_options

tap = burler.tap("tap-script")
WORDS = ["a", "b", "c"]


class Client:
    def __init__(self):
        self.lock = threading.Lock()  # no pickle takes it

    def words(self):
        with self.lock:
            return helped(WORDS)


def helped(words):
    return [word.upper() for word in words]


@tap.client
def client():
    return Client()


@tap.partitions("words")
def parts():
    return [{"part": "x"}, {"part": "y"}]


@tap.sync("words", schema={"properties": {"word": {"type": "string"}, "part": {"type": "string"}}})
def words(client, partition):
    yield [{"word": word, **partition} for word in client.words()]


def taps(spark, out, app):
    own = sorted(map(tuple, read(spark, tap, stream="words").collect()))
    assert own == [(word, part) for word in "ABC" for part in "xy"], own
    assert read(spark, "beside:tap", limit=3).count() == 3
    given = {"token": "x"}
    assert read(spark, beside.tap).count() == 7
    done = extract(spark, app, out + "/lake", config=given, select="rows", slots=2)
    assert done.errors == {} and done.state["bookmarks"]["rows"]["partitions"]['{"account":"a"}'] == {"id": 39}
    stream = spark.readStream.format("singerlake").option("stream", "rows").load(out + "/lake")
    upserts = stream.writeStream.foreachBatch(upsert(out + "/upserted", keys=["account", "id"], query_id="engines"))
    upserts.option("checkpointLocation", out + "/checkpoint").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    export_options.SMALL_ROWS = 0  # the engine is to do all of it
    kind, out, conf, odd, app, *lakes = sys.argv[1:]
    spark = session("engines", json.loads(conf), remote=kind)
    can = capabilities(spark)
    assert session() is spark
    for lake in lakes:
        results = export(spark, lake, out)
        print(json.dumps([[one.stream, one.rows_read, one.rows_written, one.version] for one in results]))
    if kind != "sail":  # Sail runs no Python functions
        taps(spark, out, app)
        (odd,) = export(spark, odd, out, max_bad_rows=1)
        print(json.dumps([odd.rows_written, odd.repaired, odd.quarantined]))
    timezone = spark.conf.get("spark.sql.session.timeZone")
    print(json.dumps([can.kind, can.is_local, can.has_metadata, can.has_observe, can.has_corrupt_record, timezone]))
    spark.stop()
"""

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "price": {"type": ["null", "number"], "multipleOf": 0.01},
        "score": {"type": ["null", "number"]},
        "born": {"type": ["null", "string"], "format": "date"},
        "updated_at": {"type": ["null", "string"], "format": "date-time"},
        "address": {"type": ["null", "object"], "properties": {"city": {"type": "string"}}},
        "tags": {"type": ["null", "array"], "items": {"type": "integer"}},
        "open": {"type": ["null", "object"]},
    },
}
STREAMS = ("users", "full")


def row(number, name, second):
    return {
        "id": number,
        "name": name,
        "price": number + 0.25,
        "score": number / 3,
        "born": f"19{number:02}-01-31",
        "updated_at": f"2024-01-01T00:00:{second:02}.{number:06}Z",
        "address": {"city": f"ö{number}"},
        "tags": [number, -number],
        "open": {"b": [1, None], "a": "x"},
    }


@pytest.fixture(scope="module")
def lakes(tmp_path_factory):
    """A lake before and after more came: keys with ties, and a full table that was made anew."""
    root = tmp_path_factory.mktemp("engines") / "lake"
    lake = Lake(root)
    order = {"schema": SCHEMA, "bookmarks": ("updated_at",)}
    lake.commit("users", [row(n % 20, f"first {n}", 1) for n in range(30, 60)], **order)
    lake.commit("users", [row(n, "second", n % 3) for n in range(30)], **order)
    lake.commit("full", [row(n, "old", 0) for n in range(5)], version=1, activate=1, **order)
    before = shutil.copytree(root, root.with_name("before"))
    lake.commit("users", [row(n, None, 9) for n in range(25, 35)], **order)
    lake.commit("full", [row(n, "new", 0) for n in range(3)], version=2, activate=2, **order)
    return [str(before), str(root)]


@pytest.fixture
def odd(tmp_path):
    """A lake whose rows are not what their file is said to hold: one can be repaired, one can not."""
    lake = Lake(tmp_path / "odd", tap_id="tap-odd")
    schema = {"properties": {"id": {"type": "integer"}}}
    lake.commit("odd", [b'{"id":1.0}', b'{"id":2}', b'{"id":"x"}'], schema=schema, keys=(), clean=True)
    return str(lake.root)


def content(out, stream):
    """What DeltaLake's own reader finds: column names and types, and the rows but for the time of the export."""
    import deltalake

    table = deltalake.DeltaTable(str(out / "tap-x" / stream)).to_pyarrow_table()
    kept = table.drop_columns(["_sdc_batched_at"])
    types = [(field.name, str(field.type)) for field in kept.schema]
    return types, sorted(map(repr, kept.to_pylist()))


def ids(table):
    import deltalake

    return sorted(deltalake.DeltaTable(str(table)).to_pyarrow_table().column("id").to_pylist())


@pytest.fixture(scope="module")
def classic(spark, lakes, tmp_path_factory):
    """Each stream's content by the classic session, and what the exports said."""
    out = tmp_path_factory.mktemp("classic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_options, "SMALL_ROWS", 0)
        said = [
            [[one.stream, one.rows_read, one.rows_written, one.version] for one in export(spark, lake, str(out))]
            for lake in lakes
        ]
    return {stream: content(out, stream) for stream in STREAMS}, said


CONF = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.driver.memory": "1g"}
CONF["spark.sql.shuffle.partitions"] = "2"
CAN = {
    "local[2]": ["connect", True, True, True, True, "UTC"],
    "sail": ["sail", True, False, False, False, "UTC"],
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", CAN)
def test_another_engine_makes_the_same_tables(kind, classic, lakes, odd, tmp_path):
    """Connect also reads, extracts and streams taps, and repairs what is odd; Sail is for clean exports."""
    folder, elsewhere = tmp_path / "job", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "beside.py").write_text(BESIDE)
    (folder / "script.py").write_text(SCRIPT)
    conf = CONF if kind != "sail" else {}
    path = app(tmp_path, PARTS, "tap_of_engines")
    done = subprocess.run(
        [sys.executable, folder / "script.py", kind, str(tmp_path), json.dumps(conf), odd, str(path), *lakes],
        cwd=elsewhere,
        env={**os.environ, "BURLER_LOG_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        timeout=900,
    )

    assert done.returncode == 0, done.stderr
    *said, can = map(json.loads, done.stdout.splitlines())
    assert can == CAN[kind]
    tables, expected = classic
    if kind != "sail":
        assert said.pop() == [2, 1, 1]
        assert ids(tmp_path / "tap-odd" / "odd") == [1, 2]
        assert ids(tmp_path / "upserted") == sorted([*range(1, 40), *range(100, 130), 7])
    assert said == expected
    for stream in STREAMS:
        types, rows = content(tmp_path, stream)
        assert types == tables[stream][0]
        assert rows == tables[stream][1], stream
    assert len(tables["users"][1]) == 35 and len(tables["full"][1]) == 3
