"""Slips in declarations that would lose a stream, a row or a hook without a word, and what is said instead."""

from __future__ import annotations

import functools
import json
import re
import time
from operator import itemgetter

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap
from support.taps import command, discovered, metadata_of

INTEGER = {"type": "integer"}
SCHEMA = {"type": "object", "properties": {"id": INTEGER, "ssn": {"type": "string"}}}


def rows():
    return [{"id": 1, "ssn": "secret"}]


@pytest.fixture
def tap():
    return burler.tap("tap-x")


def gap_of(tap):
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    return str(caught.value)


# ---- streams that hang on a pattern ---------------------------------------------------------------


@pytest.fixture
def found(tap):
    tap.discover(lambda: {"public.a": SCHEMA, "public.b": SCHEMA})
    tap.sync("public.*")(rows)
    return tap


@pytest.mark.parametrize("name", ["public.*", "nowhere.*"])
def test_a_pattern_is_no_parent(found, name):
    found.sync("k", parent=name, schema=SCHEMA)(lambda parent: [parent])
    text = gap_of(found)
    assert re.match(r"stream 'k' \(.*test_slips\.py:\d+\): parent '", text)
    assert f"'{name}' is declared by the pattern '{name}' alone" in text and "by its name" in text


def test_nor_does_a_pattern_emit(found):
    found.stream("e", emitted_by="public.*", schema=SCHEMA)
    text = gap_of(found)
    assert "emitted_by 'public.*' is declared by the pattern 'public.*' alone" in text and len(text.splitlines()) == 1


def test_the_parent_that_only_discovery_knows_is_declared_by_its_name(found):
    found.sync("k", parent="public.a", schema=SCHEMA)(lambda parent: [parent])
    text = gap_of(found)
    assert "'public.a' is declared by the pattern 'public.*' alone" in text
    assert "@tap.sync('public.a')" in text
    found.sync("public.a")(rows)  # the cure that it names
    run = run_tap(found)
    assert [len(run.records(name)) for name in ("public.a", "public.b", "k")] == [1, 1, 1]


def test_hints_name_no_pattern(found):
    found.sync("publik", schema=SCHEMA)(rows)
    found.sync("k", parent="public", schema=SCHEMA)(lambda parent: [parent])
    found.bookmark("public.")(lambda record: record["id"])
    text = gap_of(found)
    assert "Did you mean 'publik'? Streams that have: publik." in text
    assert "*" not in text


# ---- long lines -----------------------------------------------------------------------------------


def line_of(tap, count):
    tap.sync("s1", schema=SCHEMA)(rows)
    for i in range(2, count + 1):
        tap.sync(f"s{i}", parent=f"s{i - 1}", schema=SCHEMA)(lambda parent: [parent])
    return tap


def test_fifty_levels_run(tap):
    run = run_tap(line_of(tap, 50))
    assert run.records("s50") == [{"id": 1, "ssn": "secret"}]


def test_more_are_one_error_and_quick(tap):
    line_of(tap, 1000)
    began = time.monotonic()
    text = gap_of(tap)
    assert time.monotonic() - began < 30  # minutes, when each step looked through all before it
    assert re.fullmatch(
        r"stream 's51' \(.*\): is on level 51 of the line that begins at 's1'; 50 are the most\. .*", text
    )


# ---- hooks of a class -----------------------------------------------------------------------------


class Callable:
    """An object that can be called, and that Python binds to nothing."""

    def __init__(self, fn=None):
        self.fn = fn

    def __call__(self, record):
        return {**record, "ssn": "***"}


def mask(record):
    return {**record, "ssn": "***"}


def class_with(**parts):
    return type("Contacts", (burler.Stream,), {"schema": SCHEMA, "sync": lambda self: rows(), **parts})


@pytest.mark.parametrize(
    ("part", "value", "kind"),
    [
        ("post_transform", Callable(), "Callable"),
        ("post_transform", Callable, "the class Callable"),
        ("post_transform", functools.partial(mask), "partial"),
        ("post_transform", "mask", "str"),
        ("post_transform", property(lambda self: mask), "property"),
        ("post_transform", functools.update_wrapper(Callable(), mask), "Callable"),
        ("bookmark", itemgetter("id"), "itemgetter"),
        ("metadata", Callable(), "Callable"),
        ("metadata", ["email"], "list"),
        ("sync", [{"id": 1}], "list"),
        ("sync", functools.partialmethod(lambda self, n: [], 4), "partialmethod"),
    ],
)
def test_what_is_no_method_is_not_passed_over(tap, part, value, kind):
    with pytest.raises(DeclarationError) as caught:
        tap.stream(class_with(**{part: value}))
    text = str(caught.value)
    assert f"class Contacts: {part} must be a method, not {kind}. Write def {part}(self, ...)" in text
    assert re.match(r"\S*test_slips\.py:\d+: ", text)


@pytest.mark.parametrize("hook", [Callable(), functools.partial(mask), mask], ids=["object", "partial", "function"])
def test_a_staticmethod_takes_what_can_be_called(tap, hook):
    tap.stream(class_with(post_transform=staticmethod(hook)))
    assert run_tap(tap).records("contacts") == [{"id": 1, "ssn": "***"}]


