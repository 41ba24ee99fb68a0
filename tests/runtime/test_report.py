"""The report of a run: what it holds, in how much memory, and what never gets into it."""

from __future__ import annotations

import datetime as dt
import json
import threading
from decimal import Decimal

import msgspec
import pytest
from reportruns import Clock, ended, new_report

import burler
from burler.errors import Failure, PartialError, StreamError
from burler.testing import canary, run_tap
from support.internals import run_report

FAILURES = 1000
"""Kept in a report, at the most (docs/reports.md)."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def report(clock: Clock) -> run_report.Report:
    return new_report(clock)


@pytest.fixture
def secret():
    password = canary("password")
    tap = burler.tap("tap-secret", config_spec=["password"])
    tap.sync("rows", schema={"properties": {"id": {}}})(lambda: [])
    run_tap(tap, {"password": password})  # from now on it is known
    yield password
    run_tap(tap, {"password": "of nobody"})


def test_a_run_of_two_streams(report: run_report.Report, clock: Clock):
    report.stream_began("contacts", method="INCREMENTAL", bookmark="2024-01-01T00:00:00Z")
    clock.seconds += 2
    report.page("contacts", 1000, "2024-02-01T00:00:00Z")
    clock.seconds += 2
    ended(
        report,
        "contacts",
        rows=1500,
        updated=1499,
        skipped=2,
        seconds=4.0,
        bookmark_from="2024-01-01T00:00:00Z",
        bookmark_to="2024-03-01T00:00:00Z",
    )
    report.stream_began("notes", method="FULL_TABLE", bookmark=None)
    clock.seconds += 1
    report.failed("notes", None, StreamError("notes", "stream 'notes': the source is gone"))
    ended(report, "notes", status="failed")
    report.end("failed", 1)
    assert report.to_json() == {
        "format_version": 1,
        "tap": "tap-crm",
        "burler_version": "0.1.0",
        "started": "2024-05-01T03:00:00.000000Z",
        "ended": "2024-05-01T03:00:05.000000Z",
        "seconds": 5.0,
        "status": "failed",
        "exit_code": 1,
        "limit": None,
        "schemas_only": False,
        "error": None,
        "totals": {
            "streams": 2,
            "streams_failed": 1,
            "rows": 1500,
            "updated": 1499,
            "skipped": 2,
            "errors": 1,
            "rows_per_second": 300.0,
        },
        "streams": [
            {
                "stream": "contacts",
                "replication_method": "INCREMENTAL",
                "status": "succeeded",
                "rows": 1500,
                "updated": 1499,
                "skipped": 2,
                "seconds": 4.0,
                "rounds": 1,
                "rows_per_second": 375.0,
                "bookmark_from": "2024-01-01T00:00:00Z",
                "bookmark_to": "2024-03-01T00:00:00Z",
                "counts": {},
                "error_count": 0,
                "errors": [],
            },
            {
                "stream": "notes",
                "replication_method": "FULL_TABLE",
                "status": "failed",
                "rows": 0,
                "updated": None,
                "skipped": 0,
                "seconds": 1.0,
                "rounds": 1,
                "rows_per_second": 0.0,
                "bookmark_from": None,
                "bookmark_to": None,
                "counts": {},
                "error_count": 1,
                "errors": [{"where": None, "type": "StreamError", "message": "the source is gone", "place": None}],
            },
        ],
        "series": [
            {
                "stream": "contacts",
                "seconds": [0.0, 2.0, 4.0],
                "rows": [0, 1000, 1500],
                "bookmark": ["2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"],
            },
            {"stream": "notes", "seconds": [4.0, 5.0], "rows": [0, 0], "bookmark": [None, None]},
        ],
    }
    assert "series" not in report.to_json(series=False)


def test_a_run_in_which_nothing_began_has_a_report(clock: Clock):
    report = run_report.Report(clock.now, clock.monotonic)
    found = report.to_json()
    assert (found["tap"], found["status"], found["exit_code"], found["ended"]) == (None, "unfinished", None, None)
    assert found["streams"] == found["series"] == []
    clock.seconds += 3
    assert report.to_json()["seconds"] == 3
    report.end("failed", 2, ValueError("no config"))
    found = report.to_json()
    assert found["seconds"] == 3
    assert found["error"] == {"type": "ValueError", "message": "no config", "place": None}
    assert found["totals"]["errors"] == 1
    assert report.empty
    assert report.summary() == ""


def test_a_stream_that_did_not_come_to_its_end_shows_what_was_out(report: run_report.Report, clock: Clock):
    report.stream_began("a", method="INCREMENTAL", bookmark=5)
    clock.seconds += 2
    report.page("a", 30, 7)
    report.page("a", 31, None)
    clock.seconds += 2
    report.end("failed", 4)
    (one,) = report.to_json()["streams"]
    assert (one["status"], one["rows"], one["seconds"]) == ("unfinished", 31, 2.0)
    assert (one["bookmark_from"], one["bookmark_to"]) == (5, 7)


def test_the_last_word_on_the_end_counts_and_the_first_on_the_beginning(report: run_report.Report, clock: Clock):
    clock.seconds += 1
    report.begin("tap-crm")
    report.end("succeeded", 0)
    clock.seconds += 1
    report.end("failed", 4, OSError("gone"))
    found = report.to_json()
    assert (found["seconds"], found["status"], found["exit_code"]) == (2.0, "failed", 4)


def test_a_stream_that_begins_anew_goes_on_where_it_was(report: run_report.Report, clock: Clock):
    report.stream_began("a", method="INCREMENTAL", bookmark=5)
    report.page("a", 30, 7)
    clock.seconds += 1
    report.stream_began("a", method="INCREMENTAL", bookmark=7)
    (one,) = report.to_json()["streams"]
    assert (one["rows"], one["bookmark_from"], one["bookmark_to"]) == (30, 5, 7)
    assert len(report.to_json()["series"]) == 1


def test_what_the_engine_tells_of_a_stream_that_never_began_is_kept(report: run_report.Report):
    report.page("a", 5, None)
    report.failed("b", None, ValueError("x"))
    ended(report, "c", rows=7)
    assert [(one["stream"], one["rows"], one["error_count"]) for one in report.to_json()["streams"]] == [
        ("a", 5, 0),
        ("b", 0, 1),
        ("c", 7, 0),
    ]
    report.stream_began("b", method="FULL_TABLE", bookmark=None)
    assert report.to_json()["streams"][1]["replication_method"] == "FULL_TABLE"


def test_a_stream_may_fail_without_an_error(report: run_report.Report):
    ended(report, "a", status="failed")
    ended(report, "b")
    assert report.to_json()["totals"]["streams_failed"] == 1


# ---- failures ------------------------------------------------------------------------------------


def errors_of(report: run_report.Report, stream: str) -> list[tuple[str | None, str]]:
    (one,) = [one for one in report.to_json()["streams"] if one["stream"] == stream]
    return [(error["where"], error["message"]) for error in one["errors"]]


def test_parts_that_failed_are_named_once(report: run_report.Report):
    failures = [Failure("tickets", f"partition {i}", ValueError(f"no {i}")) for i in range(3)]
    for failure in failures:
        report.failed(failure.stream, failure.where, failure.error)
    report.failed("tickets", None, PartialError("tickets", failures))
    assert errors_of(report, "tickets") == [(f"partition {i}", f"no {i}") for i in range(3)]


def test_a_partial_error_alone_names_its_parts(report: run_report.Report):
    parts = [Failure("notes", "parent id=5", ValueError("x")), Failure("tickets", "partition a", ValueError("y"))]
    report.failed("tickets", "partition b", ValueError("z"))
    report.failed("tickets", None, PartialError("tickets", parts))
    assert errors_of(report, "notes") == [("parent id=5", "x")]
    assert errors_of(report, "tickets") == [("partition b", "z")]


def test_a_partial_error_behind_the_streams_own_error_names_its_parts(report: run_report.Report):
    report.failed("tickets", None, ValueError("x"))
    report.failed("tickets", None, PartialError("tickets", [Failure("tickets", "partition a", ValueError("y"))]))
    assert errors_of(report, "tickets") == [(None, "x"), ("partition a", "y")]


def test_the_same_error_told_twice_counts_once(report: run_report.Report):
    error = ValueError("x")
    report.failed("a", None, error)
    report.failed("a", None, error)
    report.failed("a", None, ValueError("x"))
    assert report.to_json()["totals"]["errors"] == 2
    report.failed("a", "partition 1", error)
    report.failed("a", "partition 2", error)
    report.failed("a", None, error)
    assert report.to_json()["totals"]["errors"] == 4


def test_of_many_failures_a_thousand_are_kept_and_all_are_counted(report: run_report.Report):
    for i in range(FAILURES + 500):
        report.failed("ab"[i % 2], f"parent id={i}", ValueError(i))
    streams = report.to_json()["streams"]
    assert sum(len(one["errors"]) for one in streams) == FAILURES
    assert [one["error_count"] for one in streams] == [750, 750]
    assert "... and 500 more" in report.to_html()


def test_an_error_names_the_line_of_the_authors_code(report: run_report.Report):
    try:
        {}["nothing"]
    except KeyError as error:
        report.failed("a", None, error)
    (error,) = report.to_json()["streams"][0]["errors"]
    assert error["place"].startswith("tests/runtime/test_report.py:") or "test_report.py:" in error["place"]
    assert (error["type"], error["message"]) == ("KeyError", "'nothing'")


def test_an_error_of_burlers_own_has_no_place(report: run_report.Report):
    try:
        raise StreamError("a", "stream 'a': no rows")
    except StreamError as error:
        report.failed("a", None, error)
    assert report.to_json()["streams"][0]["errors"] == [
        {"where": None, "type": "StreamError", "message": "no rows", "place": None}
    ]


def test_half_a_surrogate_pair_is_spelled_out_wherever_it_stands(report: run_report.Report):
    """A file of the tap may have such a name; a report that can't be written because of it would be worse."""
    try:
        exec(compile("raise ValueError(chr(0xD800))", "\udcff.py", "exec"))
    except Exception as error:
        report.failed("a\udcff", "w\udcff", error)
        report.end("failed", 1, error)
    found = msgspec.json.decode(msgspec.json.encode(report.to_json()))
    (error,) = found["streams"][0]["errors"]
    assert error == {"where": "w\\udcff", "type": "ValueError", "message": "\\ud800", "place": "\\udcff.py:1"}
    report.to_html().encode()


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_errors_without_a_text_and_with_too_much_of_it(report: run_report.Report):
    report.failed("a", None, ValueError())
    report.failed("a", None, Unprintable())
    report.failed("a", "w" * 10_000, ValueError("x" * 1_000_000))
    report.failed("a", None, ValueError("one\ntwo\n\nthree\nfour"))
    (empty, broken, long, lines) = report.to_json()["streams"][0]["errors"]
    assert (empty["type"], empty["message"]) == ("ValueError", "")
    assert (broken["type"], broken["message"]) == ("Unprintable", "")
    assert len(long["message"]) < 700 and long["message"].endswith(" ...")
    assert len(long["where"]) < 400
    assert lines["message"] == "one\n  two\n  three ..."


