"""A lake as a Singer tap: what comes out, in which order, and where the next run goes on."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from lake_reads import discover, replay

from burler.lake import LakeWriter, RollSettings, open_store
from burler.singer.messages import ActivateVersion, encode

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
SINCE = ("--since", "2024-01-02T12:00:00Z")
TEXT = {"type": "string"}


def commit(
    lake: Any, *ids: int, fields: Any = None, stream: str = "users", at: dt.datetime = NOON, **more: Any
) -> None:
    """One file, one commit."""
    with lake.writer(**more) as writer:
        writer.schema(lake.schema(stream, **(fields or {})))
        writer.records(lake.page(stream, *ids, at=at))


def test_rows_come_in_the_order_of_their_commits(lake: Any) -> None:
    commit(lake, 1, 2, at=NOON + HOUR)
    commit(lake, 3, at=NOON)  # extracted earlier, brought later
    out = replay(lake)
    assert out.kinds == "S R1 R2 R3"
    assert out.lines[0] == encode(json.loads(out.lines[0]))  # as it stands in the file
    assert [one["time_extracted"] for one in out.messages[1:4]] == ["2024-01-02T13:00:00.000000Z"] * 2 + [
        "2024-01-02T12:00:00.000000Z"
    ]


def test_a_schema_comes_at_each_change_of_version(lake: Any) -> None:
    for n, fields in enumerate([{}, {"name": TEXT}, {"name": TEXT}, {}]):
        commit(lake, n, fields=fields)
    out = replay(lake)
    assert out.kinds == "S R0 S R1 R2 S R3"
    schemas = [one["schema"]["properties"] for one in out.messages if one["type"] == "SCHEMA"]
    assert [sorted(one) for one in schemas] == [["id"], ["id", "name"], ["id"]]


def test_activations_and_versions_stay_where_they_are(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, version=5))
        writer.activate_version(ActivateVersion("users", 5))
        writer.records(lake.page("users", 2, version=5))
    out = replay(lake)
    assert out.kinds == "S R1 A R2"
    assert [one.get("version") for one in out.messages[1:4]] == [5, 5, 5]


def test_a_part_of_a_table_activates_nothing(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, version=5))
        writer.activate_version(ActivateVersion("users", 5))
    for asked in (("--schema", "v1"), SINCE, ("--until", "2024-01-03")):
        assert replay(lake, *asked).kinds == "S R1"


def test_the_next_run_brings_what_is_new(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 7, stream="orders")
    first = replay(lake)
    assert sorted(first.ids) == [1, 7]
    again = replay(lake, state=first.state)
    assert (again.kinds, again.state) == ("S S", first.state)  # SCHEMAs: a target may make its tables
    commit(lake, 2, fields={"name": TEXT}, at=NOON - HOUR)
    second = replay(lake, state=first.state)
    assert second.kinds == "S R2 S"
    assert second.state["bookmarks"]["users"] == {**first.state["bookmarks"]["users"], "sequence": 2}
    assert second.state["bookmarks"]["orders"] == first.state["bookmarks"]["orders"]


def test_a_state_keeps_what_it_says_of_others(lake: Any) -> None:
    commit(lake, 1)
    before = {"bookmarks": {"other": {"sequence": 4}}, "x": 1}
    out = replay(lake, state=before)
    assert out.state["bookmarks"]["other"] == {"sequence": 4}
    assert out.state["x"] == 1
    assert before == {"bookmarks": {"other": {"sequence": 4}}, "x": 1}
    assert replay(lake, state={"bookmarks": None, "currently_syncing": None}).ids == [1]


def test_a_broken_file_ends_its_stream_and_no_other(lake: Any) -> None:
    for n in range(3):
        commit(lake, n)
    commit(lake, 7, stream="orders")
    whole = replay(lake).state
    (path,) = [path for path in lake.files() if path.name.endswith("-2.singer.gz")]
    path.write_bytes(path.read_bytes()[:-9])
    out = replay(lake, code=1)
    assert sorted(out.ids) in ([0, 7], [0, 1, 7])
    assert out.state["bookmarks"]["users"]["sequence"] == 1
    assert out.state["bookmarks"]["orders"] == whole["bookmarks"]["orders"]
    assert str(path) in out.said
    assert "Restore it" in out.said
    path.unlink()
    out = replay(lake, state=out.state, code=1)
    assert "missing although the lake lists it" in out.said
    assert out.state["bookmarks"]["users"]["sequence"] == 1


def test_a_stream_whose_manifest_is_broken_is_told_and_the_others_go_on(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 7, stream="orders")
    lake.manifest_path().write_text('{"x":')
    for asked in ((), ("--schema", "v1")):
        out = replay(lake, *asked, code=1)
        assert (out.ids, list(out.state["bookmarks"])) == ([7], ["orders"])
        assert "manifest.json is broken" in out.said
    catalog, said = discover(lake, code=1)
    assert [one["stream"] for one in catalog["streams"]] == ["orders"]
    assert "manifest.json is broken" in said
    assert "no stream 'nope'" in replay(lake, "--stream", "nope", code=2).said


def test_a_stream_without_a_schema_that_can_be_read_is_told_and_the_catalog_has_the_others(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 7, stream="orders")
    lake.manifest_path().unlink()
    (file,) = lake.files("**/users-*")
    file.write_bytes(b"")
    catalog, said = discover(lake, code=1)
    assert [one["stream"] for one in catalog["streams"]] == ["orders"]
    assert "truncated or corrupt" in said


def test_a_folder_without_files_is_no_stream(lake: Any) -> None:
    commit(lake, 1)
    (lake.path / "raw/tap-x/somebody's own").mkdir()
    assert list(replay(lake).state["bookmarks"]) == ["users"]


def test_a_manifest_made_anew_is_read_from_the_start(lake: Any) -> None:
    commit(lake, 1)
    state = replay(lake).state
    lake.manifest_path().unlink()
    commit(lake, 2)
    out = replay(lake, state=state)
    assert out.ids == [1, 2]
    assert ["made anew since the state was written" in one for one in out.warnings] == [True]
    assert replay(lake, state=out.state).ids == []


def test_without_a_manifest_each_run_begins_at_the_start(lake: Any) -> None:
    commit(lake, 1)
    state = replay(lake).state
    lake.manifest_path().unlink()
    out = replay(lake)
    assert (out.kinds, out.state) == ("S R1", {"bookmarks": {}})
    assert "Make one: burler lake rebuild" in out.said
    out = replay(lake, state=state)
    assert (out.kinds, out.state) == ("S R1", {"bookmarks": {}})


def test_a_state_of_a_narrower_run_covers_only_that(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 2, at=NOON + HOUR)
    narrow = ("--since", "2024-01-02T13:00:00Z")
    out = replay(lake, *narrow)
    assert out.ids == [2]
    assert replay(lake, *narrow, state=out.state).ids == []
    assert replay(lake, state=out.state).ids == [1, 2]
    by_version = replay(lake, "--schema", "v1..")
    assert replay(lake, "--schema", "v1..", state=by_version.state).ids == []
    assert replay(lake, "--schema", "v1", state=by_version.state).ids == [1, 2]


def test_columns_leave_the_key_in_rows_and_schema(lake: Any) -> None:
    commit(lake, {"id": 1, "a": "x", "b": {"c": 1.10}}, fields={"a": TEXT, "b": {"type": "object", "required": ["c"]}})
    out = replay(lake, "--columns", "b")
    assert list(out.messages[0]["schema"]["properties"]) == ["b", "id"]
    assert b'"record":{"id":1,"b":{"c":1.1}}' in out.lines[1]
    assert "has no field 'c'. Fields: a, b, id" in replay(lake, "--columns", "b,c", code=2).said


def tap(lake: Any, tap_id: str, stream: str, *ids: int) -> None:
    with LakeWriter(lake.store, tap_id, emit_state=lambda _: None, clock=lake.clock, settings=RollSettings()) as writer:
        writer.schema(lake.schema(stream))
        writer.records(lake.page(stream, *ids))


def test_streams_of_one_name_do_not_go_out_together(lake: Any) -> None:
    tap(lake, "tap-a", "users", 1)
    tap(lake, "tap-b", "users", 2)
    tap(lake, "tap-b", "orders", 3)
    said = replay(lake, code=2).said
    assert "'tap-a' and 'tap-b' both have a stream 'users'" in said and "--tap tap-a" in said
    assert replay(lake, "--tap", "tap-b").ids == [2, 3]  # as they stand in its catalog
    assert set(replay(lake, "--tap", "tap-b").state["bookmarks"]) == {"users", "orders"}
    assert replay(lake, "--stream", "orders").ids == [3]
    catalog = discover(lake)[0]
    assert {one["tap_stream_id"]: one["stream"] for one in catalog["streams"]} == {
        "tap-a-users": "users",
        "tap-b-users": "users",
        "orders": "orders",
    }
    assert "both have a stream 'users'" in replay(lake, catalog=catalog, code=2).said
    next(one for one in catalog["streams"] if one["tap_stream_id"] == "tap-b-users")["stream_alias"] = 'more "users"'
    out = replay(lake, catalog=catalog)
    assert {one["stream"] for one in out.messages if "stream" in one} == {"users", 'more "users"', "orders"}
    renamed = [one for one in out.messages if one.get("stream") == 'more "users"']
    assert [one["type"] for one in renamed] == ["SCHEMA", "RECORD"]
    assert (renamed[1]["record"], out.ids) == ({"id": 2}, [1, 2, 3])
    assert set(out.state["bookmarks"]) == {"tap-a-users", "tap-b-users", "orders"}


def test_two_streams_never_share_an_id(lake: Any) -> None:
    tap(lake, "a", "users", 1)
    tap(lake, "b", "users", 2)
    tap(lake, "c", "a-users", 3)
    assert "would both have the id 'a-users'" in discover(lake, code=2)[1]
    assert replay(lake, "--tap", "a", "--tap", "c").ids == [1, 3]


def test_a_catalog_selects_streams_and_fields_of_all_versions(lake: Any) -> None:
    nested = {"type": "object", "properties": {"x": TEXT, "y": TEXT}}
    commit(lake, {"id": 1, "a": "x", "o": {"x": "1", "y": "2"}}, fields={"a": TEXT, "o": nested})
    commit(lake, {"id": 2, "a": "x", "z": 1, "o": {"x": "1"}}, fields={"a": TEXT, "o": nested, "z": {}})
    commit(lake, 9, stream="orders")
    catalog = discover(lake)[0]
    assert [one["tap_stream_id"] for one in catalog["streams"]] == ["users", "orders"]  # as they came
    users = catalog["streams"][0]
    assert list(users["schema"]["properties"]) == ["a", "id", "o", "z"]
    entries = {tuple(one["breadcrumb"]): one["metadata"] for one in users["metadata"]}
    assert entries["properties", "id"]["inclusion"] == "automatic"
    assert entries[()]["table-key-properties"] == ["id"]
    assert replay(lake, catalog=catalog).lines[:-1] == replay(lake).lines[:-1]
    for crumb in (("properties", "id"), ("properties", "a"), ("properties", "o", "properties", "y")):
        entries[crumb]["selected"] = False
    catalog["streams"][1]["metadata"][0]["metadata"]["selected"] = False
    out = replay(lake, catalog=catalog)
    assert out.kinds == "S R1 S R2"
    assert [one["record"] for one in out.messages if one["type"] == "RECORD"] == [
        {"id": 1, "o": {"x": "1"}},
        {"id": 2, "z": 1, "o": {"x": "1"}},
    ]
    schemas = [one["schema"]["properties"] for one in out.messages if one["type"] == "SCHEMA"]
    assert [list(one) for one in schemas] == [["id", "o"], ["id", "o", "z"]]
    assert list(schemas[0]["o"]["properties"]) == ["x"]
    assert list(out.state["bookmarks"]) == ["users"]


def test_the_key_stays_whatever_a_catalog_says(lake: Any) -> None:
    commit(lake, {"id": 1, "a": "x"}, fields={"a": TEXT})
    metadata = [
        {"breadcrumb": [], "metadata": {"selected": True}},
        *({"breadcrumb": ["properties", name], "metadata": {"selected": False}} for name in ("id", "a")),
    ]
    out = replay(lake, catalog={"streams": [{"tap_stream_id": "users", "stream": "users", "metadata": metadata}]})
    assert out.messages[1]["record"] == {"id": 1}
    assert out.messages[0]["schema"]["properties"] == {"id": {"type": "integer"}}


def test_a_catalog_of_another_lake(lake: Any) -> None:
    commit(lake, 1)
    catalog = {"streams": [{"tap_stream_id": "user", "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}]}]}
    said = replay(lake, catalog=catalog, code=2).said
    assert "selects stream 'user', " in said and "Did you mean 'users'" in said
    catalog["streams"][0]["metadata"] = []
    assert replay(lake, catalog=catalog).messages == [{"type": "STATE", "value": {"bookmarks": {}}}]


def test_what_stands_in_the_catalogue_is_kept(lake: Any) -> None:
    commit(lake, 1, fields={"big": {"type": "integer", "maximum": 9223372036854775807, "multipleOf": 1.10}})
    path = lake.path / "raw/tap-x/catalogue.json"
    document = json.loads(path.read_text())
    document["streams"][0]["database_name"] = "crm"
    document["streams"][0]["metadata"] += [
        {"breadcrumb": ["properties", "big"], "metadata": {"selected": False, "sql-datatype": "bigint"}},
        {"breadcrumb": ["properties", "gone"], "metadata": {"selected": False}},
    ]
    path.write_text(json.dumps(document))
    (entry,) = discover(lake)[0]["streams"]
    assert entry["database_name"] == "crm"
    assert {
        "breadcrumb": ["properties", "big"],
        "metadata": {"selected": False, "sql-datatype": "bigint", "inclusion": "available"},
    } in entry["metadata"]
    assert not [one for one in entry["metadata"] if "gone" in one["breadcrumb"]]
    assert b'"maximum":9223372036854775807,"multipleOf":1.1' in encode(entry)
    path.write_text("broken")
    catalog, said = discover(lake)
    (entry,) = catalog["streams"]
    assert "database_name" not in entry
    assert entry["metadata"][0]["metadata"]["selected"] is True
    assert "it can be spared" in said


def test_what_is_not_there_is_named_with_what_is(lake: Any) -> None:
    (lake.path / "raw").mkdir(parents=True)
    assert "no stream in this lake. Fill it" in replay(lake, code=2).said
    commit(lake, 1)
    (lake.path / "raw/tap-x/somebody's").mkdir()
    assert replay(lake).ids == [1]
    for asked, fact in [
        (("--tap", "tap-y"), "no tap 'tap-y' in this lake. Did you mean 'tap-x'? It has: tap-x"),
        (("--stream", "user"), "no stream 'user' in this lake. Did you mean 'users'? It has: "),
        (("--schema", "v2"), "no stream has the schema version 'v2'. There are: users: v1 ("),
        (("--stream", "somebody's"), "no stream"),
    ]:
        assert fact in replay(lake, *asked, code=2).said


def test_a_stream_without_the_schema_version_is_left_out(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 2, fields={"a": TEXT})
    commit(lake, 3, stream="orders")
    assert replay(lake, "--schema", "v2..").ids == [2]


def test_a_stream_without_rows_has_its_schema(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
    out = replay(lake)
    assert out.kinds == "S"
    assert out.state["bookmarks"]["users"]["sequence"] == 1


def test_files_of_other_writers_go_out_as_singer_wants_them(lake: Any) -> None:
    folder = lake.path / "raw/tap-o/things/any/year=2024"
    folder.mkdir(parents=True)
    head = '{"type": "schema", "stream": "things", "schema": {"properties": {"id": {}}}}'
    row = '{"type": "Record", "stream": "things", "record": {"id": 1.10}, "extra": [1]}'
    (folder / "things-20240101T000000Z-20240101T000000Z.singer").write_text(f"{head}\n{row}\n")
    out = replay(lake)
    assert out.lines[0] == b'{"type":"SCHEMA","stream":"things","schema":{"properties":{"id":{}}},"key_properties":[]}'
    assert out.lines[1] == b'{"type":"RECORD","stream":"things","record":{"id": 1.10},"extra":[1]}'


def test_names_that_hide_in_folders(lake: Any) -> None:
    for name in ("../..", "a/b", "é" * 200, "con"):
        commit(lake, 1, stream=name)
    out = replay(lake)
    assert sorted(out.state["bookmarks"]) == sorted(["../..", "a/b", "é" * 200, "con"])
    assert replay(lake, "--stream", "é" * 200).ids == [1]
    assert open_store(str(lake.path)).folders("raw") == ["tap-x"]


def test_a_lake_on_an_object_store(lake: Any, s3_server: Any) -> None:
    from s3_lakes import s3_lake

    lake.store = s3_lake(s3_server)
    there = ("--lake-options", json.dumps(s3_server.options))
    commit(lake, *range(2_000))
    out = replay(lake, *there)
    assert out.ids == list(range(2_000))
    commit(lake, -1)
    assert replay(lake, *there, state=out.state).ids == [-1]
    assert replay(lake, *there, *SINCE, "--columns", "id").ids == [*range(2_000), -1]
    (path,) = [file.path for file in lake.load().files if not file.path.endswith("-2.singer.gz")]
    lake.store.remove(path)
    assert "missing although the lake lists it" in replay(lake, *there, code=1).said
