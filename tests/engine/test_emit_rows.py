"""What ``emit_record`` and ``emit_records`` take, and what becomes of it: kinds of rows, bad ones, unwanted ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import pytest
from emitting import emitting, ids, row
from families import PARENT

import burler
from burler.errors import BadRecordError, BurlerError
from burler.testing import run_tap

FORMS = ("emit_record", "emit_records", "tap.emit_record", "tap.emit_records", "yield")


@pytest.mark.parametrize("make", [dict, OrderedDict, MappingProxyType], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_row(make: Callable[[Any], Any], form: str):
    tap = burler.tap("tap-emits")

    @tap.sync("main", key_properties="id", schema=PARENT)
    def main(stream):
        emit = {"emit_record": stream.emit_record, "tap.emit_record": tap.emit_record}.get(form)
        many = {"emit_records": stream.emit_records, "tap.emit_records": tap.emit_records}.get(form)
        if emit:
            emit(make(row(1)))
        elif many:
            many([make(row(1))])
        else:
            yield make(row(1))

    assert run_tap(tap).records("main") == [row(1)]


@pytest.mark.parametrize("given", [None, 5, "row", ["x"], ("main", {}), b"{}"], ids=repr)
@pytest.mark.parametrize("form", ["emit_record", "emit_records"])
def test_what_is_no_row_is_refused_where_it_is_emitted(given: Any, form: str):
    raised: list[BaseException] = []

    def main(stream):
        yield row(1)
        try:
            stream.emit_record(given) if form == "emit_record" else stream.emit_records([row(2), given])
        except BaseException as error:
            raised.append(error)
            raise
        yield row(3)

    run = run_tap(emitting(main))
    error = run.result.errors["main"]
    assert isinstance(error, BurlerError)
    assert "stream 'main'" in str(error)
    assert raised, "the author's own line is in the traceback"
    assert ids(run) == ([1] if form == "emit_record" else [1, 2])
    assert ids(run, "other") == [9]


@pytest.mark.parametrize("given", [{"id": 1}, "rows", b"[]"], ids=repr)
def test_one_row_is_not_taken_for_many(given: Any):
    run = run_tap(emitting(lambda stream: stream.emit_records(given) or []))
    assert "emit_records takes a list or an iterator of rows" in str(run.result.errors["main"])


@pytest.mark.parametrize("given", [[], iter(()), (one for one in ())])
def test_no_rows_at_all_are_fine(given: Any):
    run = run_tap(emitting(lambda stream: stream.emit_records(given) or []))
    assert not run.result.errors
    assert ids(run) == []


def test_rows_before_an_error_of_their_iterator_are_out():
    def broken() -> Iterator[dict[str, int]]:
        yield row(1)
        yield row(2)
        raise LookupError("gone")

    run = run_tap(emitting(lambda stream: stream.emit_records(broken()) or [], order="asc"))
    assert isinstance(run.result.errors["main"], LookupError)
    assert ids(run) == [1, 2]
    assert run.states[-1]["bookmarks"]["main"] == {"key": 2}


@pytest.mark.parametrize("page", [1, 1000])
@pytest.mark.parametrize("stream_name", ["main", "beside"])
def test_a_row_that_does_not_fit_ends_its_stream_with_its_name(stream_name: str, page: int):
    def main(stream):
        for i in range(5):
            yield row(i)
            stream.emit_record({"id": "bad" if i == 2 else 10 + i, "key": 10 + i}, stream_name)

    run = run_tap(emitting(main, order="none"), {"page_max_rows": page})
    error = run.result.errors["main"]
    assert isinstance(error, BadRecordError)
    assert f"stream '{stream_name}'" in str(error)
    assert ids(run, "other") == [9]
    assert "main" not in run.states[-1]["bookmarks"]


def test_a_row_is_shaped_and_transformed_like_any_other():
    def main(stream):
        stream.emit_record({"id": "7", "key": 1, "unknown": 1})
        stream.emit_record({"id": 8, "key": 1})

    tap = emitting(main)
    tap.post_transform("main")(lambda record: {**record, "key": 5} if record["id"] == 7 else None)
    assert run_tap(tap).records("main") == [{"id": 7, "key": 5}]


@pytest.mark.parametrize(("select", "came"), [("main", ([1], [])), ("beside", ([], [2])), ("main,beside", ([1], [2]))])
def test_rows_of_what_nobody_selected_do_not_go_out(select: str, came: tuple[list[int], list[int]]):
    def main(stream):
        stream.emit_record(row(1))
        if stream.selected("beside") or True:
            stream.emit_record(row(2), "beside")

    run = run_tap(emitting(main), select=select)
    assert not run.result.errors
    assert (ids(run), ids(run, "beside")) == came
