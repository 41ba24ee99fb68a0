"""``format("singerlake")``: which rows come, which files are opened, and what is said of bad ones."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from burler.errors import ExportError, LakeError, UsageError
from support.cli import burler

NUMBER = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "number"]}}}
MORE = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}, "at": {"format": "date-time"}},
}
MORE["properties"]["at"]["type"] = ["null", "string"]


def replayed(lake, stream="users"):
    """The rows that a target holds that obeys what ``burler lake read`` prints."""
    held: list[tuple[int | None, dict]] = []
    for message in burler("lake", "read", lake.root, "--stream", stream).messages:
        if message["type"] == "RECORD":
            held.append((message.get("version"), message["record"]))
        elif message["type"] == "ACTIVATE_VERSION":
            held = [one for one in held if one[0] is not None and one[0] >= message["version"]]
    return [record for _, record in held]


def test_rows_are_those_that_lake_read_gives(lake, rows):
    lake.commit("users", [{"id": 1, "name": "old"}, {"id": 2, "name": "old"}], version=1, activate=1)
    lake.commit("users", [{"id": 3, "name": "a"}], version=2)
    lake.commit("users", [{"id": 4, "name": "b"}], version=2, activate=2)
    lake.commit("users", [{"id": 5, "name": "c"}], version=2)
    got = rows(lake.root)
    assert [{"id": row["id"], "name": row["name"]} for row in got] == replayed(lake)
    assert [row["id"] for row in got] == [3, 4, 5]
    assert [row["_sdc_version"] for row in got] == [2, 2, 2]
    everything = rows(lake.root, versions="all")
    assert [row["id"] for row in everything] == [1, 2, 3, 4, 5]
    place = [(row["_sdc_sequence"], row["_sdc_position"]) for row in everything]
    assert place == sorted(place) and len(set(place)) == 5


def test_without_a_manifest_the_rows_are_the_same(lake, rows):
    lake.commit("users", [{"id": 1, "name": "x"}], version=1, activate=1)
    lake.commit("users", [{"id": 2, "name": "y"}], version=2, activate=2)
    lake.manifest_path("users").unlink()
    assert [row["id"] for row in rows(lake.root)] == [2]
    assert [row["id"] for row in rows(lake.root, versions="all")] == [1, 2]


def test_schema_versions_have_united_columns(lake, rows):
    lake.commit("users", [{"id": 1, "name": 1.50}], schema=NUMBER)
    lake.commit("users", [{"id": 2, "name": "two", "at": "2024-02-03T04:05:06Z"}], schema=MORE)
    got = rows(lake.root)
    assert [(row["id"], row["name"]) for row in got] == [(1, "1.5"), (2, "two")]
    assert [row["at"] for row in got] == [None, dt.datetime(2024, 2, 3, 4, 5, 6, tzinfo=dt.UTC)]
    assert [(row["id"], row["name"]) for row in rows(lake.root, schema="v1")] == [(1, 1.5)]
    assert [row["id"] for row in rows(lake.root, schema="v2..")] == [2]


def test_files_that_nobody_wants_are_not_opened(lake, rows):
    paths = [lake.commit("users", [{"id": at}], time=dt.datetime(2024, 1, at, tzinfo=dt.UTC)) for at in (1, 2, 3, 4)]
    other = lake.commit("users", [{"id": 9, "name": 1}], schema=NUMBER)
    for path in (paths[0], paths[3], other):
        path.write_bytes(b"no gz")  # whoever opens one of these fails
    with pytest.raises(LakeError):
        rows(lake.root)
    assert [row["id"] for row in rows(lake.root, schema="v1", since="2024-01-02", until="2024-01-04")] == [2, 3]
    assert [row["id"] for row in rows(lake.root, schema="v1", after_sequence=1, to_sequence=2)] == [2]
    assert [row["id"] for row in rows(lake.root, after_sequence=1, to_sequence=3)] == [2, 3]


def test_rows_are_cut_by_their_own_time(lake, rows):
    record = b'{"type":"RECORD","stream":"users","record":{"id":%d},"time_extracted":"2024-01-01T00:0%d:00Z"}\n'
    path = lake.commit("users", [{"id": 0}])
    import gzip

    first = gzip.decompress(path.read_bytes()).splitlines(keepends=True)[0]
    path.write_bytes(gzip.compress(first + b"".join(record % (at, at) for at in (1, 2, 3))))
    document = lake.manifest("users")
    stats = next(iter(document["file_stats"].values()))
    stats |= {"records": 3, "first": "2024-01-01T00:01:00.000000Z", "last": "2024-01-01T00:03:00.000000Z"}
    lake.save("users", document)
    assert [row["id"] for row in rows(lake.root, since="2024-01-01T00:02:00Z")] == [2, 3]
    assert [row["id"] for row in rows(lake.root, until="2024-01-01T00:02:00Z")] == [1]


def test_tasks_are_cut_by_size_and_keep_the_order(lake, tasks):
    for at in range(6):
        lake.commit("users", [{"id": at, "name": "x" * 400}])
    assert len(tasks(lake.root)) == 1
    found = tasks(lake.root, task_bytes=1600)
    assert [[row["_sdc_sequence"] for row in task] for task in found] == [[1, 2], [3, 4], [5, 6]]


def test_fields_prunes_columns_and_values_are_not_even_looked_at(lake, rows):
    lake.commit("users", [b'{"id":1,"name":[]}', b'{"id":2,"name":"x"}'], schema=NUMBER, clean=False)
    got = rows(lake.root, fields="id")
    assert [row["id"] for row in got] == [1, 2]
    assert "name" not in got[0]


def test_a_bad_row_is_an_error_with_its_place_or_a_row_of_its_own(lake, rows):
    path = lake.commit("users", [b'{"id":1}', b'{"id":"many"}', b'{"id":3}'])
    with pytest.raises(ExportError) as caught:
        rows(lake.root)
    for part in ("'users'", path.name, "line 3", "field 'id'", '"many"', 'option("bad", "keep")'):
        assert part in str(caught.value), part
    got = rows(lake.root, bad="keep")
    assert [row["id"] for row in got if row["_sdc_bad"] is None] == [1, 3]
    (bad,) = [row for row in got if row["_sdc_bad"] is not None]
    told = json.loads(bad["_sdc_bad"])
    assert (told["line"], told["field"], told["record"]) == (3, "id", '{"id":"many"}')
    assert bad["_sdc_sequence"] == 1 and bad["_sdc_position"] == 3


def test_a_damaged_file_is_an_error(lake, rows):
    path = lake.commit("users", [{"id": at} for at in range(200)])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(LakeError, match=r"(?s)users.*" + path.name[:10]):
        rows(lake.root)


def test_a_stream_field_of_our_name_asks_for_fields(lake, rows):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "_sdc_position": {"type": "string"}}}
    lake.commit("users", [{"id": 1, "_sdc_position": "x"}], schema=schema)
    with pytest.raises(ExportError, match="_sdc_position"):
        rows(lake.root)
    assert [row["id"] for row in rows(lake.root, fields="id")] == [1]


def test_a_schema_that_grew_after_the_plan_is_no_loss_in_silence(lake, rows):
    from pyspark_singerlake import DefaultSource

    lake.commit("users", [{"id": 1, "name": "x"}])
    before = DefaultSource({"path": str(lake.root)}).schema()
    lake.commit("users", [{"id": 2, "name": "y", "at": None}], schema=MORE)
    with pytest.raises(ExportError, match=r"new field 'at'"):
        rows(lake.root, as_loaded=before)
    assert [row["id"] for row in rows(lake.root, as_loaded=before, new_fields="ignore")] == [1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strem": "users"}, "Did you mean 'stream'"),
        ({"stream": "nobody"}, "no stream 'nobody' in this lake"),
        ({"since": "yesterday"}, "since"),
        ({"versions": "some"}, "active or all"),
        ({"to_sequence": "99"}, "last commit is 1"),
        ({"after_sequence": "-1"}, "whole number"),
        ({"fields": "id,nothing"}, "no field 'nothing'"),
        ({"fields": "nmae"}, "has no field 'nmae'. Did you mean 'name'? Its fields: id, name."),
        ({"stream": "user"}, "there is no stream 'user' in this lake. Did you mean 'users'? It has"),
        ({"starting": "1"}, "format 'singerlake' has no option 'starting'"),
        ({"fields": '["id"'}, "JSON list"),
        ({"schema": "v7"}, "no stream has the schema version"),
        ({"task_bytes": "0"}, "1 or more"),
    ],
)
def test_wrong_options_are_one_clear_error(lake, rows, options, said):
    lake.commit("users", [{"id": 1}])
    with pytest.raises(UsageError) as caught:
        rows(lake.root, **options)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") < 3


def test_no_lake_and_several_streams(lake, rows, tmp_path):
    with pytest.raises(UsageError):
        rows(tmp_path / "nothing")
    lake.commit("users", [{"id": 1}])
    lake.commit("orders", [{"id": 1}])
    with pytest.raises(UsageError, match=r"tap-x/orders, tap-x/users"):
        rows(lake.root)
    assert len(rows(lake.root, stream="orders", tap="tap-x")) == 1
