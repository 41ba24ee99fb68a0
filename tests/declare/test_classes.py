"""Class style: names, instances, inheritance, and classes that can not be streams."""

from __future__ import annotations

import pytest

import burler
from burler import EveryN
from burler.errors import DeclarationError
from burler.testing import run_tap

INTEGER = {"type": "integer"}
SCHEMA = {
    "type": "object",
    "properties": {"id": INTEGER, "at": {"type": "string", "format": "date-time"}, "n": INTEGER},
}
NOTE = {"type": "object", "properties": {"contact": {"type": "integer"}, "id": {"type": "integer"}}}


def double(record):
    return {**record, "n": 2 * record["id"]}


def test_names_of_classes():
    tap = burler.tap("tap-x")

    class Base(burler.Stream):
        schema = SCHEMA

        def sync(self, stream):
            yield {"id": len(stream.name)}

    @tap.stream
    class CallNotes(Base):
        pass

    @tap.stream
    class B(Base):
        name = "public.b"

    @tap.stream("given")
    class C(Base):
        pass

    assert list(tap.seal().streams) == ["call_notes", "public.b", "given"]
    assert run_tap(tap).records("public.b") == [{"id": 8}]


def test_one_class_serves_several_streams_each_with_its_own_instance():
    tap = burler.tap("tap-x")
    made = []

    @tap.stream
    class Both(burler.Stream):
        names = ("deals", "leads")
        schema = SCHEMA

        def __init__(self):
            made.append(self)
            self.seen = 0

        def sync(self, stream):
            self.seen += 1
            yield {"id": self.seen, "n": len(stream.name)}

        def post_transform(self, record):
            self.seen += 10
            return {**record, "n": self.seen}

    for _ in range(2):  # and a second run starts anew
        run = run_tap(tap)
        assert run.records("deals") == run.records("leads") == [{"id": 1, "n": 11}]
    assert len({id(one) for one in made}) == len(made) == 4


def test_a_class_that_emits_other_streams():
    tap = burler.tap("tap-x")

    @tap.stream
    class Contacts(burler.Stream):
        schema = SCHEMA
        emits = {"notes": {"schema": NOTE, "key_properties": "id"}}  # noqa: RUF012

        def sync(self):
            yield {"id": 1}
            yield "notes", [{"id": 5, "contact": 1}]

    assert tap.seal().streams["notes"].emitted_by == "contacts"
    run = run_tap(tap)
    assert run.records("contacts") == [{"id": 1}] and run.records("notes") == [{"id": 5, "contact": 1}]


def test_an_abstract_base_is_no_stream_and_lends_its_parts():
    tap = burler.tap("tap-x")

    class Paged(burler.Stream):
        key_properties = "id"
        bookmark_strategy = "every_n(2)"
        replication_key = "id"
        path = ""
        schema = SCHEMA

        def sync(self, client):
            yield from client[self.path]

    @tap.client
    def client(config):
        return {"/a": [{"id": 1}], "/b": [{"id": 2}]}

    @tap.stream
    class A(Paged):
        path = "/a"

    @tap.stream
    class B(Paged):
        path = "/b"
        replication_key = None
        bookmark_strategy = "end_of_sync"

    specs = tap.seal().streams
    assert list(specs) == ["a", "b"]
    assert specs["a"].strategy == EveryN(2) and specs["b"].replication_method == "FULL_TABLE"
    run = run_tap(tap)
    assert run.records("a") == [{"id": 1}] and run.records("b") == [{"id": 2}]


def test_static_and_class_methods_and_schema_as_a_method():
    tap = burler.tap("tap-x")

    @tap.client
    def client(config):
        return SCHEMA

    @tap.stream
    class Things(burler.Stream):
        start = 4

        @classmethod
        def sync(cls):
            return [{"id": cls.start}]

        @staticmethod
        def post_transform(record):
            return double(record)

        def schema(self, client):
            return client

        metadata = {"at": {"selected-by-default": False}}  # noqa: RUF012

    run = run_tap(tap)
    assert run.records("things") == [{"id": 4, "n": 8}]
    assert "at" not in run.messages[0]["schema"]["properties"]


@pytest.mark.parametrize(
    "name", ["key_propertes", "replication_kye", "bookmark_stategy", "post_transfrom", "meta_data"]
)
def test_misspelt_class_attributes_are_refused(name):
    tap = burler.tap("tap-x")
    made = type("Contacts", (burler.Stream,), {name: "id", "sync": lambda self: [], "schema": SCHEMA})
    with pytest.raises(DeclarationError, match=rf"class Contacts has '{name}'\. Did you mean '"):
        tap.stream(made)


