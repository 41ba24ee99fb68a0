"""A row of a substream that does not fit ends that substream alone; no bookmark passes what is missing for it."""

from __future__ import annotations

from typing import Any

import pytest
from failing import COUNT, FORMS, assert_going_on_brings_all, bad_row_for, call_for, everything, family, rows_of
from families import CHILD, INTEGER, PARENT

import burler
from burler.errors import BadRecordError, PartialError, StreamError
from burler.testing import TapRun, run_tap
from support.pairs import pairs

BELOW = {"children": {"children", "grandchildren"}, "grandchildren": {"grandchildren"}, "siblings": {"siblings"}}


BAD = [
    ("children", {"id": 0}),
    ("children", {"id": 2}),
    ("siblings", {"id": COUNT - 1}),
    ("grandchildren", {"parent": 0, "id": 1}),
    ("grandchildren", {"parent": 3, "id": 0}),
]


@pytest.mark.parametrize(("bad", "form", "buffer", "page"), pairs(BAD, FORMS, [1, 2, 100], [1, 5, 1000]), ids=str)
def test_a_bad_row_ends_its_substream_and_what_hangs_on_it_and_nothing_else(
    bad: tuple[str, dict[str, int]], form: str, buffer: int, page: int
):
    stream, fields = bad
    config = {"parent_buffer_rows": buffer, "page_max_rows": page}
    run = run_tap(family(form, bad_row_for(stream, **fields)), config)
    assert list(run.result.errors) == [stream]
    assert isinstance(run.result.errors[stream], BadRecordError)
    assert "field 'bad'" in str(run.result.errors[stream])
    others = {one for one in everything() if one[0] not in BELOW[stream]}
    assert {one for one in rows_of(run) if one[0] not in BELOW[stream]} == others
    assert rows_of(run) < everything()
    failed = fields.get("parent", fields["id"])
    assert run.states[-1].get("bookmarks", {}).get("parents", {}).get("key", -1) <= failed
    assert_going_on_brings_all(run, form)


@pytest.mark.parametrize("buffer", [1, 100])
def test_a_substream_that_has_ended_is_called_no_more(buffer: int):
    called: list[tuple[str, int]] = []

    def fails(stream: str, parent: Any) -> Any:
        called.append((stream, parent["id"]))
        return bad_row_for("children", id=1)(stream, parent)

    run = run_tap(family("asc", fails), {"page_max_rows": 1, "parent_buffer_rows": buffer})
    assert [parent for stream, parent in called if stream == "children"] == [0, 1]
    assert [parent for stream, parent in called if stream == "siblings"] == list(range(COUNT))
    assert len(run.records("parents")) == COUNT


@pytest.mark.parametrize("how", ["skip", "null"])
def test_a_bad_row_that_may_be_left_out_ends_nothing(how: str):
    run = run_tap(family("asc", bad_row_for("children", id=2)), {"on_bad_record": how})
    assert not run.result.errors
    lost = {("children", (2, 0))} if how == "skip" else set()
    assert rows_of(run) == everything() - lost
    assert run.states[-1]["bookmarks"]["parents"] == {"key": COUNT - 1}


def test_a_parent_that_is_left_out_and_whose_child_fails_is_counted_once(caplog: pytest.LogCaptureFixture):
    tap = burler.tap("tap-family")
    rows = [{"id": i, "key": "bad" if i == 1 else i} for i in range(4)]
    tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)(lambda: rows)
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: 1 / 0 if parent["id"] == 1 else [])
    run = run_tap(tap, {"on_bad_record": "skip", "max_bad_records": 1, "parent_buffer_rows": 1})
    assert list(run.result.errors) == ["children"]
    assert [row["id"] for row in run.records("parents")] == [0, 2, 3]
    assert run.states[-1]["bookmarks"].get("parents", {}).get("key", 0) == 0
    assert "1 row was left out" in caplog.text


def test_more_bad_rows_than_may_be_left_out_end_the_substream():
    config = {"on_bad_record": "skip", "max_bad_records": 2, "parent_buffer_rows": 1, "page_max_rows": 1}
    run = run_tap(family("asc", bad_row_for("siblings")), config)
    assert list(run.result.errors) == ["siblings"]
    assert rows_of(run) == {one for one in everything() if one[0] != "siblings"}


def test_a_failed_call_and_a_bad_row_are_both_told():
    def fails(stream: str, parent: Any) -> Any:
        call_for("children", id=1)(stream, parent)
        return bad_row_for("children", id=3)(stream, parent)

    run = run_tap(family("asc", fails), {"parent_buffer_rows": 1, "page_max_rows": 1})
    error = run.result.errors["children"]
    assert isinstance(error, PartialError)
    assert [type(one.error) for one in error.failures] == [BadRecordError, LookupError], "the end first"
    assert run.states[-1]["bookmarks"]["parents"] == {"key": 1}
    assert_going_on_brings_all(run, "asc")


