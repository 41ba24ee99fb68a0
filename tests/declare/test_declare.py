"""Declaring a tap: decorators give functions back, mistakes are named at once and with their place."""

from __future__ import annotations

import pickle
import re
import threading
from types import SimpleNamespace

import pytest

import burler
from burler import EndOfSync, EveryN, EverySeconds, Manual, OnPage, Since
from burler.errors import BurlerError, DeclarationError
from burler.testing import bind_stream, run_tap

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}
HERE = r"test_declare\.py:\d+"


@pytest.fixture
def tap():
    return burler.tap("tap-x")


def line_of(mark: str) -> int:
    """The line of this file that ends in a mark."""
    with open(__file__) as lines:
        return next(i for i, line in enumerate(lines, 1) if line.rstrip().endswith(f"# {mark}"))


# ---- what works ----------------------------------------------------------------------------------


def test_decorators_give_the_function_back(tap):
    def client(config):
        return ("client", config)

    def rows(client, config, state, catalog, stream, mine=5):
        return [{"id": mine}]

    def bookmark(record, state, stream):
        return record["id"]

    def schema(client, config):
        return SCHEMA

    assert tap.client(client) is client
    assert tap.sync("a", key_properties="id")(rows) is rows
    assert tap.bookmark("a")(bookmark) is bookmark
    assert tap.schema("a", method=burler.generated)(schema) is schema
    assert client(1) == ("client", 1)
    assert rows(1, 2, 3, 4, 5) == [{"id": 5}]
    run = run_tap(tap, {"x": 1})
    assert run.records("a") == [{"id": 5}]
    assert run.states[-1] == {"bookmarks": {"a": {"bookmark": 5}}}
    with pytest.raises(TypeError):
        rows()


def test_parameters_are_given_by_name(tap):
    seen = {}

    @tap.client
    def client(config):
        return {"made for": config["who"]}

    @tap.sync("a")
    def rows(*args, stream, client, config, catalog, state, **kwargs):
        seen.update(locals())
        yield {"id": 1}

    tap.schema("a", SCHEMA)
    assert not run_tap(tap, {"who": "me"}, state={"bookmarks": {"b": {"id": 7}}}).result.errors
    assert seen["client"] == {"made for": "me"}
    assert seen["config"] == {"who": "me"}
    assert list(seen["catalog"].entries) == ["a"]
    assert seen["stream"].name == "a"
    assert seen["stream"].config == {"who": "me"}
    assert seen["state"]["bookmarks"] == {"b": {"id": 7}}
    assert seen["args"] == () and seen["kwargs"] == {}


def test_plannings_spellings(tap, tmp_path):
    (tmp_path / "a.json").write_text('{"type": "object", "properties": {"id": {"type": "integer"}}}')
    seen = []

    @tap.sync("contacts", bookmark_strategy="end_of_sync", replication_method=burler.INCREMENTAL)
    def get_contacts():
        seen.append(tap.get_bookmark())
        yield [{"id": 3}, {"id": 2}]

    @tap.bookmark("contacts")
    def get_bookmark(record):
        return record["id"]

    tap.schema("contacts", method=burler.json_file(tmp_path / "a.json"))

    @tap.sync("deals", bookmark_strategy="end_of_stream", replication_key="id")
    def deals():
        yield {"id": 1}

    @tap.schema("deals", method=burler.generated)
    def schemas():
        return {"deals": SCHEMA, "other": {}}

    run = run_tap(tap, state={"bookmarks": {"contacts": {"bookmark": 1}}})
    assert seen == [1]
    assert run.states[-1] == {"bookmarks": {"contacts": {"bookmark": 3}, "deals": {"id": 1}}}


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("end_of_sync", EndOfSync()),
        ("end_of_stream", EndOfSync()),
        ("every_100", EveryN(100)),
        ("every_n(352)", EveryN(352)),
        (" every_n( 1 ) ", EveryN(1)),
        ("every n(5)", EveryN(5)),
        ("every_n(1_000)", EveryN(1000)),
        ("every_n(1 000)", EveryN(1000)),
        ("every_seconds(30)", EverySeconds(30)),
        ("every_seconds(0.5)", EverySeconds(0.5)),
        (" every_seconds ( 2.0 ) ", EverySeconds(2)),
        ("on_page", OnPage()),
        ("on page", OnPage()),
        ("manual", Manual()),
        (" manual ", Manual()),
        (EveryN(7), EveryN(7)),
        (EveryN(1), EveryN(1)),
        (EverySeconds(0.25), EverySeconds(0.25)),
        (EndOfSync(), EndOfSync()),
        (OnPage(), OnPage()),
        (Manual(), Manual()),
    ],
)
def test_strategies(tap, text, strategy):
    tap.sync("a", replication_key="at", schema=SCHEMA, bookmark_strategy=text)(lambda: 0)
    spec = tap.seal().streams["a"]
    assert spec.strategy == strategy
    assert (spec.order == "asc") is isinstance(strategy, EveryN | EverySeconds | OnPage)


