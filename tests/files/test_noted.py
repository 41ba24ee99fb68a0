"""When a file counts as read: never before its rows are out, whatever an author does with the pages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from filebox import ORDER, ids, tap_of

import burler
import burler.files
from burler.files import read
from burler.testing import bind_stream, run_tap

ROWS = 12_000
"""A file of so many comes in several pages."""


@pytest.fixture
def two(box):
    """Two files of many rows."""
    for number in (0, 1):
        box.put(f"{number}.csv", "id\n" + "".join(f"{i}\n" for i in range(number * ROWS, (number + 1) * ROWS)))
    return box


def tap_with(function, **declared):
    tap = burler.tap("tap-files")
    tap.sync("orders", key_properties="id", schema=ORDER, **{"replication_key": "id", **declared})(function)
    return tap


def noted(state):
    entries = state.get("bookmarks", {}).get("orders", {}).get("source_state")
    return json.loads(entries[0]["value"])["files"] if entries else 0


def rows_before_each_state(out):
    """For each STATE: how many files it notes, and how many rows stand before it."""
    found, count = [], 0
    for message in out.messages:
        count += message["type"] == "RECORD"
        if message["type"] == "STATE":
            found.append((noted(message["value"]), count))
    return found


def never_ahead(out, rows=ROWS):
    for files, before in rows_before_each_state(out):
        assert before >= files * rows, f"a STATE notes {files} files after {before} rows"


def last_state(out):
    return out.states[-1] if out.states else None


def gathered(pages):
    pages = list(pages)
    yield pa.Table.from_batches(pages[:1])
    raise RuntimeError("lost")


def failed_before_the_first(pages):
    list(pages)
    yield []
    raise RuntimeError("lost")


def ahead(pages):
    """One page is always held back."""
    held = None
    for page in pages:
        if held is not None:
            yield held
        held = page
        if held.column(0)[0].as_py() > ROWS:  # in the second file, whose first page was yielded
            raise RuntimeError("lost")


def the_first_page_held(pages):
    """All but one come straight to the engine."""
    next(pages)
    yield from pages
    raise RuntimeError("lost")


def in_steps(pages):
    """A file's last page comes straight, and the ones before it are held."""
    held = [next(pages), next(pages)]
    while len({page.column(0)[0].as_py() // ROWS for page in held}) == 1:
        held.append(next(pages))
    yield from pages
    raise RuntimeError("lost")


@pytest.mark.parametrize("take", [gathered, failed_before_the_first, ahead, the_first_page_held, in_steps])
@pytest.mark.parametrize("straight", [True, False])
def test_pages_in_the_hands_of_the_author_are_not_out(two, take, straight, monkeypatch):
    def function(stream):
        pages = read(two["*.csv"], stream=stream, csv=burler.files.Csv(block_bytes=20_000))
        yield from take(pages) if straight else (page for page in take(pages))

    first = run_tap(tap_with(function))
    assert "lost" in str(first.result.errors["orders"])
    never_ahead(first)
    tap = tap_of(two["*.csv"], csv=burler.files.Csv(), declared={"replication_key": "id"})
    second = run_tap(tap, state=last_state(first))
    everything = {row["id"] for row in first.records("orders") + second.records("orders")}
    assert everything == set(range(2 * ROWS))


def looped(pages):
    for page in pages:
        yield [{"id": int(row["id"])} for row in page.to_pylist()]


def collected(pages):
    yield pa.Table.from_batches(list(pages))


def straight(pages):
    yield from pages


def returned(pages):
    return pages


@pytest.mark.parametrize("take", [looped, collected, straight, returned])
def test_all_that_was_taken_is_noted_once_the_function_has_ended(two, take):
    tap = tap_with(lambda stream: take(read(two["*.csv"], stream=stream)))
    first = run_tap(tap)
    assert not first.result.errors and sorted(ids(first)) == list(range(2 * ROWS))
    never_ahead(first)
    assert noted(first.states[-1]) == 2
    two.put("2.csv", "id\n99999\n")
    assert ids(run_tap(tap, state=first.states[-1])) == [99999]


def test_pages_that_come_straight_keep_a_state_for_each_file(two):
    """The second file breaks; the first one does not come again."""
    two.put("1.csv", "id,name\n5,a\n6\n")
    tap = tap_with(lambda stream: read(two["*.csv"], stream=stream))
    first = run_tap(tap)
    assert "1.csv', row 3" in str(first.result.errors["orders"]) and noted(first.states[-1]) == 1
    two.put("1.csv", "id,name\n5,a\n6,b\n")
    assert ids(run_tap(tap, state=first.states[-1])) == [5, 6]


def test_a_loop_that_ends_before_the_files_do_leaves_the_rest_for_the_next_run(two):
    def some(stream):
        for page in read(two["*.csv"], stream=stream):
            yield page
            if page.column(0)[-1].as_py() >= ROWS:
                return

    first = run_tap(tap_with(some))
    assert not first.result.errors and noted(first.states[-1]) == 1
    second = run_tap(tap_with(lambda stream: read(two["*.csv"], stream=stream)), state=first.states[-1])
    assert ids(second) == list(range(ROWS, 2 * ROWS))


def test_files_without_rows_are_noted(box):
    box.put("a.csv", "id\n")
    box.put("b.jsonl", "")
    tap = tap_of(box["*"], declared={"replication_key": "id"})
    first = run_tap(tap)
    assert not first.result.errors and ids(first) == [] and noted(first.states[-1]) == 2


def test_a_substream_is_whole_before_the_files_of_its_parents_are_noted(two):
    tap = tap_with(lambda stream: read(two["*.csv"], stream=stream))
    schema = {"properties": {"of": {"type": "integer"}}}

    @tap.sync("lines", parent="orders", key_properties="of", schema=schema, replication_key="of")
    def lines(parent):
        return [{"of": parent["id"]}]

    out = run_tap(tap, {"parent_buffer_rows": 500})
    assert not out.result.errors and noted(out.states[-1]) == 2
    lines_out = 0
    for message in out.messages:
        lines_out += message["type"] == "RECORD" and message["stream"] == "lines"
        if message["type"] == "STATE":
            assert lines_out >= noted(message["value"]) * ROWS


def test_there_are_only_pages_among_the_pages(two):
    tap = tap_with(lambda: [])
    with bind_stream(tap, "orders", schema=ORDER) as stream:
        found = list(read(two["*.csv"], stream=stream))
    assert {type(page) for page in found} == {pa.RecordBatch}
    assert sum(page.num_rows for page in found) == 2 * ROWS


def test_a_file_is_closed_when_the_pages_are(two):
    pages = read(two["*.csv"])
    next(pages)
    pages.close()
    assert list(pages) == []
    opened = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    assert not [path for path in opened if path.startswith(str(two.folder))]