def with_rows(rows: Any, **options: Any) -> TapRun:
    """A run of a parent with two substreams; one gives ``rows(parent)``."""
    tap = burler.tap("tap-family")
    parents = [{"id": i, "key": i} for i in range(4)]
    tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)(lambda: parents)
    tap.sync("children", parent="parents", **{"schema": CHILD, **options})(rows)
    tap.sync("others", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    run = run_tap(tap, {"parent_buffer_rows": 1, "page_max_rows": 1})
    assert list(run.result.errors) == ["children"]
    assert len(run.records("parents")) == len(run.records("others")) == 4
    return run


def test_one_and_the_same_dict_again_and_again_is_the_childs_error():
    row = {"id": 1, "parent": 1}
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [{"id": i} for i in range(4)])
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [row])
    run = run_tap(tap)
    assert list(run.result.errors) == ["children"]
    assert "one and the same dict" in str(run.result.errors["children"])
    assert len(run.records("parents")) == 4


def test_bookmark_values_of_two_kinds_are_the_childs_error():
    schema = {"properties": {"id": INTEGER, "key": {}}}
    run = with_rows(
        lambda parent: [{"id": 1, "key": "x" if parent["id"] == 2 else 1}], schema=schema, replication_key="key"
    )
    assert "stream 'children'" in str(run.result.errors["children"])
    assert run.states[-1]["bookmarks"]["parents"]["key"] <= 2


def test_a_childs_post_transform_that_fails_is_the_childs_error():
    tap = burler.tap("tap-family")
    tap.sync("parents", key_properties="id", schema=PARENT)(lambda: [{"id": i} for i in range(4)])
    tap.sync("children", parent="parents", schema=CHILD)(lambda parent: [{"id": 1, "parent": parent["id"]}])
    tap.post_transform("children")(lambda record: record if record["parent"] != 2 else 1 / 0)
    run = run_tap(tap, {"parent_buffer_rows": 1, "page_max_rows": 1})
    assert list(run.result.errors) == ["children"]
    assert isinstance(run.result.errors["children"], StreamError)
    assert "ZeroDivisionError" in str(run.result.errors["children"])
    assert len(run.records("parents")) == 4


def test_a_bad_row_that_a_child_emits_ends_that_child():
    """What comes behind it in the child's function can't be told from what depends on it."""
    called: list[int] = []
    tap = burler.tap("tap-family")
    parents = [{"id": i, "key": i} for i in range(4)]
    tap.sync("parents", key_properties="id", replication_key="key", order="asc", schema=PARENT)(lambda: parents)

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        called.append(parent["id"])
        yield {"id": 1, "parent": parent["id"]}
        yield "beside", {"id": "bad" if parent["id"] == 1 else 1, "parent": parent["id"]}

    tap.stream("beside", emitted_by="children", schema=CHILD)
    run = run_tap(tap, {"parent_buffer_rows": 1, "page_max_rows": 1})
    assert list(run.result.errors) == ["beside"]
    assert called == [0, 1]
    assert len(run.records("parents")) == 4
    assert run.states[-1]["bookmarks"]["parents"]["key"] <= 1


# ---- in partitions ----------------------------------------------------------------------------------


def partitioned(bad: bool, workers: int) -> burler.Tap:
    tap = burler.tap("tap-family")
    tap.partitions("parents")(lambda: [{"number": n} for n in range(3)])

    @tap.sync("parents", key_properties="id", replication_key="key", order="asc", workers=workers, schema=PARENT)
    def parents(partition, stream):
        for key in range(stream.bookmark or 0, 3):
            yield {"id": 10 * partition["number"] + key, "key": key}

    @tap.sync("children", parent="parents", schema=CHILD)
    def children(parent):
        yield {"id": "bad" if bad and parent["id"] == 1 else 1, "parent": parent["id"]}

    @tap.sync("others", parent="parents", schema=CHILD)
    def others(parent):
        yield {"id": 1, "parent": parent["id"]}

    return tap


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize("buffer", [1, 100])
def test_a_substream_that_ends_in_one_partition_is_missed_in_the_others(buffer: int, page: int, workers: int):
    everywhere = {10 * n + key for n in range(3) for key in range(3)}
    run = run_tap(partitioned(True, workers), {"parent_buffer_rows": buffer, "page_max_rows": page})
    assert list(run.result.errors) == ["children"]
    assert {row["parent"] for row in run.records("others")} == everywhere
    rest = run_tap(partitioned(False, workers), state=run.states[-1])
    assert not rest.result.errors
    assert {row["parent"] for one in (run, rest) for row in one.records("children")} == everywhere
