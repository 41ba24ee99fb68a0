"""Options of streams that depend on each other and on time: what they take, in every style, and what does not fit."""

from __future__ import annotations

import datetime as dt
import operator
import re
from decimal import Decimal

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}
HERE = r"test_stream_options\.py:\d+"


class Flaky(Exception):
    """An error of a source."""


def rows():
    return [{"id": 1}]


def reset(error, retry):
    return None


@pytest.fixture
def tap():
    return burler.tap("tap-x")


def sealed(tap, name="a"):
    return tap.seal().streams[name]


def gaps_of(tap):
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    return str(caught.value).splitlines()


# ---- values ---------------------------------------------------------------------------------------


def test_what_is_so_if_nothing_is_said(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    spec = sealed(tap)
    said = {
        "on_unsorted": "error",
        "resume": "inclusive",
        "lookback": None,
        "bookmark_format": None,
        "signpost": False,
        "resumable_by": None,
        "retry": None,
        "workers": 1,
        "rollup": False,
        "partitions": None,
        "partition_order": "none",
        "partition_key": None,
        "acknowledge": None,
    }
    assert {name: getattr(spec, name) for name in said} == said


@pytest.mark.parametrize(
    ("option", "value", "becomes"),
    [
        ("on_unsorted", "end_of_sync", "end_of_sync"),
        ("resume", "exclusive", "exclusive"),
        ("lookback", 30, 30),
        ("lookback", 0.5, 0.5),
        ("lookback", 10**400, 10**400),
        ("lookback", dt.timedelta(days=2), dt.timedelta(days=2)),
        ("lookback", 0, None),
        ("lookback", dt.timedelta(0), None),
        ("bookmark_format", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S"),
        ("signpost", True, True),
    ],
)
def test_options_of_the_bookmark(tap, option, value, becomes):
    tap.sync("a", schema=SCHEMA, replication_key="at", **{option: value})(rows)
    assert getattr(sealed(tap), option) == becomes


def test_none_is_nothing_said(tap):
    options = [
        "on_unsorted", "resume", "lookback", "bookmark_format", "signpost", "resumable_by", "retry_sync_on",
        "setup_retry", "max_retries", "workers", "rollup",
    ]  # fmt: skip
    tap.sync("a", schema=SCHEMA, **dict.fromkeys(options))(rows)
    tap.partitions("a", order=None, key=None)(lambda: [{"x": 1}])
    assert (sealed(tap).retry, sealed(tap).workers, sealed(tap).partition_order) == (None, 1, "none")


FORMS = {
    "sync": lambda tap, **options: tap.sync("a", **options)(rows),
    "stream": lambda tap, **options: tap.stream("a", **options),
    "class": lambda tap, **options: tap.stream(
        type("A", (burler.Stream,), {**options, "name": "a", "sync": lambda self: []})
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"on_unsorted": "warn"}, "on_unsorted 'warn' is unknown. Known: error, end_of_sync."),
        ({"on_unsorted": "end_of_snyc"}, "Did you mean 'end_of_sync'? Known: error"),
        ({"resume": True}, "resume True is unknown. Known: inclusive, exclusive."),
        ({"resume": "exlusive"}, "Did you mean 'exclusive'?"),
        *(
            ({"lookback": wrong}, "lookback must be a timedelta or a number, 0 or more and finite (seconds for date-ti")
            for wrong in (-1, -0.1, float("nan"), float("inf"), dt.timedelta(days=-1), True, "1h", Decimal(1))
        ),
        ({"bookmark_format": "iso"}, "bookmark_format must be a form as strftime takes it"),
        ({"bookmark_format": 1}, "bookmark_format must be a form as strftime takes it"),
        ({"signpost": 1}, "signpost must be True or False, not 1"),
        ({"rollup": "yes"}, "rollup must be True or False, not 'yes'"),
        ({"resumable_by": ["id"]}, "resumable_by must be a field's name, not ['id']"),
        ({"resumable_by": ""}, "resumable_by must be a field's name, not ''"),
        ({"workers": 0}, "workers must be a whole number from 1 to 1,000, not 0."),
        ({"workers": -3}, "workers must be a whole number from 1"),
        ({"workers": 10**9}, "workers must be a whole number from 1 to 1,000"),
        ({"workers": 2.0}, "workers must be a whole number from 1"),
        ({"workers": True}, "workers must be a whole number from 1"),
        ({"workers": "4"}, "workers must be a whole number from 1"),
        ({"max_retries": -1}, "max_retries must be a whole number from 0"),
        ({"max_retries": False}, "max_retries must be a whole number from 0"),
        *(
            ({"retry_sync_on": wrong}, "retry_sync_on must be an exception class below Exception or a tuple of them, s")
            for wrong in ((), "Flaky", int, Flaky("x"), (Flaky, 5), BaseException, (Flaky, KeyboardInterrupt))
        ),
    ],
)
def test_wrong_values(tap, form, options, says):
    with pytest.raises(DeclarationError) as caught:
        FORMS[form](tap, **options)
    text = str(caught.value)
    assert says in text and text.startswith("stream 'a' (") and len(text.splitlines()) == 1
    assert re.search(HERE, text)


