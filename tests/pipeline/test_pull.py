"""Pull: user code in its private context, whatever it yields, and what is left when it breaks."""

from __future__ import annotations

import contextvars
import datetime as dt
import re
from collections import OrderedDict
from types import MappingProxyType

import pytest

import burler
from burler.errors import DeclarationError, StreamError
from burler.testing import run_tap

SCHEMA = {"type": "object", "properties": {"id": {}}}


def tap_of(fn, **options):
    """A tap whose function gives rows of stream 'a', and may give some of 'b' and 'c'."""
    tap = burler.tap("tap-x")
    tap.sync("a", schema=SCHEMA, **options)(fn)
    for name in ("b", "c"):
        tap.stream(name, emitted_by="a", schema=SCHEMA)
    return tap


def everything(fn, limit=3):
    """All rows, by pages of ``limit``: (stream, row)."""
    out = run_tap(tap_of(fn), {"page_max_rows": limit})
    assert not out.result.errors
    return [(message["stream"], message["record"]) for message in out.messages if message["type"] == "RECORD"]


def rows(*numbers):
    return [{"id": n} for n in numbers]


def mine(*numbers):
    return [("a", {"id": n}) for n in numbers]


# ---- what may be given ---------------------------------------------------------------------------


class OddIterable:
    def __iter__(self):
        return iter(rows(1, 2))


def nested():
    def inner(n):
        yield from rows(n, n + 1)

    def middle():
        yield inner(1)
        yield rows(3)
        yield (part for part in [inner(4)])

    yield middle()
    yield {"id": 6}
    yield []
    yield iter(())
    yield OddIterable()
    yield tuple(rows(7, 8))


FORMS = {
    "generator of rows": (lambda: (row for row in rows(1, 2, 3, 4)), mine(1, 2, 3, 4)),
    "list of rows": (lambda: rows(1, 2, 3, 4), mine(1, 2, 3, 4)),
    "tuple of rows": (lambda: tuple(rows(1, 2)), mine(1, 2)),
    "list iterator": (lambda: iter(rows(1, 2)), mine(1, 2)),
    "one row": (lambda: {"id": 1}, mine(1)),
    "empty list": (list, []),
    "empty generator": (lambda: iter(()), []),
    "an iterable": (OddIterable, mine(1, 2)),
    "generator of lists": (lambda: iter([rows(1, 2), [], rows(3)]), mine(1, 2, 3)),
    "list of lists": (lambda: [rows(1, 2), rows(3)], mine(1, 2, 3)),
    "generator of generators": (lambda: (iter(rows(n, n + 1)) for n in (1, 3)), mine(1, 2, 3, 4)),
    "all mixed, iterator first": (nested, mine(1, 2, 3, 4, 5, 6, 1, 2, 7, 8)),
    "row, then lists": (lambda: iter([{"id": 1}, rows(2, 3), {"id": 4}, []]), mine(1, 2, 3, 4)),
    "other mappings": (lambda: iter([OrderedDict(id=1), MappingProxyType({"id": 2})]), mine(1, 2)),
    "list of other mappings": (lambda: [OrderedDict(id=1), MappingProxyType({"id": 2})], mine(1, 2)),
    "(stream, row)": (lambda: iter([("b", {"id": 1}), ("b", {"id": 2})]), [("b", {"id": 1}), ("b", {"id": 2})]),
    "(stream, list)": (lambda: iter([("b", rows(*range(5)))]), [("b", row) for row in rows(*range(5))]),
    "(stream, iterator)": (lambda: iter([("b", iter(rows(1, 2)))]), [("b", row) for row in rows(1, 2)]),
    "(stream, lists)": (lambda: iter([("b", [rows(1), rows(2)])]), [("b", row) for row in rows(1, 2)]),
    "returned (stream, list)": (lambda: ("b", rows(1, 2)), [("b", row) for row in rows(1, 2)]),
    "returned (stream, row)": (lambda: ("b", {"id": 1}), [("b", {"id": 1})]),
    "row, then (stream, list)": (
        lambda: iter([{"id": 1}, ("b", rows(1, 2))]),
        [*mine(1), ("b", {"id": 1}), ("b", {"id": 2})],
    ),
    "(stream, empty list)": (lambda: iter([("b", []), {"id": 1}]), mine(1)),
}


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
@pytest.mark.parametrize("form", FORMS)
def test_forms(form, limit):
    fn, wanted = FORMS[form]
    got = everything(fn, limit)
    for stream in ("a", "b"):
        assert [pair for pair in got if pair[0] == stream] == [pair for pair in wanted if pair[0] == stream]
    assert all(type(row) is dict for _, row in got)


