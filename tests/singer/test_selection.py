"""What is selected: every rule, and the grammar of --select."""

from __future__ import annotations

import copy
import itertools
import logging

import pytest

import burler
from burler.errors import CatalogError
from burler.singer import (
    apply_select,
    deselected,
    field_selected,
    fields,
    parse_select,
    prune,
    stream_selected,
    to_map,
)
from burler.testing import run_tap

NODE = {"type": "string"}
SCHEMA = {
    "type": "object",
    "required": ["id", "name", "unheard_of"],
    "properties": {
        "id": {"type": "integer"},
        "name": NODE,
        "address": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": NODE, "street": NODE, "geo": {"type": "object", "properties": {"lat": NODE}}},
        },
        "tags": {"type": "array", "items": {"type": "object", "properties": {"name": NODE, "colour": NODE}}},
    },
}
MISSING = object()


def shown(schema: object) -> object:
    """A schema as the tree of its field names."""
    if not isinstance(schema, dict):
        return schema
    if "items" in schema:
        return [shown(schema["items"])]
    return {name: shown(sub) for name, sub in schema["properties"].items()} if "properties" in schema else None


def crumb(dotted: str) -> tuple[str, ...]:
    return tuple(itertools.chain.from_iterable(("properties", part) for part in dotted.split(".")))


@pytest.mark.parametrize("inclusion", ["unsupported", "automatic", "available", None])
@pytest.mark.parametrize("selected", [True, False, None, MISSING])
@pytest.mark.parametrize("default", [True, False, None, MISSING])
def test_the_whole_table(inclusion, selected, default):
    entry = {"inclusion": inclusion, "selected": selected, "selected-by-default": default}
    entry = {key: value for key, value in entry.items() if value is not MISSING}
    said = selected if isinstance(selected, bool) else default if isinstance(default, bool) else None
    fixed = {"unsupported": False, "automatic": True}.get(inclusion)
    wanted = fixed if fixed is not None else said
    place = crumb("name")
    assert field_selected({place: entry}, place, stream="s") is (True if wanted is None else wanted)
    assert stream_selected({(): entry}, stream="s") is (False if wanted is None else wanted)


def test_defaults_without_any_metadata():
    assert stream_selected({}, stream="s") is False
    assert field_selected({}, crumb("name"), stream="s") is True


@pytest.mark.parametrize(("text", "meaning"), [("true", True), ("false", False), (" False ", False), ("TRUE", True)])
def test_text_booleans_are_read_with_a_warning(text, meaning, caplog):
    with caplog.at_level(logging.WARNING):
        assert field_selected({crumb("a.b"): {"selected": text}}, crumb("a.b"), stream="s") is meaning
        assert stream_selected({(): {"selected-by-default": text}}, stream="s") is meaning
    assert len(caplog.records) == 2
    assert "stream 's', field a.b" in caplog.text


@pytest.mark.parametrize("value", ["yes", "", 1, 0, [], {}])
def test_what_is_no_boolean_is_refused(value):
    with pytest.raises(CatalogError, match=r"stream 's', field a\.b: 'selected' must be true or false"):
        field_selected({crumb("a.b"): {"selected": value}}, crumb("a.b"), stream="s")
    with pytest.raises(CatalogError, match="stream 's': 'selected' must be"):
        stream_selected({(): {"selected": value}}, stream="s")


def test_prune_drops_children_with_their_parent_and_mends_required():
    metadata = {
        crumb("name"): {"selected": False},
        crumb("address"): {"inclusion": "available", "selected": False},
        crumb("address.city"): {"inclusion": "automatic", "selected": True},
        ("properties", "tags", "items", "properties", "colour"): {"inclusion": "unsupported", "selected": True},
    }
    before = copy.deepcopy((SCHEMA, metadata))
    pruned = prune(SCHEMA, metadata, stream="s")
    assert shown(pruned) == {"id": None, "tags": [{"name": None}]}
    assert pruned["required"] == ["id", "unheard_of"]
    assert (SCHEMA, metadata) == before
    pruned["properties"]["tags"]["items"]["properties"].clear()
    assert (SCHEMA, metadata) == before