# ---- partitions -------------------------------------------------------------------------------------


def by_decorator(tap, fn, **more):
    tap.sync("a", schema=SCHEMA)(lambda partition: [{"id": partition["n"]}])
    return tap.partitions("a", **more)(fn)


def by_handle(tap, fn, **more):
    handle = tap.stream("a", schema=SCHEMA)
    handle.sync(lambda partition: [{"id": partition["n"]}])
    return handle.partitions(**more)(fn)


def two():
    yield {"n": 1, "who": "a"}
    yield {"n": 2, "who": "b"}


@pytest.mark.parametrize("style", [by_decorator, by_handle])
@pytest.mark.parametrize("key", [None, "who", lambda partition: partition["who"], operator.itemgetter("who")])
def test_the_sync_runs_for_each_partition(tap, style, key):
    assert style(tap, two, key=key) is two
    spec = sealed(tap)
    assert (spec.partition_order, spec.partition_key) == ("none", key)
    assert run_tap(tap).records("a") == [{"id": 1}, {"id": 2}]


def test_the_decorator_of_a_handle_works_without_parentheses(tap):
    handle = tap.stream("a", schema=SCHEMA)
    handle.sync(lambda partition: [{"id": partition["n"]}])
    assert handle.partitions(two) is two
    assert len(run_tap(tap).records("a")) == 2


def test_a_class_has_partitions(tap):
    @tap.stream
    class A(burler.Stream):
        schema = SCHEMA
        replication_key = "at"
        partition_order = "asc"
        workers = 2

        def partitions(self, config):
            self.made = True
            yield from ({"n": n} for n in config["numbers"])

        @staticmethod
        def partition_key(partition):
            return f"number {partition['n']}"

        def sync(self, partition):
            return [{"id": partition["n"], "at": f"{partition['n']:03}"}]

    spec = sealed(tap)
    assert (spec.partition_order, spec.workers, spec.partitions.owner) == ("asc", 2, A)
    assert spec.partition_key({"n": 5}) == "number 5"
    assert {row["id"] for row in run_tap(tap, {"numbers": [1, 2, 3]}).records("a")} == {1, 2, 3}


@pytest.mark.parametrize("key", ["who", lambda partition: partition["who"], staticmethod(lambda p: p["who"])])
def test_the_key_of_a_class_is_a_name_or_a_function(tap, key):
    parts = {
        "schema": SCHEMA,
        "sync": lambda self, partition: [],
        "partitions": lambda self: two(),
        "partition_key": key,
    }
    tap.stream(type("A", (burler.Stream,), parts))
    found = sealed(tap).partition_key
    assert found == "who" or found({"who": "b"}) == "b"