def test_strategies_are_plain_values():
    assert OnPage() == OnPage() != Manual() != EndOfSync() != OnPage()
    assert len({OnPage(), OnPage(), Manual(), EndOfSync(), EveryN(1), EverySeconds(1)}) == 5
    assert [repr(one) for one in (OnPage(), Manual(), EndOfSync())] == ["OnPage()", "Manual()", "EndOfSync()"]
    assert pickle.loads(pickle.dumps(OnPage())) == OnPage()
    for one in (OnPage(), Manual(), EndOfSync(), EveryN(1)):
        with pytest.raises((AttributeError, TypeError)):
            one.count = 5


@pytest.mark.parametrize(
    ("strategy", "since", "due"),
    [
        (EndOfSync(), Since(10**9, 10**9, 10**9), False),
        (Manual(), Since(10**9, 10**9, 10**9), False),
        (EveryN(3), Since(2, 99.0, 9), False),
        (EveryN(3), Since(3, 0.0, 0), True),
        (EverySeconds(0.5), Since(1, 0.49, 1), False),
        (EverySeconds(0.5), Since(1, 0.5, 1), True),
        (EverySeconds(0.5), Since(0, 9.0, 0), False),
        (OnPage(), Since(5, 9.0, 0), False),
        (OnPage(), Since(0, 0.0, 1), True),
    ],
)
def test_when_a_state_is_due(strategy, since, due):
    assert strategy.is_due(since) is due


class Rule:
    """A strategy of an author's own; what it says of order is optional."""

    def is_due(self, since, more=5):
        return since.rows >= more


def test_a_strategy_of_the_authors_own(tap):
    class Sorted(burler.Strategy):
        needs_order = True

        def is_due(self, since):
            return True

    mine = Rule()
    tap.sync("loose", replication_key="at", bookmark_strategy=mine)(lambda: 0)
    tap.sync("sorted", replication_key="at", bookmark_strategy=Sorted())(lambda: 0)
    tap.sync("said", replication_key="at", bookmark_strategy=Sorted(), order="none")(lambda: 0)
    for name in ("loose", "sorted", "said"):
        tap.schema(name, SCHEMA)
    assert [spec.order for spec in tap.seal().streams.values()] == ["none", "asc", "none"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Rule, r"is a class; it needs an object: Rule\(\.\.\.\)"),
        (EveryN, "is a class; it needs an object"),
        (
            SimpleNamespace(is_due=True),
            "its is_due must be a plain method with one argument. Write def is_due.self, since.: return",
        ),
        (SimpleNamespace(is_due=lambda: True), "its is_due must be a plain method with one argument"),
        (SimpleNamespace(is_due=lambda since, other: True), "its is_due must be a plain method with one argument"),
        (SimpleNamespace(is_due=lambda since: True, needs_order="asc"), "its needs_order must be True or False"),
        (SimpleNamespace(is_due=lambda since: True, needs_order=lambda: 1), "its needs_order must be True or False"),
        (SimpleNamespace(isdue=lambda since: True), r"is unknown\. An object needs a method is_due\(since\)\. Known: "),
        ({"every": 5}, "is unknown. An object needs a method is_due"),
    ],
)
def test_what_is_no_strategy(given, says):
    with pytest.raises(DeclarationError, match=rf"^stream 'a' \(.*{HERE}\): bookmark_strategy .*{says}"):
        burler.tap("tap-x").sync("a", bookmark_strategy=given)(lambda: 0)


