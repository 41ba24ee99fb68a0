"""Readers that look all the while see whole versions only."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from format_names import LOCAL
from format_readers import reader
from format_samples import arrow, change, row

ROWS, ROUNDS = 200, 4


@pytest.mark.parametrize("format", LOCAL, indirect=True)
def test_readers_in_between_see_whole_versions(format: Any, packages: None) -> None:
    """Replacements and merges of all rows by turns: each version's rows have one text."""

    def publish(number: int) -> None:
        target = format.target()
        target.open()
        rows = arrow([row(at, f"round {number}") for at in range(ROWS)])
        target.publish(rows, change("merge" if number % 2 else "replace", numbers={"n": number}))

    publish(0)
    read, over, seen, wrong = reader(format), threading.Event(), [], []

    def look() -> None:
        while not over.is_set():
            try:
                rows = read()
            except Exception as error:
                wrong.append(repr(error))
                return
            texts = {text for _, text in rows}
            if len(rows) != ROWS or len(texts) != 1:
                wrong.append(f"{len(rows)} rows of {sorted(texts)}")
            seen.append(min(texts))
            time.sleep(0.005)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(1, ROUNDS + 1):
            before = len(seen)
            publish(number)
            patience = time.monotonic() + 30
            while number < ROUNDS and len(seen) == before and not wrong and time.monotonic() < patience:
                time.sleep(0.005)  # a fast writer leaves a slow reader a chance to look
    finally:
        over.set()
        thread.join()
    assert wrong == []
    assert seen == sorted(seen)
    assert len(set(seen)) > 1, "the reader saw one version only: this test proves nothing"
    assert {text for _, text in read()} == {f"round {ROUNDS}"}
