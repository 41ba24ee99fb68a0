"""More failures than ``max_failures`` end what fails, at once, and nothing else."""

from __future__ import annotations

import json
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from families import CHILD, PARENT, failures_of
from tapprocess import python, write_tap

import burler
from burler.testing import TapRun, run_tap


def family(broken: Any, called: list[int], *, count: int = 40, slow_seconds: float = 0) -> burler.Tap:
    """``children`` fail for the parents that ``broken`` names; ``others`` never."""
    tap = burler.tap("tap-family")

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)
    def parents(stream):
        yield from ({"id": i, "key": i} for i in range(stream.bookmark or 0, count))

    @tap.sync("children", parent="parents", key_properties="parent", schema=CHILD)
    def children(parent):
        called.append(parent["id"])
        if parent["id"] in broken:
            time.sleep(slow_seconds)
            raise LookupError("as planned")
        yield {"id": 1, "parent": parent["id"]}

    @tap.sync("others", parent="parents", schema=CHILD)
    def others(parent):
        yield {"id": 1, "parent": parent["id"]}

    tap.sync("beside", key_properties="id", schema=PARENT)(lambda: [{"id": 1}])
    return tap


def assert_the_rest_is_whole(run: TapRun, count: int = 40) -> None:
    assert [row["id"] for row in run.records("parents")] == list(range(count))
    assert [row["parent"] for row in run.records("others")] == list(range(count))
    assert run.records("beside") == [{"id": 1}]


@pytest.mark.parametrize("page", [1, 7, 1000])
@pytest.mark.parametrize("buffer", [1, 10, 100])
@pytest.mark.parametrize("most", [0, 1, 5])
def test_one_failure_too_many_ends_the_substream_at_once(most: int, buffer: int, page: int):
    called: list[int] = []
    config = {"max_failures": most, "parent_buffer_rows": buffer, "page_max_rows": page}
    run = run_tap(family(range(3, 40), called), config)
    assert called == list(range(3 + most + 1)), "no call after that"
    assert list(run.result.errors) == ["children"]
    end, *parts = failures_of(run, "children")
    assert [one.where for one in parts] == [f"parent parents id={i}" for i in range(3, 3 + most + 1)]
    error = str(end.error)
    assert f"more than {most} of its parts" in error
    assert "max_failures" in error
    assert "parent parents id=3" in error
    assert "LookupError: as planned" in error
    assert [row["parent"] for row in run.records("children")] == [0, 1, 2]
    assert_the_rest_is_whole(run)
    key = run.states[-1]["bookmarks"].get("parents", {}).get("key", -1)
    assert 3 // buffer * buffer - 1 <= key <= 3, "behind the lots before the failure, and no further than that"
    rest = run_tap(family((), []), state=run.states[-1])
    assert not rest.result.errors
    assert {row["parent"] for one in (run, rest) for row in one.records("children")} == set(range(40))


@pytest.mark.parametrize("buffer", [1, 100])
def test_as_many_failures_as_are_allowed_end_nothing(buffer: int):
    called: list[int] = []
    run = run_tap(family({3, 8, 39}, called), {"max_failures": 3, "parent_buffer_rows": buffer})
    assert called == list(range(40))
    assert len(run.result.errors["children"].failures) == 3
    assert len(run.records("children")) == 37
    assert_the_rest_is_whole(run)


def test_calls_that_fail_slowly_are_not_made_until_a_page_is_full():
    called: list[int] = []
    run = run_tap(family(range(1000), called, count=300, slow_seconds=0.01), {"max_failures": 2})
    assert called == [0, 1, 2]
    assert_the_rest_is_whole(run, 300)


def test_what_hangs_on_a_substream_that_has_ended_is_missed_as_well():
    called: list[int] = []
    tap = family(range(5, 40), called)

    @tap.sync("below", parent="children", schema=CHILD)
    def below(parent):
        yield {"id": parent["id"], "parent": parent["parent"]}

    config = {"max_failures": 0, "parent_buffer_rows": 1}
    run = run_tap(tap, config)
    assert [row["parent"] for row in run.records("below")] == list(range(5))
    tap = family((), [])
    tap.sync("below", parent="children", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["parent"]}])
    rest = run_tap(tap, config, state=run.states[-1])
    assert {row["parent"] for one in (run, rest) for row in one.records("below")} == set(range(40))


