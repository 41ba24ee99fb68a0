"""Any tap's command behind ``format("burler")``: its catalog, what it prints, and that it is never left behind."""

from __future__ import annotations

import copy
import gzip
import json
import logging
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_taps import CATALOG, GOOD, SCHEMA, asked, entry, write_tap
from reading import Planned, rows_of, source

from burler.errors import BurlerError, CatalogError, StreamError
from burler.testing import canary
from support.clocks import until

SAY = "sys.stdout.flush(); sys.stdout.buffer.write(open(os.path.join(HERE, 'said'), 'rb').read())"
"""A tap that prints what a test has written."""


# ---- the catalog ----------------------------------------------------------------------------------------------------


def selected(folder, wire=CATALOG, stream="users", **options):
    """The columns, and the catalog that the tap is given."""
    command = write_tap(folder, catalog=wire)
    return source(exec=command, stream=stream, **options).schema().fieldNames(), _given(
        folder, command, stream, options
    )


def _given(folder, command, stream, options):
    Planned(exec=command, stream=stream, unknown_fields="drop", **options).tasks()
    return asked(folder)["catalogs"][0]


def without_selection(node):
    if isinstance(node, dict):
        return {key: without_selection(value) for key, value in node.items() if key != "selected"}
    return [without_selection(value) for value in node] if isinstance(node, list) else node


def test_the_catalog_goes_back_as_it_came_but_for_the_selection(tmp_path):
    names, changed = selected(tmp_path)
    assert names == list(SCHEMA["properties"])
    assert without_selection(changed) == CATALOG
    others, users = changed["streams"]
    assert (users["selected"], users["schema"]["selected"], users["metadata"][0]["metadata"]["selected"]) == (True,) * 3
    assert all(one["metadata"]["selected"] is True for one in users["metadata"])
    assert all(node["selected"] is True for node in users["schema"]["properties"].values())
    assert others["metadata"][0]["metadata"]["selected"] is False and "selected" not in others

    names, changed = selected(tmp_path, fields="name,anything")
    assert names == ["id", "name", "anything"], "the key stays"
    marks = {one["breadcrumb"][-1]: one["metadata"]["selected"] for one in changed["streams"][1]["metadata"][1:]}
    assert marks == {"id": True, "name": True, "price": False, "at": False, "anything": True}
    assert changed["streams"][1]["schema"]["properties"]["price"]["selected"] is False
    assert "price" not in selected(tmp_path, fields="!price")[0]


def test_catalogs_of_other_kinds(tmp_path):
    """Of the first years, without metadata; with fields that the tap can't give; a user's own; emitted names."""
    old = {"streams": [{"stream": "users", "tap_stream_id": "users", "schema": {"properties": {"a": {}}}}]}
    names, changed = selected(tmp_path, old)
    assert names == ["a"]
    assert changed["streams"][0]["schema"]["properties"]["a"]["selected"] is True
    assert changed["streams"][0]["metadata"][0] == {"breadcrumb": [], "metadata": {"selected": True}}

    wire = copy.deepcopy(CATALOG)
    wire["streams"][1]["metadata"][2]["metadata"] = {"inclusion": "unsupported"}
    names, changed = selected(tmp_path, wire)
    assert "name" not in names and "selected" not in changed["streams"][1]["metadata"][2]["metadata"]

    wire = copy.deepcopy(CATALOG)
    wire["streams"][1]["metadata"][3]["metadata"]["selected"] = False
    assert selected(tmp_path, catalog=wire)[0] == ["id", "name", "at", "anything"]

    one = {"streams": [entry("public-users") | {"stream": "users"}]}
    assert selected(tmp_path, one, "")[0] == selected(tmp_path, one, "users")[0] == list(SCHEMA["properties"])

    twins = {"type": "object", "properties": {"id": {"type": "integer"}, "ID": {"type": "string"}, "id_2": {}}}
    command = write_tap(tmp_path, catalog={"streams": [entry(schema=twins)]})
    assert source(exec=command).schema().fieldNames() == ["id", "ID_3", "id_2"]


