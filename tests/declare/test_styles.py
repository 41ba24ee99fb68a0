"""Three styles of declaring a stream: decorators, handles and classes make the same frozen spec."""

from __future__ import annotations

import dataclasses
from dataclasses import fields

import pytest

import burler
from burler.testing import run_tap

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "n": {"type": "integer"},
    },
}
NOTE = {"type": "object", "properties": {"contact": {"type": "integer"}, "id": {"type": "integer"}}}
DAYS = [f"2024-05-0{day}T00:00:00Z" for day in (1, 2, 3)]
ROWS = [{"id": i, "at": at} for i, at in enumerate(DAYS)]


def double(record):
    return {**record, "n": 2 * record["id"]}


def with_decorators():
    tap = burler.tap("tap-x")

    @tap.sync("contacts", key_properties="id", replication_method=burler.INCREMENTAL, order="asc", versions=False)
    def contacts(stream):
        yield from ROWS

    @tap.bookmark("contacts")
    def bookmark(record):
        return record["at"]

    tap.schema("contacts", SCHEMA)
    tap.metadata("contacts", {"n": {"selected-by-default": True}})

    @tap.metadata("contacts")
    def metadata(field):
        if field.name == "at":
            field.inclusion.automatic()

    tap.post_transform("contacts")(lambda record: double(record))

    @tap.sync("notes", parent="contacts", key_properties=["contact", "id"], schema=NOTE)
    def notes(parent):
        yield {"contact": parent["id"], "id": 1}

    return tap


def with_handles():
    tap = burler.tap("tap-x")
    contacts = tap.stream("contacts", key_properties="id", replication_method=burler.INCREMENTAL)

    @contacts.sync(order="asc", versions=False)
    def get_contacts(stream):
        yield from ROWS

    @contacts.bookmark
    def bookmark(record):
        return record["at"]

    contacts.schema(SCHEMA).metadata({"n": {"selected-by-default": True}})

    @contacts.metadata
    def metadata(field):
        if field.name == "at":
            field.inclusion.automatic()

    @contacts.post_transform
    def transform(record):
        return double(record)

    notes = contacts.substream("notes", key_properties=["contact", "id"])

    @notes.sync
    def get_notes(parent):
        yield {"contact": parent["id"], "id": 1}

    notes.schema(NOTE)
    return tap


def with_classes():
    tap = burler.tap("tap-x")

    @tap.stream
    class Contacts(burler.Stream):
        key_properties = "id"
        replication_method = burler.INCREMENTAL
        order = "asc"
        versions = False
        schema = SCHEMA

        def sync(self, stream):
            yield from ROWS

        def bookmark(self, record):
            return record["at"]

        def metadata(self, field):
            if field.name == "at":
                field.inclusion.automatic()
            if field.name == "n":
                field.selected.by_default(True)

        def post_transform(self, record):
            return double(record)

    @tap.stream
    class Notes(burler.Stream):
        parent = Contacts
        key_properties = ("contact", "id")
        schema = NOTE

        def sync(self, parent):
            yield {"contact": parent["id"], "id": 1}

    return tap


STYLES = {"decorators": with_decorators, "handles": with_handles, "classes": with_classes}


def declared(tap, *, leave_out=()):
    """All specs, field by field. A function counts by what it asks for; places differ by nature."""
    plain = {}
    for name, spec in tap.seal().streams.items():
        values = {field.name: getattr(spec, field.name) for field in fields(spec)}
        plain[name] = {
            key: value.names if hasattr(value, "names") else value
            for key, value in values.items()
            if key not in ("place", "module_file", *leave_out)
        }
    return plain


@pytest.mark.parametrize("style", ["handles", "classes"])
def test_all_styles_make_the_same_spec(style):
    # A class says its metadata once: as a function or as a mapping.
    leave_out = ("fixed_metadata",) if style == "classes" else ()
    assert declared(STYLES[style](), leave_out=leave_out) == declared(with_decorators(), leave_out=leave_out)


def test_and_it_is_what_was_said():
    spec = with_decorators().seal().streams["contacts"]
    assert (spec.tap_stream_id, spec.key_properties, spec.order, spec.versions) == ("contacts", ("id",), "asc", False)
    assert spec.replication_method == "INCREMENTAL" and spec.replication_key is None
    assert spec.bookmark_key == "bookmark"
    notes = with_decorators().seal().streams["notes"]
    assert (notes.parent, notes.root, notes.replication_method) == ("contacts", "contacts", "INCREMENTAL")


