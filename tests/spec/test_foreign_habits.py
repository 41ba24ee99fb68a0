"""Habits of taps that others wrote: right ones that look wrong, and the wrong ones beside them."""

from __future__ import annotations

import json

import pytest

from burler.spec import check_messages

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


def codes(*messages, **given) -> list[str]:
    """What is found in a run of stream ``a``, the rows' STATE behind them."""
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in messages)
    return [one.code for one in check_messages(text.encode(), **given)]


def schema(stream="a", **more):
    return {"type": "SCHEMA", "stream": stream, "schema": SCHEMA, "key_properties": ["id"], **more}


def row(number=1, stream="a", **more):
    return {"type": "RECORD", "stream": stream, "record": {"id": number}, **more}


def state(bookmarks):
    return {"type": "STATE", "value": {"bookmarks": bookmarks}}


def catalog(method="FULL_TABLE", key=None):
    """A catalog in which the stream's name and its ``tap_stream_id`` differ."""
    root = {"selected": True, "replication-method": method, **({"replication-key": key} if key else {})}
    metadata = [{"breadcrumb": [], "metadata": root}]
    metadata += [{"breadcrumb": ["properties", "id"], "metadata": {"inclusion": "automatic"}}]
    stream = {"stream": "orders", "tap_stream_id": "shop-orders", "key_properties": ["id"], "schema": SCHEMA}
    return {"streams": [{**stream, "metadata": metadata}]}


@pytest.mark.parametrize("empty", [{}, None, []], ids=["object", "null", "list"])
def test_an_empty_entry_of_a_state_is_no_bookmark(empty):
    """The Singer SDK keeps ``{}`` for full tables, and begins a run with a STATE without them."""
    run = [{"type": "STATE", "value": {}}, schema(), row(), state({"a": empty})]
    assert codes(*run, state={"bookmarks": {"a": empty}}) == []
    assert codes(*run, state={"bookmarks": {"a": {"id": 1}}}) == ["B316"]


@pytest.mark.parametrize(
    ("name", "found"),
    [("orders", []), ("shop-orders", []), ("shop_orders", ["M223", "M226"])],
    ids=lambda one: str(one),
)
def test_messages_may_bear_the_tap_stream_id(name, found):
    assert sorted(set(codes(schema(name), row(1, name), state({}), catalog=catalog()))) == found


ACTIVATE = {"type": "ACTIVATE_VERSION", "stream": "orders", "version": 7}


def test_an_incremental_stream_activates_its_version_first():
    """Its rows are to be seen as they come: nothing is replaced by them."""
    run = [schema("orders"), ACTIVATE, row(1, "orders", version=7), state({"orders": {"id": 1, "version": 7}})]
    assert codes(*run, catalog=catalog("INCREMENTAL", "id")) == []
    assert (
        codes(*run, catalog=catalog("INCREMENTAL", "id"), state={"bookmarks": {"orders": {"id": 1, "version": 7}}})
        == []
    )
    assert "M212" in codes(*run, catalog=catalog())


def test_an_empty_line_is_no_json():
    assert codes(schema(), row(), "", state({})) == ["M201"]


@pytest.mark.parametrize(("given", "found"), [("id", 0), (["id"], 0), ([], 0), (None, 0), (7, 1), ({}, 1), ([1], 1)])
def test_bookmark_properties_are_names(given, found):
    run = [schema(bookmark_properties=given), row(), state({"a": {"id": 1}})]
    assert codes(*run).count("M216") == found


FORMATS = [
    ("time", "10:00:00", "25:00:00"),
    ("time", "10:00:00.5Z", "noon"),
    ("email", "ada@example.com", "nobody"),
    ("ipv4", "127.0.0.1", "300.1.1.1"),
    ("ipv6", "::1", "::zz"),
    ("hostname", "db-1.example.com", "-a..b"),
    ("regex", "^a+$", "("),
    ("uuid", "123E4567-e89b-12d3-a456-426614174000", "1234"),
]


@pytest.mark.parametrize(("form", "right", "wrong"), FORMATS)
def test_formats_that_readers_hold_values_against(form, right, wrong):
    said = {**SCHEMA, "properties": {**SCHEMA["properties"], "v": {"type": "string", "format": form}}}
    for text, found in ((right, []), (wrong, ["M205"])):
        record = {"type": "RECORD", "stream": "a", "record": {"id": 1, "v": text}}
        assert codes(schema(schema=said), record, state({})) == found


def test_a_date_time_with_a_space_is_hard_to_read():
    said = {**SCHEMA, "properties": {**SCHEMA["properties"], "v": {"type": "string", "format": "date-time"}}}
    for text, found in (
        ("2024-05-01T00:00:00Z", []),
        ("2024-05-01 00:00:00Z", ["M219"]),
        ("2024-05-01 00:00", ["M217"]),
    ):
        record = {"type": "RECORD", "stream": "a", "record": {"id": 1, "v": text}}
        assert codes(schema(schema=said), record, state({})) == found


def test_a_stream_without_rows():
    assert codes(schema(), state({})) == ["M226"]
    assert codes(state({}), catalog=catalog()) == ["M226"]
    assert (
        codes(schema(), state({"a": {"id": 3}}), state={"bookmarks": {"a": {"id": 3}}}) == []
    )  # nothing new: as it should be
    assert codes(schema(), "oops", state({})) == ["M201"]  # that may have been the row