def test_prune_leaves_no_empty_required():
    pruned = prune(SCHEMA, {crumb("address.city"): {"selected": False}}, stream="s")
    assert "required" not in pruned["properties"]["address"]
    assert pruned["required"] == SCHEMA["required"]


def test_prune_takes_legacy_words_out_of_nodes_and_keeps_fields_so_called():
    schema = {
        "type": "object",
        "selected": True,
        "properties": {
            "selected": {"type": "boolean", "selected": "true", "inclusion": "available"},
            "inclusion": {"type": "string"},
            "any": True,
        },
    }
    assert prune(schema, {}, stream="s") == {
        "type": "object",
        "properties": {"selected": {"type": "boolean"}, "inclusion": {"type": "string"}, "any": True},
    }


def test_deselected_names_every_field_that_is_known_and_unwanted():
    metadata = {
        (): {"selected": False},
        crumb("id"): {"inclusion": "automatic", "selected": False},
        crumb("name"): {"selected": False},
        crumb("address.city"): {"inclusion": "unsupported"},
        crumb("tags"): {"selected": True},
    }
    assert deselected(metadata, stream="s") == (crumb("name"), crumb("address.city"))


# ---- --select ------------------------------------------------------------------------------------

SCHEMAS = {"contacts": SCHEMA, "companies": SCHEMA, "public.users": SCHEMA}
KEYS = {crumb("id"): {"inclusion": "automatic"}}


def chosen(text: str) -> dict[str, object]:
    """Stream -> tree of selected fields."""
    metadata = {name: {(): {"inclusion": "available"}, **copy.deepcopy(KEYS)} for name in SCHEMAS}
    before = copy.deepcopy(metadata)
    out = apply_select(parse_select(text), SCHEMAS, metadata)
    assert metadata == before
    return {
        name: shown(prune(schema, out[name], stream=name))
        for name, schema in SCHEMAS.items()
        if stream_selected(out[name], stream=name)
    }


ALL = shown(SCHEMA)
ID = {"id": None}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("contacts", {"contacts": ALL}),
        (" contacts , companies ", {"contacts": ALL, "companies": ALL}),
        ("*", {"contacts": ALL, "companies": ALL, "public.users": ALL}),
        ("co*", {"contacts": ALL, "companies": ALL}),
        ("c?ntacts", {"contacts": ALL}),
        ("!contacts", {"companies": ALL, "public.users": ALL}),
        ("*,!co*", {"public.users": ALL}),
        ("contacts,!contacts", {}),
        ("!contacts,contacts", {"contacts": ALL}),
        ("public.users", {"public.users": ALL}),
        ("public.users.name", {"public.users": {**ID, "name": None}}),
        ("contacts.name", {"contacts": {**ID, "name": None}}),
        ("contacts,contacts.name", {"contacts": {**ID, "name": None}}),
        ("contacts.na*", {"contacts": {**ID, "name": None}}),
        ("contacts.address", {"contacts": {**ID, "address": ALL["address"]}}),
        ("contacts.address.city", {"contacts": {**ID, "address": {"city": None}}}),
        ("contacts.address.geo.lat", {"contacts": {**ID, "address": {"geo": {"lat": None}}}}),
        ("contacts.addr*.c?ty", {"contacts": {**ID, "address": {"city": None}}}),
        ("contacts.tags.name", {"contacts": {**ID, "tags": [{"name": None}]}}),
        ("contacts.*city", {"contacts": {**ID, "address": {"city": None}}}),
        ("contacts.address,!contacts.address.geo", {"contacts": {**ID, "address": {"city": None, "street": None}}}),
        ("contacts.address.city,!contacts.address", {"contacts": ID}),
        ("!contacts.address.city,contacts.address.city", {"contacts": {**ID, "address": {"city": None}}}),
        ("contacts,!contacts.id", {"contacts": ALL}),
    ],
)
def test_select(text, wanted):
    assert chosen(text) == wanted


