"""Metadata keys: what a tap's author may write, under which name, where, and with which value."""

from __future__ import annotations

import pytest

from burler.errors import DeclarationError
from burler.singer import Breadcrumb, check_key


def check(key, value, level=0):
    return check_key(key, value, tap_name="tap-crm", level=level, place="stream 'a' (tap.py:3)")


def refused(key, value, level=0):
    with pytest.raises(DeclarationError) as caught:
        check(key, value, level)
    text = str(caught.value)
    assert text.startswith("stream 'a' (tap.py:3): ")
    assert len(text.splitlines()) <= 3
    return text


@pytest.mark.parametrize(
    ("key", "value", "level", "wire"),
    [
        ("inclusion", "automatic", 0, None),
        ("inclusion", "unsupported", 2, None),
        ("selected-by-default", False, 1, None),
        ("selected_by_default", True, 0, ("selected-by-default", True)),
        ("key_properties", ["a", "b"], 0, ("table-key-properties", ["a", "b"])),
        ("key_properties", "a", 0, ("table-key-properties", ["a"])),
        ("table-key-properties", ("a",), 0, ("table-key-properties", ["a"])),
        ("table-key-properties", [], 0, None),
        ("replication_method", "INCREMENTAL", 0, ("forced-replication-method", "INCREMENTAL")),
        ("forced_replication_method", "LOG_BASED", 0, ("forced-replication-method", "LOG_BASED")),
        ("replication_keys", ["at"], 0, ("valid-replication-keys", ["at"])),
        ("replication_key", "at", 0, ("valid-replication-keys", ["at"])),
        ("valid_replication_keys", "at", 0, ("valid-replication-keys", ["at"])),
        ("view_key_properties", ["a"], 0, ("view-key-properties", ["a"])),
        ("is-view", False, 0, None),
        ("row_count", 0, 0, ("row-count", 0)),
        ("schema-name", "public", 0, None),
        ("database-name", "crm", 0, None),
        ("sql-datatype", "int4", 1, None),
        ("batch-enabled", True, 0, None),
        ("tap-crm.custom", {"any": [1, None]}, 0, None),
        ("tap_crm.custom", "x", 3, None),
        ("tap-crm.own_key", 1, 0, None),
    ],
)
def test_what_is_taken(key, value, level, wire):
    assert check(key, value, level) == (wire or (key, value))


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("selected", "selected-by-default"),
        ("replication-method", "forced-replication-method"),
        ("replication-key", "valid-replication-keys"),
    ],
)
def test_what_only_the_user_writes(key, instead):
    assert f"'{key}' is the user's to write, in a catalog. Did you mean '{instead}'?" in refused(key, True)


@pytest.mark.parametrize("key", ["new-record-polling-interval-ms", "max-full-table-age-seconds"])
def test_what_only_the_user_writes_and_an_author_says_with_an_option(key):
    option = key.replace("-", "_")
    assert f"'{key}' is the user's to write, in a catalog. Give the stream the option {option}=." in refused(key, 5)
    assert f"metadata key '{key}' is the user's" in refused(option, 5)


@pytest.mark.parametrize(
    ("key", "value", "level", "says"),
    [
        ("inclusoin", "automatic", 0, "'inclusoin' is unknown. Did you mean 'inclusion'?"),
        ("sqldatatype", "x", 1, "Did you mean 'sql-datatype'?"),
        ("colour", "x", 1, "'colour' is unknown. A key of the tap's own begins with its name: 'tap-crm.colour'"),
        ("tap-other.x", 1, 0, "is unknown"),
        ("tap-crm.", 1, 0, "is unknown"),
        ("tap-crm", 1, 0, "is unknown"),
        ("", 1, 0, "is unknown"),
        (5, 1, 0, "a metadata key is text, not int"),
        ("inclusion", "Automatic", 0, "'inclusion' must be one of automatic, available, unsupported, not 'Automatic'"),
        ("inclusion", None, 0, "must be one of"),
        ("inclusion", ["automatic"], 0, "must be one of"),
        ("selected-by-default", "true", 0, "must be true or false, not 'true'"),
        ("selected-by-default", 1, 0, "must be true or false"),
        ("key_properties", [1], 0, "'table-key-properties' must be a list of field names, not [1]"),
        ("key_properties", {"a": 1}, 0, "must be a list of field names"),
        ("key_properties", ["a", "a"], 0, "must be a list of different field names"),
        ("valid-replication-keys", [""], 0, "must be a list of field names"),
        ("replication_method", "incremental", 0, "must be one of FULL_TABLE, INCREMENTAL, LOG_BASED"),
        ("row-count", -1, 0, "must be a whole number, 0 or more, not -1"),
        ("row-count", True, 0, "must be a whole number"),
        ("schema-name", "", 0, "must be text"),
        ("tap-crm.x", object, 0, "must hold a JSON value"),
        ("tap-crm.x", float, 1, "must hold a JSON value"),
        ("key_properties", ["id"], 1, "'table-key-properties' belongs to the stream itself (level 0)"),
        ("row-count", 1, 2, "'row-count' belongs to the stream itself"),
        ("sql-datatype", "int4", 0, "'sql-datatype' belongs to a field"),
    ],
)
def test_what_is_refused(key, value, level, says):
    assert says in refused(key, value, level)


def test_the_value_is_a_copy():
    mine = {"a": [1]}
    _key, kept = check("tap-crm.x", mine)
    mine["a"].append(2)
    assert kept == {"a": [1]}
    names = ["id"]
    _key, kept = check("key_properties", names)
    names.append("x")
    assert kept == ["id"]


def test_breadcrumbs_in_errors():
    table = {
        (): "(the stream)",
        ("properties", "id"): "id",
        ("properties", "a", "properties", "b"): "a.b",
        ("properties", "tags", "items", "properties", "name"): "tags[].name",
        ("properties", "items", "properties", "properties"): "items.properties",
    }
    assert {path: str(Breadcrumb(path)) for path in table} == table