def test_none_takes_inherited_partitions_away(tap):
    class Base(burler.Stream):
        schema = SCHEMA

        def sync(self):
            return rows()

        def partitions(self):
            return [{"n": 1}]

    @tap.stream
    class A(Base):
        partitions = None

    assert sealed(tap).partitions is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda tap: tap.partitions("a")(lambda cleint: two()), "unknown parameter 'cleint'. Did you mean 'client'?"),
        (lambda tap: tap.partitions("a")(lambda partition: two()), "unknown parameter 'partition'."),
        (lambda tap: tap.partitions("a")(lambda: None), "its partitions function gives nothing, so no row would come"),
        (lambda tap: tap.partitions(two), "the decorator needs the stream's name first"),
        (lambda tap: tap.partitions(), "the decorator needs the stream's name first"),
        (lambda tap: tap.partitions("a", order="desc")(two), "order of partitions 'desc' is unknown. Known: asc, none"),
        (lambda tap: tap.partitions("a", order=["asc"])(two), "order of partitions ['asc'] is unknown."),
        (lambda tap: tap.partitions("a", key=5)(two), "must be a field's name or a function of the partition alone"),
        (lambda tap: tap.partitions("a", key="")(two), "must be a field's name or a function"),
        (lambda tap: tap.partitions("a", key=str)(two), "must be a field's name or a function"),
        (lambda tap: tap.partitions("a", key=lambda: "x")(two), "must be a field's name or a function"),
        (lambda tap: tap.partitions("a", key=lambda p, q: "x")(two), "must be a field's name or a function"),
        (lambda tap: tap.partitions("a", key=two)(two), "must be a field's name or a function"),
        (lambda tap: [tap.partitions("a")(two) for _ in "12"], "has a partitions function already ("),
        (lambda tap: tap.acknowledge("a")(lambda row: 0), "unknown parameter 'row'. It may ask for bookmark, state"),
        (lambda tap: [tap.acknowledge("a")(lambda: 0) for _ in "12"], "has an acknowledge function already ("),
    ],
)  # fmt: skip
def test_what_is_refused_where_it_is_declared(tap, make, says):
    with pytest.raises(DeclarationError) as caught:
        make(tap)
    assert says in str(caught.value) and re.search(HERE, str(caught.value))


def test_a_function_that_is_called_for_what_it_does_has_no_yield(tap):
    def told(bookmark):
        yield bookmark

    def prepare(error):
        yield error

    with pytest.raises(
        DeclarationError, match=r"stream 'a' \(.*: its acknowledge function has a 'yield', so a call would"
    ):
        tap.acknowledge("a")(told)
    with pytest.raises(DeclarationError, match=r"stream 'b' \(.*: its setup_retry function has a 'yield'.*Leave out"):
        tap.sync("b", retry_sync_on=Flaky, setup_retry=prepare)(rows)


def test_the_key_of_a_class_takes_no_self(tap):
    parts = {"sync": lambda self: [], "partition_key": lambda self, partition: "x", "partitions": lambda self: two()}
    with pytest.raises(
        DeclarationError, match=r"key of partitions must be .* of the partition alone \(in a class: a staticm"
    ):
        tap.stream(type("A", (burler.Stream,), parts))


# ---- retries ------------------------------------------------------------------------------------------


def test_retries_are_one_thing(tap):
    tap.sync("a", schema=SCHEMA, retry_sync_on=Flaky)(rows)
    tap.sync("b", schema=SCHEMA, retry_sync_on=[Flaky, TimeoutError], setup_retry=reset, max_retries=0)(rows)
    specs = tap.seal().streams
    assert (specs["a"].retry.on, specs["a"].retry.setup, specs["a"].retry.most) == ((Flaky,), None, 3)
    assert specs["b"].retry.on == (Flaky, TimeoutError) and specs["b"].retry.most == 0
    assert (specs["b"].retry.setup.fn, specs["b"].retry.setup.names) == (reset, ("error", "retry"))


@pytest.mark.parametrize(
    ("setup", "says"),
    [
        ("reset", "setup_retry must be a function, such as def setup_retry(client, error, retry): ..., not 'reset'"),
        (Flaky, "setup_retry must be a function"),
        (
            lambda eror: None,
            "unknown parameter 'eror'. Did you mean 'error'? It may ask for client, config, stream, err",
        ),
        (lambda record: None, "unknown parameter 'record'."),
    ],
)
def test_what_is_no_setup(tap, setup, says):
    with pytest.raises(DeclarationError) as caught:
        tap.sync("a", retry_sync_on=Flaky, setup_retry=setup)(rows)
    text = str(caught.value)
    assert says in text and text.startswith("stream 'a' (") and re.search(HERE, text)


def failing(times):
    """A sync function that fails so many times, and what it was told before each further try."""
    left, told = [times], []

    def sync():
        yield {"id": 1}
        if left[0]:
            left[0] -= 1
            raise Flaky(f"left {left[0]}")
        yield {"id": 2}

    def setup(error, retry):
        told.append((str(error), retry))

    return sync, setup, told


