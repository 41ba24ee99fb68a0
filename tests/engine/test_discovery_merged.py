"""What is found, merged with what is declared, and chosen from by a user's catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from discovered import INTEGER, TABLE, catalog_of, entry, tap_of
from tapprocess import python, write_tap

import burler
from burler.errors import CatalogError, DeclarationError
from burler.testing import discover, run_tap

# ---- merged with what is declared ---------------------------------------------------------------------


def test_a_declared_schema_wins_and_discoverys_metadata_stays():
    declared = {"type": "object", "properties": {"id": INTEGER, "extra": INTEGER}}
    root = {"schema-name": "public", "row-count": 5, "table-key-properties": ["id"]}
    found = catalog_of(
        {**entry("a", root), "metadata": [{"breadcrumb": [], "metadata": root}, _field("id", {"sql-datatype": "int4"})]}
    )
    tap = burler.tap("tap-found")
    tap.discover(lambda: found)
    tap.sync("a", schema=declared)(lambda: [{"id": 1, "extra": 2}])
    made = discover(tap, {}).entries["a"]
    assert made.schema == declared
    assert made.key_properties == ("id",)
    assert made.metadata[()]["schema-name"] == "public"
    assert made.metadata[()]["row-count"] == 5
    assert made.metadata["properties", "id"] == {"inclusion": "automatic", "sql-datatype": "int4"}
    assert made.metadata["properties", "extra"] == {"inclusion": "available"}


def _field(name: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"breadcrumb": ["properties", name], "metadata": values}


def test_a_schema_function_wins_too():
    tap = burler.tap("tap-found")
    tap.discover(lambda: {"a": TABLE, "b": TABLE})
    tap.sync("*")(lambda: [])
    tap.sync("a")(lambda: [])
    tap.schema("a")(lambda: {"type": "object", "properties": {"id": INTEGER}})
    assert list(discover(tap, {}).entries["a"].schema["properties"]) == ["id"]
    assert discover(tap, {}).entries["b"].schema == TABLE


@pytest.mark.parametrize("where", ["entry", "metadata"])
@pytest.mark.parametrize("with_schema", [True, False])
def test_found_keys_count_where_none_are_declared(where: str, with_schema: bool):
    if where == "entry":
        one = entry("a", key_properties=["id"], replication_key="at", replication_method="INCREMENTAL")
    else:
        root = {
            "table-key-properties": ["id"],
            "valid-replication-keys": ["at"],
            "forced-replication-method": "INCREMENTAL",
        }
        one = entry("a", root)
    tap = burler.tap("tap-found")
    tap.discover(lambda: catalog_of(one))
    options: dict[str, Any] = {"schema": TABLE} if with_schema else {}
    tap.sync("a", **options)(lambda: [{"id": 1, "at": "2024-01-01T00:00:00Z"}])
    made = discover(tap, {}).entries["a"]
    assert (made.key_properties, made.replication_key, made.replication_method) == (("id",), "at", "INCREMENTAL")
    run = run_tap(tap)
    assert run.messages[0]["key_properties"] == ["id"]
    assert run.messages[0]["bookmark_properties"] == ["at"]
    assert run.states[-1]["bookmarks"] == {"a": {"at": "2024-01-01T00:00:00Z"}}


def test_declared_keys_win_over_those_of_the_entry():
    tap = burler.tap("tap-found")
    tap.discover(lambda: catalog_of(entry("a", key_properties=["text"], replication_key="id")))
    tap.sync("a", key_properties="id", replication_key="at")(lambda: [])
    made = discover(tap, {}).entries["a"]
    assert (made.key_properties, made.replication_key, made.replication_method) == (("id",), "at", "INCREMENTAL")
    assert made.metadata[()]["table-key-properties"] == ["id"]


def test_empty_key_properties_of_discovery_say_nothing():
    tap = burler.tap("tap-found")
    tap.discover(lambda: catalog_of(entry("a", {"table-key-properties": []}, key_properties=[])))
    tap.sync("a", key_properties="id")(lambda: [])
    made = discover(tap, {}).entries["a"]
    assert made.key_properties == ("id",)
    assert made.metadata[()]["table-key-properties"] == ["id"]


def test_keys_that_metadata_contradicts_are_refused():
    tap = burler.tap("tap-found")
    tap.discover(lambda: catalog_of(entry("a", {"table-key-properties": ["text"]})))
    tap.sync("a", key_properties="id")(lambda: [])
    with pytest.raises(DeclarationError, match=r"stream 'a'.*key properties are text.*id"):
        discover(tap, {})


def test_found_entries_may_speak_of_emitted_streams_and_substreams():
    tap = burler.tap("tap-found")
    tap.discover(lambda: catalog_of(*(entry(name, key_properties=["id"]) for name in ("main", "beside", "below"))))
    tap.sync("main", replication_key="at")(lambda: [{"id": 1, "at": "2024-01-01T00:00:00Z"}, ("beside", {"id": 2})])
    tap.stream("beside", emitted_by="main")
    tap.stream("below", parent="main").sync(lambda parent: [{"id": parent["id"] * 10}])
    run = run_tap(tap)
    assert not run.result.errors
    assert run.records("beside") == [{"id": 2}]
    assert run.records("below") == [{"id": 10}]
    assert all(m["key_properties"] == ["id"] for m in run.messages if m["type"] == "SCHEMA")
    assert "ACTIVATE_VERSION" not in run.types


def test_tap_stream_id_and_stream_may_differ():
    found = catalog_of(
        {**entry("db-public-users"), "stream": "users"}, {**entry("db-audit-users"), "stream": "audit_users"}
    )
    tap = tap_of(found, replication_key="at", key_properties="id")
    run = run_tap(tap)
    assert run.records("users") == run.records("audit_users") == [{"id": 1, "at": "2024-01-01T00:00:00Z"}]
    assert set(run.states[-1]["bookmarks"]) == {"db-public-users", "db-audit-users"}
    assert [m["stream"] for m in run.messages if m["type"] == "SCHEMA"] == ["users", "audit_users"]


def test_two_streams_that_would_go_out_under_one_name():
    found = catalog_of({**entry("a-users"), "stream": "users"}, {**entry("b-users"), "stream": "users"})
    with pytest.raises(CatalogError, match="'a-users' and 'b-users' would both go out as 'users'"):
        run_tap(tap_of(found))
    assert run_tap(tap_of(found), select="a-users").records("users")


def test_what_is_found_is_not_changed():
    found = catalog_of(entry("a", {"table-key-properties": ["id"]}, key_properties=["id"]))
    before = json.dumps(found)
    tap = tap_of(found)
    tap.metadata("*", {"text": {"selected-by-default": False}})
    run_tap(tap)
    assert json.dumps(found) == before


def test_taps_that_discover_wildly_still_give_catalogs_that_they_take_back():
    found = catalog_of(
        entry("a", {"valid-replication-keys": ["id", "at"]}, key_properties=["id"]),
        entry("b", replication_key="at", replication_method="INCREMENTAL"),
        entry("c", {"is-view": True, "view-key-properties": ["id"], "table-key-properties": []}),
        entry("d", {"forced-replication-method": "FULL_TABLE"}),
    )
    tap = tap_of(found)
    wire = discover(tap, {}).to_wire()
    for one in wire["streams"]:
        one["metadata"][0]["metadata"]["selected"] = True
    plain = [m for m in run_tap(tap).messages if m["type"] == "SCHEMA"]
    again = [m for m in run_tap(tap, catalog=wire).messages if m["type"] == "SCHEMA"]
    assert again == plain


# ---- a user's catalog, state, sessions ------------------------------------------------------------------


def chosen(tap: burler.Tap, **roots: dict[str, Any]) -> dict[str, Any]:
    """The tap's catalog as a user edits it: the streams that are named are selected, with more metadata."""
    wire = discover(tap, {}).to_wire()
    for one in wire["streams"]:
        if one["tap_stream_id"] in roots:
            one["metadata"][0]["metadata"] |= {"selected": True, **roots[one["tap_stream_id"]]}
    return wire


