"""``@tap.discover``: a whole catalog from code, merged with what is declared, synced by patterns."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from discovered import INTEGER, TABLE, catalog_of, entry, streams_of, tap_of
from tapprocess import python, write_tap

import burler
from burler.errors import DeclarationError
from burler.singer.catalog import Catalog, CatalogEntry
from burler.testing import canary, discover, run_tap

PASSWORD = canary("password")

# ---- forms ----------------------------------------------------------------------------------------


class SingerCatalog:
    """Like the class of singer-python: it becomes a dict by ``to_dict``."""

    def to_dict(self) -> dict[str, Any]:
        return catalog_of(entry("a"), entry("b"))


@pytest.mark.parametrize(
    "found",
    [
        catalog_of(entry("a"), entry("b")),
        {"a": TABLE, "b": TABLE},
        Catalog({"a": CatalogEntry("a", "a", TABLE), "b": CatalogEntry("b", "b", TABLE)}),
        SingerCatalog(),
    ],
    ids=["dict", "mapping", "Catalog", "singer-python"],
)
def test_a_catalog_in_any_form(found: Any):
    tap = tap_of(found)
    catalog = discover(tap, {})
    assert [(one.tap_stream_id, one.stream, one.schema) for one in catalog.entries.values()] == [
        ("a", "a", TABLE),
        ("b", "b", TABLE),
    ]
    run = run_tap(tap)
    assert [m["stream"] for m in run.messages if m["type"] == "RECORD"] == ["a", "b"]


def test_schemas_may_be_what_a_declared_stream_may_have(tmp_path: Path):
    @dataclass
    class Row:
        id: int

    (tmp_path / "b.json").write_text(json.dumps(TABLE))
    tap = tap_of({"a": Row, "b": burler.json_file(tmp_path / "b.json")})
    catalog = discover(tap, {})
    assert catalog.entries["a"].schema["properties"]["id"]["type"] == "integer"
    assert catalog.entries["b"].schema == TABLE


def test_references_inside_a_found_schema_are_resolved():
    schema = {"type": "object", "properties": {"a": {"$ref": "#/definitions/n"}}, "definitions": {"n": INTEGER}}
    assert discover(tap_of({"a": schema}), {}).entries["a"].schema == {
        "type": "object",
        "properties": {"a": INTEGER},
    }


@pytest.mark.parametrize("kind", ["path", "address", "relative"])
def test_a_found_schema_reads_no_file_of_this_machine(tmp_path: Path, kind: str):
    """Schemas come from servers; one that could point to files would let a server read them."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"type": "string", "description": "hidden"}')
    references = {
        "path": str(secret),
        "address": secret.as_uri(),
        "relative": "../" * 20 + str(secret).lstrip("/"),
    }
    found = {"a": {"type": "object", "properties": {"x": {"$ref": references[kind]}}}}
    with pytest.raises(DeclarationError) as caught:
        discover(tap_of(found), {})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("how", ["in the module", "from a function", "found"])
def test_a_schema_in_the_module_may_refer_to_files_beside_it(tmp_path: Path, how: str):
    (tmp_path / "n.json").write_text('{"type": "integer", "title": "beside"}')
    schema = {"type": "object", "properties": {"id": {"$ref": "n.json"}}}
    declared = {
        "in the module": f"tap.schema('a', {schema}); tap.sync('a')(lambda: [])",
        "from a function": f"tap.schema('a')(lambda: {schema}); tap.sync('a')(lambda: [])",
        "found": f"tap.discover(lambda: {{'a': {schema}}}); tap.stream('*').sync(lambda: [])",
    }
    source = f"import burler\ntap = burler.tap('tap-x')\n{declared[how]}\ntap.cli()\n"
    ended = python(write_tap(tmp_path, source), "--discover", cwd=tmp_path)
    if how == "in the module":
        assert ended.code == 0, ended.stderr
        assert json.loads(ended.stdout)["streams"][0]["schema"]["properties"]["id"]["title"] == "beside"
    else:
        assert ended.code != 0
        assert "n.json" in ended.one_critical()
        assert "beside" not in ended.stderr


