"""Messages on the wire."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from burler.errors import MessageError
from burler.singer import messages as m

UTC = dt.UTC


def at(hours: float) -> dt.timezone:
    return dt.timezone(dt.timedelta(hours=hours))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (dt.datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        (dt.datetime(999, 12, 31, 23, 59, 59, 1, UTC), "0999-12-31T23:59:59.000001Z"),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "9999-12-31T23:59:59.999999Z"),
        (dt.datetime(2024, 1, 1, 1, 30, tzinfo=at(2)), "2023-12-31T23:30:00.000000Z"),
        (dt.datetime(2024, 1, 1, tzinfo=at(-5.5)), "2024-01-01T05:30:00.000000Z"),
        (dt.datetime(1, 1, 1, tzinfo=at(-1)), "0001-01-01T01:00:00.000000Z"),
    ],
)
def test_format_time(moment, text):
    assert m.format_time(moment) == text


def test_format_time_guesses_nothing():
    with pytest.raises(ValueError, match="without a zone"):
        m.format_time(dt.datetime(2024, 1, 1))  # noqa: DTZ001
    for moment in (dt.datetime(1, 1, 1, tzinfo=at(1)), dt.datetime(9999, 12, 31, 23, tzinfo=at(-1))):
        with pytest.raises(OverflowError):
            m.format_time(moment)


def test_wire_forms():
    schema = m.Schema("a", {"type": "object"}, ("id",), ("at",))
    assert m.to_line(schema) == (
        b'{"type":"SCHEMA","stream":"a","schema":{"type":"object"},"key_properties":["id"],"bookmark_properties":["at"]}\n'
    )
    assert m.Schema("a", {}).to_wire() == {"type": "SCHEMA", "stream": "a", "schema": {}, "key_properties": []}
    assert m.to_line(m.ActivateVersion("a", 5)) == b'{"type":"ACTIVATE_VERSION","stream":"a","version":5}\n'
    assert m.to_line(m.State({"b": Decimal("1.10")})) == b'{"type":"STATE","value":{"b":1.10}}\n'
    assert m.State().value == {}


def test_what_stands_around_a_row():
    moment = dt.datetime(2024, 1, 2, tzinfo=UTC)
    for stream, version in (('q"uo\\te\n', None), ("é", 17)):
        prefix, suffix = m.record_prefix_suffix(stream, moment, version)
        wire = {"type": "RECORD", "stream": stream, "record": {}, "time_extracted": "2024-01-02T00:00:00.000000Z"}
        if version is not None:
            wire["version"] = version
        assert json.loads(prefix + b"{}" + suffix) == wire
        assert suffix.endswith(b"\n") and suffix.count(b"\n") == 1


@pytest.mark.parametrize("kind", ["state", "State", "STATE"])
def test_types_are_read_in_any_case(kind):
    assert m.parse_line(f'{{"type": "{kind}", "value": 1}}') == {"type": "STATE", "value": 1}


@pytest.mark.parametrize(
    "line", ["", "x", "[]", "5", "{}", '{"type": 5}', b'{"type":"\xff"}', '{"type":"\udc80"}', '{"type":']
)
def test_what_is_no_message(line):
    with pytest.raises(MessageError):
        m.parse_line(line)


def test_big_numbers_come_through():
    line = m.encode({"type": "RECORD", "n": 2**70, "d": Decimal("0.10000000000000000001")})
    assert b"1180591620717411303424" in line and b"0.10000000000000000001" in line
    assert m.parse_line(line)["n"] == 2**70


def test_singer_python_reads_our_lines():
    import logging

    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    try:
        import singer
    finally:
        root.handlers[:], root.level = before
    moment = dt.datetime(1, 1, 1, tzinfo=UTC)
    prefix, suffix = m.record_prefix_suffix("a", moment, 5)
    got = singer.parse_message((prefix + b'{"id":1}' + suffix).decode())
    assert (got.stream, got.record, got.version, got.time_extracted) == ("a", {"id": 1}, 5, moment)
    got = singer.parse_message(m.to_line(m.Schema("a", {"type": "object"}, ("id",), ("at",))).decode())
    assert (got.stream, got.schema, got.key_properties, got.bookmark_properties) == (
        "a",
        {"type": "object"},
        ["id"],
        ["at"],
    )
    assert singer.parse_message(m.to_line(m.State({"x": 1})).decode()).value == {"x": 1}
    assert singer.parse_message(m.to_line(m.ActivateVersion("a", 5)).decode()).version == 5