def test_the_user_selects_among_what_is_found():
    tap = tap_of({"a": TABLE, "b": TABLE, "c": TABLE})
    run = run_tap(tap, catalog=chosen(tap, a={}, c={}))
    assert [m["stream"] for m in run.messages if m["type"] == "RECORD"] == ["a", "c"]
    assert run_tap(tap, select="b").records("b")


def choosing() -> tuple[burler.Tap, list[Any]]:
    seen: list[Any] = []

    def rows(stream):
        seen.append((stream.replication_method, stream.replication_key, stream.bookmark))
        return [{"id": 2, "at": "2024-01-02T00:00:00Z"}, {"id": 1, "at": "2024-01-03T00:00:00Z"}]

    found = catalog_of(entry("a", {"valid-replication-keys": ["id", "at"]}, key_properties=["id"]))
    return tap_of(found, rows=rows), seen


@pytest.mark.parametrize(
    ("asked", "seen", "state"),
    [
        ({}, ("FULL_TABLE", None, None), None),
        ({"replication-method": "FULL_TABLE"}, ("FULL_TABLE", None, None), None),
        (
            {"replication-method": "INCREMENTAL", "replication-key": "at"},
            ("INCREMENTAL", "at", None),
            {"at": "2024-01-03T00:00:00Z"},
        ),
        ({"replication-method": "INCREMENTAL", "replication-key": "id"}, ("INCREMENTAL", "id", None), {"id": 2}),
    ],
)
def test_the_user_chooses_method_and_key_among_the_valid_ones(asked: dict[str, str], seen: Any, state: Any):
    tap, calls = choosing()
    run = run_tap(tap, catalog=chosen(tap, a=asked))
    assert not run.result.errors
    assert calls == [seen]
    if state is None:
        assert list(run.states[-1]["bookmarks"]["a"]) == ["version"]
        assert "ACTIVATE_VERSION" in run.types
    else:
        assert run.states[-1]["bookmarks"]["a"] == state
        assert "ACTIVATE_VERSION" not in run.types
        again = run_tap(tap, catalog=chosen(tap, a=asked), state=run.states[-1])
        assert calls[-1][2] == next(iter(state.values()))
        assert again.states[-1] == run.states[-1]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"replication-method": "INCREMENTAL", "replication-key": "text"}, "'text'. It can have: 'id', 'at'"),
        ({"replication-method": "INCREMENTAL"}, "has no replication key"),
        ({"replication-method": "LOG_BASED"}, "LOG_BASED"),
        ({"replication-method": "Incremental"}, "INCREMENTAL"),
    ],
)
def test_what_the_user_can_not_choose_is_told_before_the_first_message(asked: dict[str, str], says: str):
    tap, calls = choosing()
    with pytest.raises(CatalogError) as caught:
        run_tap(tap, catalog=chosen(tap, a=asked))
    assert "'a'" in str(caught.value)
    assert says in str(caught.value)
    assert calls == []


