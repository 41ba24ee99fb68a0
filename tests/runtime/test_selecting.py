"""What is wanted: streams emitted by others, --select, catalogs; and the client."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from taps import FIELDS, ids, make

import burler
from burler.errors import BurlerError, CatalogError, DeclarationError
from burler.runtime.run import discover
from burler.testing import run_tap

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
    with pytest.raises(DeclarationError, match="'id' is not in the schema"):
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
    assert any("does not know were dropped: x (1 rows)" in line for line in lines)


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