def test_rows_go_out_a_page_at_a_time():
    tap = tap_of(lambda: iter(rows(*range(10))), replication_key="id", order="asc", bookmark_strategy="on_page")
    types = " ".join(run_tap(tap, {"page_max_rows": 4}).types)
    assert re.findall(r"(?:RECORD )+STATE", types) == ["RECORD " * 4 + "STATE"] * 2 + ["RECORD " * 2 + "STATE"]


def test_a_long_list_is_cut_into_pages_and_stays_as_it_is():
    big = rows(*range(10))
    assert everything(lambda: iter([big, ("b", big), {"id": 10}]), 4) == [
        *mine(*range(10)),
        *[("b", row) for row in rows(*range(10))],
        *mine(10),
    ]
    assert big == rows(*range(10))


# ---- what may not --------------------------------------------------------------------------------

CURE = "yield rows (dicts), lists or iterators of rows, bytes of JSON, Arrow tables, or (stream, rows)."
STRANGE = {
    "None": (None, "None", "None"),
    "text": ("abc", "a string", "str 'abc'"),
    "no text": ("", "an empty string", "str ''"),
    "a number": (5, "an integer", "int 5"),
    "a huge number": (10**5000, "an integer", "an int of thousands of digits"),
    "a fraction": (1.5, "a number", "float 1.5"),
    "no number": (float("nan"), "a number that is nan", "float nan"),
    "a bool": (True, "a boolean", "bool True"),
    "a day": (dt.date(2026, 1, 2), "date;", "date 2026-01-02;"),
    "a time": (dt.datetime.fromisoformat("2026-01-02"), "datetime (no zone)", "datetime 2026-01-02T00:00:00 (no zone)"),
    "an object": (object(), "object", "object"),
    "long text": ("x" * 500, "a string", "str 'xxxx"),
    "(stream, None)": (("b", None), "(a string, None)", "('b', None)"),
    "(stream, text)": (("b", "x"), "(a string, a string)", "('b', str 'x')"),
}


@pytest.mark.parametrize(
    "where", ["first", "after a row", "after a list", "in a list", "in a list after a row", "inner"]
)
@pytest.mark.parametrize("kind", STRANGE)
def test_strange_items(kind, where):
    item, shown, _ = STRANGE[kind]
    if where.startswith("in a list") and isinstance(item, tuple):
        shown = shown if where == "in a list" else "tuple"
    given = {
        "first": [item],
        "after a row": [{"id": 1}, item, {"id": 2}],
        "after a list": [rows(1), item],
        "in a list": [[{"id": 1}, item]],
        "in a list after a row": [{"id": 0}, [{"id": 1}, item]],
        "inner": [iter([{"id": 1}]), iter([item])],
    }[where]
    tap = burler.tap("tap-y")
    tap.sync("a")(lambda: iter(given))
    tap.stream("b", emitted_by="a", schema={"type": "object", "properties": {"id": {}}})
    tap.schema("a", {"type": "object", "properties": {"id": {}}})
    run = run_tap(tap)
    text = str(run.result.errors["a"])
    assert isinstance(run.result.errors["a"], StreamError)
    assert text.startswith("stream 'a' (") and "test_pull.py:" in text
    assert CURE in text
    if where != "in a list after a row":
        assert f"yielded {shown}" in text
    assert len(text) < 300
    before = [] if where == "first" else rows(0, 1) if where == "in a list after a row" else rows(1)
    assert run.records("a") == before


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_items_where_values_are_shown(kind, values_in_logs):
    item, _, shown = STRANGE[kind]
    assert f"yielded {shown}" in str(run_tap(tap_of(lambda: iter([item]))).result.errors["a"])


def test_an_iterator_after_a_row_is_a_clear_error_and_never_read_late():
    """Rows are gathered ahead, so that it would be read after the function went on: with its file closed."""
    read = []

    def late():
        read.append(1)
        yield {"id": 2}

    for item in (late(), ("b", late()), [late()], range(3)):
        out = run_tap(tap_of(lambda item=item: iter([{"id": 1}, item])))
        assert out.records("a") == rows(1)
        text = str(out.result.errors["a"])
        assert "a function that has yielded a row first yields no iterators: write 'yield from', or list(...)" in text
    assert read == []


def test_an_async_generator_is_refused():
    async def fn():
        yield {}

    with pytest.raises(DeclarationError, match="async"):
        tap_of(fn)
    assert "yielded async_generator; yield rows" in str(run_tap(tap_of(lambda: fn())).result.errors["a"])


# ---- errors and ends -----------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_an_exception_leaves_exactly_the_rows_before_it(limit):
    ended = []

    def inner(tap):
        yield {"id": 2}
        raise KeyError("x")

    def fn(stream):
        try:
            yield rows(1)
            yield inner(stream)
        finally:
            ended.append(stream.name)

    out = run_tap(tap_of(fn), {"page_max_rows": limit})
    assert out.records("a") == rows(1, 2)
    assert isinstance(out.result.errors["a"].__cause__ or out.result.errors["a"], KeyError)
    assert ended == ["a"]