def test_an_async_rule_is_refused():
    class Async:
        async def is_due(self, since):
            return True

    with pytest.raises(DeclarationError, match="its is_due must be a plain method"):
        burler.tap("tap-x").sync("a", bookmark_strategy=Async())(lambda: 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "end_of_snyc",
            "is unknown. Did you mean 'end_of_sync'? Known: end_of_sync, every_n(count), every_seconds(sec",
        ),
        ("onpage", "Did you mean 'on_page'?"),
        ("manuel", "Did you mean 'manual'?"),
        ("every_secs(5)", "Did you mean 'every_seconds(30)'?"),
        ("every_30s", "Did you mean 'every_seconds(30)'?"),
        ("every_0.5_seconds", "Did you mean 'every_seconds(0.5)'?"),
        ("every_seconds(0)", "the seconds must be more than 0, and finite, not 0."),
        ("every_seconds(-1)", "the seconds must be more than 0, and finite, not -1."),
        ("every_seconds(nan)", "the seconds must be more than 0, and finite, not nan."),
        ("every_seconds(inf)", "the seconds must be more than 0, and finite, not inf."),
        ("every_seconds(1e300)", "the seconds must be more than 0, and finite, not 1e+300."),
        ("every_seconds(x)", "seconds are a number like 30 or 0.5, not 'x'."),
        ("every_seconds()", "seconds are a number like 30 or 0.5, not ''."),
        ("every_seconds(" + "9" * 5000 + ")", "the seconds must be more than 0, and finite, not inf."),
        (EverySeconds(0), "the seconds must be more than 0"),
        (EverySeconds(float("nan")), "the seconds must be more than 0, and finite, not nan."),
        (EverySeconds(True), "the seconds must be more than 0, and finite, not True."),
        (EverySeconds("5"), "the seconds must be more than 0, and finite, not '5'."),
        (EveryN(True), "the count must be 1 or more"),
        (EveryN(2.5), "the count must be 1 or more"),
        ("every_n(10", "is unknown. Did you mean 'every_n(1000)'?"),
        ("every_n", "is unknown. Did you mean 'every_n(1000)'?"),
        ("every_n(" + "9" * 5000 + ")", "is unknown. Known:"),
        ("every_", "is unknown."),
        ("every_n(-5)", "is unknown."),
        ("every_n(1.5)", "is unknown."),
        ("", "is unknown. Known:"),
        ("EVERY_100x", "is unknown."),
        (None, "is unknown."),
        (100, "is unknown."),
        ("every_n(0)", "the count must be 1 or more"),
        ("every_0", "the count must be 1 or more"),
        (EveryN(0), "the count must be 1 or more"),
    ],
)
def test_unknown_strategies(tap, text, says):
    with pytest.raises(DeclarationError, match=rf"^stream 'a' \(.*{HERE}\): bookmark_strategy ") as caught:

        @tap.sync("a", bookmark_strategy=text)
        def rows():
            pass

    assert says in str(caught.value)


def test_schema_functions_of_several_streams_run_once(tap):
    calls = []

    @tap.schema("a")
    @tap.schema("b")
    def schemas(config):
        calls.append(config)
        return {"a": SCHEMA, "b": {"properties": {"b": {}}}}

    @tap.sync("a")
    def a():
        yield {"id": 1}
        yield "b", [{"b": 2}]

    tap.stream("b", emitted_by="a")
    run = run_tap(tap)
    assert (run.records("a"), run.records("b")) == ([{"id": 1}], [{"b": 2}])
    assert len(calls) == 1


def test_a_class_or_an_object_is_a_function_too(tap):
    class Client:
        def __init__(self, config):
            self.config = config

    class Rows:
        def __call__(self, client):
            return [{"id": client.config["n"]}]

    assert tap.client(Client) is Client
    tap.sync("a")(Rows())
    tap.schema("a", SCHEMA)
    assert run_tap(tap, {"n": 4}).records("a") == [{"id": 4}]


