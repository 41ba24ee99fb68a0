"""Schemas that can't work are told while streams are described, all at once; and which of two functions counts."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pytest
from discovered import INTEGER, TABLE, catalog_of, entry, tap_of

import burler
from burler.errors import BurlerError, DeclarationError
from burler.testing import discover, run_tap


def _gaps(tap: burler.Tap) -> list[str]:
    with pytest.raises(DeclarationError) as caught:
        discover(tap, {})
    text = str(caught.value)
    text.encode()  # it can be printed
    return text.splitlines()


def _declared(*schemas: Any) -> burler.Tap:
    tap = burler.tap("tap-found")
    for number, schema in enumerate(schemas):
        tap.sync(f"s{number}", schema=schema)(lambda: [{"id": 1}])
    return tap


def _with(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"id": INTEGER, **properties}}


BROKEN = [
    (_with(x={"enum": {"a"}}), "its schema / properties / x / enum is {'a'}, which JSON can't carry"),
    (
        _with(x={"default": datetime.date(2024, 1, 1)}),
        "properties / x / default is datetime.date(2024, 1, 1), which JSON",
    ),
    (_with(x={"default": float("nan")}), "nan"),
    (_with(x={"default": b"x"}), "properties / x / default is b'x', which JSON can't carry"),
    (_with(x={"description": "a\ud800"}), "properties / x / description is 'a\\ud800', which JSON can't carry"),
    (_with(x={"anyOf": [{}, {"title": "\udfff"}]}), "properties / x / anyOf / 1 / title is '\\udfff'"),
    (_with(**{"\ud800": {}}), "properties has the name '\\ud800', which holds half a character"),
    ({"type": "object", "properties": {1: INTEGER}}, "properties has the name 1, which is no text"),
    ({"type": "object", "properties": {None: INTEGER}}, "properties has the name None, which is no text"),
    (_with(x={"patternProperties": {"(": {}}}), "schema: x: patternProperties '(' is no regular expression"),
    ({**_with(), "patternProperties": {"*a": {}}}, "schema: the whole: patternProperties '*a' is no regular"),
    (_with(x={"type": "integr"}), "integr"),
]


@pytest.mark.parametrize(("schema", "says"), BROKEN)
def test_a_schema_that_can_not_work(schema: dict[str, Any], says: str):
    (line, *more) = _gaps(_declared(schema))
    assert re.match(r"stream 's0' \(.*test_discovery_schemas\.py:\d+\): ", line)
    assert says in line
    assert len(more) <= 1


@pytest.mark.parametrize("how", ["found", "function"])
def test_wherever_it_comes_from(how: str):
    broken = _with(x={"patternProperties": {"(": {}}})
    if how == "found":
        tap = tap_of({"a": TABLE, "b": broken})
    else:
        tap = _declared()
        tap.sync("b")(lambda: [])
        tap.schema("b")(lambda: broken)
    assert re.match(r"stream 'b' \(.*: patternProperties '\('", _gaps(tap)[0])


@pytest.mark.parametrize(
    "schema",
    [
        _with(x={"enum": ("a", "b")}, y={"type": ("null", "string")}),
        _with(pattern={"type": "string"}, patternProperties={"type": "object"}),
        _with(x={"default": {"pattern": "(", "patternProperties": {"(": {}}}}, y={"enum": [{"pattern": "("}]}),
        _with(x={"default": 10**400, "maximum": 1.5e300}),
        _with(x={"patternProperties": {"^a.*$": {}}}, é={"description": "\U0001f984"}),
    ],
)
def test_what_looks_so_and_is_fine(schema: dict[str, Any]):
    out = json.loads(json.dumps(discover(_declared(schema), {}).entries["s0"].schema))
    assert out["properties"]["id"] == INTEGER


def test_a_pattern_for_another_language_is_told_and_taken(caplog: pytest.LogCaptureFixture):
    """burler does not check it, and sources give patterns as other languages write them."""
    schema = _with(x={"type": "string", "pattern": r"^\p{L}+$"})
    assert run_tap(_declared(schema)).records("s0") == [{"id": 1}]
    assert "schema: x: pattern" in caplog.text and "is no regular expression" in caplog.text


@pytest.mark.parametrize(
    "form", [lambda name: {name: TABLE}, lambda name: catalog_of(entry(name))], ids=["map", "catalog"]
)
def test_half_a_character_in_a_found_name(form: Any):
    assert re.match(r"stream 'x\\ud800' \(.*\): its name holds half a character", _gaps(tap_of(form("x\ud800")))[0])


def test_a_schema_that_holds_itself():
    schema = _with()
    schema["properties"]["x"] = schema
    assert re.match(r"stream 's0' \(.*\): .*(nested|itself)", _gaps(_declared(schema))[0])


# ---- all at once ------------------------------------------------------------------------------------


def test_all_broken_streams_are_told_each_in_a_line():
    tap = _declared(*(schema for schema, _says in BROKEN), TABLE)
    tap.metadata(f"s{len(BROKEN)}", {"nope": {"inclusion": "available"}})
    tap.sync("late", key_properties="nope", schema=TABLE)(lambda: [])

    @tap.sync("made")
    def made() -> Any:
        return []

    @tap.schema("made")
    def schema() -> Any:
        raise LookupError("no such table")

    told = [line for line in _gaps(tap) if line.startswith("stream ")]
    assert [re.findall(r"'(\w+)'", line)[0] for line in told] == [
        *("made", *(f"s{i}" for i in range(len(BROKEN) + 1)), "late"),
    ]


def test_streams_that_are_found_are_told_with_the_others():
    tap = burler.tap("tap-found")
    tap.discover(lambda: {"a": 5, "b": TABLE, "c": _with(x={"enum": {1}}), "x.1": TABLE, "x.2": TABLE})
    for name in ("a*", "b*", "c*"):
        tap.sync(name)(lambda: [])
    told = _gaps(tap)
    assert len(told) == 3
    assert re.match(r"tap-found: discovery \(.*\) finds streams x\.1, x\.2, which nothing syncs", told[0])
    assert told[1].startswith("stream 'a' (") and told[2].startswith("stream 'c' (")


def test_a_broken_parent_hides_no_broken_child_and_blames_no_sound_one():
    tap = _declared({"properties": 5}, {"type": "object"})
    tap.sync("sound", parent="s0", schema=TABLE)(lambda parent: [])
    tap.sync("unsound", parent="s0", schema=_with(x={"enum": {1}}))(lambda parent: [])
    tap.sync("below", parent="sound", schema=TABLE)(lambda parent: [])
    assert [re.findall(r"stream '(\w+)'", line)[0] for line in _gaps(tap)] == ["s0", "s1", "unsound"]


def test_a_parent_without_any_schema_too():
    tap = tap_of({}, "none.*")
    tap.sync("p")(lambda: [])
    tap.sync("k", parent="p", schema=TABLE)(lambda parent: [])
    tap.sync("g", parent="k", schema=_with(x={"enum": {1}}))(lambda parent: [])
    told = _gaps(tap)
    assert [re.findall(r"stream '(\w+)'", line)[0] for line in told] == ["p", "g"]


FORCED = {"": {"forced-replication-method": "FULL_TABLE"}}


@pytest.mark.parametrize("with_schema", [True, False])
def test_what_a_broken_stream_would_have_said_of_its_method_blames_no_other(with_schema: bool):
    """Were the parent described, its metadata would make it a full table, and the children could be full tables."""
    tap = tap_of({}, "none.*")
    given = {"schema": {"properties": 5}} if with_schema else {}
    tap.sync("p", replication_key="id", **given)(lambda: [])
    tap.metadata("p", FORCED)
    tap.sync("k", parent="p", replication_key="id", schema=TABLE)(lambda parent: [])
    tap.sync("g", parent="k", schema=TABLE)(lambda parent: [])
    for name in ("k", "g"):
        tap.metadata(name, FORCED)
    assert [re.findall(r"stream '(\w+)'", line)[0] for line in _gaps(tap)] == ["p"]


def test_a_line_without_its_first_stream_is_no_crash():
    tap = tap_of({}, "none.*")
    tap.sync("p", replication_key="id")(lambda: [])
    tap.sync("k", parent="p", replication_key="id", schema=TABLE)(lambda parent: [])
    tap.sync("g", parent="k", schema=TABLE)(lambda parent: [])
    tap.metadata("g", FORCED)
    assert [re.findall(r"stream '(\w+)'", line)[0] for line in _gaps(tap)] == ["p"]


def test_many_are_cut():
    told = _gaps(_declared(*[{"properties": number} for number in range(60)]))
    assert len(told) == 51
    assert told[-1] == "and 10 more like these"


def test_a_client_that_fails_is_one_error_of_its_own():
    tap = _declared({"properties": 5}, TABLE, TABLE)
    calls = []

    @tap.client
    def client() -> Any:
        calls.append(1)
        raise ConnectionError("401")

    for number in (1, 2):
        tap.metadata(f"s{number}")(lambda client: None)
    with pytest.raises(BurlerError, match=r"^tap-found: the client function \(.*\) failed: ConnectionError: 401$"):
        discover(tap, {})
    assert calls == [1]


# ---- which of two counts ----------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["FULL_TABLE", None])
def test_a_method_that_is_declared_stays_whatever_is_found(said: str | None):
    found = entry("a", key_properties=["id"], replication_method="INCREMENTAL", replication_key="at")
    tap = tap_of(catalog_of(found), "none.*")
    tap.sync("a", replication_method=said)(lambda: [{"id": 1, "at": "2024-01-01T00:00:00Z"}])
    run = run_tap(tap)
    assert discover(tap, {}).entries["a"].replication_method == (said or "INCREMENTAL")
    assert ("ACTIVATE_VERSION" in run.types) is (said == "FULL_TABLE")


def test_a_patterns_function_does_not_take_a_declared_streams_place():
    tap = burler.tap("tap-found")
    tap.sync("*")(lambda: [{"id": 1}])
    tap.schema("*")(lambda: {"a": TABLE, "b": TABLE})
    tap.sync("a", key_properties="id", schema=_with(own=INTEGER))(lambda: [{"id": 2, "own": 3}])
    run = run_tap(tap)
    assert run.records("a") == [{"id": 2, "own": 3}]
    assert run.records("b") == [{"id": 1}]
    assert list(discover(tap, {}).entries) == ["a", "b"]


def test_brackets_in_a_pattern_stand_for_themselves():
    tap = tap_of({"dbo.[x].a": TABLE, "dbo.x.a": TABLE}, "dbo.[x].*")
    assert re.search(r"finds stream 'dbo\.x\.a', which nothing syncs", _gaps(tap)[0])
    tap = tap_of({"dbo.[x].a": TABLE}, "dbo.[x].*")
    assert len(run_tap(tap).records("dbo.[x].a")) == 1