def test_names_of_ones_own_are_fine_in_a_class():
    tap = burler.tap("tap-x")

    @tap.stream
    class Contacts(burler.Stream):
        schema = SCHEMA
        page_size = 5
        _names = 3
        path = "/x"

        def sync(self):
            return self.rows()

        def rows(self):
            return [{"id": self.page_size}]

    assert run_tap(tap).records("contacts") == [{"id": 5}]


def no_sync():
    class Contacts(burler.Stream):
        schema = SCHEMA

    return Contacts


def no_self():
    class Contacts(burler.Stream):
        def sync(client):
            return []

    return Contacts


def strange_parameter():
    class Contacts(burler.Stream):
        def sync(self, cleint):
            return []

    return Contacts


def name_and_names():
    class Contacts(burler.Stream):
        name = "a"
        names = ("b",)

        def sync(self):
            return []

    return Contacts


def names_as_text():
    class Contacts(burler.Stream):
        names = "abc"

        def sync(self):
            return []

    return Contacts


def asynchronous():
    class Contacts(burler.Stream):
        async def sync(self):
            return []

    return Contacts


def wrong_option():
    class Contacts(burler.Stream):
        order = "up"

        def sync(self):
            return []

    return Contacts


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (no_sync, "has no method 'sync'; it gives the rows"),
        (no_self, "unknown parameter|needs 'self' as its first parameter"),
        (strange_parameter, "unknown parameter 'cleint'. Did you mean 'client'\\?"),
        (name_and_names, "has both name and names"),
        (names_as_text, "names must be a list of stream names"),
        (asynchronous, "is async; burler runs plain functions"),
        (wrong_option, "order 'up' is unknown. Known: asc, none"),
    ],
)
def test_classes_that_can_not_be_streams(make, says):
    with pytest.raises(DeclarationError, match=says):
        burler.tap("tap-x").stream(make())


@pytest.mark.parametrize("form", ["tap.stream", "handle"])
def test_a_class_whose_init_wants_something_is_refused_before_anything_runs(form):
    class Contacts(burler.Stream):
        schema = SCHEMA

        def __init__(self, config, page=5):
            pass

        def sync(self):
            yield {"id": 1}

    tap = burler.tap("tap-x")
    register = tap.stream if form == "tap.stream" else tap.stream("contacts")
    register(Contacts)
    with pytest.raises(
        DeclarationError, match=r"^stream 'contacts' \(.*:\d+\): class Contacts can't be made: .*'config'"
    ):
        tap.seal()


def test_an_init_with_defaults_is_fine():
    tap = burler.tap("tap-x")

    @tap.stream
    class Contacts(burler.Stream):
        schema = SCHEMA

        def __init__(self, page=5, *args, **more):
            self.page = page

        def sync(self):
            yield {"id": self.page}

    assert run_tap(tap).records("contacts") == [{"id": 5}]


@pytest.mark.parametrize("emits", [["notes"], "notes", {"notes": None}, {"notes": "id"}, 5])
def test_emits_is_a_mapping(emits):
    made = type("Contacts", (burler.Stream,), {"sync": lambda self: [], "emits": emits})
    with pytest.raises(DeclarationError, match="class Contacts: emits is a mapping of stream names to their options"):
        burler.tap("tap-x").stream(made)


def test_options_may_be_given_beside_a_class():
    tap = burler.tap("tap-x")

    class Contacts(burler.Stream):
        schema = SCHEMA

        def sync(self):
            return []

    assert tap.stream(Contacts, key_properties="id") is Contacts
    assert tap.seal().streams["contacts"].key_properties == ("id",)


def test_a_class_is_registered_once():
    tap = burler.tap("tap-x")

    @tap.stream
    class Contacts(burler.Stream):
        schema = SCHEMA

        def sync(self):
            return []

    with pytest.raises(DeclarationError, match=r"test_classes\.py:\d+: class Contacts is registered already"):
        tap.stream(Contacts)
    other = burler.tap("tap-y")
    assert other.stream(Contacts) is Contacts  # another tap may have it, too


def test_a_class_and_a_decorator_for_one_stream():
    tap = burler.tap("tap-x")

    @tap.sync("contacts", schema=SCHEMA)
    def rows():
        return []

    class Contacts(burler.Stream):
        def sync(self):
            return []

    with pytest.raises(DeclarationError, match=r"has a sync function already .*Keep one of the two"):
        tap.stream(Contacts)