# ---- mistakes, each at its line ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declare", "says"),
    [
        (
            lambda tap: tap.client(lambda cnofig: 0),
            r"the client function \(.*\): unknown parameter 'cnofig'\. Did you mean 'config'\? It may ask for config\.",
        ),
        (
            lambda tap: tap.sync("a")(lambda cleint: 0),
            r"the sync function of 'a' .*'cleint'\. Did you mean 'client'\? It may ask for client, config, state, ",
        ),
        (lambda tap: tap.sync("a")(lambda zzz: 0), r"unknown parameter 'zzz'\. It may ask for"),
        (lambda tap: tap.sync("a")(lambda stream, /: 0), r"unknown parameter 'stream'"),
        (
            lambda tap: tap.bookmark("a")(lambda row: 0),
            r"the bookmark function of 'a' .*'row'\..*record, state, stream",
        ),
        (lambda tap: tap.schema("a")(lambda stream: 0), r"the schema function of 'a' .*client, config\."),
        (lambda tap: tap.sync("a")(5), r"the sync function of 'a' must be a function, not int"),
        (lambda tap: tap.client(None), r"the client function must be a function, not NoneType"),
        (lambda tap: tap.sync(""), r"the stream's name must be text, not ''"),
        (lambda tap: tap.sync(5), r"the stream's name must be text, not 5"),
        (lambda tap: tap.stream(None, emitted_by="a"), r"the stream's name must be text, not None"),
        (lambda tap: tap.sync(lambda: 0), r"the decorator needs the stream's name first: @tap\.sync\('contacts'\)"),
        (lambda tap: tap.bookmark(lambda: 0), r"the decorator needs the stream's name first"),
        (lambda tap: tap.schema(lambda: 0), r"the decorator needs the stream's name first"),
        (
            lambda tap: tap.schema("a", 5),
            r"a schema is a dict, burler\.json_file\(\.\.\.\), a typed class or a function, not int",
        ),
        (lambda tap: tap.stream("a", emitted_by="b", schema="x.json"), r"a schema is a dict, .* not str"),
        (lambda tap: tap.schema("a", SCHEMA)(lambda: 0), r"has a schema already \(.*Keep one of the two"),
        (
            lambda tap: tap.sync("a", key_properties=("id", "id"))(lambda: 0),
            r"key_properties must be different field names",
        ),
        (
            lambda tap: tap.sync("a", key_properties=None)(lambda: 0),
            r"key_properties must be different field names, not None",
        ),
        (
            lambda tap: tap.sync("a", key_properties=5)(lambda: 0),
            r"key_properties must be different field names, not 5",
        ),
        (lambda tap: tap.sync("a", key_properties=[""])(lambda: 0), r"key_properties must be different field names"),
        (lambda tap: tap.sync("a", replication_key=["at"])(lambda: 0), r"replication_key must be a field's name"),
        (lambda tap: tap.sync("a", replication_key="")(lambda: 0), r"replication_key must be a field's name"),
        (
            lambda tap: tap.sync("a", replication_method="FULL")(lambda: 0),
            r"replication_method 'FULL' is unknown\. Known: FULL_TABLE, INCREMENTAL, LOG_BASED",
        ),
        (lambda tap: tap.sync("a", order="desc")(lambda: 0), r"order 'desc' is unknown\. Known: asc, none"),
    ],
)
def test_mistakes(tap, declare, says):
    with pytest.raises(DeclarationError, match=says) as caught:
        declare(tap)
    if "must be a function" not in says:
        assert re.search(HERE, str(caught.value))
    assert not tap._registry.names or says.startswith("has a schema") or "a schema is" in says


def test_async_functions_are_refused(tap):
    async def coroutine():
        pass

    async def generator():
        yield {}

    for fn in (coroutine, generator):
        with pytest.raises(DeclarationError, match=r"is async; burler runs plain functions"):
            tap.sync("a")(fn)


