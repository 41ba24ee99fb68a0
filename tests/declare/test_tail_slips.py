"""Slips in what is declared for tail runs: refused where they are made, with the nearest name and the cure."""

from __future__ import annotations

import functools

import pytest

import burler
from burler.errors import DeclarationError

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture
def tap():
    return burler.tap("tap-x")


def rows():
    yield {"id": 1}


# ---- bodies ----------------------------------------------------------------------------------------


def forgets_to_yield(client, stream):
    for batch in client.read(stream.bookmark):
        print(batch, stream.name)


def takes_no_row(client, stream):
    stream.state = {"x": len(client.read(stream.state["x"]))}


@pytest.mark.parametrize("fn", [forgets_to_yield, takes_no_row])
def test_a_tail_function_that_gives_nothing(tap, fn):
    with pytest.raises(DeclarationError, match=r"stream 'a' \(.*: its tail function gives nothing.* Yield the rows"):
        tap.tail("a")(fn)


def emits(client, stream):
    for row in client:
        stream.emit_record(row)


def emits_inside(client, stream):
    def on_message(row):
        stream.emit_record(row)

    client.listen(on_message)


def emits_inside_by_its_tap(client):
    def on_message(row):
        client.tap.emit_record(row)

    client.listen(on_message)


def hands_its_stream_on(client, stream):
    client.pump_into(stream)


def hands_it_on_behind_others(client, stream):
    pump(client, stream)


def hands_it_on_before_others(client, stream):
    pump(stream, client)


def pump(client, stream):
    pass


def keeps_it(client, stream):
    client.stream = stream
    client.listen()


def returns(client):
    return client.listen()


@pytest.mark.parametrize(
    "fn",
    [
        emits,
        emits_inside,
        emits_inside_by_its_tap,
        hands_its_stream_on,
        hands_it_on_behind_others,
        hands_it_on_before_others,
        keeps_it,
        returns,
    ],
)
def test_a_tail_function_may_emit_its_rows(tap, fn):
    assert tap.tail("a")(fn) is fn


def no_generator(client):
    client.wait_for_a_change()


def returns_an_iterator(client):
    return iter(client)


class Callable:
    """No function, and its call is a generator all the same."""

    def __call__(self, stream):
        yield


class Waits(Callable):
    def __call__(self):
        return None


@pytest.mark.parametrize("fn", [no_generator, returns_an_iterator, lambda: [1], Waits()])
def test_a_wake_function_is_a_generator(tap, fn):
    with pytest.raises(DeclarationError) as caught:
        tap.wake("a")(fn)
    text = str(caught.value)
    assert text.startswith("stream 'a' (") and "): its wake function has no 'yield'" in text
    assert "Yield once when it is subscribed" in text and len(text.splitlines()) == 1


@functools.wraps(rows)
def wrapped():
    return rows()


@pytest.mark.parametrize("fn", [rows, functools.partial(rows), wrapped, Callable()])
def test_generators_in_other_clothes_may_wake(tap, fn):
    assert tap.wake("a")(fn) is fn


@pytest.mark.parametrize("part", ["tail", "wake"])
def test_functions_for_tail_runs_are_not_async(tap, part):
    async def listens(stream):
        yield {"id": 1}

    with pytest.raises(DeclarationError, match=rf"the {part} function of 'a' .*is async; burler runs plain functions"):
        getattr(tap, part)("a")(listens)


@pytest.mark.parametrize("part", ["tail", "wake", "ack", "acknowledge", "bookmark", "partitions", "sync"])
def test_a_decorator_without_its_name_shows_itself(tap, part):
    with pytest.raises(DeclarationError, match=rf"needs the stream's name first: @tap\.{part}\('contacts'\)"):
        getattr(tap, part)(rows)


@pytest.mark.parametrize(
    ("part", "given", "meant", "all_of_them"),
    [
        ("tail", "cleint", "client", "client, config, state, catalog, stream."),
        ("tail", "steram", "stream", "client, config, state, catalog, stream."),
        ("wake", "cofnig", "config", "client, config, stream."),
        ("ack", "bokmark", "bookmark", "bookmark, state, stream, client, config"),
    ],
)
def test_a_misspelt_parameter(tap, part, given, meant, all_of_them):
    namespace = {}
    exec(f"def fn({given}):\n    yield", namespace)
    with pytest.raises(DeclarationError) as caught:
        getattr(tap, part)("a")(namespace["fn"])
    assert f"unknown parameter '{given}'. Did you mean '{meant}'? It may ask for {all_of_them}" in str(caught.value)


