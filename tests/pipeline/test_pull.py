"""Pull: user code in its private context, whatever it yields, and what is left when it breaks."""

from __future__ import annotations

import contextvars
import datetime as dt
import gc
import threading
from collections import OrderedDict
from types import MappingProxyType

import pytest

import burler
from burler import StreamRun
from burler.errors import StreamError
from burler.testing import run_tap
from support import internals
from support.internals import context, yielded

TAP = burler.tap("tap-x")


def pull(fn, name="a", bookmark=None, tap=TAP):
    return internals.pull.Pull(fn, StreamRun(tap, name, bookmark=bookmark), place="tap.py:5")


def everything(fn, limit=3):
    """All rows, by pages of ``limit``: (stream, row)."""
    p, out, alive = pull(fn), [], True
    while alive:
        alive = p.fill(limit)
        items = p.take()
        assert len(p) == 0
        parts, strange = yielded.split(items, "a")
        assert strange is None
        out += [(name, row) for name, lists in parts.items() for part in lists for row in part]
    p.close()
    return out


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
    "none": (lambda: None, []),
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


def test_the_limit_holds_and_the_generator_waits_there():
    reached = []

    def fn():
        for n in range(10):
            reached.append(n)
            yield {"id": n}

    p = pull(fn)
    assert p.fill(4) is True
    assert (reached, len(p)) == ([0, 1, 2, 3], 4)
    assert p.fill(2) is True and reached[-1] == 5
    assert p.fill(100) is False and reached[-1] == 9
    assert [row["id"] for row in p.take()] == list(range(10))
    assert p.fill(5) is False and p.take() == []


@pytest.mark.parametrize("stream", [None, "b"])
def test_a_long_list_is_cut_into_pages(stream):
    big = rows(*range(10))
    p = pull(lambda: iter([big if stream is None else (stream, big), {"id": 10}]))
    sizes = []
    alive = True
    while alive:
        alive = p.fill(4)
        got, _ = yielded.split(p.take(), "a")
        sizes.append(sum(len(part) for parts in got.values() for part in parts))
    assert sizes == [4, 4, 3]
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
    assert f"yielded {shown}" in str(pull(lambda: iter([item])).refuse(item))


def test_an_iterator_after_a_row_is_a_clear_error_and_never_read_late():
    """Rows are gathered ahead, so that it would be read after the function went on: with its file closed."""
    read = []

    def late():
        read.append(1)
        yield {"id": 2}

    for item in (late(), ("b", late()), [late()], range(3)):
        p = pull(lambda item=item: iter([{"id": 1}, item]))
        p.fill(10)
        got, strange = yielded.split(p.take(), "a")
        assert got == {"a": [rows(1)]}
        assert strange is not None
        text = str(p.refuse(strange))
        assert "a function that has yielded a row first yields no iterators: write 'yield from', or list(...)" in text
    assert read == []


def test_an_async_generator_is_refused():
    async def fn():
        yield {}

    with pytest.raises(StreamError, match="yielded async_generator; yield rows"):
        pull(fn).fill(1)


# ---- errors and ends -----------------------------------------------------------------------------


def test_an_exception_leaves_exactly_the_rows_before_it():
    def fn():
        yield {"id": 1}
        yield {"id": 2}
        raise KeyError("x")

    for limit in (1, 2, 3, 100):
        p, got = pull(fn), []
        with pytest.raises(KeyError):
            while p.fill(limit):
                got += p.take()
        assert got + p.take() == rows(1, 2)
        p.close()


def test_an_exception_inside_of_an_inner_iterator():
    ended = []

    def inner():
        yield {"id": 1}
        raise ValueError("inner")

    def fn():
        try:
            yield inner()
        finally:
            ended.append(context._RUN.get().name)

    p = pull(fn)
    with pytest.raises(ValueError, match="inner"):
        p.fill(10)
    assert p.take() == rows(1)
    p.close()
    assert ended == ["a"]


def test_a_function_that_fails_when_called():
    def fn():
        raise ValueError("at once")

    p = pull(fn)
    with pytest.raises(ValueError, match="at once"):
        p.fill(1)
    assert p.fill(1) is False
    p.close()


def test_a_stop_iteration_in_a_generator_is_an_error_not_an_end():
    def fn():
        yield {"id": 1}
        next(iter(()))

    p = pull(fn)
    with pytest.raises(RuntimeError):
        p.fill(10)
    assert p.take() == rows(1)


def test_close_ends_generators_from_the_inside_in_their_context():
    ended = []

    def level(name, inner):
        try:
            yield inner
            yield {"id": 9}
        finally:
            ended.append((name, context._RUN.get().bookmark))

    p = pull(lambda: level("outer", level("middle", level("inner", {"id": 1}))), bookmark=7)
    p.fill(1)
    assert ended == []
    p.close()
    assert ended == [("inner", 7), ("middle", 7), ("outer", 7)]
    p.close()
    assert len(ended) == 3


def test_close_closes_all_even_if_one_fails():
    ended = []

    def inner():
        try:
            yield {"id": 1}
        finally:
            raise ValueError("while closing")

    def outer():
        try:
            yield inner()
        finally:
            ended.append("outer")

    p = pull(outer)
    p.fill(1)
    with pytest.raises(ValueError, match="while closing"):
        p.close()
    assert ended == ["outer"]


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


# ---- the context ---------------------------------------------------------------------------------


def test_rows_1_and_8_a_generator_sees_its_run_in_every_step():
    def fn():
        for _ in range(5):
            yield {"id": TAP.get_bookmark()}

    p = pull(fn, bookmark=42)
    while p.fill(1):
        pass
    assert p.take() == rows(*[42] * 5)