@pytest.mark.parametrize("name", ["", " ", None, 5, [], {"name": "x"}])
def test_taps_have_names(name):
    with pytest.raises(DeclarationError, match=rf"{HERE}: a tap's name must be text like 'tap-contacts'"):
        burler.tap(name)


TWICE = {
    "sync function": lambda tap: tap.sync("a")(lambda: 0),
    "bookmark function": lambda tap: tap.bookmark("a")(lambda: 0),
    "schema": lambda tap: tap.schema("a", SCHEMA),
    "schema ": lambda tap: tap.schema("a")(lambda: 0),
}


@pytest.mark.parametrize("part", TWICE)
def test_nothing_is_declared_twice(tap, part):
    TWICE[part](tap)
    with pytest.raises(
        DeclarationError, match=rf"stream 'a' \(.*{HERE}\): has a {part.strip()} already \(.*{HERE}\)\. Keep one"
    ):
        TWICE[part](tap)


def test_nor_in_two_spellings(tap):
    tap.schema("a", SCHEMA)
    with pytest.raises(DeclarationError, match="has a schema already"):
        tap.schema("a")(lambda: SCHEMA)
    with pytest.raises(DeclarationError, match="has a schema already"):
        tap.stream("a", emitted_by="b", schema=SCHEMA)
    tap.sync("c")(lambda: 0)
    with pytest.raises(DeclarationError, match="has a sync function already"):
        tap.stream("c", emitted_by="a")
    tap.client(lambda: 0)
    with pytest.raises(DeclarationError, match=rf"{HERE}: the tap has a client already \(.*{HERE}\)"):
        tap.client(lambda: 0)


# ---- gaps, all at once ---------------------------------------------------------------------------


def test_seal_reports_every_gap_with_its_line(tap):
    @tap.sync("no_schema")  # no schema
    def one():
        pass

    @tap.sync("no_key", replication_method="INCREMENTAL")  # no key
    def two():
        pass

    tap.schema("no_key", SCHEMA)
    tap.schema("contact", SCHEMA)  # no sync

    @tap.bookmark("no_keys")  # misspelt
    def three():
        pass

    tap.stream("orphan", emitted_by="nobody", schema=SCHEMA)  # orphan
    tap.stream("chained", emitted_by="orphan", schema=SCHEMA)  # chained
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    lines = str(caught.value).splitlines()
    for mark, says in [
        ("no schema", r"stream 'no_schema' .* has no schema\. Add tap\.schema\('no_schema'"),
        ("no key", r"stream 'no_key' .* INCREMENTAL needs a replication_key \(or a @tap\.bookmark function\)"),
        ("no sync", r"stream 'contact' .* has schema, but no sync function\. Decorate one: @tap\.sync\('contact'\)"),
        ("misspelt", r"stream 'no_keys' .* has bookmark, but no sync function\. Did you mean 'no_key'\?"),
        (
            "orphan",
            r"stream 'orphan' .* emitted_by 'nobody' has no sync function\. Streams that have: no_schema, no_key",
        ),
        ("chained", r"stream 'chained' .* emitted_by 'orphan' has no sync function"),
    ]:
        place = f"test_declare.py:{line_of(mark)})"
        assert [line for line in lines if place in line and re.search(says, line)], (mark, place, lines)
    # A gap can be filled, since nothing runs yet.
    assert tap._registry._sealed is None


def test_late_registration_is_refused(tap):
    tap.sync("a")(lambda: [])
    tap.schema("a", SCHEMA)
    first = tap.seal().streams
    assert tap.seal().streams is first
    late = [
        lambda: tap.sync("b")(lambda: 0),
        lambda: tap.stream("b", emitted_by="a"),
        lambda: tap.bookmark("a")(lambda: 0),
        lambda: tap.schema("b", SCHEMA),
        lambda: tap.schema("b")(lambda: 0),
        lambda: tap.client(lambda: 0),
    ]
    for declare in late:
        with pytest.raises(
            DeclarationError, match=rf"{HERE}: the tap is running, or has run; declare all streams when the module"
        ):
            declare()
    assert set(first) == {"a"}