def test_decorated_methods_are_methods(tap):
    def loud(fn):
        @functools.wraps(fn)
        def call(*args, **more):
            return fn(*args, **more)

        return call

    @tap.stream
    class Contacts(burler.Stream):
        schema = SCHEMA

        @loud
        def sync(self, stream):
            yield {"id": len(stream.name), "ssn": self.__class__.__name__}

        @functools.lru_cache  # noqa: B019
        def metadata(self):
            self.seen = True

        @loud
        def post_transform(self, record):
            return {**record, "id": self.seen + record["id"]}

    assert run_tap(tap).records("contacts") == [{"id": 9, "ssn": "Contacts"}]


def test_none_takes_an_inherited_part_away(tap):
    class Base(burler.Stream):
        schema = SCHEMA

        def sync(self):
            return rows()

        def post_transform(self, record):
            return mask(record)

    @tap.stream
    class Contacts(Base):
        post_transform = None
        metadata = None

    assert run_tap(tap).records("contacts") == rows()


def test_a_mapping_of_a_class_is_checked(tap):
    with pytest.raises(
        DeclarationError, match=r"stream 'contacts' \(.*test_slips\.py:\d+\): metadata is a mapping such as"
    ):
        tap.stream(class_with(metadata={"ssn": "unsupported"}))


def test_a_class_without_functions_has_its_place(tap):
    class Base(burler.Stream):
        def sync(self):
            return rows()

    with pytest.raises(DeclarationError) as caught:

        @tap.stream
        class Contacts(Base):
            key_propertes = "id"

    line = Base.sync.__code__.co_firstlineno + 5
    assert re.match(rf"\S*test_slips\.py:{line}: class Contacts has 'key_propertes'", str(caught.value))


# ---- decorators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["sync", "bookmark", "schema", "metadata", "post_transform"])
def test_empty_parentheses_of_the_tap_teach(tap, part):
    with pytest.raises(DeclarationError, match=r"test_slips\.py:\d+: the decorator needs the stream's name first"):
        getattr(tap, part)()


def test_empty_parentheses_above_a_class_teach(tap):
    with pytest.raises(DeclarationError, match=r"leave out the parentheses: @tap\.stream"):
        tap.stream()


def test_empty_parentheses_where_nothing_else_is_needed_are_fine(tap):
    @tap.client()
    def client(config):
        return 5

    contacts = tap.stream("contacts")

    @contacts.sync()
    def sync(client):
        return [{"id": client, "ssn": "x"}]

    @contacts.schema()
    def schema():
        return SCHEMA

    @contacts.metadata()
    def metadata(field):
        if field.level == 0:
            field.set("schema-name", "public")

    @contacts.bookmark()
    def bookmark(record):
        return record["id"]

    @contacts.post_transform()
    def post_transform(record):
        return mask(record)

    run = run_tap(tap)
    assert run.records("contacts") == [{"id": 5, "ssn": "***"}]
    assert run.states[-1] == {"bookmarks": {"contacts": {"bookmark": 5}}}
    assert metadata_of(discovered(tap)["contacts"])[()]["schema-name"] == "public"


def test_the_second_function_of_a_stream_is_what_is_told_not_its_options(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    with pytest.raises(DeclarationError, match=r"stream 'a' .*: has a sync function already \(.*\)\. Keep one"):
        tap.sync("a", schema=SCHEMA)(lambda: [])


def test_an_argument_that_a_tap_does_not_take():
    with pytest.raises(DeclarationError, match=r"test_slips\.py:\d+: .* no 'config'\. Did you mean 'config_spec'\?"):
        burler.tap("tap-x", config={"token": ""})
    with pytest.raises(DeclarationError, match=r"no 'zzz'\. It takes name, config_spec, version, description\."):
        burler.Tap("tap-x", zzz=1)


def test_inclusion_may_be_assigned(tap):
    tap.sync("a", schema=SCHEMA)(rows)

    @tap.metadata("a")
    def metadata(field):
        if field.name == "ssn":
            field.inclusion = "unsupported"

    assert run_tap(tap).records("a") == [{"id": 1}]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("inclusion", "sometimes", "automatic, available"),
        ("selected", False, "Did you mean 'selected-by-default'?"),
    ],
)
def test_what_may_not_be_assigned_says_why(tap, name, value, says):
    tap.sync("a", schema=SCHEMA)(rows)
    tap.metadata("a")(lambda field: setattr(field, name, value))
    done = command(tap, "discover")
    assert done.code == 2
    assert says in done.one_critical()


@pytest.mark.parametrize("name", ["\ud800", "a\udfff"])
def test_half_a_character_is_no_name(tap, name):
    with pytest.raises(
        DeclarationError, match=r"test_slips\.py:\d+: the stream's name holds half a character"
    ) as caught:
        tap.sync(name, schema=SCHEMA)
    json.loads(json.dumps(str(caught.value)).encode())
    str(caught.value).encode()  # it can be printed
