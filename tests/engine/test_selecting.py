"""What is wanted: streams emitted by others, --select, catalogs; and the client."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from taps import FIELDS, ids, make

import burler
from burler.errors import BurlerError, CatalogError
from burler.testing import discover, run_tap

# ---- catalogs of others ----------------------------------------------------------------------------------------


def test_a_catalog_of_another_tap_is_an_error():
    catalog = {"streams": [{"tap_stream_id": "contacts", "stream": "contacts", "schema": FIELDS}]}
    with pytest.raises(CatalogError, match=r"lists no stream of this tap, but contacts\. Is it the catalog of another"):
        run_tap(make(a=lambda: ids(1)), catalog=catalog)
    assert run_tap(make(a=lambda: ids(1)), catalog={"streams": []}).states == [{}]


# ---- streams emitted by others ------------------------------------------------------------------


def _pair(calls: list[Any]) -> burler.Tap:
    def rows(stream):
        calls.append((stream.selected(), stream.selected("b")))
        yield {"id": 1}
        yield "b", {"id": 2}
        yield "b", ids(3, 4)

    tap = make(a=rows, c=lambda: ids(9))
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    return tap


@pytest.mark.parametrize(
    ("select", "calls", "records"),
    [
        (None, [(True, True)], {"a": [1], "b": [2, 3, 4], "c": [9]}),
        ("a", [(True, False)], {"a": [1], "b": [], "c": []}),
        ("b", [(False, True)], {"a": [], "b": [2, 3, 4], "c": []}),
        ("c", [], {"a": [], "b": [], "c": [9]}),
        ("a,b", [(True, True)], {"a": [1], "b": [2, 3, 4], "c": []}),
        ("!a", [(False, True)], {"a": [], "b": [2, 3, 4], "c": [9]}),
    ],
)
def test_only_what_is_selected_comes_out(select: str | None, calls: list[Any], records: dict[str, list[int]]):
    seen: list[Any] = []
    run = run_tap(_pair(seen), select=select)
    assert seen == calls
    assert {name: [row["id"] for row in run.records(name)] for name in "abc"} == records
    assert {m["stream"] for m in run.messages if m["type"] == "SCHEMA"} == {n for n, rows in records.items() if rows}


def test_nothing_selected(caplog: pytest.LogCaptureFixture):
    run = run_tap(_pair([]), catalog={"streams": []})
    assert run.types == ["STATE"]
    assert "no stream is selected" in caplog.text


def test_select_of_fields_prunes_schema_and_rows():
    run = run_tap(make(a=lambda: [{"id": 1, "at": "x"}]), select="a.id")
    assert run.messages[0]["schema"]["properties"] == {"id": {"type": "integer"}}
    assert run.records("a") == ids(1)
    run = run_tap(make(a=lambda: [{"id": 1, "at": "x"}]), select="!a.at")
    assert run.records("a") == ids(1)


def test_select_of_what_is_not_there():
    with pytest.raises(CatalogError, match="nosuch"):
        run_tap(make(a=lambda: []), select="nosuch")


# ---- catalogs -----------------------------------------------------------------------------------


def _catalog(tap: burler.Tap, **root: Any) -> dict[str, Any]:
    wire = discover(tap, {}).to_wire()
    for stream in wire["streams"]:
        stream["metadata"][0]["metadata"].update(root)
    return wire


def test_a_catalog_selects():
    tap = make(a=lambda: ids(1))
    assert run_tap(tap, catalog=_catalog(tap)).types == ["STATE"]
    assert run_tap(tap, catalog=_catalog(tap, selected=True)).records("a") == ids(1)


def test_a_selected_stream_that_the_tap_does_not_have(caplog: pytest.LogCaptureFixture):
    tap = make(contacts=lambda: ids(1))
    wire = _catalog(tap, selected=True)
    wire["streams"].append({**wire["streams"][0], "tap_stream_id": "contcts", "stream": "contcts"})
    with pytest.raises(CatalogError, match="Did you mean 'contacts'") as error:
        run_tap(tap, catalog=wire)
    assert error.value.exit_code == 2
    wire["streams"][1]["metadata"] = []
    assert run_tap(tap, catalog=wire).records("contacts") == ids(1)
    assert "contcts" in caplog.text


def test_a_method_that_the_stream_forces_wins_with_a_warning(caplog: pytest.LogCaptureFixture):
    tap = make(a=lambda: ids(1))
    wanted = {"selected": True, "replication-method": "FULL_TABLE", "forced-replication-method": "FULL_TABLE"}
    run = run_tap(tap, catalog=_catalog(tap, **wanted))
    assert run.states[-1]["bookmarks"] == {"a": {"id": 1}}
    assert "asks for FULL_TABLE, but the stream is always INCREMENTAL" in caplog.text


def test_a_replication_key_that_the_stream_can_not_have():
    tap = make(a=lambda: ids(1))
    with pytest.raises(CatalogError, match=r"replication key 'at'.*'id'"):
        run_tap(tap, catalog=_catalog(tap, **{"selected": True, "replication-key": "at"}))
    assert run_tap(tap, catalog=_catalog(tap, **{"selected": True, "replication-key": "id"})).records("a") == ids(1)


def test_a_catalog_without_the_key_property():
    tap = make(a=lambda: ids(1))
    wire = _catalog(tap, selected=True)
    del wire["streams"][0]["schema"]["properties"]["id"]
    with pytest.raises(CatalogError, match="catalog's stream 'a': key property 'id' is not in the schema"):
        run_tap(tap, catalog=wire)


def test_catalog_alias_names_the_messages_and_the_id_names_the_state():
    tap = make(a=lambda: ids(1))
    wire = _catalog(tap, selected=True)
    wire["streams"][0]["stream"] = "alias"
    run = run_tap(tap, catalog=wire)
    assert run.records("alias") == ids(1)
    assert run.states[-1] == {"bookmarks": {"a": {"id": 1}}}


# ---- the client ---------------------------------------------------------------------------------


class Client:
    made = 0
    closed = 0

    def __init__(self) -> None:
        Client.made += 1

    def close(self) -> None:
        Client.closed += 1


def test_the_client_is_made_once_and_closed():
    Client.made = Client.closed = 0
    tap = make(a=lambda client: ids(1), b=lambda client: ids(1))
    tap.client(lambda config: Client())
    run_tap(tap)
    assert (Client.made, Client.closed) == (1, 1)
    no_need = make(a=lambda: ids(1))
    no_need.client(lambda config: Client())
    run_tap(no_need)
    assert (Client.made, Client.closed) == (1, 1)


def test_a_client_that_fails():
    tap = make(a=lambda client: ids(1))

    @tap.client
    def client(config):
        raise ConnectionError("no route")

    with pytest.raises(
        BurlerError, match=r"client function \(.*test_selecting.py:\d+\) failed: ConnectionError: no route"
    ):
        run_tap(tap)


def test_a_client_that_fails_to_close_spoils_nothing(caplog: pytest.LogCaptureFixture):
    class Bad:
        def close(self) -> None:
            raise OSError("gone")

    tap = make(a=lambda client: ids(1))
    tap.client(lambda: Bad())
    assert run_tap(tap).result.exit_code == 0
    assert "OSError: gone" in caplog.text


def test_log_lines_of_a_run(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "burler")
    run_tap(make(a=lambda: [{"id": 1, "x": 1}, {"id": 2}]), state={"bookmarks": {"a": {"id": 1}}})
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "tap-t: start (sync), streams: a"
    assert lines[1] == "stream 'a': start (sync, INCREMENTAL, bookmark 1)"
    assert any(line.startswith("stream 'a': succeeded, 2 rows of 'a', 0.") and "bookmark 2" in line for line in lines)
    assert lines[-1].startswith("tap-t: succeeded, ")
    assert any("does not know were dropped: x (1 of 2 rows)" in line for line in lines)


def test_fields_that_are_not_selected_stay_out_of_open_objects_too(caplog: pytest.LogCaptureFixture):
    """An open schema lets unknown fields through; known fields that are not wanted are no unknown ones."""
    tap = burler.tap("tap-open")

    @tap.sync("a", key_properties="id")
    def rows():
        yield {"id": 1, "secret": "s", "more": 2, "o": {"keep": 1, "drop": 2, "else": 3}}

    inner = {"type": "object", "properties": {"keep": {"type": "integer"}, "drop": {"type": "integer"}}}
    properties = {"id": {"type": "integer"}, "secret": {"type": "string"}, "o": {**inner, "additionalProperties": True}}
    tap.schema("a", {"type": "object", "additionalProperties": True, "properties": properties})
    run = run_tap(tap, select="a,!a.secret,!a.o.drop")
    assert run.records("a") == [{"id": 1, "o": {"keep": 1, "else": 3}, "more": 2}]
    closed = burler.tap("tap-closed")
    closed.sync("b", key_properties="id")(lambda: iter([{"id": 1, "secret": "s"}]))
    closed.schema("b", {"type": "object", "properties": {"id": {"type": "integer"}, "secret": {"type": "string"}}})
    assert run_tap(closed, select="b,!b.secret").records("b") == [{"id": 1}]
    assert "dropped" not in caplog.text


# ---- keys and replication, as a catalog asks for them ---------------------------------------------


def _entry(root: dict[str, Any], *fields: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    metadata = [{"breadcrumb": [], "metadata": {"selected": True, **root}}]
    metadata += [{"breadcrumb": ["properties", name], "metadata": said} for name, said in fields]
    return {"streams": [{"tap_stream_id": "a", "metadata": metadata, **more}]}


def _free(**root: Any) -> burler.Tap:
    """A stream that leaves the choice of method and key to the user."""
    tap = burler.tap("tap-f")
    tap.sync("a", key_properties="id")(lambda: [{"id": 2, "at": "b", "on": "x"}, {"id": 1, "at": "a", "on": "y"}])
    text = {"type": "string"}
    tap.schema("a", {"properties": {"id": {"type": "integer"}, "at": text, "on": text, "free": text}})
    tap.metadata("a", {"": {"valid-replication-keys": ["at", "on"], **root}})
    return tap


def test_keys_come_whatever_the_catalog_says():
    tap = make(a=lambda: [{"id": 1, "at": "x"}])
    for said in ({"selected": False}, {"inclusion": "unsupported"}, {"inclusion": "available", "selected": False}):
        run = run_tap(tap, catalog=_entry({}, ("id", said), ("at", said)))
        assert run.records("a") == ids(1), said


def test_a_keyless_stream_takes_its_key_from_the_catalog():
    def tap() -> burler.Tap:
        return make(
            a=(lambda: [{"id": 1, "at": "x"}], {"key_properties": (), "replication_key": None, "order": "none"})
        )

    for root, more in (
        ({"table-key-properties": ["at"]}, {}),
        ({"is-view": True, "view-key-properties": ["at"], "table-key-properties": ["id"]}, {}),
        ({"view-key-properties": ["at"], "table-key-properties": ["id"]}, {"is_view": True}),
        ({}, {"key_properties": ["at"]}),
    ):
        run = run_tap(tap(), catalog=_entry(root, ("at", {"selected": False}), **more))
        assert run.messages[0]["key_properties"] == ["at"], root
        assert run.records("a") == [{"id": 1, "at": "x"}]
    run = run_tap(tap(), catalog=_entry({"view-key-properties": ["at"]}))
    assert run.messages[0]["key_properties"] == []
    with pytest.raises(CatalogError, match=r"key property 'nope' is not in the schema\. Its fields: id, at"):
        run_tap(tap(), catalog=_entry({"table-key-properties": ["nope"]}))


def test_a_stream_with_a_key_keeps_it(caplog: pytest.LogCaptureFixture):
    run = run_tap(make(a=lambda: [{"id": 1, "at": "x"}]), catalog=_entry({"table-key-properties": ["at"]}))
    assert run.messages[0]["key_properties"] == ["id"]
    assert "stream 'a': the catalog gives it the key at, but its key is id" in caplog.text


def test_the_user_chooses_among_the_keys_and_rows_need_no_order():
    root = {"replication-method": "INCREMENTAL", "replication-key": "at"}
    run = run_tap(_free(), catalog=_entry(root))
    assert run.messages[0]["bookmark_properties"] == ["at"]
    assert run.states[-1] == {"bookmarks": {"a": {"at": "b"}}}
    run = run_tap(_free(), catalog=_entry({}, replication_method="INCREMENTAL", replication_key="on"))
    assert run.states[-1] == {"bookmarks": {"a": {"on": "y"}}}
    assert run_tap(_free()).messages[0].get("bookmark_properties") is None  # a full table, as it is declared


def test_the_function_sees_what_was_chosen():
    tap, seen = _free(), []
    tap.sync("b", key_properties="id")(lambda stream: seen.append(dict(stream.metadata)) or ids(1))
    tap.schema("b", FIELDS)
    tap.metadata("b", {"": {"valid-replication-keys": ["id", "at"]}})
    wire = _entry({}, replication_method="INCREMENTAL", replication_key="id")
    wire["streams"][0]["tap_stream_id"] = "b"
    run_tap(tap, catalog=wire)
    assert (seen[0]["replication-method"], seen[0]["replication-key"]) == ("INCREMENTAL", "id")


def test_another_key_than_the_declared_one_has_no_declared_order():
    tap = make(a=lambda: [{"id": 1, "at": "b"}, {"id": 2, "at": "a"}])
    tap.metadata("a", {"": {"valid-replication-keys": ["id", "at"]}})
    run = run_tap(tap, catalog=_entry({"replication-key": "at"}))
    assert not run.result.errors
    assert run.states[-1] == {"bookmarks": {"a": {"at": "b"}}}
    assert run_tap(tap).states[-1] == {"bookmarks": {"a": {"id": 2}}}


def test_streams_beside_follow_a_choice_that_makes_their_run_incremental():
    """As full tables they would be activated with the rows of an increment, and targets would drop the others."""
    tap = burler.tap("tap-f")
    tap.sync("a", key_properties="id")(lambda: [{"id": 1}, ("b", {"id": 2})])
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS)
    tap.schema("a", FIELDS)
    tap.metadata("a", {"": {"valid-replication-keys": ["id", "at"]}})
    wire = _catalog(tap, selected=True)
    wire["streams"][0]["metadata"][0]["metadata"] |= {"replication-method": "INCREMENTAL", "replication-key": "id"}
    run = run_tap(tap, catalog=wire)
    assert run.types == ["SCHEMA", "SCHEMA", "RECORD", "RECORD", "STATE"]
    assert run.states[-1] == {"bookmarks": {"a": {"id": 1}}}
    # Alone, b makes its function read everything: there it is a full table.
    alone = run_tap(tap, catalog=wire, select="!a")
    assert alone.types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "ACTIVATE_VERSION", "STATE"]


def test_a_method_that_the_user_may_choose():
    tap = make(a=lambda: ids(1))
    tap.metadata("a", {"": {"valid-replication-keys": ["id"]}})
    run = run_tap(tap, catalog=_entry({"replication-method": "FULL_TABLE", "replication-key": "id"}))
    assert "ACTIVATE_VERSION" in run.types
    assert "id" not in run.states[-1]["bookmarks"]["a"]


@pytest.mark.parametrize(
    ("root", "says"),
    [
        ({"replication-method": "INCREMENTAL", "replication-key": "free"}, "'free'. It can have: 'at', 'on'"),
        (
            {"replication-method": "INCREMENTAL"},
            'no replication key. Choose one in its metadata: "replication-key": one of',
        ),
        ({"replication-method": "incremental"}, "'incremental' is unknown. Did you mean 'INCREMENTAL'?"),
        ({"replication-method": "Full-Table"}, "Did you mean 'FULL_TABLE'?"),
        (
            {"replication-method": "SOMEHOW"},
            "'SOMEHOW' is unknown. Known, in capitals: FULL_TABLE, INCREMENTAL, LOG_BASED",
        ),
        ({"replication-method": "LOG_BASED"}, "asks for LOG_BASED replication of stream 'a', which has no log"),
    ],
)
def test_what_a_stream_can_not_do_is_an_error_before_the_first_row(root: dict[str, Any], says: str):
    with pytest.raises(CatalogError) as caught:
        run_tap(_free(), catalog=_entry(root))
    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_what_is_not_selected_is_not_judged():
    wire = _entry({"replication-method": "SOMEHOW", "selected": False})
    assert run_tap(_free(), catalog=wire).types == ["STATE"]


def test_a_bookmark_function_stays_the_bookmark(caplog: pytest.LogCaptureFixture):
    tap = make(a=(lambda: ids(1, 2), {"replication_key": None, "order": "none"}))
    tap.bookmark("a")(lambda record: record["id"] * 10)
    run = run_tap(tap, catalog=_entry({"replication-key": "at"}))
    assert run.states[-1] == {"bookmarks": {"a": {"bookmark": 20}}}
    assert "the catalog gives it the key 'at', but its bookmark comes from a function" in caplog.text


def test_metadata_of_fields_that_are_not_there(caplog: pytest.LogCaptureFixture):
    tap = make(a=lambda: [{"id": 1, "at": "x"}])
    assert run_tap(
        tap, catalog=_entry({}, ("aat", {"selected": False}), ("zzzzz", {"inclusion": "available"}))
    ).records("a")
    assert (
        "the catalog speaks of fields that its schema does not have: "
        '["properties","aat"] (did you mean ["properties","at"]?), ["properties","zzzzz"]' in caplog.text
    )


def test_select_over_a_catalog():
    tap = make(a=lambda: [{"id": 1, "at": "x"}], b=lambda: [{"id": 2, "at": "y"}], c=lambda: ids(3))
    wire = _catalog(tap)
    for stream in wire["streams"][:2]:
        stream["metadata"][0]["metadata"]["selected"] = True
    run = run_tap(tap, catalog=wire, select="!b")
    assert (run.records("a"), run.records("b"), run.records("c")) == ([{"id": 1, "at": "x"}], [], [])
    run = run_tap(tap, catalog=wire, select="c,!a.at")
    assert (run.records("a"), run.records("b"), run.records("c")) == (ids(1), [{"id": 2, "at": "y"}], ids(3))


def test_select_adds_a_stream_that_the_catalog_does_not_list():
    tap = make(a=lambda: [{"id": 1, "at": "x"}], b=lambda: [{"id": 2, "at": "y"}], c=lambda: ids(3))
    wire = _catalog(tap, selected=True)
    wire["streams"] = wire["streams"][:1]
    assert run_tap(tap, catalog=wire, select="b.id").records("b") == ids(2)
    run = run_tap(tap, catalog=wire, select="!a.at")
    assert (run.records("a"), run.records("b"), run.records("c")) == (ids(1), [], [])


def test_the_tap_says_what_is_automatic():
    """Some tools write 'automatic' where they find no metadata, and then deselect the field all the same."""
    tap = make(a=lambda: [{"id": 1, "at": "x"}])
    off = {"inclusion": "automatic", "selected": False}
    assert run_tap(tap, catalog=_entry({}, ("at", off))).records("a") == ids(1)
    assert run_tap(tap, catalog=_entry(off)).types == ["STATE"]
    assert run_tap(tap, catalog=_entry({}, ("at", {"inclusion": "unsupported"}))).records("a") == ids(1)


def test_a_field_selected_inside_one_that_is_not(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "burler")
    tap = burler.tap("tap-n")
    tap.sync("a", key_properties="id")(lambda: [{"id": 1, "o": {"x": 1, "y": 2}}])
    number = {"type": "integer"}
    tap.schema("a", {"properties": {"id": number, "o": {"type": "object", "properties": {"x": number, "y": number}}}})
    wire = _entry({}, ("o", {"selected": False}))
    inner = {"breadcrumb": ["properties", "o", "properties", "x"], "metadata": {"selected": True}}
    wire["streams"][0]["metadata"].append(inner)
    assert run_tap(tap, catalog=wire).records("a") == ids(1)
    assert "inside a field that is not selected: o.x" in caplog.text


def test_null_in_a_catalog_says_nothing():
    tap = make(a=lambda: [{"id": 1, "at": "x"}])
    tap.metadata("a", {"at": {"selected-by-default": False}})
    silent = {"selected": None, "selected-by-default": None, "inclusion": None}
    assert run_tap(tap, catalog=_entry({}, ("at", silent))).records("a") == ids(1)


def test_what_is_off_by_default_comes_only_if_asked_for():
    tap = make(a=lambda: ids(1), b=lambda: ids(2))
    tap.metadata("b", {"": {"selected-by-default": False}})
    assert [m["stream"] for m in run_tap(tap).messages if m["type"] == "RECORD"] == ["a"]
    assert run_tap(tap, select="b").records("b") == ids(2)
    assert run_tap(tap, catalog=_catalog(tap, selected=True)).records("b") == ids(2)


def test_two_streams_under_one_name():
    tap = make(a=lambda: ids(1), b=lambda: ids(2))
    wire = _catalog(tap, selected=True)
    wire["streams"][1]["stream_alias"] = "a"
    with pytest.raises(CatalogError, match="'a' and 'b' would both go out as 'a'"):
        run_tap(tap, catalog=wire)


def test_a_catalog_with_references_gets_them_resolved():
    text = {"$ref": "#/definitions/text"}
    schema = {"properties": {"id": {"type": "integer"}, "at": text}, "definitions": {"text": {"type": "string"}}}
    run = run_tap(make(a=lambda: [{"id": 1, "at": "x"}]), catalog=_entry({}, schema=schema))
    assert run.messages[0]["schema"] == {"properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}
    schema["definitions"] = {}
    with pytest.raises(CatalogError, match="the catalog's schema of stream 'a'"):
        run_tap(make(a=lambda: ids(1)), catalog=_entry({}, schema=schema))