@pytest.mark.parametrize("style", STYLES)
def test_specs_are_frozen(style):
    spec = STYLES[style]().seal().streams["contacts"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.order = "none"


@pytest.mark.parametrize("style", STYLES)
def test_all_styles_give_the_same_messages(style):
    run = run_tap(STYLES[style]())
    assert not run.result.errors
    assert run.records("contacts") == [{**row, "n": 2 * row["id"]} for row in ROWS]
    assert run.records("notes") == [{"contact": i, "id": 1} for i in range(3)]
    assert run.states[-1]["bookmarks"]["contacts"] == {"bookmark": DAYS[-1]}
    schemas = {m["stream"]: m for m in run.messages if m["type"] == "SCHEMA"}
    assert schemas["contacts"]["key_properties"] == ["id"]
    assert schemas["notes"]["key_properties"] == ["contact", "id"]


@pytest.mark.parametrize("style", STYLES)
def test_metadata_of_all_styles_is_in_the_catalog(style):
    assert run_tap(STYLES[style](), select="contacts,!contacts.*").records("contacts") == [
        {"id": row["id"], "at": row["at"]} for row in ROWS
    ]


def test_styles_mix_in_one_tap():
    tap = burler.tap("tap-x")

    @tap.stream
    class Contacts(burler.Stream):
        def sync(self):
            yield {"id": 1}

    tap.schema("contacts", SCHEMA)
    handle = tap.stream("contacts", key_properties="id")

    @tap.post_transform("contacts")
    def transform(record):
        return double(record)

    handle.metadata({"at": {"selected-by-default": False}})
    notes = handle.substream("notes", schema=NOTE)

    @tap.sync("notes")
    def get_notes(parent):
        return [{"contact": parent["id"], "id": 7}]

    run = run_tap(tap)
    assert run.records("contacts") == [{"id": 1, "n": 2}]
    assert run.records("notes") == [{"contact": 1, "id": 7}]
    assert notes.name == "notes" and repr(notes) == "<stream 'notes' of tap-x>"


def test_handles_give_functions_back():
    tap = burler.tap("tap-x")
    thing = tap.stream("thing")

    def rows():
        return [{"id": 1}]

    def other(record):
        return record

    def schema():
        return SCHEMA

    def metadata(field):
        pass

    assert thing.sync(rows) is rows
    assert thing.bookmark(other) is other
    assert thing.post_transform(other) is other
    assert thing.schema(schema) is schema
    assert thing.metadata(metadata) is metadata
    assert thing.schema is not None and run_tap(tap).records("thing") == [{"id": 1}]


def test_a_handle_decorates_a_function():
    tap = burler.tap("tap-x")

    @tap.stream("thing", schema=SCHEMA)
    def thing():
        yield {"id": 1}

    assert list(thing()) == [{"id": 1}]
    assert run_tap(tap).records("thing") == [{"id": 1}]


# ---- loops, several taps -------------------------------------------------------------------------


def test_several_streams_from_one_function_in_a_loop():
    tap = burler.tap("tap-x")

    def rows(stream):
        yield {"id": len(stream.name)}

    for name in ("a", "bb"):
        tap.sync(name, schema=SCHEMA)(rows)
    for name in ("ccc", "dddd"):

        @tap.sync(name, schema=SCHEMA)
        def more(stream):
            yield {"id": len(stream.name)}

    run = run_tap(tap)
    assert [run.records(name)[0]["id"] for name in ("a", "bb", "ccc", "dddd")] == [1, 2, 3, 4]


def test_two_taps_that_interleave_keep_to_themselves():
    one, two = burler.tap("tap-one"), burler.tap("tap-two")
    seen = []

    @one.sync("a", schema=SCHEMA, replication_key="id")
    def a():
        for i in range(3):
            seen.append(("one", one.get_bookmark()))
            yield [{"id": i}]
            if i == 1:
                run = run_tap(two, state={"bookmarks": {"a": {"id": 20}}})
                seen.append(("states of two", run.states[-1]["bookmarks"]["a"]["id"]))
            with pytest.raises(burler.BurlerError, match="outside a running stream"):
                two.get_bookmark()

    @two.sync("a", schema=SCHEMA, replication_key="id")
    def b():
        seen.append(("two", two.get_bookmark()))
        yield {"id": 21}
        with pytest.raises(burler.BurlerError, match="outside a running stream"):
            one.get_bookmark()

    run = run_tap(one, state={"bookmarks": {"a": {"id": 0}}})
    assert not run.result.errors
    assert seen == [("one", 0), ("one", 0), ("two", 20), ("states of two", 21), ("one", 0)]
    assert run.states[-1]["bookmarks"]["a"] == {"id": 2}
