"""All that a tap is made of, in small taps that are run from end to end."""

from __future__ import annotations

import json

import pytest

import burler
from burler.errors import ConfigError, DeclarationError
from burler.testing import canary, run_tap
from support.taps import discovered, metadata_of

CONTACT = {
    "type": "object",
    "properties": {
        "contact_id": {"type": "integer"},
        "date_modified": {"type": "string", "format": "date-time"},
        "address": {"type": "object", "properties": {"street": {"type": "string"}}},
    },
}
TOKEN = canary("token")
CONFIG = {"base_url": "https://things.example", "access_token": TOKEN}
FIRST, SECOND = "2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"


class CoolTapClient:
    """The source: two contacts; it notes what it was asked for."""

    def __init__(self, base_url, access_token):
        self.base_url, self.access_token = base_url, access_token
        self.asked = []

    def get_contacts(self, bookmark):
        self.asked.append(bookmark)
        rows = [{"contact_id": 1, "date_modified": FIRST}, {"contact_id": 2, "date_modified": SECOND}]
        return (row for row in rows if bookmark is None or row["date_modified"] >= bookmark)

    def describe(self):
        return {"objects": [{"name": "contacts", "value": ["contact_id", "date_modified"]}]}


def to_json_schema(names):
    return {"type": "object", "properties": {name: CONTACT["properties"][name] for name in names}}


@pytest.fixture
def tap():
    return burler.tap("tap-thing", config_spec=None)


def test_a_tap_of_a_client():
    """tap = burler.tap(client, config_spec=None)"""
    scope = {"__name__": "tap_cool", "burler": burler, "client": CoolTapClient}
    exec("tap = burler.tap(client, config_spec=None)", scope)
    tap = scope["tap"]

    @tap.sync("contacts", schema=CONTACT)
    def get_contacts(client):
        yield client.get_contacts(None)

    assert tap.name == "tap-cool"  # of the module that makes it
    assert [row["contact_id"] for row in run_tap(tap, CONFIG).records("contacts")] == [1, 2]


def throws(config):
    if "base_url" not in config:
        raise ValueError("base_url is missing")


SPECS = {
    "example": {"base_url": "https://example.com", "access_token": "secret"},
    "schema": {"type": "object", "properties": {"base_url": {"type": "string"}}, "required": ["base_url"]},
    "function": throws,
}


@pytest.mark.parametrize("spec", SPECS)
def test_the_config_spec_is_an_example_a_schema_or_a_function(spec):
    """config could be an example, a schema, or a function that throws; with None no config is required"""
    tap = burler.tap(CoolTapClient, config_spec=SPECS[spec])
    tap.sync("contacts", schema=CONTACT)(lambda client: client.get_contacts(None))
    assert not run_tap(tap, CONFIG).result.errors
    with pytest.raises(ConfigError, match="base_url") as caught:
        run_tap(tap, {"access_token": TOKEN})
    assert TOKEN not in str(caught.value)


def test_none_requires_no_config(tap):
    tap.sync("contacts", schema=CONTACT)(lambda config: [{"contact_id": len(config)}])
    assert run_tap(tap).records("contacts") == [{"contact_id": 0}]


def test_the_client_gets_the_config_after_validation(tap):
    """@tap.client"""
    made = []

    @tap.client
    def configure_client(config):
        made.append(config)
        return CoolTapClient(config["base_url"], config["access_token"])

    @tap.sync("contacts", schema=CONTACT)
    def get_contacts(client):
        assert (client.base_url, client.access_token) == ("https://things.example", TOKEN)
        yield client.get_contacts(None)

    run = run_tap(tap, CONFIG)
    assert made == [CONFIG] and not run.result.errors