def test_failures_of_two_substreams_are_counted_apart():
    called: list[int] = []
    tap = family(range(3), called)

    @tap.sync("more", parent="parents", schema=CHILD)
    def more(parent):
        if parent["id"] >= 37:
            raise LookupError("as planned")
        return []

    run = run_tap(tap, {"max_failures": 3})
    assert {name: len(error.failures) for name, error in run.result.errors.items()} == {"children": 3, "more": 3}
    assert_the_rest_is_whole(run)


def test_each_run_counts_anew():
    state: dict[str, Any] | None = None
    for _ in range(3):
        run = run_tap(family({1, 2}, []), {"max_failures": 2}, state=state)
        assert len(run.result.errors["children"].failures) == 2
        state = run.states[-1]


def test_nonsense_counts_as_a_failure_too():
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [{"id": i} for i in range(9)])
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: "no rows")
    run = run_tap(tap, {"max_failures": 4})
    end, *parts = failures_of(run, "children")
    assert len(parts) == 5
    assert "more than 4 of its parts" in str(end.error)
    assert "yielded a string" in str(end.error)


@pytest.mark.nightly
@pytest.mark.parametrize("blocks_on_main", [False, True])
def test_a_partition_that_blocks_does_not_keep_the_run_from_its_end(blocks_on_main: bool):
    """It has ten seconds: a source may be slow."""
    blocked, hold = threading.Event(), threading.Event()
    tap = burler.tap("tap-family")
    tap.partitions("parents", key="n")(lambda: [{"n": 1}, {"n": 2}])

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT, workers=2)
    def parents():
        if (threading.current_thread() is threading.main_thread()) == blocks_on_main:
            yield {"id": 1, "key": 1}
            blocked.set()
            hold.wait(60)
        blocked.wait(60)
        raise LookupError("as planned")

    tap.sync("beside", key_properties="id", schema=PARENT)(lambda: [{"id": 1}])
    begun = time.monotonic()
    try:
        run = run_tap(tap, {"max_failures": 0})
    finally:
        hold.set()
    assert time.monotonic() - begun < 30
    assert "max_failures" in str(run.result.errors["parents"])
    assert run.records("parents") == [{"id": 1, "key": 1}]
    assert run.records("beside") == [{"id": 1}]


# ---- what a person sees ---------------------------------------------------------------------------

SOURCE = """
import burler

tap = burler.tap("tap-broken")

@tap.sync("parents", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
def parents():
    yield from ({"id": i} for i in range(200))

@tap.sync("children", parent="parents", schema=SCHEMA)
def children(parent):
    if parent["id"] % 10 == 3:
        raise PermissionError(f"no access to {parent['id']}")
    yield {"id": parent["id"]}

if __name__ == "__main__":
    tap.cli()
"""


def test_the_first_ten_are_told_one_by_one_and_the_others_are_counted(tmp_path: Path):
    ended = python(write_tap(tmp_path, SOURCE, "tap_broken.py"), cwd=tmp_path)
    assert ended.code == 1
    line = (
        textwrap.dedent(SOURCE).splitlines().index("        raise PermissionError(f\"no access to {parent['id']}\")")
        + 1
    )
    assert ended.lines("CRITICAL") == [
        *(
            f"children: parent parents id={i} (tap_broken.py:{line}): PermissionError: no access to {i}"
            for i in range(3, 100, 10)
        ),
        "children: ... and 10 more; --report FILE lists them",
    ]
    assert len([m for m in ended.messages if m["type"] == "RECORD" and m["stream"] == "children"]) == 180
    assert ended.messages[-1]["value"]["bookmarks"]["parents"] == {"id": 3}
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("most", [5, 15])
def test_that_it_has_ended_is_told_whatever_else_failed(tmp_path: Path, most: int):
    (tmp_path / "config.json").write_text(json.dumps({"max_failures": most}))
    ended = python(write_tap(tmp_path, SOURCE, "tap_broken.py"), "--config", "config.json", cwd=tmp_path)
    assert ended.code == 1
    told = ended.lines("CRITICAL")
    assert len([line for line in told if "max_failures" in line]) == 1, told
    assert len(told) <= 12, told
    assert ended.messages[-1]["value"].get("bookmarks", {}).get("parents", {}).get("id", 0) <= 3
