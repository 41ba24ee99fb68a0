"""A lake as a Singer tap: what comes out, in which order, and where the next run goes on."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty_store import FaultyStore

from burler.errors import CatalogError, LakeError, OutputClosed, UsageError
from burler.lake import LakeWriter, RollSettings, open_store
from burler.singer.catalog import catalog_from_wire
from burler.singer.messages import ActivateVersion, encode
from support.internals import reading_choice, replay_catalog, replay_plan, replaying

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
TEXT = {"type": "string"}


class Out:
    """What a run wrote."""

    def __init__(self, lines: bytes, errors: dict[str, Any]) -> None:
        assert not lines or lines.endswith(b"\n")
        self.lines = lines.split(b"\n")[:-1]
        self.messages = [json.loads(line) for line in self.lines]
        self.errors = errors

    @property
    def state(self) -> Any:
        """The last STATE, which is the last line."""
        assert self.messages[-1]["type"] == "STATE"
        return self.messages[-1]["value"]

    @property
    def ids(self) -> list[int]:
        return [one["record"]["id"] for one in self.messages if one["type"] == "RECORD"]

    @property
    def kinds(self) -> str:
        """S(CHEMA), R(ECORD), A(CTIVATE_VERSION), with the id of rows; STATEs left out."""
        return " ".join(
            f"R{one['record']['id']}" if one["type"] == "RECORD" else one["type"][0]
            for one in self.messages
            if one["type"] != "STATE"
        )


def replay(
    lake: Any,
    asked: replay_plan.Asked | None = None,
    *,
    state: Any = None,
    catalog: Any = None,
    seconds: Callable[[], float] = lambda: 0.0,
    stop_after: int | None = None,
    write: Callable[[bytes], object] | None = None,
) -> Out:
    """One run. The clock stands still, so that the only STATE is the last one."""
    found = bytearray()
    pages = 0

    def keep(lines: bytes) -> None:
        nonlocal pages
        found.extend(lines)
        pages += lines.startswith(b'{"type":"RECORD"')
        if write is not None:
            write(lines)

    given = None if catalog is None else catalog_from_wire(catalog)
    run = replaying.Replay(
        lake.store,
        replay_plan.choose(lake.store, asked or replay_plan.Asked(), given),
        write=keep,
        monotonic=seconds,
        state=state,
        should_stop=lambda: stop_after is not None and pages >= stop_after,
    )
    errors = run.run().errors
    return Out(bytes(found), errors)


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


@pytest.mark.parametrize(
    "asked",
    [
        replay_plan.Asked(schema="v1"),
        replay_plan.Asked(times=reading_choice.window(NOON, None)),
        replay_plan.Asked(times=reading_choice.window(None, NOON + HOUR)),
    ],
    ids=["schema", "since", "until"],
)
def test_a_part_of_a_table_activates_nothing(lake: Any, asked: replay_plan.Asked) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, version=5))
        writer.activate_version(ActivateVersion("users", 5))
    assert replay(lake, asked).kinds == "S R1"


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


def test_a_state_comes_after_a_whole_file_and_at_most_once_a_second(lake: Any) -> None:
    for n in range(12):
        commit(lake, n)
    now, written = 0.0, []

    def seconds() -> float:
        nonlocal now
        now += 0.35
        return now

    def write(lines: bytes) -> None:
        if b'"STATE"' in lines:
            written.append(now)

    out = replay(lake, seconds=seconds, write=write)
    states = [at for at, one in enumerate(out.messages) if one["type"] == "STATE"]
    assert len(states) == len(written) >= 3
    for at in states:
        rows = sum(one["type"] == "RECORD" for one in out.messages[:at])
        assert out.messages[at]["value"]["bookmarks"]["users"]["sequence"] == rows
    assert min(later - earlier for earlier, later in zip([0.0, *written], written[:-1], strict=False)) >= 1


def test_stopped_in_a_file_it_goes_on_before_it(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, *range(10, 60_010))  # several blocks
    commit(lake, 2)
    out = replay(lake, stop_after=2)
    assert out.state["bookmarks"]["users"]["sequence"] == 1
    assert 10 in out.ids
    assert 60_009 not in out.ids
    rest = replay(lake, state=out.state)
    assert rest.ids == [*range(10, 60_010), 2]


def test_a_broken_file_ends_its_stream_and_no_other(lake: Any) -> None:
    for n in range(3):
        commit(lake, n)
    commit(lake, 7, stream="orders")
    whole = replay(lake).state
    (path,) = [path for path in lake.files() if path.name.endswith("-2.singer.gz")]
    path.write_bytes(path.read_bytes()[:-9])
    out = replay(lake)
    assert sorted(out.ids) in ([0, 7], [0, 1, 7])
    assert out.state["bookmarks"]["users"]["sequence"] == 1
    assert out.state["bookmarks"]["orders"] == whole["bookmarks"]["orders"]
    assert str(path) in str(out.errors["users"])
    assert "Restore it" in str(out.errors["users"])
    path.unlink()
    out = replay(lake, state=out.state)
    assert "missing although the lake lists it" in str(out.errors["users"])
    assert out.state["bookmarks"]["users"]["sequence"] == 1


def test_a_file_that_we_may_not_read_ends_its_stream_and_no_other(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 7, stream="orders")
    lake.store = FaultyStore(lake.store)
    lake.store.fail("open", UsageError("Permission denied"), path="*/users/*.gz")
    out = replay(lake)
    assert (out.ids, list(out.errors), list(out.state["bookmarks"])) == ([7], ["users"], ["orders"])


def test_a_manifest_that_we_may_not_read_is_told_and_no_empty_stream(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 7, stream="orders")
    lake.store = FaultyStore(lake.store)
    for operation, path in (("read", "*/users/manifest.json"), ("walk", "*/users")):
        lake.store.fail(operation, UsageError("Permission denied"), path=path)
        if operation == "walk":
            lake.manifest_path().unlink()
        with pytest.raises(UsageError, match="Permission denied"):
            replay(lake)
    assert lake.store.unused() == []


def test_a_stream_whose_manifest_is_broken_is_told_and_the_others_go_on(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 7, stream="orders")
    lake.manifest_path().write_text('{"x":')
    told: dict[str, Any] = {}
    for asked in (replay_plan.Asked(), replay_plan.Asked(columns=("name",)), replay_plan.Asked(schema="v1")):
        (one,) = replay_plan.choose(lake.store, asked, on_broken=told.__setitem__)
        assert (one.id, list(told), "manifest.json is broken" in str(told.pop("users"))) == ("orders", ["users"], True)
    assert (
        replay_plan.choose(lake.store, replay_plan.Asked(schema="v2"), on_broken=told.__setitem__) == []
    )  # it may be the other stream's
    catalog = replay_catalog.discover(lake.store, replay_plan.Asked(), on_broken=told.__setitem__)
    assert (list(catalog.entries), list(told)) == (["orders"], ["users"])
    with pytest.raises(UsageError, match="no stream 'nope'"):
        replay_plan.choose(lake.store, replay_plan.Asked(streams=("nope",)), on_broken=told.__setitem__)
    with pytest.raises(LakeError, match=r"manifest\.json is broken"):
        replay_plan.choose(lake.store, replay_plan.Asked())


def test_a_stream_without_a_schema_that_can_be_read_is_told_and_the_catalog_has_the_others(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 7, stream="orders")
    lake.manifest_path().unlink()
    (file,) = lake.files("**/users-*")
    file.write_bytes(b"")
    told: dict[str, Any] = {}
    assert list(replay_catalog.discover(lake.store, replay_plan.Asked(), on_broken=told.__setitem__).entries) == [
        "orders"
    ]
    assert "truncated or corrupt" in str(told["users"])


def test_a_folder_without_files_is_no_stream(lake: Any) -> None:
    commit(lake, 1)
    (lake.path / "raw/tap-x/somebody's own").mkdir()
    assert list(replay(lake).state["bookmarks"]) == ["users"]


def test_an_error_of_the_reader_ends_the_run_without_a_state(lake: Any) -> None:
    commit(lake, 1)

    def write(lines: bytes) -> None:
        if b"RECORD" in lines:
            raise OutputClosed("gone")
        assert b"STATE" not in lines

    with pytest.raises(OutputClosed):
        replay(lake, write=write)


def test_a_manifest_made_anew_is_read_from_the_start(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    commit(lake, 1)
    state = replay(lake).state
    lake.manifest_path().unlink()
    with caplog.at_level(logging.WARNING, logger="burler.lake"):
        commit(lake, 2)
        caplog.clear()
        out = replay(lake, state=state)
    assert out.ids == [1, 2]
    assert ["made anew since the state was written" in one.getMessage() for one in caplog.records] == [True]
    assert replay(lake, state=out.state).ids == []


def test_without_a_manifest_each_run_begins_at_the_start(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    commit(lake, 1)
    state = replay(lake).state
    lake.manifest_path().unlink()
    with caplog.at_level(logging.WARNING, logger="burler.lake"):
        out = replay(lake)
    assert (out.kinds, out.state) == ("S R1", {"bookmarks": {}})
    assert "Make one: burler lake rebuild" in caplog.text
    out = replay(lake, state=state)
    assert (out.kinds, out.state) == ("S R1", {"bookmarks": {}})


def test_a_state_of_a_narrower_run_covers_only_that(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 2, at=NOON + HOUR)
    narrow = replay_plan.Asked(times=reading_choice.window(NOON + HOUR, None))
    out = replay(lake, narrow)
    assert out.ids == [2]
    assert replay(lake, narrow, state=out.state).ids == []
    assert replay(lake, state=out.state).ids == [1, 2]
    by_version = replay(lake, replay_plan.Asked(schema="v1.."))
    assert replay(lake, replay_plan.Asked(schema="v1.."), state=by_version.state).ids == []
    assert replay(lake, replay_plan.Asked(schema="v1"), state=by_version.state).ids == [1, 2]


def test_columns_leave_the_key_in_rows_and_schema(lake: Any) -> None:
    commit(lake, {"id": 1, "a": "x", "b": {"c": 1.10}}, fields={"a": TEXT, "b": {"type": "object", "required": ["c"]}})
    out = replay(lake, replay_plan.Asked(columns=("b",)))
    assert list(out.messages[0]["schema"]["properties"]) == ["b", "id"]
    assert b'"record":{"id":1,"b":{"c":1.1}}' in out.lines[1]
    with pytest.raises(UsageError, match=r"has the field 'c'. Fields: a, b, id"):
        replay(lake, replay_plan.Asked(columns=("b", "c")))


def tap(lake: Any, tap_id: str, stream: str, *ids: int) -> None:
    with LakeWriter(lake.store, tap_id, emit_state=lambda _: None, clock=lake.clock, settings=RollSettings()) as writer:
        writer.schema(lake.schema(stream))
        writer.records(lake.page(stream, *ids))


def test_streams_of_one_name_do_not_go_out_together(lake: Any) -> None:
    tap(lake, "tap-a", "users", 1)
    tap(lake, "tap-b", "users", 2)
    tap(lake, "tap-b", "orders", 3)
    with pytest.raises(CatalogError, match=r"'tap-a' and 'tap-b' both have a stream 'users'.*--tap tap-a"):
        replay(lake)
    assert replay(lake, replay_plan.Asked(taps=("tap-b",))).ids == [2, 3]  # as they stand in its catalog
    assert set(replay(lake, replay_plan.Asked(taps=("tap-b",))).state["bookmarks"]) == {"users", "orders"}
    assert replay(lake, replay_plan.Asked(streams=("orders",))).ids == [3]
    catalog = replay_catalog.discover(lake.store, replay_plan.Asked()).to_wire()
    assert {one["tap_stream_id"]: one["stream"] for one in catalog["streams"]} == {
        "tap-a-users": "users",
        "tap-b-users": "users",
        "orders": "orders",
    }
    with pytest.raises(CatalogError, match="both have a stream 'users'"):
        replay(lake, catalog=catalog)
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
    with pytest.raises(UsageError, match="would both have the id 'a-users'"):
        replay_catalog.discover(lake.store, replay_plan.Asked())
    assert replay(lake, replay_plan.Asked(taps=("a", "c"))).ids == [1, 3]


def test_a_catalog_selects_streams_and_fields_of_all_versions(lake: Any) -> None:
    nested = {"type": "object", "properties": {"x": TEXT, "y": TEXT}}
    commit(lake, {"id": 1, "a": "x", "o": {"x": "1", "y": "2"}}, fields={"a": TEXT, "o": nested})
    commit(lake, {"id": 2, "a": "x", "z": 1, "o": {"x": "1"}}, fields={"a": TEXT, "o": nested, "z": {}})
    commit(lake, 9, stream="orders")
    catalog = replay_catalog.discover(lake.store, replay_plan.Asked()).to_wire()
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
    with pytest.raises(CatalogError, match=r"selects stream 'user', .*Did you mean 'users'"):
        replay(lake, catalog=catalog)
    catalog["streams"][0]["metadata"] = []
    assert replay(lake, catalog=catalog).messages == [{"type": "STATE", "value": {"bookmarks": {}}}]


def test_what_stands_in_the_catalogue_is_kept(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    commit(lake, 1, fields={"big": {"type": "integer", "maximum": 9223372036854775807, "multipleOf": 1.10}})
    path = lake.path / "raw/tap-x/catalogue.json"
    document = json.loads(path.read_text())
    document["streams"][0]["database_name"] = "crm"
    document["streams"][0]["metadata"] += [
        {"breadcrumb": ["properties", "big"], "metadata": {"selected": False, "sql-datatype": "bigint"}},
        {"breadcrumb": ["properties", "gone"], "metadata": {"selected": False}},
    ]
    path.write_text(json.dumps(document))
    (entry,) = replay_catalog.discover(lake.store, replay_plan.Asked()).to_wire()["streams"]
    assert entry["database_name"] == "crm"
    assert {
        "breadcrumb": ["properties", "big"],
        "metadata": {"selected": False, "sql-datatype": "bigint", "inclusion": "available"},
    } in entry["metadata"]
    assert not [one for one in entry["metadata"] if "gone" in one["breadcrumb"]]
    assert b'"maximum":9223372036854775807,"multipleOf":1.1' in encode(entry)
    path.write_text("broken")
    with caplog.at_level(logging.WARNING, logger="burler.lake"):
        (entry,) = replay_catalog.discover(lake.store, replay_plan.Asked()).to_wire()["streams"]
    assert "database_name" not in entry
    assert entry["metadata"][0]["metadata"]["selected"] is True
    assert "it can be spared" in caplog.text


def test_what_is_not_there_is_named_with_what_is(lake: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no stream in this lake. Fill it"):
        replay(lake)
    commit(lake, 1)
    (lake.path / "raw/tap-x/somebody's").mkdir()
    assert replay(lake).ids == [1]
    for asked, fact in [
        (replay_plan.Asked(taps=("tap-y",)), "no tap 'tap-y' in this lake. It has: tap-x"),
        (replay_plan.Asked(streams=("user",)), "no stream 'user' in this lake. It has: .*users"),
        (replay_plan.Asked(schema="v2"), r"no stream has the schema version 'v2'. There are: users: v1 \("),
        (replay_plan.Asked(streams=("somebody's",)), "no stream"),
    ]:
        with pytest.raises(UsageError, match=fact):
            replay(lake, asked)


def test_a_stream_without_the_schema_version_is_left_out(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 2, fields={"a": TEXT})
    commit(lake, 3, stream="orders")
    assert replay(lake, replay_plan.Asked(schema="v2..")).ids == [2]


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


def test_a_broken_manifest_is_named_before_anything_goes_out(lake: Any) -> None:
    commit(lake, 1)
    commit(lake, 1, stream="orders")
    lake.manifest_path().write_text("{")
    with pytest.raises(LakeError, match=r"manifest.json is broken"):
        replay(lake)


def test_names_that_hide_in_folders(lake: Any) -> None:
    for name in ("../..", "a/b", "é" * 200, "con"):
        commit(lake, 1, stream=name)
    out = replay(lake)
    assert sorted(out.state["bookmarks"]) == sorted(["../..", "a/b", "é" * 200, "con"])
    assert replay(lake, replay_plan.Asked(streams=("é" * 200,))).ids == [1]
    assert open_store(str(lake.path)).folders("raw") == ["tap-x"]


def test_a_lake_on_an_object_store(lake: Any, s3_server: Any) -> None:
    from s3_lakes import s3_lake

    lake.store = s3_lake(s3_server)
    commit(lake, *range(20_000))
    out = replay(lake)
    assert out.ids == list(range(20_000))
    commit(lake, -1)
    assert replay(lake, state=out.state).ids == [-1]
    assert replay(lake, replay_plan.Asked(columns=("id",), times=reading_choice.window(NOON, None))).ids == [
        *range(20_000),
        -1,
    ]
    (path,) = [file.path for file in lake.load().files if not file.path.endswith("-2.singer.gz")]
    lake.store.remove(path)
    out = replay(lake, state=None)
    assert "missing although the lake lists it" in str(out.errors["users"])