@pytest.mark.parametrize("strategy", ["end_of_sync", "end_of_stream", "every_100", "every_n(352)", "every_1"])
def test_a_sync_function_with_its_bookmark_and_metadata(tap, strategy):
    """@tap.sync, tap.get_bookmark(), tap.stream_metadata(), a lazy iterator yielded, @tap.bookmark"""
    client = CoolTapClient("", "")
    tap.client(lambda config: client)
    seen = []

    @tap.sync("contacts", bookmark_strategy=strategy)
    def get_contacts(client):
        current_bookmark = tap.get_bookmark()  # Context aware
        my_cool_metadata = tap.stream_metadata()
        seen.append(my_cool_metadata)
        yield client.get_contacts(current_bookmark)

    @tap.bookmark("contacts")
    def get_bookmark(record):
        return record["date_modified"]

    tap.schema("contacts", CONTACT)
    tap.metadata("contacts", {"": {"tap-thing.value1": 1234}})

    first = run_tap(tap, select="contacts")
    assert not first.result.errors
    assert first.states[-1] == {"bookmarks": {"contacts": {"bookmark": SECOND}}}
    assert {"tap-thing.value1": 1234, "selected": True}.items() <= dict(seen[0]).items()
    again = run_tap(tap, state=first.states[-1])
    assert client.asked == [None, SECOND]
    assert [row["contact_id"] for row in again.records("contacts")] == [2]


def test_every_one_saves_after_each_row(tap):
    tap.client(lambda config: CoolTapClient("", ""))
    tap.sync("contacts", bookmark_strategy="every_1", schema=CONTACT)(lambda client: client.get_contacts(None))
    tap.bookmark("contacts")(lambda record: record["date_modified"])
    saved = [state["bookmarks"]["contacts"]["bookmark"] for state in run_tap(tap).states]
    assert saved[:2] == [FIRST, SECOND]


def test_a_function_of_client_state_and_catalog(tap):
    """A function that takes a client, state, catalog, etc. and yields data"""
    tap.client(lambda config: CoolTapClient("", ""))

    @tap.sync("contacts", key_properties="contact_id", replication_key="date_modified", schema=CONTACT)
    def get_contacts(client, state, catalog):
        assert catalog.entries["contacts"].key_properties == ("contact_id",)
        yield from client.get_contacts(state.get("bookmarks", {}).get("contacts", {}).get("date_modified"))

    first = run_tap(tap)
    assert [row["contact_id"] for row in first.records("contacts")] == [1, 2]
    again = run_tap(tap, state=first.states[-1])
    assert [row["contact_id"] for row in again.records("contacts")] == [2]
    assert not first.result.errors and not again.result.errors


def test_bookmarks_are_looked_up(tap):
    """A method of looking up [...] bookmarks"""
    seen = []

    @tap.sync("contacts", replication_key="date_modified", schema=CONTACT)
    def get_contacts(stream):
        seen.append((stream.bookmark, tap.get_bookmark()))
        return []

    run_tap(tap)
    run_tap(tap, state={"bookmarks": {"contacts": {"date_modified": SECOND}}})
    assert seen == [(None, None), (SECOND, SECOND)]


def test_bookmarks_are_set_by_the_rows(tap):
    """[A method of] setting bookmarks: there is none; they can't be set by hand, and say what is out"""

    @tap.sync("contacts", replication_key="date_modified", schema=CONTACT)
    def get_contacts(stream):
        with pytest.raises(AttributeError):
            stream.bookmark = SECOND
        yield {"contact_id": 1, "date_modified": FIRST}
        stream.state["page"] = 7

    assert run_tap(tap).states[-1]["bookmarks"]["contacts"] == {"date_modified": FIRST, "stream_state": {"page": 7}}


def test_only_called_if_selected(tap):
    called = []

    @tap.sync("contacts", schema=CONTACT)
    def get_contacts():
        called.append("contacts")
        return []

    @tap.sync("deals", schema=CONTACT)
    def get_deals():
        called.append("deals")
        return []

    run_tap(tap, select="deals")
    assert called == ["deals"]


def test_the_bookmark_function_may_ask_for_the_state_too(tap):
    """given the record and the existing state"""
    seen = []
    tap.sync("contacts", schema=CONTACT)(lambda: [{"contact_id": 1}])

    @tap.bookmark("contacts")
    def get_bookmark(record, state):
        seen.append(state["bookmarks"]["contacts"]["bookmark"])
        return record["contact_id"]

    run_tap(tap, state={"bookmarks": {"contacts": {"bookmark": 0}}})
    assert seen == [0]