def test_retries_in_each_style(tap):
    sync, setup, told = failing(2)
    tap.stream("thing", retry_sync_on=Flaky, setup_retry=setup, schema=SCHEMA)(sync)
    assert [row["id"] for row in run_tap(tap).records("thing")] == [1, 1, 1, 2]
    assert told == [("left 1", 1), ("left 0", 2)]

    other = burler.tap("tap-y")
    fn, note, told = failing(1)

    @other.stream
    class Thing(burler.Stream):
        schema = SCHEMA
        retry_sync_on = (Flaky, TimeoutError)
        max_retries = 1

        def sync(self):
            yield from fn()

        def setup_retry(self, error, retry, stream):
            note(error, retry)
            self.stream = stream.name

    assert sealed(other, "thing").retry.setup.owner is Thing
    assert [row["id"] for row in run_tap(other).records("thing")] == [1, 1, 2]
    assert told == [("left 0", 1)]


def test_a_chain_carries_the_options(tap):
    handle = tap.stream("a", schema=SCHEMA, retry_sync_on=Flaky, workers=2).sync("rows")
    handle.partitions(lambda: [{"n": 1}])
    handle.substream("b", schema=SCHEMA, replication_key="id", lookback=2).sync("of_parent")
    specs = tap.seal().streams
    assert (specs["a"].retry.on, specs["a"].workers, specs["b"].lookback) == ((Flaky,), 2, 2)


def of_parent(parent, partition):
    return [{"id": parent["id"]}]


def test_a_pattern_takes_them_too(tap):
    tap.discover(lambda: {"x": SCHEMA, "y": SCHEMA})
    tap.sync("*", retry_sync_on=Flaky, workers=2, lookback=5, signpost=True)(lambda partition: rows())
    tap.partitions("*")(lambda stream: [{"n": stream.name}])
    tap.acknowledge("*")(lambda bookmark: None)
    spec = sealed(tap, "*")
    assert (spec.retry.on, spec.workers, spec.lookback, spec.signpost) == ((Flaky,), 2, 5, True)
    other = burler.tap("tap-y")
    other.discover(lambda: {"x": SCHEMA})
    other.sync("*", resumable_by="id")(rows)
    assert sealed(other, "*").resumable_by == "id"


# ---- acknowledging ------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["decorator", "handle", "bare handle", "class"])
def test_what_is_out_is_acknowledged(tap, style):
    seen = []

    def told(bookmark, state, stream):
        seen.append((bookmark, state, stream.name))

    def sync(stream):
        yield {"id": 4}
        stream.state = {"lsn": 9}

    options = {"schema": SCHEMA, "replication_key": "id", "replication_method": burler.LOG_BASED}
    if style == "class":
        parts = {**options, "sync": staticmethod(sync), "acknowledge": staticmethod(told)}
        tap.stream(type("A", (burler.Stream,), parts))
    else:
        tap.sync("a", **options)(sync)
        decorate = {
            "decorator": tap.acknowledge("a"),
            "handle": tap.stream("a").acknowledge(),
            "bare handle": tap.stream("a").acknowledge,
        }[style]
        assert decorate(told) is told
    run_tap(tap)
    assert seen[-1] == (4, {"lsn": 9}, "a")


# ---- sugar --------------------------------------------------------------------------------------------


def test_rows_are_emitted_from_anywhere(tap):
    def deep():
        tap.emit_record({"id": 1})
        tap.emit_records([{"id": 5}, {"id": 6}], "b")
        tap.emit_records(iter([{"id": 2}]), stream="a")

    @tap.sync("a", schema=SCHEMA)
    def a():
        deep()
        yield {"id": 3}

    tap.stream("b", emitted_by="a", schema=SCHEMA)
    run = run_tap(tap)
    assert [row["id"] for row in run.records("a")] == [1, 2, 3]
    assert [row["id"] for row in run.records("b")] == [5, 6]


@pytest.mark.parametrize(
    ("call", "what"),
    [(lambda tap: tap.emit_record({}), "tap.emit_record"), (lambda tap: tap.emit_records([]), "tap.emit_records")],
)
def test_rows_are_emitted_inside_a_run_only(tap, call, what):
    with pytest.raises(burler.BurlerError, match=rf"{what}\(\) was called outside a running stream"):
        call(tap)


# ---- gaps ---------------------------------------------------------------------------------------------