def test_failures_are_told_from_many_threads(report: run_report.Report):
    def tell(name: str) -> None:
        for i in range(200):
            report.failed(name, str(i), ValueError(i))

    threads = [threading.Thread(target=tell, args=(f"s{i % 2}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one["error_count"] for one in report.to_json()["streams"]] == [400, 400]


# ---- what is in it -------------------------------------------------------------------------------


def test_secrets_are_left_out_everywhere(secret: str):
    report = run_report.Report()
    report.begin(f"tap-{secret}")
    report.stream_began(f"s-{secret}", method="INCREMENTAL", bookmark=f"b{secret}")
    report.page(f"s-{secret}", 5, f"c{secret}")
    report.failed(f"s-{secret}", f"partition {secret}", ValueError(f"key {secret} refused"))
    ended(report, f"s-{secret}", rows=9, bookmark_from=f"b{secret}", bookmark_to=f"d{secret}")
    report.end("failed", 1, ValueError(f"{secret}!"))
    for text in (json.dumps(report.to_json()), report.to_html(), report.summary()):
        assert secret not in text
        assert "***" in text


def test_secrets_inside_a_bookmark_that_is_no_text_are_left_out(secret: str, report: run_report.Report):
    ended(report, "a", bookmark_to={"next": secret})
    assert report.to_json()["streams"][0]["bookmark_to"] == "{'next': '***'}"


def test_a_bookmark_that_ends_in_half_a_secret_is_masked(secret: str):
    """Points keep 200 characters: the cut may go through a secret, of which a part is one as well."""
    report = run_report.Report()
    report.stream_began("a", method="INCREMENTAL", bookmark=None)
    report.page("a", 5, "x" * 190 + secret)
    report.page("a", 6, "y")
    assert secret[:8] not in json.dumps(report.to_json())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("2024-01-01", "2024-01-01"),
        (5, 5),
        (2**70, 2**70),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (True, True),
        (Decimal("1.10"), "1.10"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "2024-01-01T00:00:00+00:00"),
        (dt.date(2024, 1, 1), "2024-01-01"),
        ("half \ud800", "half \\ud800"),
        ({"a": 1}, "{'a': 1}"),
        ("é" * 1000, "é" * 300 + " ..."),
    ],
)
def test_every_bookmark_has_a_json_form(report: run_report.Report, value: object, shown: object):
    report.stream_began("a", method="INCREMENTAL", bookmark=value)
    report.page("a", 1, value)
    ended(report, "a", rows=1, bookmark_from=value, bookmark_to=value)
    report.end("succeeded", 0)
    found = msgspec.json.decode(msgspec.json.encode(report.to_json()))
    assert found["streams"][0]["bookmark_from"] == found["streams"][0]["bookmark_to"] == shown
    report.to_html()
    report.summary()
