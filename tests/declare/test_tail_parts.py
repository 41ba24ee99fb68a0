"""What is declared for tail runs, in each style: tail, wake and acknowledge functions, and the options of polls."""

from __future__ import annotations

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture
def tap():
    return burler.tap("tap-x")


def rows():
    yield {"id": 1}


def pushed(client, config, state, catalog, stream):
    yield {"id": 2}


def wakes(client, config, stream):
    yield


def acks(bookmark, state, stream, client, config):
    pass


def factory(config):
    return object()


# ---- the three styles ------------------------------------------------------------------------------


def by_decorators(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    assert tap.tail("a", overlap=True, key_properties="id")(pushed) is pushed
    assert tap.ack("a")(acks) is acks
    tap.sync("b", schema=SCHEMA, new_record_polling_interval_ms=5000, max_full_table_age_seconds=2.5)(rows)
    assert tap.wake("b")(wakes) is wakes


def by_handles(tap):
    a = tap.stream("a", schema=SCHEMA)
    a.sync(rows)
    assert a.tail(overlap=True, key_properties="id")(pushed) is pushed
    assert a.ack(acks) is acks
    b = tap.stream("b", schema=SCHEMA, new_record_polling_interval_ms=5000, max_full_table_age_seconds=2.5)
    b.sync()(rows)
    assert b.wake(wakes) is wakes


def by_classes(tap):
    @tap.stream
    class A(burler.Stream):
        schema = SCHEMA
        key_properties = "id"
        overlap = True
        sync = staticmethod(rows)
        tail = staticmethod(pushed)
        ack = staticmethod(acks)

    @tap.stream
    class B(burler.Stream):
        schema = SCHEMA
        new_record_polling_interval_ms = 5000
        max_full_table_age_seconds = 2.5
        sync = staticmethod(rows)
        wake = staticmethod(wakes)


@pytest.mark.parametrize("declare", [by_decorators, by_handles, by_classes])
def test_each_style_says_the_same(tap, declare):
    tap.client(factory)
    declare(tap)
    specs = tap.seal().streams
    a, b = specs["a"], specs["b"]
    assert (a.sync.fn, a.tail.fn, a.acknowledge.fn, a.overlap, a.wake) == (rows, pushed, acks, True, None)
    assert a.tail.names == ("client", "config", "state", "catalog", "stream")
    assert a.key_properties == ("id",)
    assert (a.new_record_polling_interval_ms, a.max_full_table_age_seconds) == (None, None)
    assert (b.wake.fn, b.wake.names, b.overlap, b.tail) == (wakes, ("client", "config", "stream"), False, None)
    assert (b.new_record_polling_interval_ms, b.max_full_table_age_seconds) == (5000, 2.5)


def test_decorators_of_a_handle_take_empty_parentheses_or_none(tap):
    a, b = tap.stream("a", schema=SCHEMA), tap.stream("b", schema=SCHEMA)
    a.tail(rows)
    a.ack()(rows_seen)
    b.sync(rows)
    b.wake()(rows)
    specs = tap.seal().streams
    assert specs["a"].tail.fn is rows and not specs["a"].overlap
    assert specs["a"].acknowledge.fn is rows_seen
    assert specs["b"].wake.fn is rows


def rows_seen(bookmark):
    pass


def test_methods_of_a_class_are_called_on_an_instance(tap):
    @tap.stream
    class Events(burler.Stream):
        schema = SCHEMA

        def tail(self, stream):
            yield {"id": 1}

        def acknowledge(self, bookmark):
            pass

    spec = tap.seal().streams["events"]
    assert (spec.tail.owner, spec.tail.names) == (Events, ("stream",))
    assert spec.sync is None
    assert spec.place.rpartition(":")[0].endswith("test_tail_parts.py")
    assert spec.acknowledge.owner is Events


def test_a_chain_above_a_class_takes_its_tail_method_too(tap):
    @tap.stream("thing").sync("get_a_thing")
    class Things(burler.Stream):
        schema = SCHEMA
        overlap = True

        def get_a_thing(self):
            yield {"id": 1}

        def tail(self, stream):
            yield from stream.catch_up()

    spec = tap.seal().streams["thing"]
    assert (spec.sync.owner, spec.tail.owner, spec.overlap) == (Things, Things, True)


def test_a_class_that_has_both_acknowledge_and_ack_keeps_one(tap):
    with pytest.raises(DeclarationError, match=r"'both' .*has an acknowledge function already .* Keep one of the two"):

        @tap.stream
        class Both(burler.Stream):
            schema = SCHEMA
            sync = staticmethod(rows)
            acknowledge = staticmethod(rows_seen)
            ack = staticmethod(rows_seen)


def test_ack_and_acknowledge_are_one_part(tap):
    tap.acknowledge("a")(rows_seen)
    with pytest.raises(DeclarationError, match=r"stream 'a' .*has an acknowledge function already \("):
        tap.ack("a")(rows_seen)


@pytest.mark.parametrize(("part", "options"), [("tail", {"key_properties": "id"}), ("wake", {})])
def test_a_second_function_names_the_first(tap, part, options):
    getattr(tap, part)("a", **options)(rows)
    with pytest.raises(DeclarationError) as caught:
        getattr(tap, part)("a", **options)(rows)
    assert f"has a {part} function already (" in str(caught.value) and "test_tail_parts.py:" in str(caught.value)


def told_by_decorators(tap, told):
    @tap.sync("s", schema=SCHEMA, replication_key="id", order="asc")
    def first(stream):
        yield {"id": 1}

    @tap.tail("s", overlap=True)
    def then(stream):
        yield from stream.catch_up()
        yield {"id": 2}
        stream.state = {"last": 2}

    @tap.ack("s")
    def out(state):
        told.append(state)


def told_by_a_handle(tap, told):
    s = tap.stream("s", schema=SCHEMA, replication_key="id", order="asc")

    @s.sync
    def first(stream):
        yield {"id": 1}

    @s.tail(overlap=True)
    def then(stream):
        yield from stream.catch_up()
        yield {"id": 2}
        stream.state = {"last": 2}

    @s.ack
    def out(state):
        told.append(state)


def told_by_a_class(tap, told):
    @tap.stream
    class S(burler.Stream):
        schema = SCHEMA
        replication_key = "id"
        order = "asc"
        overlap = True
        last = 1

        def sync(self):
            yield {"id": self.last}

        def tail(self, stream):
            yield from stream.catch_up()
            self.last = 2
            yield {"id": self.last}
            stream.state = {"last": self.last}

        def ack(self, state):
            told.append(state)


@pytest.mark.parametrize("declare", [told_by_decorators, told_by_a_handle, told_by_a_class])
def test_each_style_runs_the_same(tap, declare):
    told = []
    declare(tap, told)
    out = run_tap(tap, {"tail": True, "tail_max_rounds": 1})
    assert not out.result.errors
    assert [kind for kind in out.types if kind != "STATE"] == ["SCHEMA", "RECORD", "RECORD"]
    assert out.records("s") == [{"id": 1}, {"id": 2}] and out.types[-1] == "STATE"
    assert out.states[-1]["bookmarks"]["s"] == {"id": 2, "stream_state": {"last": 2}}
    assert told[-1] == {"last": 2}
    assert run_tap(tap).records("s") == [{"id": 1}]  # a plain run knows no tail function


def test_a_plain_run_leaves_a_tail_function_alone_out_and_says_so(tap, caplog):
    tap.tail("events", schema=SCHEMA)(rows)
    with caplog.at_level("WARNING", logger="burler"):
        out = run_tap(tap)
    assert (out.records("events"), out.result.exit_code) == ([], 0)
    assert "stream 'events': has a tail function alone; it comes in a tail run only (--tail)" in caplog.text


# ---- a tail function alone ---------------------------------------------------------------------------


def test_a_tail_function_alone_makes_a_stream_that_is_no_full_table(tap):
    tap.tail("events", key_properties="id", schema=SCHEMA)(rows)
    spec = tap.seal().streams["events"]
    assert (spec.sync, spec.emitted_by, spec.root) == (None, None, "events")
    assert spec.replication_method == burler.LOG_BASED


def test_a_tail_function_alone_with_a_replication_key_is_incremental(tap):
    tap.tail("events", replication_key="id", schema=SCHEMA)(rows)
    assert tap.seal().streams["events"].replication_method == burler.INCREMENTAL


def test_a_tail_function_alone_is_where_its_stream_stands(tap):
    handle = tap.stream("a", schema=SCHEMA)
    handle.tail(rows)
    assert tap.seal().streams["a"].place == tap.seal().streams["a"].tail.place


def test_a_class_with_a_tail_function_alone_takes_no_arguments(tap):
    @tap.stream
    class A(burler.Stream):
        schema = SCHEMA

        def __init__(self, url):
            self.url = url

        def tail(self):
            yield {"id": 1}

    (gap,) = gaps_of(tap)
    assert "class A can't be made" in gap and "'url'. Its __init__ takes no arguments" in gap


def test_a_tail_function_beside_a_sync_function_leaves_its_method(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    tap.tail("a")(rows)
    tap.tail("b", schema=SCHEMA)(rows)
    tap.stream("b").sync("rows")
    tap.seal()
    assert tap.seal().streams["a"].replication_method == tap.seal().streams["b"].replication_method == burler.FULL_TABLE


def test_streams_may_hang_on_a_tail_function(tap):
    tap.tail("events", schema=SCHEMA)(rows)
    tap.stream("errors", emitted_by="events", schema=SCHEMA)
    tap.sync("details", parent="events", schema=SCHEMA)(lambda parent: [parent])
    specs = tap.seal().streams
    assert (specs["errors"].root, specs["details"].root) == ("events", "events")
    assert specs["errors"].replication_method == burler.LOG_BASED  # else its rows would be dropped at each end


def test_a_pattern_may_have_a_tail_function(tap):
    tap.discover(lambda: {})
    tap.tail("*")(rows)
    assert tap.seal().streams["*"].tail.fn is rows


def test_a_tail_function_that_asks_for_a_client_needs_one(tap):
    tap.tail("a", schema=SCHEMA)(pushed)
    tap.sync("b", schema=SCHEMA)(rows)
    tap.wake("b")(wakes)
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    first, second = str(caught.value).splitlines()
    assert first.startswith("stream 'a' (") and first.endswith("asks for 'client', but no @tap.client is declared.")
    assert second.startswith("stream 'b' (")


# ---- gaps ------------------------------------------------------------------------------------------


def gaps_of(tap):
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    return str(caught.value).splitlines()


def on_partitions(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    tap.tail("a")(rows)
    tap.partitions("a")(lambda: [{"x": 1}])


def on_a_substream(tap):
    tap.sync("top", schema=SCHEMA)(rows)
    tap.sync("a", parent="top", schema=SCHEMA)(rows)
    tap.tail("a")(rows)


def on_an_emitted_stream(tap):
    tap.sync("top", schema=SCHEMA)(rows)
    tap.stream("a", emitted_by="top", schema=SCHEMA)
    tap.tail("a")(rows)


def overlap_without_sync(tap):
    tap.tail("a", overlap=True, schema=SCHEMA)(rows)


def overlap_without_tail(tap):
    @tap.stream
    class A(burler.Stream):
        schema = SCHEMA
        overlap = True
        sync = staticmethod(rows)


def full_table_without_sync(tap):
    tap.tail("a", replication_method=burler.FULL_TABLE, schema=SCHEMA)(rows)


def wake_beside_tail(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    tap.tail("a")(rows)
    tap.wake("a")(rows)


def wake_without_sync(tap):
    tap.sync("aa", schema=SCHEMA)(rows)
    tap.wake("a")(rows)


def wake_of_a_substream(tap):
    tap.sync("top", schema=SCHEMA)(rows)
    tap.sync("a", parent="top", schema=SCHEMA)(rows)
    tap.wake("a")(rows)


def wake_of_an_emitted_stream(tap):
    tap.sync("top", schema=SCHEMA)(rows)
    tap.stream("a", emitted_by="top", schema=SCHEMA)
    tap.wake("a")(rows)


def interval_of_a_substream(tap):
    tap.sync("top", schema=SCHEMA)(rows)
    tap.sync("mid", parent="top", schema=SCHEMA)(rows)
    tap.sync("a", parent="mid", schema=SCHEMA, new_record_polling_interval_ms=5, max_full_table_age_seconds=5)(rows)


def misspelt(tap):
    tap.sync("aaa", schema=SCHEMA)(rows)
    tap.tail("aab")(rows)


@pytest.mark.parametrize(
    ("declare", "fact", "cure"),
    [
        (on_partitions, "and a partitions function (", "may go through the partitions by itself. Keep one"),
        (on_a_substream, "), but its rows come in the run of 'top'", "Set it on that stream"),
        (
            on_an_emitted_stream,
            "), but its rows come in the run of 'top'",
            "Set it on that stream",
        ),
        (overlap_without_sync, "has overlap, but no sync function", "Add @tap.sync('a'), or leave it out."),
        (overlap_without_tail, "has overlap, but no tail function", "Add @tap.tail('a'), or leave it out."),
        (
            full_table_without_sync,
            "is FULL_TABLE, and has a tail function alone (",
            "Add @tap.sync('a'), or leave out replication_method (it is LOG_BASED then).",
        ),
        (wake_beside_tail, "and a tail function (", "Keep one of the two."),
        (wake_without_sync, "has wake, but no sync function", "Did you mean 'aa'?"),
        (wake_of_a_substream, "), but its rows come in the run of 'top'", "Set it on that stream"),
        (wake_of_an_emitted_stream, "), but its rows come in the run of 'top'", "Set it on that stream"),
        (
            interval_of_a_substream,
            "has new_record_polling_interval_ms and max_full_table_age_seconds, but its rows come in the run of 'top'",
            "Set it on that stream, or leave it out.",
        ),
        (misspelt, "has no schema. Did you mean 'aaa'?", "Add tap.schema('aab', burler.json_file(...))."),
    ],
)
def test_what_does_not_fit_is_one_line_with_its_cure(tap, declare, fact, cure):
    declare(tap)
    (gap,) = gaps_of(tap)
    assert gap.startswith("stream 'a") and "test_tail_parts.py:" in gap
    assert fact in gap and cure in gap


def test_a_sync_function_that_is_not_found_is_the_only_gap(tap):
    tap.stream("a", schema=SCHEMA, replication_method="FULL_TABLE").sync("no_such_function")
    tap.tail("a", overlap=True)(rows)
    (gap,) = gaps_of(tap)
    assert "there is no function 'no_such_function' in this module" in gap
