"""A state that keeps a bookmark under a name that burler does not read is told: the stream begins anew."""

from __future__ import annotations

import logging

import pytest

import burler
from burler.testing import run_tap

ROWS = [{"id": 1, "at": "2024-05-01T00:00:00Z"}, {"id": 2, "at": "2024-05-02T00:00:00Z"}]
SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}


@pytest.fixture
def tap():
    made = burler.tap("tap-audits")

    @made.sync("audits", key_properties="id", replication_key="at", schema=SCHEMA)
    def audits(stream):
        yield from (row for row in ROWS if row["at"] >= (stream.bookmark or ""))

    @made.sync("accounts", key_properties="id", schema=SCHEMA)
    def accounts():
        yield from ROWS

    return made


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            {"replication_key": "at", "replication_key_value": "2024-05-02T00:00:00Z"},
            "stream 'audits': the state holds 'replication_key', 'replication_key_value' of it and no 'at', so the "
            "stream begins anew. The Singer SDK writes such states; its page in the docs converts them.",
        ),
        (
            {"since": "2024-05-02T00:00:00Z"},
            "stream 'audits': the state holds 'since' of it and no 'at', so the stream begins anew. If one of these is "
            "its bookmark, name it 'at' in the state.",
        ),
        (
            {"a": 1, "b": 2, "c": 3, "d": 4},
            "stream 'audits': the state holds 'a', 'b', 'c', ... of it and no 'at', so the stream begins anew. If one "
            "of these is its bookmark, name it 'at' in the state.",
        ),
    ],
)
def test_a_bookmark_under_another_name_is_told(tap, caplog, entry, says):
    out = run_tap(tap, state={"bookmarks": {"audits": entry}})
    assert warnings(caplog) == [says]
    assert len(out.records("audits")) == 2
    assert out.states[-1]["bookmarks"]["audits"] == {**entry, "at": "2024-05-02T00:00:00Z"}


@pytest.mark.parametrize(
    "bookmarks",
    [
        {},
        {"audits": {}},
        {"audits": {"at": "2024-05-02T00:00:00Z", "since": 1}},
        {"audits": {"stream_state": {"page": 2}, "since": 1}},
        {"audits": {"version": 1}},
        {"accounts": {"version": 1, "of its own": 2}},
        {"accounts": {"version": 1}, "gone": {"since": 1}},
    ],
)
def test_what_is_read_or_no_concern_is_not(tap, caplog, bookmarks):
    run_tap(tap, state={"bookmarks": bookmarks})
    assert warnings(caplog) == []


def test_a_state_without_a_stream_of_the_tap_is_told(tap, caplog):
    out = run_tap(tap, select="audits", state={"bookmarks": {"orders": {"at": 1}, "gone": {}}})
    assert warnings(caplog) == [
        "the state holds 'orders', 'gone' and no stream of this tap: every stream begins anew. Is it the state of "
        "another tap?"
    ]
    caplog.clear()
    run_tap(tap, select="audits", state=out.states[-1])
    assert warnings(caplog) == []


def test_a_state_that_was_told_once_is_read_from_then_on(tap, caplog):
    first = run_tap(tap, state={"bookmarks": {"audits": {"since": "2024-05-02T00:00:00Z"}}})
    caplog.clear()
    second = run_tap(tap, state=first.states[-1])
    assert (warnings(caplog), len(second.records("audits"))) == ([], 1)