def test_no_streams_at_all(caplog: pytest.LogCaptureFixture):
    for found in ({}, {"streams": []}):
        run = run_tap(tap_of(found))
        assert not run.result.errors
        assert [kind for kind in run.types if kind != "STATE"] == []
    assert "no stream is selected" in caplog.text


def test_a_stream_may_be_called_streams():
    assert streams_of(tap_of({"streams": TABLE})) == ["streams"]


@pytest.mark.parametrize(
    "name",
    [
        "a*b",
        "[x]",
        "a?b",
        "a b",
        "a.b.c",
        "Ä",
        "../../etc/passwd",
        "a\nb",
        "a/b",
        '"',
        "x" * 300,
        "\u202e",
        "%s {} $(x)",
    ],
)
def test_hostile_names(name: str):
    tap = tap_of({name: TABLE, "other": TABLE})
    run = run_tap(tap)
    assert not run.result.errors
    assert run.records(name) == [{"id": 1, "at": "2024-01-01T00:00:00Z"}]
    assert streams_of(tap) == [name, "other"]
    assert name in run.states[-1]["bookmarks"]


# ---- bad ones ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "gave NoneType"),
        ([], "gave list"),
        ("a", "gave str"),
        ((one for one in ()), "gave generator"),
        ({"a": None}, "stream 'a'"),
        ({"a": 5}, "stream 'a'"),
        ({"a": []}, "stream 'a'"),
        ({"a": "schema.json"}, "stream 'a'"),
        ({"a": {"type": "object"}}, "'properties'"),
        ({"a": {"type": "object", "properties": []}}, "'properties'"),
        ({"": TABLE}, "a stream's name is text"),
        ({5: TABLE}, "a stream's name is text"),
        ({None: TABLE}, "a stream's name is text"),
        (catalog_of({"schema": TABLE}), "streams[0]"),
        (catalog_of({"stream": "a"}), "stream 'a'"),
        ({"streams": [5]}, "streams[0]"),
        (catalog_of(entry("a"), entry("a")), "stream 'a' is listed twice"),
        (catalog_of(entry("a", metadata="x")), "'metadata' must be a list"),
        (catalog_of(entry("a", metadata=[{"breadcrumb": ["properties", "zz"], "metadata": {}}])), "field 'zz'"),
        (catalog_of(entry("a", key_properties=["nope"])), "'nope' is not in the schema"),
        (catalog_of(entry("a", key_properties="id")), "list of field names"),
        (catalog_of(entry("a", replication_key="nope")), "'nope' is not in the schema"),
        (catalog_of(entry("a", replication_key="at", replication_method="incremental")), "INCREMENTAL"),
        (catalog_of(entry("a", replication_method="INCREMENTAL")), "nothing says by which key"),
        (catalog_of(entry("a", {"forced-replication-method": "SOMETIMES"})), "'SOMETIMES'"),
        (catalog_of(entry("a", {"forced-replication-method": "INCREMENTAL"})), "nothing says by which key"),
        (catalog_of(entry("a", {"valid-replication-keys": ["nope"]})), "'nope' is not in the schema"),
        (catalog_of(entry("a", {"valid-replication-keys": 5})), "valid-replication-keys"),
        (catalog_of(entry("a", {"valid-replication-keys": ["id"]}, replication_key="at")), "Keep one of the two"),
        (catalog_of(entry("a", {"selected": True})), "'selected-by-default'"),
        (catalog_of(entry("a", {"slected-by-default": True})), "'selected-by-default'"),
        (catalog_of(entry("a", {"is-view": "yes"})), "'is-view' must be true or false"),
        ({"a": {"type": "object", "properties": {"x": {"$ref": "#"}}}}, "recursive"),
        ({"a": {"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}}, "nowhere"),
    ],
)
def test_a_bad_catalog_is_one_clear_error(found: Any, says: str):
    with pytest.raises(DeclarationError) as caught:
        discover(tap_of(lambda: found), {})
    text = str(caught.value)
    assert says in text
    assert re.search(r"(test_discovery|discovered)\.py:\d+", text)
    assert len(text.splitlines()) <= 3


@pytest.mark.parametrize("error", [LookupError("no such thing"), SystemExit(0), RecursionError(), StopIteration()])
def test_a_function_that_fails_is_one_clear_error(error: BaseException):
    def found():
        raise error

    with pytest.raises(DeclarationError, match=r"tap-found: the discover function \(.*:\d+\) failed") as caught:
        discover(tap_of(found), {})
    assert type(error).__name__ in str(caught.value)


def test_a_secret_does_not_get_into_the_error():
    tap = burler.tap("tap-found")

    @tap.discover
    def found(config):
        raise ConnectionError(f"401 for password {config['password']}")

    tap.sync("*")(lambda: [])
    with pytest.raises(DeclarationError) as caught:
        discover(tap, {"password": PASSWORD})
    assert caught.value.__cause__ is not None


def test_a_secret_does_not_get_out_on_the_command_line(tmp_path: Path):
    path = write_tap(
        tmp_path,
        """
        import burler
        tap = burler.tap("tap-x", config_spec=["password"])
        @tap.discover
        def found(config):
            raise ConnectionError("401 for password " + config["password"])
        tap.sync("*")(lambda: [])
        if __name__ == "__main__":
            tap.cli()
        """,
    )
    ended = python(path, "--discover", cwd=tmp_path, TAP_X_PASSWORD=PASSWORD)
    assert ended.code != 0
    assert ended.stdout == b""
    assert "the discover function (tap_x.py:" in ended.one_critical()
    assert PASSWORD not in ended.stderr


def test_a_stream_that_nobody_syncs():
    tap = tap_of({"public.users": TABLE, "other": TABLE}, "public.*")
    with pytest.raises(DeclarationError, match=r"finds stream 'other', which nothing syncs.*@tap.sync\('other'\)"):
        discover(tap, {})


def test_a_declared_stream_that_has_no_schema_and_is_not_found():
    tap = tap_of({"a": TABLE})
    tap.sync("declared")(lambda: [])
    with pytest.raises(DeclarationError, match=r"stream 'declared'.*has no schema, and discovery does not find it"):
        discover(tap, {})


# ---- patterns -----------------------------------------------------------------------------------------


def test_the_first_pattern_that_matches_in_order_of_declaration():
    tap = burler.tap("tap-found")
    tap.discover(lambda: dict.fromkeys(["public.users", "public.orders", "audit.log", "exact"], TABLE))
    for pattern, number in [("exact", 0), ("public.u*", 1), ("public.*", 2), ("*", 3)]:
        tap.sync(pattern)(lambda number=number: [{"id": number}])
    run = run_tap(tap)
    assert {m["stream"]: m["record"]["id"] for m in run.messages if m["type"] == "RECORD"} == {
        "exact": 0,
        "public.users": 1,
        "public.orders": 2,
        "audit.log": 3,
    }
    tap = burler.tap("tap-found")
    tap.discover(lambda: {"public.users": TABLE})
    tap.sync("*")(lambda: [{"id": 3}])
    tap.sync("public.*")(lambda: [{"id": 2}])
    assert run_tap(tap).records("public.users") == [{"id": 3}]


def test_patterns_are_case_sensitive():
    with pytest.raises(DeclarationError, match=r"'Public\.users'"):
        discover(tap_of({"Public.users": TABLE}, "public.*"), {})


def test_all_parts_may_be_declared_for_a_pattern():
    tap = burler.tap("tap-found")
    tap.discover(lambda: {"a": TABLE, "b": TABLE})
    visited = []

    @tap.sync("*", key_properties="id")
    def rows(stream):
        yield {"id": 3, "at": "2024-01-01T00:00:00Z", "text": stream.name}
        assert stream.schema["properties"] == TABLE["properties"]

    @tap.bookmark("*")
    def mark(record):
        return record["id"] * 10

    @tap.metadata("*")
    def write(breadcrumb, stream):
        visited.append((stream.name, breadcrumb.name))
        if breadcrumb.name == "text":
            tap.write_metadata("tap-found.of", stream.name)

    @tap.post_transform("*")
    def hook(record, stream):
        return {**record, "text": f"{stream.name}!"}

    run = run_tap(tap)
    assert not run.result.errors
    assert run.records("a")[0]["text"] == "a!"
    assert run.records("b")[0]["text"] == "b!"
    assert run.states[-1] == {"bookmarks": {"a": {"bookmark": 30}, "b": {"bookmark": 30}}}
    assert visited == [(name, field) for name in ("a", "b") for field in (None, "id", "at", "text")]
    catalog = discover(tap, {})
    assert catalog.entries["b"].metadata["properties", "text"]["tap-found.of"] == "b"
    assert catalog.entries["b"].key_properties == ("id",)


def test_a_mapping_from_a_schema_function_says_which_streams_there_are():
    tap = burler.tap("tap-found")
    calls = []
    tap.client(lambda: "client")

    @tap.schema("*")
    def schemas(client):
        calls.append(client)
        return {"a": TABLE, "b": {"type": "object", "properties": {"id": INTEGER}}}

    tap.sync("*")(lambda stream: [{"id": len(stream.schema["properties"])}])
    run = run_tap(tap)
    assert run.records("a") == [{"id": 3}]
    assert run.records("b") == [{"id": 1}]
    assert calls == ["client"]


def test_a_mapping_of_a_pattern_gives_streams_of_its_own_names_only():
    tap = burler.tap("tap-found")
    tap.schema("public.*")(lambda: {"public.a": TABLE, "audit.b": TABLE})
    tap.sync("public.*")(lambda: [{"id": 1}])
    tap.sync("declared", schema=TABLE)(lambda: [{"id": 2}])
    assert streams_of(tap) == ["declared", "public.a"]


@pytest.mark.parametrize("given", [None, [TABLE], "x", {"a": 5}, TABLE])
def test_a_schema_function_of_a_pattern_that_gives_no_mapping(given: Any):
    tap = burler.tap("tap-found")
    tap.schema("*")(lambda: given)
    tap.sync("*")(lambda: [])
    with pytest.raises(DeclarationError, match=r"stream '\*'.*mapping of stream names to schemas"):
        discover(tap, {})


def test_the_schema_of_a_pattern_wins_and_what_was_found_besides_stays():
    found = catalog_of(entry("a", {"database-name": "db", "table-key-properties": ["id"]}))
    narrow = {"type": "object", "properties": {"id": INTEGER}}
    by_function = tap_of(found)
    by_function.schema("*")(lambda: {"a": narrow})
    for tap in (tap_of(found, schema=narrow), by_function):
        catalog = discover(tap, {})
        assert catalog.entries["a"].schema == narrow
        assert catalog.entries["a"].key_properties == ("id",)
        assert catalog.entries["a"].metadata[()]["database-name"] == "db"


def test_a_class_may_stand_for_a_pattern():
    tap = burler.tap("tap-found")
    tap.discover(lambda: {"a": TABLE, "b": TABLE})

    @tap.stream
    class Tables(burler.Stream):
        names = ("*",)

        def __init__(self) -> None:
            self.rows = 0

        def sync(self, stream):
            self.rows += 1
            yield {"id": self.rows, "text": stream.name}

    for _ in range(2):
        run = run_tap(tap)
        assert run.records("a") == [{"id": 1, "text": "a"}]
        assert run.records("b") == [{"id": 1, "text": "b"}]
