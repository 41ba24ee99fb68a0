"""Keys and replication that metadata gives, what is refused, and what singer-python says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from described import CRUMBS, FIELDS, entry_of, schema_of, tap_of, written
from tapprocess import python

import burler
from burler.errors import BurlerError, CatalogError, DeclarationError
from burler.testing import discover, run_tap

# ---- keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["key_properties", "table-key-properties", "view-key-properties"])
def test_keys_that_metadata_alone_gives(key: str):
    tap = tap_of({"": {key: ["id"], "is-view": key.startswith("view")}}, key_properties=[])
    assert entry_of(tap).key_properties == ("id",)
    assert written(tap, "id") == {"inclusion": "automatic"}
    assert schema_of(tap)["key_properties"] == ["id"]
    assert list(schema_of(tap, select="rows.tags")["schema"]["properties"]) == ["id", "tags"]


def test_rows_without_a_key_that_metadata_gives_are_refused():
    tap = tap_of({"": {"key_properties": ["id", "at"]}}, key_properties=[])
    tap.sync("other", schema=FIELDS)(lambda: [{"at": "2024-01-01T00:00:00Z"}])
    tap.metadata("other", {"": {"key_properties": "id"}})
    run = run_tap(tap)
    assert list(run.result.errors) == ["other"]
    assert "field 'id' is missing" in str(run.result.errors["other"])


def test_keys_stay_automatic_whatever_is_written():
    tap = tap_of({"id": {"inclusion": "available", "selected-by-default": False}}, replication_key="at")
    assert written(tap, "id")["inclusion"] == "automatic"
    assert written(tap, "at")["inclusion"] == "automatic"
    assert set(schema_of(tap)["schema"]["properties"]) >= {"id", "at"}


@pytest.mark.parametrize("field", ["id", "at"])
def test_a_key_can_not_be_unsupported(field: str):
    with pytest.raises(DeclarationError, match=rf"stream 'rows'.*field '{field}' is one of its keys.*'unsupported'"):
        entry_of(tap_of({field: {"inclusion": "unsupported"}}, replication_key="at"))


@pytest.mark.parametrize("key", ["key_properties", "view-key-properties"])
def test_keys_that_contradict_the_declaration(key: str):
    with pytest.raises(DeclarationError, match=r"stream 'rows'.*metadata says.*at.*declaration says.*id"):
        entry_of(tap_of({"": {key: ["at"]}}))


def test_keys_that_agree_with_the_declaration():
    tap = tap_of({"": {"key_properties": ["at", "id"]}}, key_properties=["id", "at"])
    assert entry_of(tap).key_properties == ("id", "at")
    assert written(tap)["table-key-properties"] == ["id", "at"]


@pytest.mark.parametrize("values", [{"key_properties": "idd"}, {"valid-replication-keys": ["att", "id"]}])
def test_keys_that_are_not_in_the_schema(values: dict[str, Any]):
    with pytest.raises(DeclarationError) as caught:
        entry_of(tap_of({"": values}, key_properties=[]))
    assert "not in the schema" in str(caught.value)
    assert "Did you mean" in str(caught.value)


def test_a_declared_key_that_is_not_in_the_schema():
    with pytest.raises(
        DeclarationError, match=r"stream 'rows' \(.*:\d+\): key property 'idd' is not in the schema.*'id'\?"
    ):
        entry_of(tap_of(key_properties="idd"))


# ---- replication --------------------------------------------------------------------------------------


def test_a_forced_method_with_one_valid_key_is_the_replication():
    tap = tap_of({"": {"forced-replication-method": "INCREMENTAL", "valid-replication-keys": ["at"]}})
    made = entry_of(tap)
    assert (made.replication_method, made.replication_key) == ("INCREMENTAL", "at")
    run = run_tap(tap)
    assert run.messages[0]["bookmark_properties"] == ["at"]
    assert run.states[-1]["bookmarks"] == {"rows": {"at": "2024-01-01T00:00:00Z"}}


def test_a_forced_method_with_several_keys_leaves_the_key_to_the_user():
    tap = tap_of({"": {"forced-replication-method": "INCREMENTAL", "valid-replication-keys": ["id", "at"]}})
    with pytest.raises(CatalogError, match=r"'rows'.*has no replication key.*\"id\", \"at\""):
        run_tap(tap)
    wire = discover(tap, {}).to_wire()
    wire["streams"][0]["metadata"][0]["metadata"] |= {"selected": True, "replication-key": "at"}
    assert run_tap(tap, catalog=wire).states[-1]["bookmarks"] == {"rows": {"at": "2024-01-01T00:00:00Z"}}


def test_a_forced_method_wins_over_the_users_with_a_warning(caplog: pytest.LogCaptureFixture):
    tap = tap_of({"": {"forced-replication-method": "FULL_TABLE"}})
    wire = discover(tap, {}).to_wire()
    wire["streams"][0]["metadata"][0]["metadata"] |= {"selected": True, "replication-method": "INCREMENTAL"}
    assert "ACTIVATE_VERSION" in run_tap(tap, catalog=wire).types
    assert "always FULL_TABLE" in caplog.text


def test_incremental_without_a_key():
    with pytest.raises(DeclarationError, match=r"stream 'rows'.*INCREMENTAL.*by which key.*valid-replication-keys"):
        entry_of(tap_of({"": {"forced-replication-method": "INCREMENTAL"}}))


def test_a_replication_key_that_the_metadata_leaves_out():
    """A catalog that said both could not be given back to the tap."""
    with pytest.raises(DeclarationError, match=r"stream 'rows'.*'at'.*'valid-replication-keys': id"):
        entry_of(tap_of({"": {"valid-replication-keys": ["id"]}}, replication_key="at"))


def test_a_declared_key_among_several_valid_ones_is_the_one_if_nobody_chooses():
    tap = tap_of({"": {"valid-replication-keys": ["id", "at"]}}, replication_key="at")
    assert run_tap(tap).states[-1]["bookmarks"] == {"rows": {"at": "2024-01-01T00:00:00Z"}}


def test_the_word_of_a_substream_that_it_is_incremental_needs_no_key():
    tap = tap_of(replication_key="at")
    tap.stream("below", parent="rows", schema=FIELDS).sync(lambda parent: [])
    tap.metadata("below", {"": {"forced-replication-method": "INCREMENTAL"}})
    assert entry_of(tap, "below").replication_method == "INCREMENTAL"


def test_views():
    tap = tap_of({"": {"is-view": True, "view-key-properties": ["id"], "database-name": "db"}}, key_properties=[])
    root = written(tap)
    assert root["is-view"] is True
    assert root["view-key-properties"] == ["id"]
    assert root["database-name"] == "db"


# ---- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "key", "value", "says"),
    [
        ("at", "inclusionn", "automatic", "Did you mean 'inclusion'?"),
        ("at", "nonsense", 1, "'tap-meta.nonsense'"),
        ("at", "tap-other.key", 1, "'tap-meta.tap-other.key'"),
        ("at", "tap-meta.", 1, "unknown"),
        ("at", "selected", True, "'selected-by-default'"),
        ("", "replication-method", "FULL_TABLE", "'forced-replication-method'"),
        ("", "replication-key", "at", "'valid-replication-keys'"),
        ("at", "key_properties", ["id"], "belongs to the stream itself"),
        ("", "sql-datatype", "int", "belongs to a field"),
        ("at", "inclusion", "sometimes", "automatic, available, unsupported"),
        ("at", "selected-by-default", "false", "true or false"),
        ("", "row-count", -1, "whole number"),
        ("", "row-count", True, "whole number"),
        ("", "table-key-properties", ["id", "id"], "different field names"),
        ("", "table-key-properties", [5], "field names"),
        ("", "forced-replication-method", "full_table", "FULL_TABLE, INCREMENTAL, LOG_BASED"),
        ("at", "tap-meta.x", object(), "tap-meta.x"),
        ("at", 5, 1, "metadata key is text"),
    ],
)
@pytest.mark.parametrize("how", ["write_metadata", "field.set", "mapping"])
def test_keys_and_values_that_no_catalog_may_carry(path: str, key: Any, value: Any, says: str, how: str):
    tap = tap_of({path: {key: value}} if how == "mapping" else None, key_properties=[])
    if how != "mapping":

        @tap.metadata("rows")
        def visit(breadcrumb, field):
            if breadcrumb.path == CRUMBS[path]:
                (tap.write_metadata if how == "write_metadata" else field.set)(key, value)

    with pytest.raises(DeclarationError) as caught:
        entry_of(tap)
    text = str(caught.value)
    assert "stream 'rows' (" in text
    assert "described.py:" in text
    assert says in text
    assert f", field {path}:" in text if path else ", field " not in text
    assert len(text.splitlines()) <= 3


def _raise(error: BaseException) -> Callable[..., Any]:
    def visit(breadcrumb):
        if breadcrumb.name == "at":
            raise error

    return visit


@pytest.mark.parametrize("error", [KeyError("nope"), SystemExit(0), StopIteration()])
def test_a_function_that_fails(error: BaseException):
    with pytest.raises(DeclarationError, match=r"stream 'rows'.*metadata function \(.*.py:\d+\) failed") as caught:
        entry_of(tap_of(_raise(error)))
    assert type(error).__name__ in str(caught.value)


def _generator(field):
    field.inclusion.automatic()
    yield


@pytest.mark.parametrize("fn", [_generator, lambda: {"inclusion": "automatic"}])
def test_a_function_that_would_write_nothing_in_silence(fn: Callable[..., Any]):
    with pytest.raises(DeclarationError, match=r"stream 'rows'.*metadata function.*Write it: tap.write_metadata"):
        entry_of(tap_of(fn))


def test_writing_in_a_sync_function():
    tap = burler.tap("tap-meta")
    tap.sync("rows", schema=FIELDS)(lambda: tap.write_metadata("inclusion", "automatic"))
    tap.metadata("rows")(lambda: None)
    tap.sync("other", schema=FIELDS)(lambda: [{"id": 1}])
    run = run_tap(tap)
    assert "stream 'rows': tap.write_metadata() was called outside a @tap.metadata" in str(run.result.errors["rows"])
    assert len(run.records("other")) == 1


def test_writing_outside_says_where_it_belongs():
    with pytest.raises(BurlerError, match=r"tap.write_metadata\(\) was called outside.*@tap.metadata"):
        tap_of().write_metadata("inclusion", "automatic")


def test_writing_on_another_tap():
    other = tap_of()
    with pytest.raises(BurlerError, match="outside"):
        entry_of(tap_of(lambda: other.write_metadata("inclusion", "automatic")))


def test_one_function_or_mapping_a_stream():
    tap = tap_of(lambda: None)
    with pytest.raises(DeclarationError, match="metadata function already"):
        tap.metadata("rows")(lambda: None)
    tap.metadata("rows", {})
    with pytest.raises(DeclarationError, match="already"):
        tap.metadata("rows", {})


# ---- against singer-python ----------------------------------------------------------------------------

PEER = """
import json, sys
from singer import metadata
given = json.load(sys.stdin)
made = metadata.get_standard_metadata(**given["arguments"])
both = {
    "standard": [[list(crumb), values] for crumb, values in metadata.to_map(made).items()],
    "ours": [[list(crumb), values] for crumb, values in metadata.to_map(given["ours"]).items()],
}
json.dump(both, sys.stdout)
"""


@pytest.mark.parametrize(
    ("keys", "replication_key"), [(["id"], None), (["id"], "at"), (["id", "at"], None), ([], "at"), ([], None)]
)
def test_it_agrees_with_singer_python_where_both_speak(tmp_path: Path, keys: list[str], replication_key: str | None):
    """In a process of its own, since importing singer replaces the handlers of the root logger."""
    made = entry_of(tap_of(key_properties=keys, replication_key=replication_key))
    arguments = {
        "schema": FIELDS,
        "key_properties": keys,
        "valid_replication_keys": [replication_key] if replication_key else None,
        "replication_method": made.replication_method,
    }
    ours = made.to_wire()["metadata"]
    ended = python(
        "-W", "ignore", "-c", PEER, cwd=tmp_path, stdin=json.dumps({"arguments": arguments, "ours": ours}).encode()
    )
    assert ended.code == 0, ended.stderr
    theirs = json.loads(ended.stdout)
    mine = {tuple(crumb): values for crumb, values in theirs["ours"]}
    assert mine == made.metadata
    compared = 0
    for crumb, values in theirs["standard"]:
        for key, value in values.items():
            if crumb == ["properties", replication_key] and key == "inclusion":
                # Here burler says more: without its key the bookmark could not follow the rows.
                assert mine[tuple(crumb)][key] == "automatic"
            elif value is not None and key in mine[tuple(crumb)]:
                assert mine[tuple(crumb)][key] == value, (crumb, key)
                compared += 1
            elif value:
                assert key in mine[tuple(crumb)], (crumb, key)
    assert compared >= 5
