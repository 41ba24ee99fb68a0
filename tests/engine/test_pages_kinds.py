"""A page of any kind does what the same rows as dicts do: bookmarks, versions, hooks, substreams, limits, bad rows."""

from __future__ import annotations

import json
import logging
from decimal import Decimal

import pyarrow as pa
import pytest
from pageruns import SCHEMA, dicts, gives, run_pages, tap_of

import burler
from burler.testing import run_tap, without_times


def rows_of(*numbers, **more):
    return [{"id": number, **more} for number in numbers]


def array(rows):
    return json.dumps(rows).encode()


def lines(rows):
    return b"\n".join(json.dumps(row).encode() for row in rows)


def document(rows):
    return burler.json_page(json.dumps({"a": {"b": rows}}, indent=1).encode(), "a.b")


def filled(rows):
    """Rows as a table has them: with a null where one has no value and another one has."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def table(rows):
    return pa.Table.from_pylist(filled(rows))


def many(rows):
    return [lines([row]) for row in rows]


KINDS = [array, lines, document, table, many]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def same(kind, *pages, config=None, warnings=None, **options):
    """Run the pages of one kind, and as lists of dicts: the same messages and errors. Gives the run."""
    found = []
    for made in (filled if kind is table else list, kind):
        if warnings is not None:
            warnings.clear()
        run = run_pages(gives(*map(made, pages)), config, **options)
        said = sorted(record.getMessage() for record in warnings.records) if warnings is not None else []
        said = [line for line in said if "METRIC" not in line and "job_duration" not in line and " s, " not in line]
        found.append((without_times(run.messages), {k: str(v) for k, v in run.result.errors.items()}, said))
    assert found[1] == found[0]
    return run


# ---- what a STATE says ------------------------------------------------------------------------------


@kinds
def test_bookmarks_follow_the_rows(kind):
    run = same(kind, rows_of(1, 2), rows_of(3), replication_key="id", order="asc")
    assert run.states[-1]["bookmarks"] == {"rows": {"id": 3}}
    run = same(kind, rows_of(5, 2), rows_of(3), replication_key="id")
    assert run.states[-1]["bookmarks"] == {"rows": {"id": 5}}
    times = [{"id": 1, "at": "2024-01-01T02:00:00.5+02:00"}, {"id": 2, "at": "2024-01-01T00:30:00Z"}]
    run = same(kind, times, replication_key="at")
    assert run.states[-1]["bookmarks"] == {"rows": {"at": "2024-01-01T00:30:00Z"}}
    run = same(kind, [{"id": 1}, {"id": 2, "whole": 2**62}, {"id": 3, "whole": None}], replication_key="whole")
    assert run.states[-1]["bookmarks"] == {"rows": {"whole": 2**62}}


@kinds
def test_broken_order_is_seen(kind):
    run = same(kind, rows_of(1, 3), rows_of(2, 4), replication_key="id", order="asc")
    assert "went from 3 back to 2" in str(run.result.errors["rows"])
    run = same(kind, rows_of(1, 3, 2), rows_of(4), replication_key="id", order="asc")
    assert "went from 3 back to 2" in str(run.result.errors["rows"])


@kinds
def test_every_n_counts_rows_in_pages(kind):
    def rows():
        for first in range(0, 100, 5):
            yield kind(rows_of(*range(first, first + 5)))

    run = run_pages(rows, replication_key="id", order="asc", bookmark_strategy="every_n(10)")
    assert run.records("rows") == dicts(range(100))
    marks = [state["bookmarks"]["rows"]["id"] for state in run.states]
    assert marks[-1] == 99
    assert 2 <= len(marks) <= 12
    out = -1
    for message in run.messages:
        if message["type"] == "RECORD":
            out = message["record"]["id"]
        elif message["type"] == "STATE":
            assert message["value"]["bookmarks"]["rows"]["id"] == out


@kinds
def test_full_tables_have_versions(kind):
    run = same(kind, rows_of(1, 2), rows_of(3))
    assert run.types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
    assert len({message["version"] for message in run.messages if "version" in message}) == 1


# ---- fields ---------------------------------------------------------------------------------------


@kinds
def test_unknown_fields_are_counted_as_for_dicts(kind, caplog):
    caplog.set_level(logging.WARNING)
    nested = {"in": {"x": 1, "y": 2}, "list": [{"x": 1, "z": 3}, {"x": 2, "z": 4}]}
    run = same(kind, rows_of(1, 2, new="a", **nested), [{"id": 3}], rows_of(4, other=1.5), warnings=caplog)
    assert run.records("rows")[0] == {"id": 1, "list": [{"x": 1}, {"x": 2}], "in": {"x": 1}}
    text = caplog.text
    for said in ("new (2 of 4 rows", "in.y (2 of 4 rows", "list[].z (4 times", "other (1 of 4 rows"):
        assert said in text


@kinds
def test_fields_that_are_not_selected_stay_out(kind, caplog):
    caplog.set_level(logging.WARNING)
    given = rows_of(1, 2, text="x", n=1.5, **{"in": {"x": 1, "deep": {"q": 1}}})
    run = same(kind, given, select="rows,!rows.text,!rows.in.deep", warnings=caplog)
    assert run.records("rows") == rows_of(1, 2, n=1.5, **{"in": {"x": 1}})
    assert "dropped" not in caplog.text


@kinds
def test_a_row_without_its_key_ends_the_stream(kind):
    run = same(kind, rows_of(1), [{"n": 2}], rows_of(3))
    assert "field 'id' is missing" in str(run.result.errors["rows"])
    assert run.records("rows") == dicts([1])


@kinds
@pytest.mark.parametrize(
    "at",
    [
        "2024-01-02T03:04:05Z",
        "2024-01-02T03:04:05.120+02:00",
        "2024-01-02 03:04:05.123456789Z",
        "2024-01-02T03:04:05",
        "2024-01-02",
        "9999-12-31T23:59:59-01:00",
        "2016-12-31T23:59:60Z",
        "",
    ],
)
def test_date_times_of_every_kind(kind, at):
    run = same(kind, [{"id": 1, "at": at}, {"id": 2, "at": None}])
    assert bool(run.result.errors) == (at.startswith(("9999", "2016")) or len(at) < 20)


# ---- rows that do not fit ---------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("size", [3, 40, 6000])
def test_rows_before_a_bad_one_are_out(kind, size):
    bad = [{"id": i, "whole": "1"} for i in range(size - 1)] + [
        {"id": size - 1, "whole": "x"},
        {"id": size, "whole": "1"},
    ]
    run = run_pages(gives(kind(bad), kind(rows_of(size + 1))), replication_key="id", order="asc")
    assert run.records("rows") == [{"id": i, "whole": 1} for i in range(size - 1)]
    assert f"row id={size - 1}: field 'whole' is a string; the" in str(run.result.errors["rows"])
    assert run.states[-1]["bookmarks"] == {"rows": {"id": size - 2}}


@kinds
def test_bad_rows_may_be_left_out(kind, caplog):
    caplog.set_level(logging.WARNING)
    given = [{"id": i, "whole": "x" if i % 3 == 1 else "7"} for i in range(12)]
    run = same(kind, given, on_bad_record="skip", replication_key="id", warnings=caplog)
    assert [row["id"] for row in run.records("rows")] == [0, 2, 3, 5, 6, 8, 9, 11]
    assert "4" in caplog.text


@kinds
def test_bad_fields_may_be_null(kind):
    given = [{"id": i, "whole": "x" if i % 3 == 1 else "7"} for i in range(5)]
    run = same(kind, given, on_bad_record="null")
    assert [row["whole"] for row in run.records("rows")] == [7, None, 7, 7, None]


@kinds
def test_too_many_bad_rows_end_the_stream(kind):
    given = [{"id": i, "whole": "x"} for i in range(9)]
    run = same(kind, given[:3], given[3:], on_bad_record="skip", config={"max_bad_records": 5})
    assert run.result.errors and not run.records("rows")


# ---- functions of the author's, substreams, limits ----------------------------------------------------


@kinds
def test_a_post_transform_function_sees_each_row(kind):
    seen = []

    def hook(record):
        seen.append(record)
        return {**record, "text": f"row {record['id']}"} if record["id"] != 2 else None

    tap = tap_of(gives(kind(rows_of(1, 2, n=2.5)), kind(rows_of(3))), replication_key="id")
    tap.post_transform("rows")(hook)
    run = run_tap(tap)
    assert not run.result.errors
    assert run.records("rows") == [{"id": 1, "n": 2.5, "text": "row 1"}, {"id": 3, "text": "row 3"}]
    assert seen == [{"id": 1, "n": Decimal("2.5")}, {"id": 2, "n": Decimal("2.5")}, {"id": 3}]
    assert run.states[-1]["bookmarks"] == {"rows": {"id": 3}}


@kinds
def test_a_bookmark_function_sees_each_row(kind):
    tap = tap_of(gives(kind(rows_of(1, 2)), kind(rows_of(7))))
    tap.bookmark("rows")(lambda record: record["id"] * 10)
    run = run_tap(tap)
    assert not run.result.errors
    assert 70 in [*run.states[-1]["bookmarks"]["rows"].values()]


@kinds
def test_substreams_of_a_page_come_behind_each_row(kind):
    tap = tap_of(gives(kind(rows_of(1, 2, n=0.5)), kind(rows_of(3))), replication_key="id", order="asc")
    given = []

    @tap.sync("kids", parent="rows", schema=SCHEMA)
    def kids(parent):
        given.append(parent)
        yield kind([{"id": parent["id"] * 10}, {"id": parent["id"] * 10 + 1}])

    run = run_tap(tap)
    assert not run.result.errors
    assert run.records("kids") == dicts([10, 11, 20, 21, 30, 31])
    assert given == [*rows_of(1, 2, n=0.5), {"id": 3}]
    assert run.states[-1]["bookmarks"]["rows"]["id"] == 3


def test_rows_before_a_torn_line_have_their_substreams():
    tap = tap_of(gives(b'{"id":1}\n{"id":2}\n{"id'), replication_key="id", order="asc")
    tap.sync("kids", parent="rows", schema=SCHEMA)(lambda parent: b'{"id":%d}' % (parent["id"] * 10))
    run = run_tap(tap)
    assert "line 3: not JSON as a page should be: it breaks off" in str(run.result.errors["rows"])
    assert run.records("rows") == dicts([1, 2])
    assert run.records("kids") == dicts([10, 20])
    assert run.states[-1]["bookmarks"]["rows"]["id"] == 2


@kinds
@pytest.mark.parametrize("limit", [1, 3, 5, 7])
def test_a_limit_cuts_pages(kind, limit):
    run = run_pages(gives(kind(rows_of(1, 2)), kind(rows_of(3, 4, 5))), limit=limit)
    assert [row["id"] for row in run.records("rows")] == [1, 2, 3, 4, 5][:limit]
    assert run.states == []


@kinds
def test_two_streams_of_one_function_keep_their_kinds_apart(kind):
    tap = burler.tap("t")
    tap.stream("b", emitted_by="rows", schema=SCHEMA, records_path="r")
    options = {"key_properties": "id", "replication_key": "id", "order": "asc", "schema": SCHEMA}

    @tap.sync("rows", **options)
    def rows():
        yield kind(rows_of(1))
        yield "b", json.dumps({"r": rows_of(10, 11)}).encode()
        yield {"id": 2}
        yield "b", {"id": 12}
        yield "b", burler.json_page(lines(rows_of(13)))
        yield "b", table(rows_of(14, 15))
        yield "rows", kind(rows_of(3, 4))

    run = run_tap(tap)
    assert not run.result.errors
    assert run.records("rows") == dicts([1, 2, 3, 4])
    assert run.records("b") == dicts([10, 11, 12, 13, 14, 15])
    assert run.states[-1]["bookmarks"]["rows"] == {"id": 4}


@kinds
def test_a_stream_that_nobody_selects_costs_nothing_and_says_nothing(kind):
    tap = burler.tap("t")
    tap.stream("b", emitted_by="rows", schema=SCHEMA)
    tap.sync("rows", key_properties="id", schema=SCHEMA)(gives(kind(rows_of(1)), ("b", kind(rows_of(2))), b"{torn"))
    run = run_tap(tap, select="b")
    assert not run.result.errors
    assert run.records("b") == dicts([2])


@kinds
def test_a_bookmark_of_numbers_follows_the_rows(kind):
    """Numbers stay bytes on their way through pages of bytes; the bookmark needs their value."""
    rows = [{"id": i, "n": i / 4} for i in range(1, 6)]
    run = run_pages(gives(kind(rows)), replication_key="n")
    assert run.states[-1]["bookmarks"] == {"rows": {"n": 1.25}}


@kinds
def test_every_page_of_every_n_is_followed_by_its_state(kind):
    pages = [kind(rows_of(*range(first, first + 5))) for first in range(0, 50, 5)]
    run = run_pages(gives(*pages), replication_key="id", bookmark_strategy="every_n(5)")
    marks = [state["bookmarks"]["rows"]["id"] for state in run.states if "rows" in state.get("bookmarks", {})]
    assert sorted(set(marks)) == [4, 9, 14, 19, 24, 29, 34, 39, 44, 49]


@kinds
def test_a_parent_may_yield_pages_of_every_kind(kind):
    tap = tap_of(gives(kind(rows_of(1, 2))))
    child = {"type": "object", "properties": {"of": {"type": "integer"}}}
    tap.sync("children", parent="rows", schema=child)(lambda parent: [{"of": parent["id"]}])
    assert run_tap(tap).records("children") == [{"of": 1}, {"of": 2}]


def test_a_parent_may_yield_documents():
    page = json.dumps({"a": {"b": rows_of(1, 2)}}).encode()
    tap = tap_of(gives(page), records_path="a.b")
    child = {"type": "object", "properties": {"of": {"type": "integer"}}}
    tap.sync("children", parent="rows", schema=child)(lambda parent: [{"of": parent["id"]}])
    assert run_tap(tap).records("children") == [{"of": 1}, {"of": 2}]


@pytest.mark.parametrize("how", ["yielded", "returned", "behind a row"])
def test_a_response_is_told_from_its_content(how):
    """The first mistake that everyone makes: a Response is iterated in pieces of 128 bytes."""
    import requests

    response = requests.Response()
    response._content, response.status_code = b'[{"id": 1}]', 200

    def rows():
        if how == "behind a row":
            yield {"id": 0}
        yield response

    tap = burler.tap("tap-t")
    tap.sync("t", schema={"properties": {"id": {"type": "integer"}}})((lambda: response) if how == "returned" else rows)
    assert "yield its .content" in str(run_tap(tap).result.errors["t"])