def test_what_is_not_there_is_told_with_what_is(tmp_path):
    for wire, stream, fields, said in (
        (CATALOG, "usres", "", "no stream is called 'usres'. Did you mean 'users'? Streams: others, users."),
        (CATALOG, "", "", "has 2 streams; say which by option 'stream'"),
        ({"streams": []}, "x", "", "lists no stream"),
        (CATALOG, "users", "nmae", "option 'fields': stream 'users' has no field 'nmae'. Did you mean 'name'?"),
        ({"streams": [entry("a") | {"stream": "x"}, entry("b") | {"stream": "x"}]}, "x", "", "several streams"),
        ({"streams": [{"stream": "x", "schema": {"$ref": "#/nowhere"}}]}, "x", "", "nowhere"),
        ({"streams": [entry() | {"schema": {"type": "object"}, "metadata": []}]}, "", "", "declares no properties"),
        ([1, 2], "x", "", "printed no catalog but: [ 1,"),
    ):
        with pytest.raises(CatalogError) as told:
            source(exec=write_tap(tmp_path, catalog=wire), stream=stream, fields=fields).schema()
        assert said in str(told.value)
    with pytest.raises(CatalogError, match="printed no catalog but: nothing"):
        source(exec="true", stream="x").schema()
    with pytest.raises(CatalogError, match=r"discovery: command 'tap_fake\.py' ended with code 9"):
        source(exec=write_tap(tmp_path, discover_code=9), stream="users").schema()


def test_a_given_catalog_stands_in_for_discovery(tmp_path):
    command = write_tap(tmp_path, GOOD, catalog="none", discover_code=9)
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}
    catalog = {"streams": [{"tap_stream_id": "users", "schema": schema, "key_properties": ["id"]}]}
    with pytest.raises(BurlerError, match="fields that its discovery had not: price, at, anything"):
        rows_of(exec=command, stream="users", catalog=catalog)
    rows = rows_of(exec=command, stream="users", catalog=catalog, unknown_fields="drop")
    assert rows == [{"id": str(n), "name": f"n{n}"} for n in range(5)]


# ---- the process ----------------------------------------------------------------------------------------------------


def is_alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone, also while it is being read
        return False


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where the files for taps lie."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_commands_rows_and_what_it_was_given(tmp_path, temporary):
    given = {"stream": "users", "config": {"rows": 3}, "state": {"a": 1}, "fields": "name,anything"}
    assert rows_of(exec=write_tap(tmp_path), **given) == [
        {"id": 0, "name": "n0", "anything": "text"},
        {"id": 1, "name": "n1", "anything": "[1]"},
        {"id": 2, "name": "n2", "anything": "text"},
    ]
    was = asked(tmp_path)
    assert (was["config"], was["state"], set(was["modes"])) == ({"rows": 3}, {"a": 1}, {"0o600"})
    assert [stream["stream"] for stream in was["catalogs"][0]["streams"] if stream.get("selected")] == ["users"]
    assert list(temporary.iterdir()) == [], "the files for the tap are gone"
    assert len(rows_of(exec=write_tap(tmp_path, flags=("--properties",)), stream="users")) == 5
    assert asked(tmp_path)["catalogs"][0]["streams"][1]["schema"]["selected"] is True, "a tap of the first years"
    Planned(exec=write_tap(tmp_path, flags=("--catalog", "--properties")), stream="users").tasks()
    assert (
        asked(tmp_path)["catalogs"] == [was["catalogs"][0] | {"streams": asked(tmp_path)["catalogs"][1]["streams"]}] * 2
    )


