"""``stream.emit_record`` and ``emit_records``: rows from anywhere in a sync, as if they had been yielded there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from emitting import emitting, ids, row
from families import PARENT

import burler
from burler.errors import BurlerError
from burler.testing import bind_stream, run_tap

# ---- order ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [1, 2, 1000])
@pytest.mark.parametrize("named", [None, "main"])
def test_a_row_stands_behind_all_that_was_yielded_before(page: int, named: str | None):
    def main(stream):
        yield row(0)
        stream.emit_record(row(1), named)
        yield row(2)
        stream.emit_records([row(3), row(4)], named)
        stream.emit_records((row(i) for i in (5, 6)), stream=named)
        yield [row(7), row(8)]
        stream.emit_record(row(9), stream=named)

    run = run_tap(emitting(main, order="asc"), {"page_max_rows": page})
    assert not run.result.errors
    assert ids(run) == list(range(10))
    assert run.states[-1]["bookmarks"]["main"] == {"key": 9}


def test_before_the_first_and_behind_the_last_row():
    def main(stream):
        stream.emit_record(row(0))
        try:
            yield row(1)
        finally:
            stream.emit_record(row(2))

    assert ids(run_tap(emitting(main))) == [0, 1, 2]


@pytest.mark.parametrize("page", [1, 1000])
def test_one_function_that_gives_two_streams(page: int):
    def main(stream):
        for i in range(5):
            yield row(i)
            stream.emit_record(row(10 + i), "beside")
            stream.emit_records([row(20 + i), row(30 + i)], stream="beside")

    run = run_tap(emitting(main), {"page_max_rows": page})
    assert ids(run) == list(range(5))
    assert ids(run, "beside") == [n + i for i in range(5) for n in (10, 20, 30)]


@pytest.mark.parametrize("page", [1, 3, 1000])
def test_what_is_emitted_is_covered_by_a_state_when_it_is_out(page: int):
    """A row beside, then the row it belongs to: no STATE may say that the second is out where the first is not."""

    def main(stream):
        for i in range(50):
            stream.emit_record(row(i), "beside")
            stream.emit_record(row(i))
            if i % 2:
                yield row(i)

    run = run_tap(emitting(main, bookmark_strategy="every_n(1)"), {"page_max_rows": page})
    assert not run.result.errors
    for position, message in enumerate(run.messages):
        if message["type"] == "STATE":
            key = message["value"].get("bookmarks", {}).get("main", {}).get("key", -1)
            for name in ("main", "beside"):
                before = {
                    m["record"]["id"] for m in run.messages[:position] if m["type"] == "RECORD" and m["stream"] == name
                }
                assert before >= set(range(key + 1))
    assert run.states[-1]["bookmarks"]["main"] == {"key": 49}


# ---- from where -------------------------------------------------------------------------------------


def _helper(stream: burler.StreamRun, rows: list[dict[str, int]]) -> None:
    stream.emit_records(rows)


class _Api:
    """A client that hands rows on by itself."""

    def walk(self, found: Callable[[dict[str, int]], None]) -> None:
        for i in range(3):
            found(row(i))


def _no_yield(stream):
    stream.emit_records([row(i) for i in range(3)])


def _through_a_helper(stream):
    _helper(stream, [row(i) for i in range(3)])


def _as_a_callback(stream):
    _Api().walk(stream.emit_record)


def _through_a_callback(stream):
    _Api().walk(lambda one: stream.emit_record(one))


def _with_return(stream):
    _helper(stream, [row(0), row(1)])
    return [row(2)]


def _in_an_inner_generator(stream):
    def inner() -> Iterator[Any]:
        stream.emit_record(row(1))
        yield row(2)

    stream.emit_record(row(0))
    yield from inner()


def _while_a_yielded_iterator_is_read(stream):
    def inner() -> Iterator[Any]:
        stream.emit_record(row(0))
        yield row(1)
        stream.emit_record(row(2))

    yield inner()


@pytest.mark.parametrize(
    "main",
    [
        _no_yield,
        _through_a_helper,
        _as_a_callback,
        _through_a_callback,
        _with_return,
        _in_an_inner_generator,
        _while_a_yielded_iterator_is_read,
    ],
    ids=lambda fn: fn.__name__.strip("_"),
)
@pytest.mark.parametrize("page", [1, 1000])
def test_from_anywhere_in_a_sync(main: Callable[..., Any], page: int):
    run = run_tap(emitting(main), {"page_max_rows": page})
    assert not run.result.errors
    assert ids(run) == [0, 1, 2]


def test_the_tap_stands_for_the_running_stream():
    tap = burler.tap("tap-emits")

    @tap.sync("main", key_properties="id", schema=PARENT)
    def main():
        tap.emit_record(row(0))
        tap.emit_records([row(1)], "beside")
        yield row(2)
        tap.emit_records(iter([row(3)]))

    tap.stream("beside", emitted_by="main", schema=PARENT)
    run = run_tap(tap)
    assert (ids(run), ids(run, "beside")) == ([0, 2, 3], [1])
    with pytest.raises(BurlerError, match=r"tap\.emit_record\(\).* outside a running stream"):
        tap.emit_record(row(4))


def test_in_class_style():
    tap = burler.tap("tap-emits")

    @tap.stream
    class Main(burler.Stream):
        key_properties = "id"
        schema = PARENT

        def sync(self, stream):
            self.more(stream)
            yield row(1)

        def more(self, stream):
            stream.emit_record(row(0))

    (name,) = {m["stream"] for m in run_tap(tap).messages if m["type"] == "RECORD"}
    assert ids(run_tap(tap), name) == [0, 1]


def test_in_partitions_each_for_its_own():
    def main(partition, stream):
        stream.emit_record(row(partition["n"]))

    tap = emitting(main)
    tap.partitions("main")(lambda: [{"n": n} for n in (5, 3)])
    run = run_tap(tap)
    assert ids(run) == [5, 3]
    marks = run.states[-1]["bookmarks"]["main"]["partitions"]
    assert {key: entry["key"] for key, entry in marks.items()} == {'{"n":5}': 5, '{"n":3}': 3}


def test_a_function_that_emits_now_and_then_may_give_nothing():
    """What says that a function gives nothing at all is looked for where nothing came."""
    run = run_tap(emitting(lambda stream: [stream.emit_record(row(i)) for i in range(0)] and None))
    assert not run.result.errors


def test_a_function_that_neither_emits_nor_yields_is_told_so():
    def main(stream):
        rows = [row(1)]
        rows.sort(key=len)

    error = str(run_tap(emitting(main)).result.errors["main"])
    assert "neither yields nor returns anything" in error


def test_in_a_test_without_an_engine_rows_are_taken():
    rows = iter([row(2), row(3)])
    with bind_stream(emitting(lambda: []), "main") as stream:
        stream.emit_record(row(1))
        stream.emit_records(rows, "beside")
    assert list(rows) == []


def test_a_bad_row_of_one_stream_holds_the_bookmark_of_the_page():
    """It came with the first row: a run that begins behind that would not bring it."""

    def main():
        for i in range(1, 4):
            yield row(i)
            yield "beside", {"id": i if i > 1 else "bad"}

    out = run_tap(emitting(main, order="asc"))
    assert "main" in out.result.errors
    assert "main" not in out.states[-1].get("bookmarks", {})


def test_a_position_does_not_pass_a_bad_row():
    """Nor where more rows stand behind it in its page."""

    def main(stream):
        for i in range(1, 9):
            yield {"id": i if i != 2 else "bad"}
            stream.state["at"] = i

    out = run_tap(emitting(main, replication_key=None, replication_method="LOG_BASED"), {"page_max_rows": 4})
    assert ids(out) == [1]
    assert out.states[-1].get("bookmarks", {}).get("main", {}).get("stream_state", {}).get("at", 0) <= 1
