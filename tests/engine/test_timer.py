"""Rows of a slow function do not wait for its next row."""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

from tapprocess import PYTHON, environment, write_tap
from taps import make

from burler.errors import BadRecordError
from burler.testing import run_tap


def test_rows_come_out_while_the_function_blocks(tmp_path: Path):
    source = """
    import time, burler
    tap = burler.tap("tap-x")
    @tap.sync("rows", key_properties="id")
    def rows():
        yield {"id": 1}
        time.sleep(600)
    tap.schema("rows", SCHEMA)
    """
    process = subprocess.Popen(
        [PYTHON, "-m", "burler", "run", str(write_tap(tmp_path, source))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    assert process.stdout is not None
    begun = time.monotonic()
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        assert b'"RECORD"' in lines[2]
        assert time.monotonic() - begun < 10
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(10)


def test_a_slow_stream_shortens_its_pages_so_that_states_keep_coming():
    def rows():
        for i in range(60):
            time.sleep(0.005)
            yield {"id": i}

    run = run_tap(make(a=(rows, {"order": None, "bookmark_strategy": "every_n(5)"})), {"page_max_age_seconds": 0.02})
    assert [row["id"] for row in run.records("a")] == list(range(60))
    assert [s["bookmarks"]["a"]["id"] for s in run.states[:12]] == list(range(4, 60, 5))


def test_a_row_that_does_not_fit_is_found_while_the_function_blocks():
    """It ends that stream: the function is woken, the others run, and no row after the bad one goes out."""
    closed = []

    def bad():
        try:
            yield {"id": 1}
            yield {"id": "x"}
            yield {"id": 3}
            time.sleep(60)
        finally:
            closed.append(True)

    begun = time.monotonic()
    run = run_tap(make(bad=bad, good=lambda: [{"id": 1}]), {"page_max_age_seconds": 0.05})
    assert time.monotonic() - begun < 5
    assert isinstance(run.result.errors["bad"], BadRecordError)
    assert run.records("bad") == [{"id": 1}]
    assert run.records("good") == [{"id": 1}]
    assert run.states[-1] == {"bookmarks": {"bad": {"id": 1}, "good": {"id": 1}}}
    assert run.result.stopped_by is None
    assert closed == [True]


def test_rows_after_a_bad_one_stay_back_even_if_the_function_goes_on():
    def bad():
        yield {"id": 1}
        yield {"id": "x"}
        for i in range(3, 30):
            with contextlib.suppress(BaseException):
                time.sleep(0.01)
            yield {"id": i}

    run = run_tap(make(bad=bad), {"page_max_age_seconds": 0.03})
    assert run.records("bad") == [{"id": 1}]
    assert run.states[-1] == {"bookmarks": {"bad": {"id": 1}}}
    assert isinstance(run.result.errors["bad"], BadRecordError)