def test_leaving_out_a_field_leaves_the_others_and_all_streams():
    got = chosen("!*.address")
    assert list(got) == list(SCHEMAS)
    assert all(set(tree) == {"id", "name", "tags"} for tree in got.values())
    assert chosen("contacts,!contacts.tags")["contacts"] == {key: ALL[key] for key in ("id", "name", "address")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "contact",
            "nothing is called 'contact'. Did you mean 'contacts'? Streams: companies, contacts, public.users.",
        ),
        ("contacts,nobody", "nothing is called 'nobody'. Streams: companies, contacts, public.users."),
        ("x*", "nothing is called 'x*'. Streams: companies, contacts, public.users."),
        ("nobody.name", "nothing is called 'nobody.name'. Streams: companies, contacts, public.users."),
        ("contcts.name", "nothing is called 'contcts.name'. Did you mean 'contacts'? Streams:"),
        ("contacts.nmae", "stream 'contacts' has no field 'nmae'. Did you mean 'name'? Fields: id, name, address,"),
        ("!contacts.address.town", "stream 'contacts' has no field 'address.town'."),
        ("!contacts.addres.citty", "no field 'addres.citty'. Did you mean 'address.city'? Fields: "),
        ("contacts.street", "no field 'street'. Did you mean 'address.street'? Fields: "),
        ("public.users.nmae", "stream 'public.users' has no field 'nmae'. Did you mean 'name'?"),
        ("co*.nmae", "streams contacts, companies have no field 'nmae'. Did you mean 'name'?"),
    ],
)
def test_unknown_names(text, says):
    with pytest.raises(CatalogError) as caught:
        chosen(text)
    assert str(caught.value).startswith("--select: ")
    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize("text", ["", " ", "a,,b", "a,", "!", "a,!", ".name", "contacts.", "!!contacts"])
def test_empty_parts(text):
    with pytest.raises(CatalogError, match="an empty part"):
        parse_select(text)


def test_select_never_brings_an_unsupported_field():
    metadata = {"a": {crumb("name"): {"inclusion": "unsupported"}}}
    out = apply_select(parse_select("a.name,a.id"), {"a": SCHEMA}, metadata)
    assert shown(prune(SCHEMA, out["a"], stream="a")) == {"id": None}


# ---- as a tap ------------------------------------------------------------------------------------


@pytest.fixture
def tap():
    tap = burler.tap("tap-x")

    @tap.sync("contacts", key_properties="id")
    def contacts():
        yield {"id": 1, "name": "Ann", "address": {"city": "Bonn", "street": "x"}, "tags": []}

    @tap.sync("companies", key_properties="id")
    def companies():
        yield {"id": 2, "name": "Acme"}

    schema = {key: value for key, value in SCHEMA.items() if key != "required"}
    tap.schema("contacts", schema)
    tap.schema("companies", schema)
    return tap


def test_selected_fields_only_in_schema_and_records(tap):
    run = run_tap(tap, select="contacts.address.city")
    assert run.records("contacts") == [{"id": 1, "address": {"city": "Bonn"}}]
    assert run.records("companies") == []
    schemas = [m for m in run.messages if m["type"] == "SCHEMA"]
    assert [shown(m["schema"]) for m in schemas] == [{"id": None, "address": {"city": None}}]


def test_without_a_catalog_everything_is_selected_and_with_one_what_it_says(tap):
    assert len(run_tap(tap).records("companies")) == 1
    entry = {"tap_stream_id": "companies", "schema": {**SCHEMA, "required": []}}
    assert run_tap(tap, catalog={"streams": [{**entry, "metadata": []}]}).types == ["STATE"]
    on = [
        {"breadcrumb": [], "metadata": {"selected": True}},
        {"breadcrumb": crumb("name"), "metadata": {"selected": "false"}},
    ]
    assert run_tap(tap, catalog={"streams": [{**entry, "metadata": on}]}).records("companies") == [{"id": 2}]
    assert to_map(on)[crumb("name")] == {"selected": "false"}