def test_a_found_stream_goes_on_where_it_was():
    def rows(stream):
        for i in range(stream.bookmark or 0, 5):
            yield {"id": i}
            stream.state["at"] = i

    tap = tap_of({"a": TABLE}, rows=rows, key_properties="id", replication_key="id", bookmark_strategy="every_n(2)")
    first = run_tap(tap)
    assert first.states[-1] == {"bookmarks": {"a": {"id": 4, "stream_state": {"at": 4}}}}
    assert run_tap(tap, state=first.states[-1]).records("a") == [{"id": 4}]


def test_a_run_that_was_interrupted_goes_on_with_the_found_stream_it_was_in():
    tap = tap_of({"a": TABLE, "b": TABLE, "c": TABLE})
    run = run_tap(tap, state={"currently_syncing": "b"})
    assert [m["stream"] for m in run.messages if m["type"] == "RECORD"] == ["b", "c", "a"]


def test_the_client_is_made_once_and_discovery_is_asked_once_in_a_run():
    tap = burler.tap("tap-found")
    made, asked = [], []

    @tap.client
    def client(config):
        made.append(config)
        return {"tables": ["a", "b"]}

    @tap.discover
    def found(client):
        asked.append(client)
        assert tap.client.get("tables") == ["a", "b"]
        return dict.fromkeys(client["tables"], TABLE)

    tap.sync("*")(lambda client: [{"id": len(client["tables"])}])
    run = run_tap(tap)
    assert run.records("b") == [{"id": 2}]
    assert len(made) == len(asked) == 1


def test_two_sessions_of_one_tap_may_find_different_streams():
    tap = burler.tap("tap-found", config_spec={"tables": ["a"]})

    @tap.discover
    def found(config):
        return {name: {"type": "object", "properties": {name: INTEGER}} for name in config["tables"]}

    tap.sync("*")(lambda stream: [{stream.name: 1}])
    for tables in (["a", "b"], ["c"], [], ["a"]):
        run = run_tap(tap, {"tables": tables})
        assert [m["record"] for m in run.messages if m["type"] == "RECORD"] == [{name: 1} for name in tables]
        assert list(discover(tap, {"tables": tables}).entries) == tables


def test_the_catalog_on_the_command_line(tmp_path: Path):
    """``--discover``, the output edited, ``--catalog``: as a person does it."""
    path = write_tap(
        tmp_path,
        """
        import burler
        tap = burler.tap("tap-x")
        FIELDS = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}
        @tap.discover
        def found():
            return {"public.a": FIELDS, "public.b": FIELDS}
        tap.sync("public.*")(lambda stream: [{"id": 1, "at": stream.name}])
        if __name__ == "__main__":
            tap.cli()
        """,
    )
    found = python(path, "--discover", cwd=tmp_path)
    assert found.code == 0, found.stderr
    catalog = json.loads(found.stdout)
    catalog["streams"][1]["metadata"][0]["metadata"]["selected"] = True
    (tmp_path / "catalog.json").write_text(json.dumps(catalog))
    ended = python(path, "--catalog", "catalog.json", cwd=tmp_path)
    assert ended.code == 0, ended.stderr
    assert [m["record"] for m in ended.messages if m["type"] == "RECORD"] == [{"id": 1, "at": "public.b"}]
