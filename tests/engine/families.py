"""Families of streams for the tests of substreams: parents, children, grandchildren."""

from __future__ import annotations

from typing import Any

import burler
from burler.errors import Failure, PartialError
from burler.testing import TapRun

INTEGER = {"type": "integer"}
PARENT = {"type": "object", "properties": {"id": INTEGER, "key": INTEGER}}
CHILD = {"type": "object", "properties": {"id": INTEGER, "parent": INTEGER}}
GRANDCHILD = {"type": "object", "properties": {"id": INTEGER, "parent": INTEGER, "child": INTEGER}}

DEPTH_FIRST = {"parent_buffer_rows": 1, "page_max_rows": 1}
"""No parent is read ahead, so that each row's children come right behind it."""


def parents_of(count: int = 3, **options: Any) -> tuple[burler.Tap, Any]:
    """A tap whose stream ``parents`` gives rows 0..count-1."""
    tap = burler.tap("tap-family")
    stream = tap.stream("parents", key_properties="id", schema=PARENT, **options)
    stream.sync(lambda: ({"id": i, "key": i} for i in range(count)))
    return tap, stream


def out_of(run: TapRun) -> list[tuple[str, tuple[int, ...]]]:
    """Records as (stream, values), in order."""
    return [(m["stream"], tuple(m["record"].values())) for m in run.messages if m["type"] == "RECORD"]


def failures_of(run: TapRun, stream: str) -> list[Failure]:
    """The parts of a stream that failed, where it went on."""
    error = run.result.errors[stream]
    assert isinstance(error, PartialError), error
    assert {failure.stream for failure in error.failures} == {stream}
    assert run.result.exit_code == 1
    return error.failures


def three_levels(**options: Any) -> burler.Tap:
    tap, parents = parents_of(2, **options)
    children = parents.substream("children", key_properties=["parent", "id"], schema=CHILD)
    children.sync(lambda parent: ({"id": i, "parent": parent["id"]} for i in (7, 8)))
    grandchildren = children.substream("grandchildren", schema=GRANDCHILD)
    grandchildren.sync(lambda parent: [{"id": 1, "parent": parent["parent"], "child": parent["id"]}])
    return tap