def test_how_a_stream_is_replicated(tap):
    tap.sync("full")(lambda: 0)
    tap.sync("rising", replication_key="at", bookmark_strategy="every_5")(lambda: 0)
    tap.sync("asked")(lambda: 0)
    tap.bookmark("asked")(lambda record: 0)
    tap.sync("said", replication_key="at", replication_method="FULL_TABLE", order="none")(lambda: 0)
    tap.sync("unsorted", replication_key="at", bookmark_strategy="every_5", order="none")(lambda: 0)
    tap.stream("beside_full", emitted_by="full")
    tap.stream("beside_rising", emitted_by="rising")
    tap.stream("full_beside_rising", emitted_by="rising", replication_method="FULL_TABLE")
    tap.stream("rising_beside_full", emitted_by="full", replication_key="at")
    for name in list(tap._registry.names):
        tap.schema(name, SCHEMA)
    specs = tap.seal().streams
    assert {name: (spec.replication_method, spec.bookmark_key, spec.order) for name, spec in specs.items()} == {
        "full": ("FULL_TABLE", None, "none"),
        "rising": ("INCREMENTAL", "at", "asc"),
        "asked": ("INCREMENTAL", "bookmark", "none"),
        "said": ("FULL_TABLE", None, "none"),
        "unsorted": ("INCREMENTAL", "at", "none"),
        "beside_full": ("FULL_TABLE", None, "none"),
        "beside_rising": ("INCREMENTAL", None, "none"),
        "full_beside_rising": ("FULL_TABLE", None, "none"),
        "rising_beside_full": ("INCREMENTAL", "at", "none"),
    }


# ---- several taps, and outside of a run ----------------------------------------------------------


def test_two_taps_in_one_process_do_not_touch_each_other():
    def make(name, first):
        tap = burler.tap(name)

        @tap.client
        def client(config):
            return config

        @tap.sync("a", replication_key="id")
        def rows(client):
            for i in range(3):
                yield {"id": first + i + tap.get_bookmark() * 0, "at": client["who"]}

        tap.schema("a", SCHEMA)
        return tap

    one, two = make("tap-one", 10), make("tap-two", 20)
    results = {}

    def go(tap, first):
        results[tap.name] = run_tap(tap, {"who": tap.name}, state={"bookmarks": {"a": {"id": first}}})

    threads = [threading.Thread(target=go, args=args) for args in ((one, 10), (two, 20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results["tap-one"].records("a") == [{"id": 10 + i, "at": "tap-one"} for i in range(3)]
    assert results["tap-two"].records("a") == [{"id": 20 + i, "at": "tap-two"} for i in range(3)]
    assert "a" in one.seal().streams and one.seal().streams["a"] is not two.seal().streams["a"]


def test_outside_of_a_run(tap):
    other = burler.tap("tap-other")
    for what in ("get_bookmark", "stream_metadata"):
        with pytest.raises(BurlerError, match=rf"tap\.{what}\(\) was called outside a running stream"):
            getattr(tap, what)()
    with bind_stream(tap, "a", bookmark=5) as stream:
        assert tap.get_bookmark() == stream.bookmark == 5
        with pytest.raises(BurlerError, match="outside a running stream"):
            other.get_bookmark()
        got = []

        def elsewhere():
            with pytest.raises(BurlerError, match="outside a running stream") as caught:
                tap.get_bookmark()
            got.append(caught)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert got
    with pytest.raises(BurlerError):
        tap.get_bookmark()


def test_stream_state_is_an_object(tap):
    with bind_stream(tap, "a") as stream:
        stream.state = {"x": 1}
        assert stream.state == {"x": 1}
        with pytest.raises(BurlerError, match=r"stream 'a': stream\.state must be a JSON object, not list"):
            stream.state = []
        assert stream.selected() is False
        assert "a" in repr(stream)


def test_repr(tap):
    assert repr(tap) == "<Tap 'tap-x': no streams yet>"
    tap.sync("a")(lambda: 0)
    assert repr(tap) == "<Tap 'tap-x': a>"