def test_a_tap_sees_its_own_environment_and_not_what_spark_tells_its_workers(tmp_path, monkeypatch):
    """A program beside this Python is found without a PATH."""
    monkeypatch.setenv("PYTHON_WORKER_FACTORY_SECRET", "hunter2")
    monkeypatch.setenv("PYTHONPATH", f"/x/pyspark.zip{os.pathsep}/mine{os.pathsep}/x/py4j-0.10.9-src.zip")
    monkeypatch.setenv("MINE", "kept")
    monkeypatch.setenv("PATH", "/nowhere")
    body = GOOD + "\njson.dump(dict(os.environ), open(os.path.join(HERE, 'environ'), 'w'))\n"
    assert len(rows_of(exec=write_tap(tmp_path, body).replace(sys.executable, "python"), stream="users")) == 5
    seen = json.loads((tmp_path / "environ").read_text())
    assert (seen["MINE"], seen["PYTHONPATH"]) == ("kept", "/mine")
    assert "hunter2" not in seen.values()


def test_a_limit_and_a_reader_that_goes_away_end_the_tap(tmp_path, monkeypatch):
    """Also one that ignores SIGTERM."""
    monkeypatch.setenv("BURLER_GRACE_SECONDS", "0.3")
    endless = "schema()\nn = 0\nwhile True:\n    n += 1\n    record(id=n)\n"
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    rows = rows_of(exec=write_tap(tmp_path, endless), stream="users", limit="7", fields="name")
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert not is_alive(asked(tmp_path)["pid"])
    planned = Planned(exec=write_tap(tmp_path, deaf + endless), stream="users")
    batches = planned.reader.read(planned.parts[0])
    next(batches)
    assert is_alive(asked(tmp_path)["pid"])
    batches.close()
    assert not is_alive(asked(tmp_path)["pid"])


WORKER = """\
import sys, tempfile
from pyspark_burler import DefaultSource
source = DefaultSource({"exec": sys.argv[1], "stream": "users", "config": '{"password": "hunter2-hunter2"}'})
reader = source.reader(source.schema())
tempfile.tempdir = sys.argv[2]
list(reader.read(reader.partitions()[0]))
"""


def test_a_worker_that_is_killed_leaves_neither_tap_nor_files(tmp_path, temporary):
    """What Spark does to the worker of a cancelled task. The tap waits for its source, with a child of its own."""
    body = "import subprocess\nother = subprocess.Popen(['sleep', '600'])\n"
    body += "open(os.path.join(HERE, 'pids'), 'w').write('%d %d.' % (os.getpid(), other.pid))\ntime.sleep(600)"
    command, pids = write_tap(tmp_path, body), tmp_path / "pids"
    worker = subprocess.Popen([sys.executable, "-c", WORKER, command, str(temporary)])
    until(lambda: pids.exists() and pids.read_text().endswith("."))
    running = [int(pid) for pid in pids.read_text().strip(".").split()]
    assert all(map(is_alive, running)) and len(list(temporary.iterdir())) == 1
    worker.kill()
    worker.wait()
    until(lambda: not any(map(is_alive, running)))
    until(lambda: not list(temporary.iterdir()))


# ---- what it prints -------------------------------------------------------------------------------------------------


def said(folder, messages, *, properties=SCHEMA["properties"], **options):
    """The rows that messages (dicts, or lines as bytes) give."""
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages]
    (folder / "said").write_bytes(b"".join(lines))
    catalog = {"streams": [entry(schema={"type": "object", "properties": properties})]}
    return rows_of(exec=write_tap(folder, SAY), stream="users", catalog=catalog, **options)


def schema(properties=SCHEMA["properties"], stream="users"):
    return {"type": "SCHEMA", "stream": stream, "schema": {"properties": properties}, "key_properties": ["id"]}


def record(stream="users", **row):
    return {"type": "RECORD", "stream": stream, "record": row}


