"""A bookmark keeps the source's own spelling: sources that compare text (json-server, SQLite, many document stores)
take ``05.400Z`` for less than ``05Z``, and would leave that row out of every later run."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3

import pyarrow as pa
import pytest

import burler
from burler.patterns import windows
from burler.testing import run_tap

DATE_TIME = {"type": "string", "format": "date-time"}
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": DATE_TIME}}
FOUR, FIVE, LATER = "2026-01-01T00:00:04.120Z", "2026-01-01T00:00:05.000Z", "2026-01-01T00:00:05.400Z"
MOMENT = dt.datetime(2026, 1, 1, 0, 0, 5, tzinfo=dt.UTC)

FORMS = {
    "dicts": list,
    "bytes": lambda rows: json.dumps(rows).encode(),
    "rows of which one is repaired": lambda rows: [{**row, "id": str(row["id"])} for row in rows],
    "many rows": lambda rows: [{"id": -n, "at": "2026-01-01T00:00:00.001Z"} for n in range(300)] + rows,
}


class TextSource:
    """Rows whose ``at`` is compared as text."""

    def __init__(self, *times):
        self.rows = [{"id": n, "at": at} for n, at in enumerate(times, 1)]
        self.asked = []

    def ask(self, since):
        self.asked.append(since)
        return sorted((row for row in self.rows if since is None or row["at"] >= since), key=lambda row: row["at"])


def tap_on(source, form=list, *, schema=SCHEMA, **options):
    tap = burler.tap("tap-x")

    @tap.sync("rows", key_properties="id", replication_key="at", schema=schema, **options)
    def rows(stream):
        yield form(source.ask(stream.bookmark))

    return tap


def saved(run, stream="rows", key="at"):
    return run.result.state["bookmarks"][stream][key]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["asc", "none"])
def test_rows_of_the_bookmarks_second_come_in_the_next_run(form, order):
    source = TextSource(FOUR, FIVE)
    tap = tap_on(source, FORMS[form], order=order)
    first = run_tap(tap)
    assert saved(first) == FIVE
    assert first.records("rows")[-1]["at"] == "2026-01-01T00:00:05Z"  # records have one form, whatever the source's
    source.rows.append({"id": 3, "at": LATER})
    second = run_tap(tap, state=first.result.state)
    assert source.asked == [None, FIVE]
    assert [row["id"] for row in second.records("rows") if row["id"] > 0] == [2, 3]
    assert saved(second) == LATER


@pytest.mark.parametrize(
    ("spelled", "lower"),
    [
        (["2026-01-01T00:00:05Z", FIVE], FIVE),
        ([FIVE, "2026-01-01T02:00:05+02:00"], FIVE),
        (["2026-01-01T00:00:05+00:00", FIVE], "2026-01-01T00:00:05+00:00"),
        (["2026-01-01 00:00:05Z", FIVE], "2026-01-01 00:00:05Z"),
        (["2026-01-01T00:00:05.0000000Z", FIVE], "2026-01-01T00:00:05.0000000Z"),
    ],
)
@pytest.mark.parametrize("order", ["asc", "none"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("pages", [1, 2])
def test_of_two_spellings_of_one_moment_the_one_that_sorts_lower_is_kept(spelled, lower, order, turned, pages):
    rows = [{"id": n, "at": at} for n, at in enumerate(reversed(spelled) if turned else spelled)]
    tap = burler.tap("tap-x")

    @tap.sync("rows", key_properties="id", replication_key="at", order=order, schema=SCHEMA)
    def read():
        yield from [rows] if pages == 1 else [rows[:1], rows[1:]]

    assert saved(run_tap(tap)) == lower


def test_a_state_of_before_is_read_as_it_is():
    source = TextSource(FIVE)
    old = {"bookmarks": {"rows": {"at": "2026-01-01T00:00:05Z"}}}
    assert run_tap(tap_on(source), state=old).result.state == old
    assert source.asked == ["2026-01-01T00:00:05Z"]
    moment = {"bookmarks": {"rows": {"at": "2026-01-01T00:00:04Z"}}}
    assert saved(run_tap(tap_on(source), state=moment)) == FIVE


@pytest.mark.parametrize("order", ["asc", "none"])
def test_a_lower_spelling_of_the_rows_replaces_that_of_the_state(order):
    source = TextSource(FIVE)
    source.ask = lambda since: source.rows  # it compares moments
    old = {"bookmarks": {"rows": {"at": "2026-01-01T00:00:05Z"}}}
    assert saved(run_tap(tap_on(source, order=order), state=old)) == FIVE
    source.rows = [{"id": 1, "at": "2026-01-01T00:00:05Z"}]
    new = {"bookmarks": {"rows": {"at": FIVE}}}
    assert saved(run_tap(tap_on(source, order=order), state=new)) == FIVE


@pytest.mark.parametrize(
    "given",
    [
        [{"id": 1, "at": MOMENT}],
        [{"id": 1, "at": MOMENT.astimezone(dt.timezone(dt.timedelta(hours=2)))}],
        pa.table({"id": [1], "at": pa.array([MOMENT], pa.timestamp("ms", "UTC"))}),
        pa.table({"id": [1], "at": [FIVE]}),
    ],
    ids=["datetime", "datetime in a zone", "timestamps", "text in Arrow"],
)
def test_what_was_no_text_has_the_canonical_form(given):
    tap = burler.tap("tap-x")
    tap.sync("rows", key_properties="id", replication_key="at", schema=SCHEMA)(lambda: iter([given]))
    assert saved(run_tap(tap)) == "2026-01-01T00:00:05Z"


@pytest.mark.parametrize("resume", ["inclusive", "exclusive"])
def test_a_stopped_run_keeps_the_spelling_too(resume):
    tap = burler.tap("tap-x")

    @tap.sync("rows", replication_key="at", order="asc", resume=resume, schema=SCHEMA)
    def rows():
        yield [{"id": 1, "at": FOUR}, {"id": 2, "at": FIVE}, {"id": 3, "at": "2026-01-01T00:00:05Z"}]
        yield [{"id": 4, "at": LATER}]
        raise RuntimeError("the source is gone")

    assert saved(run_tap(tap)) == (LATER if resume == "inclusive" else FIVE)


def test_the_lookback_is_spelled_as_the_bookmark_is():
    source = TextSource("2026-01-01T00:00:04.000Z", FIVE)
    tap = tap_on(source, lookback=1)
    second = run_tap(tap, state=run_tap(tap).result.state)
    assert source.asked == [None, "2026-01-01T00:00:04.000Z"]
    assert len(second.records("rows")) == 2


@pytest.mark.parametrize(
    ("options", "asked", "ids"),
    [
        ({}, "2026-01-01T00:00:05Z", [2]),  # which is why docs/bookmarks.md names the other two
        ({"lookback": 1}, "2026-01-01T00:00:04Z", [2, 3]),
        ({"bookmark_format": "%Y-%m-%dT%H:%M:%S.%3fZ"}, "2026-01-01T00:00:05.000Z", [2, 3]),
    ],
)
@pytest.mark.parametrize("order", ["asc", "none"])
def test_a_source_that_writes_fractions_only_where_there_are_some(options, asked, ids, order):
    source = TextSource(FOUR, "2026-01-01T00:00:05Z")
    tap = tap_on(source, order=order, on_unsorted="end_of_sync", **options)
    first = run_tap(tap)
    source.rows.append({"id": 3, "at": LATER})
    second = run_tap(tap, state=first.result.state)
    assert source.asked == [None, asked]
    assert sorted(row["id"] for row in second.records("rows")) == ids


def test_windows_over_such_a_source_have_fractions_by_their_form():
    """The edge between two runs is where a row would be lost."""
    source = TextSource(FOUR, FIVE)
    moment = dt.timedelta(seconds=1)
    for form, ids in (({}, []), ({"bookmark_format": "%Y-%m-%dT%H:%M:%S.%3fZ"}, [3])):
        now = [MOMENT]
        tap = burler.tap("tap-x")

        @tap.sync("rows", key_properties="id", replication_key="at", bookmark_strategy="manual", schema=SCHEMA, **form)
        def rows(stream, now=now):
            for window in windows(stream, moment, start="2026-01-01T00:00:04Z", now=lambda: now[0]):
                yield [row for row in source.rows if window.start <= row["at"] < window.end]

        first = run_tap(tap)
        source.rows = [*source.rows[:2], {"id": 3, "at": LATER}]
        now[0] = MOMENT + 2 * moment
        again = run_tap(tap, state=first.result.state)
        assert [row["id"] for row in again.records("rows") if row["id"] == 3] == ids


def test_a_signpost_is_spelled_as_the_rows_are():
    tap = tap_on(TextSource("2999-01-01T00:00:00.000+02:00"), signpost=True)
    at = saved(run_tap(tap))
    assert len(at) == len("2999-01-01T00:00:00.000+02:00") and at.endswith("+02:00")
    assert abs(dt.datetime.fromisoformat(at) - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=10)


@pytest.mark.parametrize("zone", ["Z", "+00:00"])
def test_a_signpost_over_whole_seconds_is_a_whole_second(zone):
    """A row that changes after the read is stamped with the beginning of its second."""
    source = TextSource(f"2999-01-01T00:00:00{zone}")
    tap = tap_on(source, signpost=True)
    began = dt.datetime.now(dt.UTC)
    at = saved(run_tap(tap))
    assert len(at) == len(f"2999-01-01T00:00:00{zone}") and at.endswith(zone)
    assert abs(dt.datetime.fromisoformat(at) - began) < dt.timedelta(minutes=10)
    source.rows.append({"id": 2, "at": at})  # as it is written all through that second
    assert [row["id"] for row in run_tap(tap, state={"bookmarks": {"rows": {"at": at}}}).records("rows")] == [2, 1]


@pytest.mark.parametrize(("microsecond", "unit"), [(0, 1_000_000), (400_000, 1000), (400_001, 1)])
def test_a_signpost_over_datetimes_counts_in_their_unit(microsecond, unit):
    tap = burler.tap("tap-x")
    ahead = dt.datetime(2999, 1, 1, 0, 0, 0, microsecond, tzinfo=dt.UTC)
    tap.sync("rows", replication_key="at", signpost=True, schema=SCHEMA)(lambda: [{"id": 1, "at": ahead}])
    at = dt.datetime.fromisoformat(saved(run_tap(tap)))
    assert at.microsecond % unit == 0 and abs(at - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=10)


def test_a_post_transform_changes_nothing_of_it():
    tap = tap_on(TextSource(FOUR, FIVE))
    tap.post_transform("rows")(lambda record: {**record, "id": record["id"] + 10})
    run = run_tap(tap)
    assert saved(run) == FIVE and [row["id"] for row in run.records("rows")] == [11, 12]


def test_rising_partitions_keep_it():
    tap = burler.tap("tap-x")

    @tap.partitions("rows", order="asc")
    def days():
        return [{"day": 1}, {"day": 2}]

    @tap.sync("rows", key_properties="id", replication_key="at", schema=SCHEMA)
    def rows(partition):
        yield {"id": partition["day"], "at": f"2026-01-0{partition['day']}T00:00:00.000Z"}

    assert saved(run_tap(tap)) == "2026-01-02T00:00:00.000Z"


@pytest.mark.parametrize("spelled", [[FIVE, "2026-01-01T00:00:05Z"], ["2026-01-01T00:00:05Z", FIVE]])
def test_of_rising_partitions_that_end_at_one_moment_the_lower_spelling_is_kept(spelled):
    tap = burler.tap("tap-x")
    tap.partitions("rows", order="asc")(lambda: [{"n": n} for n in range(2)])

    @tap.sync("rows", key_properties="id", replication_key="at", schema=SCHEMA)
    def rows(partition):
        yield {"id": partition["n"], "at": spelled[partition["n"]]}

    assert saved(run_tap(tap)) == FIVE


def test_a_parent_is_held_at_its_own_spelling():
    tap = burler.tap("tap-x")
    tap.sync("rows", key_properties="id", replication_key="at", order="asc", schema=SCHEMA)(
        lambda: [{"id": 1, "at": FOUR}, {"id": 2, "at": FIVE}, {"id": 3, "at": LATER}]
    )

    @tap.sync("notes", parent="rows", schema=SCHEMA)
    def notes(parent):
        if parent["id"] == 2:
            raise RuntimeError("no notes of this one")
        yield {"id": parent["id"]}

    assert saved(run_tap(tap)) == FIVE


def test_columns_of_batch_files_keep_it(tmp_path):
    config = {"batch_config": {"encoding": {"format": "parquet"}, "storage": {"root": tmp_path.as_uri()}}}
    tap = burler.tap("tap-x")
    rows = [{"id": n, "at": f"2026-01-01T00:00:0{n}.000Z"} for n in range(5)]
    tap.sync("rows", key_properties="id", replication_key="at", schema=SCHEMA)(lambda: iter([rows]))
    assert saved(run_tap(tap, config)) == "2026-01-01T00:00:04.000Z"


def test_sqlite_compares_text(tmp_path):
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as db:
        db.execute("create table rows (id integer primary key, at text)")
        db.executemany("insert into rows values (?, ?)", [(1, FOUR), (2, FIVE)])
    database = burler.sql.Database(f"sqlite:///{file}")
    tap = burler.tap("tap-x")

    @tap.sync("rows", key_properties="id", replication_key="at", schema=SCHEMA)
    def rows(stream):
        since = stream.bookmark or ""
        yield from database.query("select * from rows where at >= :since order by at", {"since": since})

    first = run_tap(tap)
    with sqlite3.connect(file) as db:
        db.execute("insert into rows values (3, ?)", [LATER])
    assert [row["id"] for row in run_tap(tap, state=first.result.state).records("rows")] == [2, 3]


@pytest.mark.parametrize(
    ("form", "asked"),
    [
        ("%Y-%m-%d %H:%M:%S", "2026-01-01 00:00:05"),
        ("%Y-%m-%dT%H:%M:%S.%3fZ", "2026-01-01T00:00:05.400Z"),
        ("%Y-%m-%dT%H:%M:%S.%f+00:00", "2026-01-01T00:00:05.400000+00:00"),
        ("%s%3f", "1767225605400"),
        ("100%% %d/%m/%Y", "100% 01/01/2026"),
    ],
)
def test_a_source_is_asked_in_the_form_that_it_wants(form, asked):
    source = TextSource(LATER)
    tap = tap_on(source, bookmark_format=form)
    first = run_tap(tap)
    assert saved(first) == LATER  # the state has the source's own
    source.ask = lambda since: source.asked.append(since) or []
    run_tap(tap, state=first.result.state)
    assert source.asked[-1] == asked


@pytest.mark.parametrize(
    ("last", "later"), [("5.4009", "5.4009"), ("5.9999999", "5.9999999"), ("5.400", "5.400"), ("5", "5.001")]
)
@pytest.mark.parametrize("form", ["%S.%3f", "%S.%f", "%S.%3f+00:00", "%S", "%S+00:00"])
def test_the_question_never_passes_the_bookmark(form, last, later):
    """Digits are cut and not rounded: a source that compares moments gives the row at the bookmark."""
    source = TextSource(f"2026-01-01T00:00:0{last}Z")
    tap = tap_on(source, bookmark_format=f"%Y-%m-%dT%H:%M:{form}")
    state = run_tap(tap).result.state
    source.rows.append({"id": 2, "at": f"2026-01-01T00:00:0{later}Z"})
    assert {row["id"] for row in run_tap(tap, state=state).records("rows")} == {1, 2}
    asked = source.asked[-1].removesuffix("+00:00")
    assert dt.datetime.fromisoformat(asked) <= dt.datetime.fromisoformat(f"2026-01-01T00:00:0{last}")


@pytest.mark.parametrize(
    ("last", "form", "asked"),
    [
        ("01.6000200Z", "%S.%fZ", "01.600019Z"),
        ("01.6000200Z", "%S.%f0Z", "01.6000200Z"),  # as many digits as the source writes: nothing is lost nor doubled
        ("01.6000200Z", "%S.%3fZ", "01.599Z"),
        ("01.600020Z", "%S.%3fZ", "01.599Z"),
        ("01.600Z", "%S.%3fZ", "01.600Z"),
        ("01.6Z", "%S.%3fZ", "01.600Z"),
        ("01.000Z", "%SZ", "00Z"),
        ("01Z", "%SZ", "01Z"),
        ("01.6Z", "%S", "01"),
        ("01.6Z", "%S+00:00", "01+00:00"),
        ("01.6+00:00", "%S.%3f+00:00", "01.599+00:00"),
        ("01.6Z", "00Z", "00Z"),
        ("00.000Z", "00Z", "00Z of the minute before"),
    ],
)
def test_a_question_that_sorts_after_the_bookmark_is_one_unit_less(last, form, asked):
    """As text ``01Z`` comes after ``01.6Z``: the source would give no row of that second."""
    source = TextSource(f"2026-01-01T00:46:{last}")
    tap = tap_on(source, bookmark_format=f"%Y-%m-%dT%H:%M:{form}")
    first = run_tap(tap)
    assert saved(first) == source.rows[0]["at"]
    assert [row["id"] for row in run_tap(tap, state=first.result.state).records("rows")] == [1]
    minute = "45" if "before" in asked else "46"
    assert source.asked[-1] == f"2026-01-01T00:{minute}:{asked.split()[0]}" <= source.rows[0]["at"]


def test_a_question_in_another_layout_than_the_bookmarks_is_cut_alone():
    for last, form, asked in (
        ("2026-01-01 00:00:05.400Z", "%Y-%m-%dT%H:%M:%SZ", "2026-01-01T00:00:05Z"),
        ("2026-01-01T12:00:05.400-02:00", "%Y-%m-%dT%H:%M:%SZ", "2026-01-01T14:00:05Z"),
        ("2026-01-31T00:00:05.400Z", "%d.%m.%Y", "31.01.2026"),
        ("2026-01-01T00:00:05.4009Z", "%s%3f", "1767225605400"),
        ("2026-01-01T00:00:05.9999999Z", "%s%3f", "1767225605999"),
    ):
        source = TextSource(last)
        tap = tap_on(source, bookmark_format=form)
        source.ask = lambda since, source=source: source.asked.append(since) or source.rows
        run_tap(tap, state=run_tap(tap).result.state)
        assert source.asked == [None, asked]


def test_the_form_holds_for_start_date_days_and_windows():
    source = TextSource()
    source.ask = lambda since: source.asked.append(since) or []
    run_tap(tap_on(source, bookmark_format="%d.%m.%Y"), {"start_date": "2026-01-31T00:00:00Z"})
    assert source.asked == ["31.01.2026"]
    tap = burler.tap("tap-x")
    seen = []

    @tap.sync(
        "rows",
        replication_key="at",
        bookmark_strategy="manual",
        bookmark_format="%Y-%m-%dT%H:%M:%S.%3fZ",
        schema=SCHEMA,
    )
    def rows(stream):
        for window in burler.patterns.windows(stream, dt.timedelta(days=1), end="2026-01-02T00:00:00Z"):
            seen.append((window.start, window.end))
            yield []

    run = run_tap(tap, {"start_date": "2026-01-01T00:00:00Z"})
    assert seen == [("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z")]
    assert saved(run) == "2026-01-02T00:00:00Z"
    seen.clear()
    assert run_tap(tap, {"start_date": "2026-01-01T00:00:00Z"}, state=run.result.state).result.state == run.result.state


def test_a_form_is_for_times():
    tap = burler.tap("tap-x")

    @tap.sync("rows", replication_key="id", bookmark_format="%Y", schema=SCHEMA)
    def rows(stream):
        yield [{"id": 5}] if stream.bookmark is None else []

    first = run_tap(tap)
    failed = run_tap(tap, state=first.result.state)
    assert "bookmark_format is for date-times and dates: 5 is no date-time" in str(failed.result.errors["rows"])


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%s"])
def test_the_form_of_the_question_is_the_same_at_each_call(form):
    """Of substreams, one call for each parent; and of a function that is tried once more."""
    tap, asked, tries = burler.tap("tap-x"), [], []
    state = {"bookmarks": {name: {"at": FIVE} for name in ("parents", "rows", "again")}}

    @tap.sync("parents", key_properties="id", replication_key="at", schema=SCHEMA)
    def parents():
        yield [{"id": n, "at": LATER} for n in range(3)]

    @tap.sync("rows", parent="parents", key_properties="id", replication_key="at", bookmark_format=form, schema=SCHEMA)
    def rows(parent, stream):
        asked.append(stream.bookmark)
        yield {"id": parent["id"], "at": LATER}

    @tap.sync(
        "again", key_properties="id", replication_key="at", retry_sync_on=KeyError, bookmark_format=form, schema=SCHEMA
    )
    def again(stream):
        asked.append(stream.bookmark)
        if not tries:
            tries.append(1)
            raise KeyError("once more")
        yield {"id": 1, "at": LATER}

    run = run_tap(tap, state=state)
    assert not run.result.errors
    assert len(asked) == 5 and len(set(asked)) == 1


def test_a_page_in_the_final_form_has_no_spellings_of_the_page_before_it():
    tap = burler.tap("tap-x")

    @tap.sync("rows", replication_key="at", bookmark_strategy="on_page", schema=SCHEMA)
    def rows():
        yield [{"at": f"2026-01-01T01:00:0{n}+01:00"} for n in range(5)]
        yield [{"at": f"2026-01-01T00:00:0{n}Z"} for n in range(5, 10)]

    run = run_tap(tap)
    assert [state["bookmarks"]["rows"]["at"] for state in run.states if "bookmarks" in state][-1] == (
        "2026-01-01T00:00:09Z"
    )