def test_functions_that_fail_when_called_or_stop_by_accident():
    def at_once():
        raise ValueError("at once")

    def stops():
        yield {"id": 1}
        next(iter(()))

    assert "at once" in str(run_tap(tap_of(at_once)).result.errors["a"])
    assert "neither yields nor returns anything" in str(run_tap(tap_of(lambda: None)).result.errors["a"])
    out = run_tap(tap_of(stops))
    assert out.records("a") == rows(1) and out.result.errors["a"]


def test_generators_are_closed_from_the_inside_in_their_run():
    """Where a run has seen enough; also if one of them fails while it is closed."""
    ended = []

    def level(name, inner):
        try:
            yield inner
            yield {"id": 9}
        finally:
            ended.append((name, tap.get_bookmark()))
            if name == "inner":
                raise ValueError("while closing")

    tap = tap_of(
        lambda: level("outer", level("middle", level("inner", [{"id": 1}] * 5))), replication_key="id", order="asc"
    )
    run_tap(tap, {"page_max_rows": 1}, state={"bookmarks": {"a": {"id": 0}}}, limit=1)
    assert ended == [("inner", 0), ("middle", 0), ("outer", 0)]


def test_an_iterator_that_ended_is_left_alone():
    """A cursor that is yielded, read and used again must not be closed in between."""

    class Cursor:
        closed = 0

        def execute(self, n):
            self.left = rows(n, n + 1)

        def __iter__(self):
            return self

        def __next__(self):
            if not self.left:
                raise StopIteration
            assert not self.closed
            return self.left.pop(0)

        def close(self):
            self.closed += 1

    cursor = Cursor()

    def fn():
        for n in (1, 3):
            cursor.execute(n)
            yield cursor

    assert everything(fn) == mine(1, 2, 3, 4)
    assert cursor.closed == 0


def test_lazy_iterators_are_read_to_their_end_before_the_function_goes_on():
    events = []

    def lazy(n):
        events.append(f"open {n}")
        yield {"id": n}
        events.append(f"read {n}")

    def fn():
        for n in (1, 2):
            events.append(f"ask {n}")
            yield lazy(n)
            events.append(f"done {n}")

    assert everything(fn, limit=1) == mine(1, 2)
    assert events == [f"{what} {n}" for n in (1, 2) for what in ("ask", "open", "read", "done")]


# ---- the run that a function sees ----------------------------------------------------------------


def test_every_step_of_a_function_sees_its_own_run():
    """Also of what is lazy, of rows of two taps that are read in turns, and in whatever thread a step is made."""
    mine = contextvars.ContextVar("mine", default="outside")

    def make(mark):
        tap = burler.tap(f"tap-{mark}")

        def plus(more):
            return {"id": tap.get_bookmark() + more}

        @tap.sync("a", replication_key="id", order="asc", schema=SCHEMA)
        def fn(stream):
            mine.set(f"inside-{mark}")
            for _ in range(4):
                seen.append((mark, tap.get_bookmark(), mine.get()))
                if mark == "x":
                    run_tap(other, state={"bookmarks": {"a": {"id": "y"}}})
                yield ({"id": tap.get_bookmark()} for _ in range(2))
                yield map(plus, [""])
                yield [{"id": tap.get_bookmark()}]

        return tap

    seen: list = []
    other = make("y")
    out = run_tap(make("x"), {"page_max_rows": 1}, state={"bookmarks": {"a": {"id": "x"}}})
    assert not out.result.errors
    assert {row["id"] for row in out.records("a")} == {"x"} and len(out.records("a")) == 16
    assert set(seen) == {("x", "x", "inside-x"), ("y", "y", "inside-y")}
    assert mine.get() == "outside"


def test_a_body_that_is_no_generator_sees_it_too():
    tap = tap_of(lambda: [{"id": tap.get_bookmark()}], replication_key="id")
    assert run_tap(tap, state={"bookmarks": {"a": {"id": 3}}}).records("a") == rows(3)


def test_a_run_inside_of_a_run():
    inner = burler.tap("tap-inner")
    inner.schema("i", {"type": "object", "properties": {"id": {}}})
    inner.sync("i")(lambda stream: [{"id": inner.get_bookmark() or stream.name}])
    outer = burler.tap("tap-outer")
    outer.schema("o", {"type": "object", "properties": {"id": {}}})

    @outer.sync("o", replication_key="id")
    def rows():
        before = outer.get_bookmark()
        yield {"id": run_tap(inner).records("i")[0]["id"]}
        assert outer.get_bookmark() == before

    run = run_tap(outer, state={"bookmarks": {"o": {"id": "a"}}})
    assert run.result.errors == {}
    assert run.records("o") == [{"id": "i"}]