def test_rows_of_the_stream_come_in_order_and_exact_and_others_do_not(tmp_path):
    messages = [schema(stream="others"), record("others", id=9), schema()]
    messages += [record(id=n, name=f"ü{n}", price=n / 4) for n in range(25_000)]
    messages += [{"type": "state", "value": {"n": 1}}, {"type": "ACTIVATE_VERSION", "stream": "users", "version": 1}]
    rows = said(tmp_path, messages, fields="name,price")
    assert rows == [{"id": n, "name": f"ü{n}", "price": n / 4} for n in range(25_000)]

    messages = [schema(), {"type": "Record", "stream": "users", "record": {"id": 1, "name": "a\u2028b\r\n"}}]
    messages += [b"\n", b"  \r\n", record(id=2, anything={"a": [1.10]})]
    messages += [b'{"type": "RECORD", "stream": "users", "record": {"id": 3, "anything": 1.10}, "more": 1}']  # no end
    assert [tuple(row.values()) for row in said(tmp_path, messages, fields="name,anything")] == [
        (1, "a\u2028b\r\n", None),
        (2, None, '{"a": [1.1]}'),
        (3, None, "1.10"),
    ]

    exact = {"id": {"type": "integer"}, "d": {"type": "number", "multipleOf": 0.01}, "t": {"type": "string"}}
    line = b'{"type":"RECORD","stream":"users","record":{"id":1.0,"d":12345678901234567.89,"t":1.50}}\n'
    rows = said(tmp_path, [schema(exact), line], properties=exact)
    assert rows == [{"id": 1, "d": Decimal("12345678901234567.89"), "t": "1.50"}]

    changed = {**SCHEMA["properties"], "name": {"type": "integer"}}
    assert said(tmp_path, [schema(changed), record(id=1, name=5)], fields="name") == [{"id": 1, "name": "5"}]
    state = {"bookmarks": {}}
    assert said(tmp_path, [{"type": "STATE", "value": state}], state=state) == [], "nothing new is no error"


def test_fields_without_a_column_are_no_silent_loss(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    grown = {**SCHEMA["properties"], "new": {"type": "string"}}
    rows = said(tmp_path, [schema(), record(id=1, name="a", price=1, at="2024-05-01T00:00:00Z")], fields="name")
    assert (rows, caplog.text) == ([{"id": 1, "name": "a"}], ""), "what was deselected and comes all the same"
    with pytest.raises(StreamError, match=r"fields that its discovery had not: new.*unknown_fields=drop"):
        said(tmp_path, [schema(grown), record(id=1, new="x")])
    assert said(tmp_path, [schema(grown), record(id=1, new="x")], fields="name", unknown_fields="drop") == [
        {"id": 1, "name": None}
    ]
    assert "field 'new' is in no schema and has no column: left out of 1 row" in caplog.text
    (row,) = said(tmp_path, [schema(), record(id=1, at="2024-05-01T00:00:00.123456789Z")], fields="at")
    assert row["at"].isoformat() == "2024-05-01T00:00:00.123456+00:00"
    assert "field 'at': 1 time cut to microseconds, all that the column holds" in caplog.text


def test_what_is_no_row_is_told_with_its_place(tmp_path):
    ahead = [record(id=1), record(id=2)]
    for lines, words in (
        ([*ahead, record(id="x")], "row 3 (id=x): field 'id': a value can't be held exactly; the schema wants an int"),
        ([*ahead, record(id=2**63)], f"row 3 (id={2**63}): field 'id'"),
        ([*ahead, record(id=7, at="yesterday")], "row 3 (id=7): field 'at': a value can't be held exactly"),
        ([*ahead, record(id=7, name="\ud800")], "row 3 (id=7): field 'name': half of a surrogate pair"),
        ([b"INFO starting\n"], "line 2: it is no JSON"),
        ([b'{"type": "RECORD"\n'], "line 2: it is no JSON"),
        ([b'{"kind": "RECORD"}\n'], "line 2: it is no Singer message"),
        ([b'{"type": "RECORD", "stream": "users"}\n'], "line 2: a RECORD without 'record'"),
        ([b'{"type": "SCHEMA", "stream": "users", "schema": 5}\n'], "line 2: the 'schema' of a SCHEMA"),
        ([b"\xff\n"], "line 2: it is not UTF-8"),
        ([b'{"type": "RECORD", "stream": "users", "record": 5}\n'], "row 1: a row that is no object"),
    ):
        with pytest.raises(StreamError) as told:
            said(tmp_path, [schema(), *lines])
        assert words in str(told.value)
        assert str(told.value).startswith("stream 'users': ") and len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "schema()\nrecord(id=1)\n[print('line', n, file=sys.stderr) for n in range(100)]\n"
            "sys.exit('no rights for ' + CONFIG['password'])",
            "command 'tap_fake.py' ended with code 1 after 1 row. It said last: line 89 | line 90",
        ),
        ("os.kill(os.getpid(), 9)", "ended with code 137"),
        ("", "ended well and sent no SCHEMA of the stream"),
        ("schema('others')\nrecord('others', id=1)", "ended well and sent no SCHEMA of the stream"),
        ('schema()\nrecord(id=1)\nprint(\'{"type": "RECORD", "stream\', end=\'\')', "line 3: it is no JSON"),
    ],
    ids=["exit", "killed", "nothing", "other-stream", "broken-off"],
)
def test_broken_taps_are_told_in_one_line(tmp_path, body, words):
    planned = Planned(exec=write_tap(tmp_path, body), stream="users", config={"password": canary("tap")})
    with pytest.raises(StreamError) as told:
        planned.tasks()
    assert str(told.value).startswith("stream 'users': ")
    assert words in str(told.value)
    assert body.count("CONFIG") == str(told.value).count("no rights for ***")
    assert len(str(told.value).splitlines()) == 1