def test_a_schema_file(tap, tmp_path):
    """tap.schema("contacts", method=burler.json_file("schemas/contacts.json")), relative to the module"""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "contacts.json").write_text(json.dumps(CONTACT), encoding="utf-8")
    file = str(tmp_path / "tap_thing.py")
    code = """
tap.schema("contacts", method=burler.json_file("schemas/contacts.json"))

@tap.sync("contacts")
def get_contacts():
    yield {"contact_id": 1}
"""
    exec(compile(code, file, "exec"), {"__name__": "tap_thing", "__file__": file, "tap": tap, "burler": burler})
    run = run_tap(tap)
    assert run.messages[0]["schema"]["properties"] == CONTACT["properties"]


def test_a_schema_is_a_call_with_a_value(tap):
    """Can you decorate a value? or just call it maybe?"""
    tap.sync("contacts")(lambda: [{"contact_id": 1}])
    tap.schema("contacts", CONTACT)
    with pytest.raises(DeclarationError, match="has a schema already"):
        burler.tap("tap-other").schema("contacts", CONTACT)(lambda: CONTACT)
    run = run_tap(tap)
    assert run.messages[0]["schema"] == CONTACT
    assert run.records("contacts") == [{"contact_id": 1}]


def test_a_generated_schema(tap):
    """A function that gives a mapping of streams to schemas."""
    tap.client(lambda config: CoolTapClient("", ""))

    @tap.sync("contacts")
    def get_contacts(client):
        yield client.get_contacts(tap.get_bookmark())

    @tap.schema("contacts", method=burler.generated)
    def get_schema():
        schemas = tap.client.describe()
        return {n["name"]: to_json_schema(n["value"]) for n in schemas["objects"]}

    run = run_tap(tap)
    assert list(run.messages[0]["schema"]["properties"]) == ["contact_id", "date_modified"]
    assert len(run.records("contacts")) == 2


def test_a_set_in_place_of_a_schema_is_one_clear_error(tap):
    tap.client(lambda config: CoolTapClient("", ""))
    tap.sync("contacts")(lambda: [])

    @tap.schema("contacts")
    def get_schema():
        return {(n["name"], "schema") for n in tap.client.describe()["objects"]}

    with pytest.raises(DeclarationError, match="stream 'contacts'") as caught:
        run_tap(tap)
    assert len(str(caught.value).splitlines()) <= 3


def write_metadata_of(tap):
    """A function that visits each node of a schema."""

    @tap.metadata("contacts")
    def write_metadata(breadcrumb, sub_schema):
        seen.append((breadcrumb.name, breadcrumb.path, breadcrumb.level, sub_schema["type"]))
        if breadcrumb.level == 0:
            tap.write_metadata("key_properties", ["contact_id"])
        if breadcrumb.level == 1:
            tap.write_metadata("inclusion", "available")
        if breadcrumb.name in tap.key_properties:
            tap.write_metadata("inclusion", "automatic")

    seen = []
    return seen


def metadata_in_the_catalog(tap):
    return metadata_of(discovered(tap)["contacts"])


def test_metadata_is_written_node_by_node(tap):
    """@tap.metadata: the breadcrumb has name, path and level"""
    tap.sync("contacts", schema=CONTACT)(lambda: [{"contact_id": 1}])
    seen = write_metadata_of(tap)
    run = run_tap(tap)
    assert run.messages[0]["key_properties"] == ["contact_id"]
    street = ("properties", "address", "properties", "street")
    assert seen[0] == (None, (), 0, "object")
    assert ("contact_id", ("properties", "contact_id"), 1, "integer") in seen
    assert ("street", street, 2, "string") in seen
    metadata = metadata_in_the_catalog(tap)
    assert metadata[()]["table-key-properties"] == ["contact_id"]
    assert metadata[("properties", "contact_id")]["inclusion"] == "automatic"
    assert metadata[("properties", "date_modified")]["inclusion"] == "available"