@pytest.mark.parametrize("extra", [False, True])
def test_a_deselected_field_comes_back_by_no_door(extra, caplog):
    open_tap = burler.tap("tap-open")

    @open_tap.sync("a")
    def rows():
        yield {"id": 1, "email": "x@y.z", "o": {"phone": "1", "city": "Bonn"}, "new": 1}

    inner = {"type": "object", "properties": {"phone": NODE, "city": NODE}, "additionalProperties": extra}
    fields = {"id": {"type": "integer"}, "email": NODE, "o": inner}
    open_tap.schema("a", {"type": "object", "properties": fields, "additionalProperties": extra})
    with caplog.at_level(logging.WARNING):
        run = run_tap(open_tap, select="a,!a.email,!a.o.phone")
    assert run.records("a") == [{"id": 1, "o": {"city": "Bonn"}, **({"new": 1} if extra else {})}]
    warned = "".join(record.getMessage() for record in caplog.records if "does not know" in record.getMessage())
    assert "email" not in warned and "phone" not in warned
    assert ("new" in warned) is not extra


# ---- --select over a catalog ---------------------------------------------------------------------

UNWANTED = {
    "contacts": {
        (): {"selected": True},
        crumb("id"): {"inclusion": "automatic"},
        crumb("name"): {"selected": False},
        crumb("address"): {"selected": False},
    },
    "companies": {(): {"selected": False}, crumb("id"): {"inclusion": "automatic"}, crumb("tags"): {"selected": False}},
    "public.users": {(): {"selected-by-default": False}, crumb("id"): {"inclusion": "automatic"}},
}
TAGS = ALL["tags"]


def laid_over(text):
    before = copy.deepcopy(UNWANTED)
    out = apply_select(parse_select(text), SCHEMAS, UNWANTED, over=True)
    assert before == UNWANTED
    return {
        name: shown(prune(schema, out[name], stream=name))
        for name, schema in SCHEMAS.items()
        if stream_selected(out[name], stream=name)
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("contacts", {"contacts": {**ID, "tags": TAGS}}),
        ("!contacts", {}),
        ("!companies", {"contacts": {**ID, "tags": TAGS}}),
        ("!contacts.tags", {"contacts": ID}),
        ("contacts.name", {"contacts": {**ID, "name": None, "tags": TAGS}}),
        ("contacts.address.city", {"contacts": {**ID, "address": {"city": None}, "tags": TAGS}}),
        (
            "contacts.address,!contacts.address.geo",
            {"contacts": {**ID, "address": {"city": None, "street": None}, "tags": TAGS}},
        ),
        ("companies", {"contacts": {**ID, "tags": TAGS}, "companies": {k: v for k, v in ALL.items() if k != "tags"}}),
        ("companies.name", {"contacts": {**ID, "tags": TAGS}, "companies": {**ID, "name": None}}),
        ("companies,companies.tags", {"contacts": {**ID, "tags": TAGS}, "companies": ALL}),
        (
            "companies,!companies.name",
            {"contacts": {**ID, "tags": TAGS}, "companies": {**ID, "address": ALL["address"]}},
        ),
        ("*,!contacts", {"companies": {k: v for k, v in ALL.items() if k != "tags"}, "public.users": ALL}),
        ("!*.tags", {"contacts": ID}),
    ],
)
def test_select_over_a_catalog(text, wanted):
    assert laid_over(text) == wanted