def gap(tap, **streams):
    """Streams by name with their options; one without a function of its own has ``fn=None``."""
    for name, options in streams.items():
        options = dict(options)
        fn = options.pop("fn", rows if "parent" not in options else lambda parent: [parent])
        if fn is None:
            tap.stream(name, schema=SCHEMA, **options)
        else:
            tap.sync(name, schema=SCHEMA, **options)(fn)
    return tap


KEYED = {"replication_key": "at"}


@pytest.mark.parametrize(
    ("streams", "says"),
    [
        ({"a": {"workers": 3}}, "has workers, but no partitions. Add @tap.partitions('a') (for several streams"),
        (
            {"a": {"fn": lambda partition: []}},
            "its sync function asks for 'partition', but there are no partitions. Add",
        ),
        (
            {"a": {"lookback": 5}},
            "has lookback, but keeps no bookmark: it has neither a replication_key nor a bookmark",
        ),
        ({"a": {"signpost": True, "resume": "exclusive"}}, "has signpost and resume, but keeps no bookmark"),
        ({"a": {"on_unsorted": "end_of_sync"}}, "has on_unsorted, but keeps no bookmark"),
        ({"a": {"resumable_by": "id", "resume": "exclusive"}}, "has resume, but keeps no bookmark"),
        (
            {"a": {**KEYED, "lookback": 5, "replication_method": "FULL_TABLE"}},
            "has lookback, but keeps no bookmark: it is FULL_TABLE. Replicate it as INCREMENTAL, or leave it out.",
        ),
        ({"a": {**KEYED, "resumable_by": "id"}}, "resumable_by is for FULL_TABLE streams, and it is INCREMENTAL: it"),
        (
            {"a": {"resumable_by": "ID"}},
            "resumable_by 'ID' is not in the schema. Did you mean 'id'? Its fields: id, at.",
        ),
        (
            {"p": {}, "a": {"parent": "p", "resumable_by": "id"}},
            "has resumable_by, but its rows come in the run of 'p'. Set it on that stream, or leave it out.",
        ),
        (
            {"p": {}, "a": {"fn": None, "emitted_by": "p", "resumable_by": "id"}},
            "has resumable_by, but its rows come in the run of 'p'",
        ),
        (
            {"a": {"max_retries": 1}},
            "has max_retries, but nothing says on which error it is begun anew. Add retry_sync_on",
        ),
        ({"a": {"max_retries": 1, "setup_retry": reset}}, "has max_retries and setup_retry, but nothing says on which"),
        (
            {"p": {}, "a": {"fn": None, "emitted_by": "p", "retry_sync_on": Flaky}},
            "has retry_sync_on, but its rows come in the run of 'p'. Set it on that stream",
        ),
        ({"a": {**KEYED, "rollup": True}}, "has rollup, but no parent. Say of which stream"),
        (
            {"p": KEYED, "a": {"parent": "p", "rollup": True}},
            "has rollup, but no replication_key. Add one",
        ),
        (
            {"p": KEYED, "a": {**KEYED, "parent": "p", "rollup": True, "replication_method": "FULL_TABLE"}},
            "has rollup, but keeps no bookmark: it is FULL_TABLE",
        ),
        (
            {"p": {}, "a": {**KEYED, "parent": "p", "rollup": True}},
            "rollup sets back the bookmark of 'p', which keeps none and is read whole each time. Leave out rollup.",
        ),
        ({"p": KEYED, "a": {"parent": "p", "bookmark_strategy": "manual"}}, "STATE follows the parent's strategy"),
        ({"p": KEYED, "a": {"parent": "p", "bookmark_strategy": "on_page"}}, "STATE follows the parent's strategy"),
    ],
)
def test_what_does_not_fit_together(tap, streams, says):
    lines = gaps_of(gap(tap, **streams))
    assert len(lines) == 1 and says in lines[0], lines
    assert re.match(rf"stream 'a' \(.*{HERE}\): ", lines[0])