def test_default_metadata_comes_without_a_word(tap):
    """the boilerplate of keys and top-level properties is gone"""
    tap.sync("contacts", key_properties="contact_id", replication_key="date_modified", schema=CONTACT)(lambda: [])
    metadata = metadata_in_the_catalog(tap)
    assert metadata[()]["table-key-properties"] == ["contact_id"]
    assert metadata[()]["forced-replication-method"] == "INCREMENTAL"
    assert metadata[()]["valid-replication-keys"] == ["date_modified"]
    inclusions = {crumb[-1]: values["inclusion"] for crumb, values in metadata.items() if len(crumb) == 2}
    assert inclusions == {"contact_id": "automatic", "date_modified": "automatic", "address": "available"}


def test_handles_write_metadata_in_context(tap):
    """schema_field.inclusion.automatic, with unsupported and available beside it"""
    tap.sync("contacts", schema=CONTACT)(lambda: [])

    @tap.metadata("contacts")
    def write_metadata(field):
        if field.name == "contact_id":
            field.inclusion.automatic()
        if field.name == "date_modified":
            field.inclusion.unsupported()
        if field.name == "address":
            field.inclusion.available()
            field.selected.by_default(False)

    metadata = metadata_in_the_catalog(tap)
    assert metadata[("properties", "contact_id")]["inclusion"] == "automatic"
    assert metadata[("properties", "date_modified")]["inclusion"] == "unsupported"
    assert metadata[("properties", "address")] == {"inclusion": "available", "selected-by-default": False}
    assert list(run_tap(tap).messages[0]["schema"]["properties"]) == ["contact_id"]


FUNCTIONAL = {
    "decorator": """
@tap.stream("thing", schema=S)
def sync_a_thing():
    yield {"contact_id": 1}
""",
    "text": """
tap.stream("thing", schema=S).sync("sync_a_thing")

def sync_a_thing():
    yield {"contact_id": 1}
""",
    "substream": """
tap.stream("thing", schema=S).sync("sync_a_thing")
tap.stream("thing").substream("child_thing", schema=S).sync("get_child_for_thing")

def sync_a_thing():
    yield {"contact_id": 1}

def get_child_for_thing(parent):
    yield {"contact_id": parent["contact_id"] + 1}
""",
}


@pytest.mark.parametrize("form", FUNCTIONAL)
def test_functional_style(tap, form):
    """@stream("thing"), @stream("thing").sync("..."), @stream("thing").substream("child_thing").sync("...")"""
    exec(FUNCTIONAL[form], {"__name__": "tap_thing", "tap": tap, "S": CONTACT})
    run = run_tap(tap)
    assert run.records("thing") == [{"contact_id": 1}]
    assert run.records("child_thing") == ([{"contact_id": 2}] if form == "substream" else [])


def test_for_each_thing(tap):
    """a function that lists accounts; for each account, sync"""

    @tap.sync("accounts", schema=CONTACT)
    def accounts():
        yield [{"contact_id": 1}, {"contact_id": 2}]

    @tap.sync("contacts", parent="accounts", schema=CONTACT)
    def contacts(parent):
        yield {"contact_id": parent["contact_id"] * 10}

    run = run_tap(tap, select="contacts")  # the parent need not be selected
    assert run.records("contacts") == [{"contact_id": 10}, {"contact_id": 20}]
    assert run.records("accounts") == []


def test_schemas_of_a_line_come_before_its_rows(tap):
    """substreams emit schemas in a transitive, dependency-friendly way"""
    things = tap.stream("things", schema=CONTACT)
    things.sync(lambda: [{"contact_id": 1}])
    children = things.substream("children", schema=CONTACT)
    children.sync(lambda parent: [parent])
    children.substream("grandchildren", schema=CONTACT).sync(lambda parent: [parent])
    messages = run_tap(tap).messages
    for name in ("things", "children", "grandchildren"):
        own = [m["type"] for m in messages if m.get("stream") == name]
        assert own[0] == "SCHEMA" and own.count("RECORD") == 1


