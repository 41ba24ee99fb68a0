"""Catalogs of any tap: discovered, one stream selected in both ways, all else as it came."""

from __future__ import annotations

import copy

import pytest
from fake_taps import CATALOG, entry, write_tap

from burler.errors import CatalogError
from support.internals import column_kinds, source_command
from support.internals import source_foreign as foreign


def selected(wire, stream="users", *patterns, chosen=False):
    return foreign.select(wire, stream, patterns, chosen=chosen, source="command 'tap-fake'")


def without_selection(node):
    if isinstance(node, dict):
        return {key: without_selection(value) for key, value in node.items() if key != "selected"}
    return [without_selection(value) for value in node] if isinstance(node, list) else node


def test_the_catalog_goes_back_as_it_came_but_for_the_selection():
    given = copy.deepcopy(CATALOG)
    changed, declared = selected(CATALOG)
    assert given == CATALOG  # the one given is not touched
    assert without_selection(changed) == CATALOG
    others, users = changed["streams"]
    assert (users["selected"], users["schema"]["selected"], users["metadata"][0]["metadata"]["selected"]) == (True,) * 3
    assert all(one["metadata"]["selected"] is True for one in users["metadata"])
    assert all(node["selected"] is True for node in users["schema"]["properties"].values())
    assert others["metadata"][0]["metadata"]["selected"] is False
    assert "selected" not in others
    assert [kind for _, kind in declared.columns.fields] == [
        column_kinds.BIGINT,
        column_kinds.STRING,
        column_kinds.DOUBLE,
        column_kinds.TIMESTAMP,
        column_kinds.STRING,
    ]
    assert (declared.stream, declared.keys) == ("users", ("id",))


def test_fields_prune_columns_and_selection_and_leave_the_key():
    changed, declared = selected(CATALOG, "users", "name", "anything")
    assert [name for name, _ in declared.columns.fields] == ["id", "name", "anything"]
    marks = {one["breadcrumb"][-1]: one["metadata"]["selected"] for one in changed["streams"][1]["metadata"][1:]}
    assert marks == {"id": True, "name": True, "price": False, "at": False, "anything": True}
    assert changed["streams"][1]["schema"]["properties"]["price"]["selected"] is False
    _, declared = selected(CATALOG, "users", "!price")
    assert "price" not in declared.column_names
    assert len(declared.column_names) == 4


def test_a_catalog_of_the_first_years_has_no_metadata():
    wire = {
        "streams": [{"stream": "old", "tap_stream_id": "old", "schema": {"type": "object", "properties": {"a": {}}}}]
    }
    changed, declared = selected(wire, "old")
    (stream,) = changed["streams"]
    assert stream["schema"]["selected"] is True
    assert stream["schema"]["properties"]["a"]["selected"] is True
    assert stream["metadata"][0] == {"breadcrumb": [], "metadata": {"selected": True}}
    assert declared.column_names == ("a",)


def test_what_the_tap_can_not_give_has_no_column():
    wire = copy.deepcopy(CATALOG)
    wire["streams"][1]["metadata"][2]["metadata"] = {"inclusion": "unsupported"}
    changed, declared = selected(wire)
    assert "name" not in declared.column_names
    assert "selected" not in changed["streams"][1]["metadata"][2]["metadata"]


def test_a_users_catalog_has_its_own_word_on_fields():
    wire = copy.deepcopy(CATALOG)
    wire["streams"][1]["metadata"][3]["metadata"]["selected"] = False
    _, declared = selected(wire, chosen=True)
    assert declared.column_names == ("id", "name", "at", "anything")


def test_the_only_stream_needs_no_name_and_a_name_may_be_the_emitted_one():
    one = {"streams": [entry("public-users") | {"stream": "users"}]}
    assert selected(one, "")[1].stream == "public-users"
    assert selected(one, "users")[1].names == {"public-users", "users"}


@pytest.mark.parametrize(
    ("wire", "stream", "fields", "said"),
    [
        (CATALOG, "usres", (), "no stream is called 'usres'. Did you mean 'users'? Streams: others, users."),
        (CATALOG, "", (), "has 2 streams; say which by option 'stream'"),
        ({"streams": []}, "x", (), "lists no stream"),
        (CATALOG, "users", ("nmae",), "option 'fields': stream 'users' has no field 'nmae'. Did you mean 'name'?"),
        ({"streams": [entry("a") | {"stream": "x"}, entry("b") | {"stream": "x"}]}, "x", (), "several streams"),
        ({"streams": [{"stream": "x", "schema": {"$ref": "#/nowhere"}}]}, "x", (), "nowhere"),
    ],
    ids=["misspelt", "nameless", "empty", "field", "twice", "reference"],
)
def test_what_is_not_there_is_told_with_what_is(wire, stream, fields, said):
    with pytest.raises(CatalogError) as told:
        selected(wire, stream, *fields)
    assert said in str(told.value)


def test_names_that_differ_in_case_alone_are_two_columns():
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "ID": {"type": "string"}, "id_2": {}}}
    _, declared = selected({"streams": [entry(schema=schema)]})
    assert declared.column_names == ("id", "ID_3", "id_2")


def test_a_tap_is_asked_once_for_its_catalog_and_its_flags(tmp_path):
    found, flags = foreign.look(
        source_command.find(write_tap(tmp_path, flags=("--catalog", "--properties"))), {"a": 1}, None
    )
    assert (found, flags) == (CATALOG, ("--catalog", "--properties"))
    command = source_command.find(write_tap(tmp_path, flags=("--properties",), discover_code=9))
    assert foreign.look(command, None, CATALOG) == (CATALOG, ("--properties",))  # no discovery where one is given
    with pytest.raises(CatalogError, match="--discover ended with code 9"):
        foreign.look(command, None, None)


def test_a_tap_that_discovers_garbage_is_told(tmp_path):
    with pytest.raises(CatalogError, match=r"printed no catalog but: \[\s+1,"):
        foreign.discover(source_command.find(write_tap(tmp_path, catalog=[1, 2])), None)
    with pytest.raises(CatalogError, match="printed no catalog but: nothing"):
        foreign.discover(source_command.find("true"), None)


def test_a_schema_without_columns_is_told():
    _, declared = selected({"streams": [entry() | {"schema": {"type": "object"}, "metadata": []}]})
    with pytest.raises(CatalogError, match="declares no properties"):
        _ = declared.columns
