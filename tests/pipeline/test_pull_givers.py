"""An iterator of pages hears which of its pages came straight to the engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

import burler
from burler.testing import run_tap

ROW = {"properties": {"id": {"type": "integer"}}}


class Pages:
    """Gives pages, and notes which of them were taken before the next one was asked for."""

    def __init__(self, count: int = 3) -> None:
        self.left = list(range(count))
        self.heard: list[Any] = []
        self.last: Any = None
        self.log: list[bool] = []

    def __iter__(self) -> Pages:
        return self

    def page_taken(self, page: Any) -> None:
        self.heard.append(page)

    def __next__(self) -> bytes:
        if self.last is not None:
            self.log.append(any(page is self.last for page in self.heard))
        if not self.left:
            raise StopIteration
        self.last = json.dumps([{"id": self.left.pop(0)}]).encode()
        return self.last


def delegated(pages):
    yield from pages


def twice(pages):
    yield from delegated(pages)


def yielded(pages):
    yield pages


def returned(pages):
    return pages


def in_a_loop(pages):
    for page in pages:  # noqa: UP028
        yield page


def gathered(pages):
    yield from list(pages)


def ahead(pages):
    held = None
    for page in pages:
        if held is not None:
            yield held
        held = page
    yield held


@pytest.mark.parametrize("children", [False, True])
@pytest.mark.parametrize(
    ("fn", "straight"),
    [
        (delegated, True),
        (twice, True),
        (yielded, True),
        (returned, True),
        (in_a_loop, False),
        (gathered, False),
        (ahead, False),
    ],
)
def test_pages_that_come_straight(fn: Any, straight: bool, children: bool):
    pages = Pages()
    tap = burler.tap("tap-t")
    tap.sync("t", key_properties="id", schema=ROW)(lambda: fn(pages))
    if children:
        tap.sync("k", parent="t", key_properties="id", schema=ROW)(lambda parent: [{"id": parent["id"]}])
    run = run_tap(tap)
    assert run.records("t") == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert pages.log == [straight] * 3
