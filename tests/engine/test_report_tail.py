"""What a tail says of its rounds: little in the log, all of it in the METRIC lines and in the report."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import burler
from burler.testing import FakeClock, canary, run_tap
from support.taps import command

SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tap() -> burler.Tap:
    return burler.tap("tap-t")


def tail(tap: burler.Tap, clock: FakeClock, rounds: int = 5, **config: Any) -> None:
    settings = {"tail": True, "tail_max_rounds": rounds, "new_record_polling_interval_ms": 10_000, **config}
    run_tap(tap, settings, clock=clock)


def report_of(tap: burler.Tap, folder: Path, rounds: int) -> dict[str, Any]:
    """The report of a tail by the command."""
    (folder / "config.json").write_text(
        json.dumps({"tail": True, "tail_max_rounds": rounds, "new_record_polling_interval_ms": 1})
    )
    command(tap, "run", "--config", folder / "config.json", "--report", folder / "report.json")
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def messages(caplog: pytest.LogCaptureFixture, level: int, *words: str) -> list[str]:
    records = [record for record in caplog.records if record.levelno == level]
    return [text for text in (record.getMessage() for record in records) if all(word in text for word in words)]


def points(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    lines = messages(caplog, logging.INFO, "METRIC: ", "record_count")
    found = [json.loads(line.removeprefix("METRIC: ")) for line in lines]
    return [(one["tags"]["endpoint"], one["value"]) for one in found]


def counting(tap: burler.Tap, name: str = "rows") -> None:
    """A stream with two new rows in each round, and the last one of the round before."""

    @tap.sync(name, key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
    def rows(stream: Any) -> Any:
        first = stream.bookmark or 1
        return [{"id": first + n} for n in range(3)]


def test_rounds_are_told_at_debug_and_summed_up_now_and_then(
    tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    counting(tap)
    with caplog.at_level(logging.DEBUG, logger="burler"):
        tail(tap, clock, rounds=20, metrics_interval_seconds=60)
    assert len(messages(caplog, logging.DEBUG, "stream 'rows': start")) == 20
    assert len(messages(caplog, logging.DEBUG, "stream 'rows': succeeded")) == 20
    assert messages(caplog, logging.INFO, "stream 'rows': start") == []
    assert "2 rows of 'rows' (1 more were out already)" in messages(caplog, logging.DEBUG, "succeeded")[1]
    assert sum(count for _, count in points(caplog)) == 3 + 19 * 2
    lines = messages(caplog, logging.INFO, "stream 'rows': ", " polls, bookmark ")
    assert 3 <= len(lines) == len(points(caplog)) <= 5
    assert messages(caplog, logging.INFO, "job_type", '"stream"') == []


def test_a_plain_run_says_what_it_always_said(tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture):
    counting(tap)
    with caplog.at_level(logging.INFO, logger="burler"):
        tail(tap, clock, tail=False)
    assert messages(caplog, logging.INFO, "stream 'rows': start (sync, INCREMENTAL, bookmark none)")
    assert messages(caplog, logging.INFO, "stream 'rows': succeeded, 3 rows of 'rows', ", "bookmark 3")
    assert points(caplog) == [("rows", 3)]


def test_the_watch_knows_the_bookmark_that_a_stream_without_order_ends_at(
    tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    @tap.sync("rows", key_properties="id", replication_key="at", schema=SCHEMA)
    def rows() -> Any:
        now = clock.now().isoformat()
        return [{"id": 1, "at": now}, {"id": 2, "at": "2020-01-01T00:00:00Z"}]

    with caplog.at_level(logging.INFO, logger="burler"):
        tail(tap, clock, rounds=2)
    (line,) = messages(caplog, logging.INFO, "stream 'rows': ")
    assert line.endswith("2 polls, bookmark 2026-01-01T00:00:10+00:00 (0.0 s behind)")


def test_rows_that_were_skipped_are_counted_once(tap: burler.Tap, tmp_path: Path):
    @tap.sync("rows", key_properties="id", on_bad_record="skip", replication_key="id", order="asc", schema=SCHEMA)
    def rows(stream: Any) -> Any:
        first = (stream.bookmark or 0) + 1
        return [{"id": first}, {"id": first + 1, "at": 5}]

    (one,) = report_of(tap, tmp_path, 7)["streams"]
    assert (one["rows"], one["skipped"]) == (7, 7)


def test_unknown_fields_are_told_at_once_then_once_an_hour_and_at_the_end(
    tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    @tap.sync("rows", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
    def rows(stream: Any) -> Any:
        return [{"id": (stream.bookmark or 0) + 1, "colour": "red"}]

    with caplog.at_level(logging.WARNING, logger="burler"):
        tail(tap, clock, rounds=1000)
    found = messages(caplog, logging.WARNING, "does not know were dropped: colour")
    assert [line.partition("(")[2].partition(" ")[0] for line in found] == ["1", "361", "721", "1,000"]


def test_what_an_author_forgot_is_told_once(tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture):
    @tap.sync("rows", key_properties="id", replication_key="id", bookmark_strategy="manual", schema=SCHEMA)
    def rows() -> Any:
        return [{"id": 1, "at": clock.now().isoformat()}]

    with caplog.at_level(logging.WARNING, logger="burler"):
        tail(tap, clock)
    assert len(messages(caplog, logging.WARNING, "bookmark_strategy is 'manual'")) == 1


def test_many_partitions_are_told_once(tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture):
    @tap.partitions("rows")
    def parts() -> Any:
        return [{"n": n} for n in range(6)]

    @tap.sync("rows", key_properties="id", replication_key="id", schema=SCHEMA)
    def rows(partition: Any) -> Any:
        return [{"id": partition["n"]}]

    with caplog.at_level(logging.WARNING, logger="burler"):
        tail(tap, clock, partition_bookmarks_warning=5)
    assert len(messages(caplog, logging.WARNING, "holds the bookmarks of 6 partitions")) == 1


def test_parts_that_fail_are_errors_in_the_lines_and_no_failure_of_the_stream(
    tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    @tap.partitions("rows")
    def parts() -> Any:
        return [{"n": 1}, {"n": 2}]

    @tap.sync("rows", key_properties="id", replication_key="id", schema=SCHEMA)
    def rows(partition: Any) -> Any:
        yield {"id": partition["n"]}
        if partition["n"] == 2:
            raise ValueError("no luck")

    with caplog.at_level(logging.INFO, logger="burler"):
        tail(tap, clock, rounds=3)
    (line,) = messages(caplog, logging.INFO, "stream 'rows': ", "errors")
    assert line.endswith("3 polls, 3 errors, the last: ValueError: no luck")
    (one,) = report_of(tap, tmp_path, 3)["streams"]
    assert (one["status"], one["error_count"], one["rounds"]) == ("failed", 3, 3)


def test_a_stream_that_fails_now_and_then(tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture):
    counting(tap)
    called: list[int] = []

    @tap.sync("weak", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
    def weak() -> Any:
        called.append(1)
        if len(called) % 2:
            raise ConnectionError("gone")
        return [{"id": len(called)}]

    with caplog.at_level(logging.INFO, logger="burler"):
        tail(tap, clock, rounds=6)
    assert dict(points(caplog)) == {"rows": 13, "weak": 3}


def test_a_stream_that_has_recovered_has_not_failed_and_rows_that_come_again_are_no_updated_ones(
    tap: burler.Tap, tmp_path: Path
):
    called: list[int] = []

    @tap.sync("rows", key_properties="id", replication_key="at", schema=SCHEMA)
    def rows() -> Any:
        called.append(1)
        yield {"id": 1, "at": "2024-01-01T00:00:00Z"}
        if len(called) == 1:
            raise ConnectionError("gone")

    found = report_of(tap, tmp_path, 3)
    (one,) = found["streams"]
    assert (one["rows"], one["updated"], one["counts"]["repeated"], one["rounds"]) == (1, 1, 2, 3)
    assert (one["status"], one["error_count"], found["totals"]["streams_failed"]) == ("succeeded", 1, 0)


# ---- lines of an interval -------------------------------------------------------------------------


def streams_told(caplog: pytest.LogCaptureFixture) -> dict[str, list[str]]:
    """What the log says of each stream now and then."""
    found: dict[str, list[str]] = {}
    for text in messages(caplog, logging.INFO, "stream '", " poll"):
        name, _, told = text.removeprefix("stream '").partition("': ")
        found.setdefault(name, []).append(told)
    return found


def shape_of(told: str) -> str:
    """Without its numbers and times."""
    return re.sub(r"\d[\d.:TZ+-]*", "N", told)


def test_the_lines_of_an_interval_are_those_of_the_docs(
    tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """docs/reports.md shows them with numbers of its own."""
    monkeypatch.setattr("random.random", lambda: 1.0)

    @tap.sync("orders", key_properties="id", replication_key="at", order="asc", schema=SCHEMA)
    def orders(stream: Any) -> Any:
        now = clock.now()
        if stream.bookmark is not None:
            yield {"id": 1, "at": stream.bookmark}
        yield {"id": 1, "at": (now - dt.timedelta(seconds=3.25)).isoformat()}

    @tap.sync("users", key_properties="id", replication_key="id", schema=SCHEMA)
    def users() -> Any:
        raise HTTPError("500 Server Error")
        yield

    with caplog.at_level(logging.INFO, logger="burler"):
        tail(tap, clock, rounds=10, tail_max_retries="forever")
    page = (Path(burler.__file__).parents[1] / "docs" / "reports.md").read_text(encoding="utf-8")
    for name in ("orders", "users"):
        [like] = [line for line in page.splitlines() if f"INFO stream '{name}': " in line]
        assert shape_of(like.partition("': ")[2]) in map(shape_of, streams_told(caplog)[name])
    first, *others = messages(caplog, logging.INFO, "tail: ", " rows in ")
    assert re.fullmatch(
        r"tail: \d+ rows in 60 s, 2 streams, 1 of them failing, (last STATE [\d.]+ s ago|no STATE yet)", first
    ), first
    assert others, "it comes each time, also where nothing came"
    counted = dict.fromkeys(name for name, _ in points(caplog))
    assert list(counted) == ["orders", "users"], "each stream has one line at least"


LAGS = {
    "2025-12-31T23:59:00Z": "60 s",
    "2025-12-31T23:59:00.2500001Z": "60 s",
    "2026-01-01T01:59:00+02:00": "60 s",
    "2025-12-31": "24 h",
    "2026-01-01T00:00:09Z": "0.0 s",
    "2025-12-31T23:59:00": None,
    "2025-13-31": None,
    "2025-W52-3": None,
    "20251231": None,
    1767225600: None,
    1.5: None,
}


def test_the_lag_of_a_bookmark_that_is_a_time(tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture):
    for number, bookmark in enumerate(LAGS):

        @tap.sync(f"s{number}", replication_key="id", bookmark_strategy="manual", schema={"properties": {"id": {}}})
        def rows(stream: Any, bookmark: Any = bookmark) -> Any:
            stream.save_bookmark(bookmark)
            yield {"id": bookmark}

    with caplog.at_level(logging.INFO, logger="burler"):
        tail(tap, clock, rounds=1)
    for number, (bookmark, lag) in enumerate(LAGS.items()):
        [told] = streams_told(caplog)[f"s{number}"]
        assert told == f"1 row in 0.0 s, 1 poll, bookmark {bookmark}" + (f" ({lag} behind)" if lag else "")


def test_no_secret_is_in_a_line_and_an_error_that_goes_on_and_on_is_cut(
    tap: burler.Tap, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    secret = canary("password")
    tap = burler.tap("tap-t", config_spec=["password"])
    tap.partitions("rows")(lambda: [{"n": 1}])

    @tap.sync("rows", key_properties="id", replication_key="id", schema=SCHEMA)
    def rows(partition: Any) -> Any:
        raise ValueError(f"token {secret}\nrefused " + "x" * 100_000)
        yield

    with caplog.at_level(logging.INFO, logger="burler"):
        tail(tap, clock, rounds=2, password=secret)
    [told] = streams_told(caplog)["rows"]
    assert "2 errors, the last: ValueError: token *** refused xxx" in told
    assert len(told) < 500


class HTTPError(Exception):
    pass
