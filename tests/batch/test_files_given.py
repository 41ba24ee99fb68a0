"""Which streams' files go on as they are: what the engine, not the file, has to say against it."""

from __future__ import annotations

from native_taps import ROWS, batches, config_of, put, shaped, tap_of

import burler
from burler.testing import run_tap


def test_a_bookmark_function_sees_all_rows(tmp_path):
    files = burler.batch_files(put(tmp_path, "orders.csv"))
    tap = tap_of(files, replication_key="id")
    seen = []

    @tap.bookmark("orders")
    def bookmark(record):
        seen.append(record["id"])
        return record["id"] * 10

    run = run_tap(tap, config_of(tmp_path))
    assert seen == [1, 2, 3] and run.states[-1]["bookmarks"]["orders"] == {"id": 30}
    assert [message["manifest"] for message in batches(run)] != [list(files.urls)]


def test_a_look_at_a_few_rows_shows_those_of_a_file(tmp_path):
    tap = tap_of(burler.batch_files(put(tmp_path, "orders.csv")))
    run = run_tap(tap, config_of(tmp_path), limit=2)
    assert shaped(run.records("orders")) == shaped(ROWS[:2]) and not batches(run)


def test_a_function_with_rows_first_is_told_how_to_yield_files(tmp_path):
    tap = burler.tap("tap-x")
    files = burler.batch_files(put(tmp_path, "orders.csv"))
    tap.sync("orders", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})(
        lambda: iter([{"id": 0}, files])
    )
    run = run_tap(tap, config_of(tmp_path))
    assert "batch_files by 'yield from'" in str(run.result.errors["orders"])