@pytest.mark.parametrize(
    ("streams", "says"),
    [
        (
            {"p": {}, "a": {"parent": "p"}},
            rf"has a partitions function \(.*{HERE}\), but its rows come in the run of 'p'\. Set",
        ),
        (
            {"p": {}, "a": {"fn": None, "emitted_by": "p"}},
            rf"has a partitions function \(.*{HERE}\), but its rows come in the run of 'p'\. Set",
        ),
        ({"b": {}}, r"has .*partitions.*, but no sync function\. Decorate one: @tap.sync\('a'\)"),
        ({"a": {"resumable_by": "id"}}, "has both resumable_by and a partitions function .*Keep one of the two"),
        (
            {"a": {}},
            r"has order of partitions, but keeps no bookmark: it has neither a replication_key nor a bo",
        ),
        (
            {"a": {**KEYED, "replication_method": "FULL_TABLE"}},
            r"has order of partitions, but keeps no bookmark: it is FULL_TABLE",
        ),
    ],
)
def test_partitions_that_do_not_fit(tap, streams, says):
    gap(tap, **streams)
    tap.partitions("a", order="asc")(two)
    lines = [line for line in gaps_of(tap) if re.search(says, line)]
    assert len(lines) == 1 and re.match(rf"stream 'a' \(.*{HERE}\): ", lines[0])


def test_what_is_said_of_partitions_that_a_class_does_not_have(tap):
    parts = {"schema": SCHEMA, "sync": lambda self: [], "partition_key": "id", "partition_order": "asc"}
    tap.stream(type("A", (burler.Stream,), parts))
    (line,) = gaps_of(tap)
    assert "has order of partitions and key of partitions, but no partitions. Add @tap.partitions('a')" in line


def test_hooks_that_ask_for_what_there_is_not(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    tap.bookmark("a")(lambda record, children: 1)
    tap.post_transform("a")(lambda record, partition: record)
    lines = gaps_of(tap)
    assert re.search(rf"its post_transform function \(.*{HERE}\) asks for 'partition', but there are no part", lines[1])
    assert re.search(
        rf"its bookmark function \(.*{HERE}\) asks for 'children', but it has no substreams\. Lea", lines[0]
    )
    assert len(lines) == 2
    tap.sync("notes", parent="a", schema=SCHEMA)(lambda parent: [])
    tap.partitions("a")(two)
    assert sealed(tap).bookmark.names == ("record", "children")


def test_a_substream_may_ask_for_the_partition_of_its_line(tap):
    tap.sync("a", schema=SCHEMA)(lambda partition: rows())
    tap.sync("b", parent="a", schema=SCHEMA)(of_parent)
    (line,) = [line for line in gaps_of(tap) if "'b'" in line]
    assert "asks for 'partition', but there are no partitions. Add @tap.partitions('a')" in line
    tap.partitions("a")(two)
    assert list(tap.seal().streams) == ["a", "b"]


def test_every_function_that_asks_for_a_client_needs_one(tap):
    tap.sync("a", schema=SCHEMA, retry_sync_on=Flaky, setup_retry=lambda client: None)(rows)
    tap.sync("b", schema=SCHEMA)(rows)
    tap.partitions("b")(lambda client: client)
    tap.sync("c", schema=SCHEMA)(rows)
    tap.acknowledge("c")(lambda client: None)
    lines = gaps_of(tap)
    assert [line[:10] for line in lines] == ["stream 'a'", "stream 'b'", "stream 'c'"]
    assert all("asks for 'client', but no @tap.client is declared" in line for line in lines)
    tap.client(lambda config: 5)
    assert set(tap.seal().streams) == {"a", "b", "c"}


def test_a_field_that_may_stand_elsewhere_in_the_schema_is_left_to_the_plan(tap):
    tap.sync("a", schema={"allOf": [{"properties": {"id": {}}}], "properties": {"x": {}}}, resumable_by="id")(rows)
    tap.sync("b", resumable_by="id")(rows)
    tap.schema("b")(lambda: SCHEMA)
    assert sealed(tap, "b").resumable_by == "id"


def test_all_gaps_come_at_once(tap):
    gap(tap, a={"workers": 2, "lookback": 5, "max_retries": 1, "rollup": True, "resumable_by": "x"})
    assert len(gaps_of(tap)) == 5


def test_emitted_by_takes_a_handle_as_parent_does():
    tap = burler.tap("tap-x")
    a = tap.stream("a", schema=SCHEMA)
    tap.stream("b", emitted_by=a, schema=SCHEMA)

    @a.sync
    def rows():
        yield {"id": 1}
        yield "b", [{"id": 2}]

    assert tap.seal().streams["b"].emitted_by == "a"
    assert run_tap(tap).records("b") == [{"id": 2}]