def test_rows_2_and_3_interleaved_runs_never_see_each_other():
    def fn():
        for i in range(6):
            yield {"mark": TAP.get_bookmark(), "i": i}
            yield ({"mark": TAP.get_bookmark(), "i": i} for _ in range(0))  # an empty lazy one in between

    def lists():
        for i in range(6):
            yield [{"mark": TAP.get_bookmark(), "i": i}]

    pulls = {name: pull(lists, name, bookmark=name) for name in "abc"}
    seen: dict[str, list] = {name: [] for name in pulls}
    alive = dict.fromkeys(pulls, True)
    while any(alive.values()):
        for name, p in pulls.items():
            assert context._RUN.get(None) is None
            alive[name] = alive[name] and p.fill(1)
            seen[name] += [row["mark"] for row in p.take()]
            assert context._RUN.get(None) is None
    assert seen == {name: [name] * 6 for name in pulls}


def test_closing_out_of_order_leaves_nothing_bound():
    def fn():
        try:
            yield {"id": 1}
            yield {"id": 2}
        finally:
            marks.append(TAP.get_bookmark())

    marks = []
    first, second = pull(fn, bookmark=1), pull(fn, bookmark=2)
    first.fill(1)
    second.fill(1)
    first.close()
    second.close()
    assert marks == [1, 2]
    assert context._RUN.get(None) is None


def test_rows_4_and_5_steps_in_different_threads():
    def fn():
        try:
            for _ in range(3):
                yield {"id": TAP.get_bookmark(), "thread": threading.get_ident()}
        finally:
            marks.append(TAP.get_bookmark())

    marks, got = [], []
    p = pull(fn, bookmark=5)
    for _ in range(2):
        thread = threading.Thread(target=p.fill, args=(1,))
        thread.start()
        thread.join()
        got += p.take()
    thread = threading.Thread(target=p.close)
    thread.start()
    thread.join()
    assert [row["id"] for row in got] == [5, 5]
    assert marks == [5]


def test_row_6_an_abandoned_generator_does_not_poison_the_thread():
    def fn():
        yield {"id": 1}
        yield {"id": 2}

    p = pull(fn, bookmark=5)
    p.fill(1)
    del p
    gc.collect()
    assert context._RUN.get(None) is None


def test_row_7_lazy_iterators_see_the_run():
    def plus(n):
        return {"id": n + TAP.get_bookmark()}

    def fn():
        yield ({"id": TAP.get_bookmark()} for _ in range(2))
        yield map(plus, [1])
        yield "b", ({"id": TAP.get_bookmark()} for _ in range(1))

    p = pull(fn, bookmark=10)
    p.fill(100)
    assert p.take() == [*rows(10, 10, 11), ("b", {"id": 10})]


def test_a_body_that_is_no_generator_runs_in_the_context_too():
    p = pull(lambda: [{"id": TAP.get_bookmark()}], bookmark=3)
    p.fill(1)
    assert p.take() == rows(3)


def test_an_authors_own_context_variables_stay_in_the_run():
    mine = contextvars.ContextVar("mine", default="outside")

    def fn():
        mine.set("inside")
        yield {"id": mine.get()}
        yield {"id": mine.get()}

    p = pull(fn)
    p.fill(1)
    assert mine.get() == "outside"
    p.fill(2)
    assert p.take() == rows("inside", "inside")


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


# ---- take() while fill() blocks ------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda it: it, lambda it: iter([it]), lambda it: iter([("b", it)])])
def test_take_sees_what_was_yielded_while_the_function_blocks(wrap):
    blocked, go_on = threading.Event(), threading.Event()

    def fn():
        for n in range(3):
            yield {"id": n}
        blocked.set()
        assert go_on.wait(10)
        for n in range(3, 8):
            yield {"id": n}

    p = pull(lambda: wrap(fn()))
    results = []

    def work():
        while p.fill(4):
            results.append("page")
        results.append("end")

    thread = threading.Thread(target=work)
    thread.start()
    assert blocked.wait(10)
    got, _ = yielded.split(p.take(), "a")
    assert [row["id"] for parts in got.values() for part in parts for row in part] == [0, 1, 2]
    assert results == []
    go_on.set()
    thread.join(10)
    # Taken rows count into the page they were gathered for: 0..3, 4..7, end.
    assert results == ["page", "page", "end"]
    got, _ = yielded.split(p.take(), "a")
    assert [row["id"] for parts in got.values() for part in parts for row in part] == [3, 4, 5, 6, 7]


def test_nothing_is_lost_or_doubled_between_threads():
    total, got, over = 20_000, [], threading.Event()
    p = pull(lambda: ({"id": n} for n in range(total)))

    def take():
        while not over.is_set():
            got.extend(p.take())

    thread = threading.Thread(target=take)
    thread.start()
    while p.fill(7):
        pass
    over.set()
    thread.join()
    got.extend(p.take())
    assert [row["id"] for row in got] == list(range(total))


def test_split_keeps_the_order_in_each_stream():
    items = [{"id": 1}, ("b", {"id": 1}), ("b", rows(2, 3)), {"id": 2}, ("c", []), rows(3)]
    assert yielded.split(items, "a") == ({"a": [rows(1, 2, 3)], "b": [rows(1, 2, 3)]}, None)
    assert yielded.split([], "a") == ({}, None)
    assert yielded.split([("b", [{"id": 1}, None])], "a") == ({"b": [rows(1)]}, yielded.Strange(("b", None)))
    assert yielded.split([[{"id": 1}, None, {"id": 2}]], "a") == ({"a": [rows(1)]}, yielded.Strange(None))
    assert yielded.split([{"id": 1}, None, {"id": 2}], "a") == ({"a": [rows(1)]}, yielded.Strange(None))
    plain = rows(1, 2)
    assert yielded.split(plain, "a")[0]["a"][0] is plain