# ---- BATCH ----------------------------------------------------------------------------------------------------------


def batch(*paths, format="jsonl", compression="none"):
    encoding = {"format": format, "compression": compression}
    return {"type": "BATCH", "stream": "users", "encoding": encoding, "manifest": [path.as_uri() for path in paths]}


def test_batch_files_stand_where_their_message_stands(tmp_path):
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"
    first.write_bytes(gzip.compress(b'{"id": 2, "anything": "text"}\n{"id": 3, "anything": {"a":1.10}}\n'))
    second.write_bytes(b'{"id": 4}\n')
    messages = [schema(), record(id=1), batch(first, compression="gzip"), batch(second), record(id=5)]
    rows = said(tmp_path, messages, fields="anything")
    assert [(row["id"], row["anything"]) for row in rows] == [
        (1, None), (2, "text"), (3, '{"a":1.10}'), (4, None), (5, None)
    ]  # fmt: skip


PLAIN = {name: node for name, node in SCHEMA["properties"].items() if name != "anything"}


@pytest.mark.parametrize("properties", [PLAIN, SCHEMA["properties"]], ids=["plain", "open"])
def test_batch_files_of_columns_and_their_bad_values(tmp_path, properties):
    extra = {} if properties is PLAIN else {"anything": '"x"'}
    rows = [{"id": n, "name": f"n{n}", "price": n / 4, **extra} for n in range(5000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = said(tmp_path, [schema(properties), batch(tmp_path / "a.parquet", format="parquet")], properties=properties)
    assert len(found) == 5000
    assert found[7] == {"id": 7, "name": "n7", "price": 1.75, "at": None, **({"anything": "x"} if extra else {})}

    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": 2}\n{"id": "hunter2"}\n')
    with pytest.raises(StreamError) as told:
        said(tmp_path, [schema(properties), batch(path)], properties=properties)
    assert f"stream 'users': batch file '{path.as_uri()}': row 2: field 'id': a value can't be held" in str(told.value)
    assert "hunter2" not in str(told.value)


def test_a_batch_file_that_can_not_be_read_is_told(tmp_path, monkeypatch):
    path = tmp_path / "x.jsonl.gz"
    for content in (None, gzip.compress(b'{"id": 1}\n' * 1000)[:40]):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(StreamError, match=r"stream 'users'.*x\.jsonl\.gz"):
            said(tmp_path, [schema(), batch(path, compression="gzip")])
    monkeypatch.setenv("BURLER_ALLOW", str(tmp_path / "in"))
    with pytest.raises(StreamError, match="is not read: it lies below nothing that --allow names"):
        said(tmp_path, [schema(), batch(path)])