def test_what_is_off_by_default_needs_a_word():
    metadata = {"a": {(): {"selected-by-default": False}}, "b": {crumb("name"): {"selected-by-default": False}}}
    schemas = {"a": SCHEMA, "b": SCHEMA}

    def on(text):
        out = apply_select(parse_select(text), schemas, metadata)
        return {
            name: sorted(shown(prune(SCHEMA, out[name], stream=name)))
            for name in schemas
            if stream_selected(out[name], stream=name)
        }

    rest = ["address", "id", "tags"]
    assert on("!b.tags") == {"b": ["address", "id"]}
    assert on("*") == {"a": ["address", "id", "name", "tags"], "b": rest}
    assert on("b.*") == {"b": ["address", "id", "name", "tags"]}
    assert on("b.name") == {"b": ["name"]}


# ---- unions --------------------------------------------------------------------------------------


def test_fields_inside_unions_are_pruned_in_every_branch():
    both = {"type": "object", "properties": {"a": NODE, "b": NODE}, "required": ["a", "b"]}
    schema = {
        "properties": {
            "any": {"anyOf": [{"type": "null"}, both, {"type": "array", "items": both}]},
            "one": {"oneOf": [both, {"type": "object", "properties": {"b": NODE}}]},
            "all": {"allOf": [both, {"properties": {"c": NODE}}]},
        }
    }
    places = [crumb("any.b"), ("properties", "any", "items", "properties", "b"), crumb("one.b"), crumb("all.b")]
    pruned = prune(schema, {place: {"selected": False} for place in places}, stream="s")["properties"]
    left = {"type": "object", "properties": {"a": NODE}, "required": ["a"]}
    assert pruned["any"] == {"anyOf": [{"type": "null"}, left, {"type": "array", "items": left}]}
    # Without b a row may fit both branches: oneOf would refuse it.
    assert pruned["one"] == {"anyOf": [left, {"type": "object", "properties": {}}]}
    assert pruned["all"] == {"allOf": [left, {"properties": {"c": NODE}}]}


def test_words_on_the_whole_object_go_with_a_field_of_it():
    node = {"type": "object", "properties": {"a": NODE, "b": NODE}, "minProperties": 2, "enum": [{"a": "1", "b": "2"}]}
    schema = {"properties": {"x": node, "y": node, "l": {"type": "array", "items": node, "uniqueItems": True}}}
    metadata = {crumb("x.b"): {"selected": False}, ("properties", "l", "items", "properties", "a"): {"selected": False}}
    pruned = prune(schema, metadata, stream="s")["properties"]
    assert pruned["x"] == {"type": "object", "properties": {"a": NODE}}
    assert pruned["y"] == node
    assert pruned["l"] == {"type": "array", "items": {"type": "object", "properties": {"b": NODE}}}


def test_fields_of_unions_have_one_breadcrumb():
    branch = {"properties": {"b": NODE}}
    schema = {"properties": {"a": {"anyOf": [branch, branch, {"items": branch}]}, "anyOf": {"properties": {"0": NODE}}}}
    assert [place for place, _ in fields(schema)] == [
        crumb("a"),
        crumb("a.b"),
        ("properties", "a", "items", "properties", "b"),
        crumb("anyOf"),
        crumb("anyOf.0"),
    ]


def test_brackets_in_patterns_stand_for_themselves():
    schemas = {"a[12]": {"properties": {"x[0]": {}, "x0": {}}}, "a1": {"properties": {"x0": {}}}, "a2": {}}
    out = apply_select(parse_select("!a[12]"), schemas, {})
    assert {name: entry[()]["selected"] for name, entry in out.items()} == {"a[12]": False, "a1": True, "a2": True}
    out = apply_select(parse_select("a[12],!a[*.x[0]"), schemas, {})
    assert {name: entry[()]["selected"] for name, entry in out.items()} == {"a[12]": True, "a1": False, "a2": False}
    assert out["a[12]"]["properties", "x[0]"]["selected"] is False
    assert out["a[12]"]["properties", "x0"]["selected"] is True
    with pytest.raises(CatalogError, match=r"nothing is called 'a\[3\]'"):
        apply_select(parse_select("a[3]"), {"a3": {}}, {})