@pytest.mark.parametrize("given", ["parent", "partition"])
def test_a_tail_function_runs_for_no_parent_and_no_partition(tap, given):
    namespace = {}
    exec(f"def fn({given}):\n    yield", namespace)
    with pytest.raises(DeclarationError, match=rf"the tail function of 'a' .*unknown parameter '{given}'"):
        tap.tail("a")(namespace["fn"])


# ---- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("new_record_poling_interval_ms", "new_record_polling_interval_ms"),
        ("new_record_polling_interval", "new_record_polling_interval_ms"),
        ("max_full_table_age_second", "max_full_table_age_seconds"),
        ("full_table_age_seconds", "max_full_table_age_seconds"),
    ],
)
def test_a_misspelt_option_names_the_nearest(tap, given, meant):
    for declare in (tap.tail, tap.sync):
        with pytest.raises(DeclarationError, match=f"unknown option '{given}'. Did you mean '{meant}'"):
            declare("a", **{given: 5})(rows)


def test_a_misspelt_overlap(tap):
    with pytest.raises(DeclarationError, match=r"unknown option 'overlapp'\. Did you mean 'overlap'"):
        tap.tail("a", overlapp=True)(rows)
    with pytest.raises(DeclarationError, match=r"It is said of a tail function: @tap\.tail\('a', overlap=True\)"):
        tap.sync("a", overlap=True)(rows)
    with pytest.raises(DeclarationError, match=r"overlap must be True or False, not 'yes'"):
        tap.tail("a", overlap="yes")(rows)


@pytest.mark.parametrize("name", ["tial", "tails", "overlaps", "acknowledges", "wakes"])
def test_a_misspelt_attribute_of_a_class(tap, name):
    meant = {"tial": "tail", "tails": "tail", "overlaps": "overlap", "acknowledges": "acknowledge", "wakes": "wake"}
    body = {name: staticmethod(rows), "schema": SCHEMA} | ({} if name == "tial" else {"sync": staticmethod(rows)})
    with pytest.raises(DeclarationError, match=f"'{name}'. Did you mean '{meant[name]}'"):
        tap.stream(type("A", (burler.Stream,), body))


def test_what_is_no_method_is_refused(tap):
    for part in ("tail", "wake", "ack"):
        with pytest.raises(DeclarationError, match=rf"class A: {part} must be a method, not int"):
            tap.stream(type("A", (burler.Stream,), {"name": part, "sync": staticmethod(rows), part: 5}))
    with pytest.raises(DeclarationError, match=r"stream 'a' \(.*overlap must be True or False, not 5"):
        tap.stream(type("A", (burler.Stream,), {"sync": staticmethod(rows), "overlap": 5}))


@pytest.mark.parametrize("value", [0, -1, 5.5, True, "5000", 10**12 + 1, float("nan"), [5]])
def test_an_interval_is_whole_milliseconds(tap, value):
    with pytest.raises(DeclarationError) as caught:
        tap.sync("a", new_record_polling_interval_ms=value)(rows)
    text = str(caught.value)
    assert "new_record_polling_interval_ms must be a whole number of milliseconds from 1 to 1,000,000,000,000" in text
    assert f"not {value!r}." in text


@pytest.mark.parametrize("value", [0, -0.5, True, "60", 10**9 + 1, 10**400, float("nan"), float("inf"), [5]])
def test_an_age_is_seconds_above_zero(tap, value):
    with pytest.raises(DeclarationError) as caught:
        tap.sync("a", max_full_table_age_seconds=value)(rows)
    text = str(caught.value)
    assert "max_full_table_age_seconds must be a number of seconds above 0 and up to 1,000,000,000" in text
    assert len(text) < 400


def test_none_is_nothing_said(tap):
    tap.sync("a", new_record_polling_interval_ms=None, max_full_table_age_seconds=None, schema=SCHEMA)(rows)
    tap.sync("b", new_record_polling_interval_ms=1, max_full_table_age_seconds=0.001, schema=SCHEMA)(rows)
    specs = tap.seal().streams
    assert specs["a"].new_record_polling_interval_ms is specs["a"].max_full_table_age_seconds is None
    assert (specs["b"].new_record_polling_interval_ms, specs["b"].max_full_table_age_seconds) == (1, 0.001)