def test_rows_of_another_stream_are_a_tuple(tap):
    """records wrapped in a tuple with their stream, for classes and functions that handle two streams"""

    @tap.sync("things", schema=CONTACT)
    def things():
        yield {"contact_id": 1}
        yield "others", [{"contact_id": 2}, {"contact_id": 3}]

    tap.stream("others", emitted_by="things", schema=CONTACT)
    run = run_tap(tap)
    assert [row["contact_id"] for row in run.records("others")] == [2, 3]


def test_a_post_transform_hook(tap):
    tap.sync("things", schema=CONTACT)(lambda: [{"contact_id": 1}, {"contact_id": 2}])

    @tap.post_transform("things")
    def hook(record):
        return {**record, "date_modified": FIRST} if record["contact_id"] == 1 else None

    assert run_tap(tap).records("things") == [{"contact_id": 1, "date_modified": FIRST}]


def test_all_streams_run_and_errors_come_at_the_end(tap):
    @tap.sync("bad", schema=CONTACT)
    def bad():
        raise RuntimeError("the source is down")

    tap.sync("good", schema=CONTACT)(lambda: [{"contact_id": 1}])
    run = run_tap(tap)
    assert run.records("good") == [{"contact_id": 1}]
    assert list(run.result.errors) == ["bad"] and "the source is down" in str(run.result.errors["bad"])
    assert run.result.exit_code == 1


def test_constants_of_replication_methods(tap):
    tap.sync("a", replication_method=burler.FULL_TABLE, schema=CONTACT)(lambda: [{"contact_id": 1}])
    tap.sync("b", replication_method=burler.INCREMENTAL, replication_key="contact_id", schema=CONTACT)(lambda: [])
    run = run_tap(tap)
    types = [m["type"] for m in run.messages if m.get("stream") == "a"]
    assert types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "ACTIVATE_VERSION"]
    assert "ACTIVATE_VERSION" not in [m["type"] for m in run.messages if m.get("stream") == "b"]


def test_a_stream_base_class(tap):
    @tap.stream
    class Contacts(burler.Stream):
        schema = CONTACT

        def sync(self):
            yield {"contact_id": 1}

    assert run_tap(tap).records("contacts") == [{"contact_id": 1}]


def test_there_is_no_magic_stream_object():
    """from burler import stream: rejected; the stream is a parameter"""
    assert not hasattr(burler, "stream")
    tap = burler.tap("tap-thing")
    tap.sync("contacts", schema=CONTACT)(lambda stream: [{"contact_id": len(stream.name)}])
    assert run_tap(tap).records("contacts") == [{"contact_id": 8}]


def test_the_start_date_is_the_first_bookmark(tap):
    seen = []

    @tap.sync("contacts", replication_key="date_modified", schema=CONTACT)
    def contacts(stream):
        seen.append(stream.bookmark)
        return []

    run_tap(tap, {"start_date": FIRST})
    assert seen == [FIRST]


def test_currently_syncing_is_written(tap):
    for name in ("a", "b"):
        tap.sync(name, schema=CONTACT)(lambda: [{"contact_id": 1}])
    states = run_tap(tap).states
    assert "b" in [state.get("currently_syncing") for state in states]
    assert "currently_syncing" not in states[-1]


def test_currently_syncing_names_the_stream_whose_rows_came_last(tap):
    """(for sub-streams, should handle parent/sub level): parent or substream"""
    rows = [{"contact_id": 1, "date_modified": FIRST}, {"contact_id": 2, "date_modified": SECOND}]
    options = {"replication_key": "date_modified", "bookmark_strategy": "every_1"}
    contacts = tap.stream("contacts", schema=CONTACT, **options)
    contacts.sync(lambda: iter(rows))
    contacts.substream("notes", schema=CONTACT).sync(lambda parent: [dict(parent) for _ in range(3)])
    run = run_tap(tap)
    assert len(run.records("notes")) == 6
    assert "notes" in {state.get("currently_syncing") for state in run.states[:-1]} <= {"contacts", "notes"}
    assert "currently_syncing" not in run.states[-1]


def test_the_pieces_work_without_the_framework():
    """modules such as burler.config that hold the pieces"""
    from burler.schema import resolve_refs

    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "integer"}}}
    assert resolve_refs(schema, source="here")["properties"] == {"a": {"type": "integer"}}
