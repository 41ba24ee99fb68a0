"""A substream with a bookmark of its own, and streams below it that were left out for a while."""

from __future__ import annotations

from typing import Any

import pytest

import burler
from burler.testing import run_tap

ROW = {"type": "object", "properties": {"id": {"type": "integer"}, "key": {"type": "integer"}}}


def three_levels() -> burler.Tap:
    tap = burler.tap("tap-levels")

    @tap.sync("rows", key_properties="id", replication_key="key", schema=ROW)
    def rows(stream):
        return [{"id": n, "key": n} for n in range(3) if n >= (stream.bookmark or 0)]

    @tap.sync("kids", parent="rows", key_properties="id", replication_key="key", schema=ROW)
    def kids(parent, stream):
        return [{"id": parent["id"], "key": parent["id"]}] if parent["id"] >= (stream.bookmark or 0) else []

    @tap.sync("grand", parent="kids", key_properties="id", schema=ROW)
    def grand(parent):
        return [{"id": parent["id"]}]

    return tap


KIDS_DONE = {"kids": {"key": 2, "parent_bookmark": {"key": 2}}}


@pytest.mark.parametrize("bookmarks", [KIDS_DONE, {"rows": {"key": 2}, **KIDS_DONE}])
@pytest.mark.parametrize("select", [None, "rows,grand", "grand"])
def test_it_begins_anew_where_a_stream_below_it_has_had_nothing(bookmarks: dict[str, Any], select: str | None):
    """Whether the first stream's own bookmark was taken back meanwhile or not: what is below old rows comes."""
    run = run_tap(three_levels(), state={"bookmarks": bookmarks}, select=select)
    assert [row["id"] for row in run.records("grand")] == [0, 1, 2]


def test_it_goes_on_where_all_below_it_have_had_the_same():
    whole = run_tap(three_levels())
    again = run_tap(three_levels(), state=whole.states[-1])
    assert [row["id"] for row in again.records("grand")] == [2]
