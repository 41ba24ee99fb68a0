"""Pages that a sync function yields as tables and batches of Arrow; see also ``test_pages_kinds``."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pageruns import dicts, gives, run_pages


def reader(tables):
    return pa.RecordBatchReader.from_batches(tables[0].schema, [b for t in tables for b in t.to_batches()])


@pytest.mark.parametrize(
    "page",
    [
        pa.table({"id": [1, 2]}),
        pa.record_batch({"id": [1, 2]}),
        pa.concat_tables([pa.table({"id": [1]}), pa.table({"id": pa.array([], pa.int64())}), pa.table({"id": [2]})]),
        reader([pa.table({"id": [1]}), pa.table({"id": [2]})]),
        [pa.table({"id": [1]}), pa.record_batch({"id": [2]})],
        iter([pa.table({"id": [1]}), {"id": 2}]),
        ("rows", pa.table({"id": [1, 2]})),
        pa.table({"unknown": ["a", "b"], "id": [1, 2]}),
    ],
    ids=lambda page: type(page).__name__,
)
def test_every_form_of_arrow_gives_its_rows(page):
    run = run_pages(gives(page))
    assert not run.result.errors
    assert run.records("rows") == dicts([1, 2])


def test_an_empty_table_has_no_rows():
    empty = pa.table({"id": pa.array([], pa.int64())})
    for page in (empty, empty.to_batches() or [], pa.table({}), empty.slice(0, 0)):
        run = run_pages(gives({"id": 0}, page, {"id": 1}))
        assert not run.result.errors
        assert run.records("rows") == dicts([0, 1])


def test_a_big_table_goes_in_parts_and_no_state_runs_ahead():
    big = pa.table({"id": range(100_000), "text": ["x" * 20] * 100_000})
    run = run_pages(gives(big), replication_key="id", order="asc", bookmark_strategy="every_n(1000)")
    assert not run.result.errors
    assert [row["id"] for row in run.records("rows")] == list(range(100_000))
    assert len(run.states) > 1
    out = -1
    for message in run.messages:
        if message["type"] == "RECORD":
            out = message["record"]["id"]
        elif message["type"] == "STATE" and "rows" in message["value"].get("bookmarks", {}):
            assert message["value"]["bookmarks"]["rows"]["id"] == out
    assert run.states[-1]["bookmarks"]["rows"]["id"] == 99_999


def test_two_columns_of_one_name_are_one_clear_error():
    run = run_pages(gives({"id": 0}, pa.table([[1], [2]], names=["id", "id"]), {"id": 5}))
    assert run.records("rows") == dicts([0])
    assert "two columns of an Arrow page are named 'id'" in str(run.result.errors["rows"])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "thing",
    [pa.array([1]), pa.array([{"id": 1}]), pa.chunked_array([[{"id": 1}]]), pa.scalar({"id": 1})],
    ids=lambda thing: type(thing).__name__,
)
def test_other_things_of_arrow_are_refused_with_the_cure(thing, first):
    run = run_pages(gives(thing) if first else gives({"id": 0}, thing))
    error = str(run.result.errors["rows"])
    assert f"yielded {type(thing).__name__}" in error
    assert "Arrow tables" in error


@pytest.mark.parametrize("first", [True, False])
def test_data_frames_are_refused_with_the_cure(first):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1]})
    run = run_pages(gives(frame) if first else gives({"id": 0}, frame))
    assert "yielded DataFrame" in str(run.result.errors["rows"])
    assert "Arrow" in str(run.result.errors["rows"])
