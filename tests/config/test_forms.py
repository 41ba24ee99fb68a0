"""Keys, examples and files as config_spec; the JSON Schema of each; text of variables as the type that is asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from burler.config import load, load_config, mask, parse_spec
from burler.errors import ConfigError, DeclarationError

SECRET = "canary-s3cr3t-config-0123456789abcdef"  # not a new one each time: it is part of names of tests


def form(spec, folder=None):
    return parse_spec(spec, place="tap_x.py:3", folder=folder)


def refused(spec, config):
    with pytest.raises(ConfigError) as caught:
        form(spec).check(config, tap_name="tap-x")
    return str(caught.value)


# ---- JSON Schemas ---------------------------------------------------------------------------------


def test_the_schema_of_each_form():
    assert form(None).json_schema() == form(lambda config: None).json_schema() == {"type": "object", "properties": {}}
    assert form(["a", "b"]).json_schema() == {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "required": ["a", "b"],
    }
    example = {
        "s": "x",
        "n": 1,
        "f": 1.5,
        "b": True,
        "any": None,
        "db": {"h": "x", "o": None},
        "l": [1],
        "mixed": [1, "x"],
    }
    assert form(example).json_schema() == {
        "type": "object",
        "properties": {
            "s": {"type": "string"}, "n": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"},
            "any": {}, "db": {"type": "object", "properties": {"h": {"type": "string"}, "o": {}}, "required": ["h"]},
            "l": {"type": "array", "items": {"type": "integer"}}, "mixed": {"type": "array"},
        },
        "required": ["s", "n", "f", "b", "db", "l", "mixed"],
    }  # fmt: skip
    assert form(example).keys == tuple(example)


def test_values_of_an_example_are_never_in_its_schema():
    assert SECRET not in json.dumps(form({"token": SECRET, "list": [SECRET], "db": {"password": SECRET}}).json_schema())


def test_lists_of_an_example():
    spec = {"accounts": [{"name": "x", "depth": None}], "ids": [1], "any": [1, "x"], "none": []}
    config = {
        "accounts": [{"name": "a"}, {"depth": 5}, SECRET],
        "ids": [1, SECRET, None],
        "any": [SECRET],
        "none": [SECRET],
    }
    assert refused(spec, config).splitlines() == [
        "tap-x: config lacks 'accounts.1.name'. Put it into the --config file",
        "  config 'accounts.2' must be an object, not text",
        "  config 'ids.1' must be a whole number, not text",
        "  config 'ids.2' must be a whole number, not null",
    ]


# ---- files ----------------------------------------------------------------------------------------


def test_a_sample_file_counts_from_the_folder_of_the_module(tmp_path):
    (tmp_path / "config.sample.json").write_text('{"url": "x", "n": 1, "opt": null}')
    for spec in ("config.sample.json", Path("config.sample.json"), str(tmp_path / "config.sample.json")):
        one = form(spec, tmp_path)
        assert one.check({"url": "y", "n": 2, "more": 3}, tap_name="t") == {"url": "y", "n": 2, "more": 3}
        assert one.keys == ("url", "n", "opt")
        with pytest.raises(ConfigError, match=r"lacks 'url'.*\n  config 'n' must be a whole number, not text"):
            one.check({"n": "x"}, tap_name="tap-x")


def test_a_file_may_hold_a_schema(tmp_path):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 7}, "k": {"secret": True}}}
    (tmp_path / "spec.json").write_text(json.dumps(schema))
    one = form("spec.json", tmp_path)
    assert one.check({}, tap_name="t") == {"n": 7}
    assert one.secret_paths == {("k",)}
    (tmp_path / "spec.json").write_text('{"type": "object", "properties": {"n": {"type": "nope"}}}')
    with pytest.raises(
        DeclarationError, match=r"tap_x\.py:3, spec\.json: config_spec, at '#/properties/n': type 'nope'"
    ):
        form("spec.json", tmp_path).check({}, tap_name="t")


def test_a_file_is_read_when_it_is_needed(tmp_path):
    one = form("later.json", tmp_path)
    (tmp_path / "later.json").write_text('{"a": 1}')
    assert one.keys == ("a",)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        (b'{"token": "%s" x}' % SECRET.encode(), "is not JSON: .*line 1, column"),
        (b"[]", "must hold a JSON object"),
        ("folder", "can't be read: Is a directory"),
    ],
)
def test_broken_files(tmp_path, content, says, may_hold_secrets):
    if content == "folder":
        (tmp_path / "x.json").mkdir()
    elif content is not None:
        may_hold_secrets(tmp_path / "x.json").write_bytes(content)
    with pytest.raises(
        DeclarationError, match=rf"^tap_x\.py:3: the file that config_spec names, .*x\.json {says}"
    ) as caught:
        form("x.json", tmp_path).check({}, tap_name="t")
    assert SECRET not in str(caught.value) and "--config" not in str(caught.value)


def test_text_that_is_no_path():
    with pytest.raises(DeclarationError, match=r"config_spec is text; give a list of keys.*One key: \['base_url'\]"):
        form("base_url")


# ---- text of variables ----------------------------------------------------------------------------


def typed(text, part, **more):
    schema = {"type": "object", "properties": {"k": part}, **more}
    return load(environment={"TAP_X_K": text}, tap_name="tap-x", form=form(schema)).config["k"]


@pytest.mark.parametrize(
    ("part", "text", "value"),
    [
        ({"type": "string"}, "5", "5"), ({}, "[1]", "[1]"), ({"type": "string"}, "", ""),
        ({"type": "integer"}, " -5 ", -5), ({"type": "integer"}, "123456789012345678901234", 123456789012345678901234),
        ({"type": "number"}, "1e3", 1000.0), ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "TRUE", True), ({"type": "boolean"}, "off", False), ({"type": "boolean"}, "1", True),
        ({"type": ["boolean", "integer"]}, "1", 1), ({"type": ["boolean", "integer"]}, "true", True),
        ({"type": ["integer", "null"]}, "", None), ({"type": ["integer", "string"]}, "5", "5"),
        ({"type": ["string", "array"]}, "[1]", [1]), ({"type": ["string", "array"]}, "a,b", "a,b"),
        ({"type": ["string", "object"]}, '{"a": 1}', {"a": 1}), ({"type": ["string", "object"]}, "{a", "{a"),
        ({"type": "array"}, "a, b,c", ["a", "b", "c"]), ({"type": "array"}, "", []),
        ({"type": "array"}, '["a"]', ["a"]),
        ({"type": "array", "items": {"type": "integer"}}, "1, 2", [1, 2]),
        ({"type": "array", "items": {"$ref": "#/$defs/n"}}, "1", [1]),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}), ({"properties": {"a": {}}}, '{"a": 1}', {"a": 1}),
        ({"$ref": "#/$defs/n"}, "5", 5), ({"allOf": [{"$ref": "#/$defs/n"}]}, "5", 5), ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, "2", "2"), ({"const": True}, "true", True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
    ],
)  # fmt: skip
def test_text_is_read_as_what_the_schema_asks_for(part, text, value):
    got = typed(text, part, **{"$defs": {"n": {"type": "integer"}}})
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("part", "text", "wants"),
    [
        ({"type": "integer"}, SECRET, "a whole number"), ({"type": "integer"}, "1.5", "a whole number"),
        ({"type": "integer"}, "", "a whole number"), ({"type": "integer"}, "٥", "a whole number"),
        ({"type": "number"}, "nan", "a number"), ({"type": "number"}, "0x10", "a number"),
        ({"type": "number"}, "true", "a number"), ({"type": "boolean"}, SECRET, "true or false"),
        ({"type": "object"}, "[1]", "a JSON object"), ({"type": "object"}, SECRET, "a JSON object"),
        ({"type": "array"}, "[1", "a JSON list, or values with commas between them"),
        ({"type": "array", "items": {"type": "integer"}}, f"1,{SECRET}", "a JSON list, or values with commas"),
        ({"type": ["integer", "boolean"]}, SECRET, "a whole number or true or false"),
    ],
)  # fmt: skip
def test_text_that_is_something_else(part, text, wants):
    schema = {"type": "object", "properties": {"k": part}}
    (problem,) = load(environment={"TAP_X_K": text}, tap_name="tap-x", form=form(schema)).problems
    assert re.match(f"environment variable TAP_X_K must be {wants}", problem)
    assert SECRET not in problem


def test_all_bad_variables_are_named_at_once():
    environment = {"TAP_X_A": "x", "TAP_X_DB__N": "y"}
    said = [
        "environment variable TAP_X_A must be a whole number.",
        "environment variable TAP_X_DB__N must be a whole number.",
    ]
    assert load(environment=environment, tap_name="tap-x", form=form({"a": 1, "db": {"n": 1}})).problems == tuple(said)
    with pytest.raises(ConfigError) as caught:
        load_config(environment=environment, tap_name="tap-x", spec={"a": 1, "db": {"n": 1}})
    assert [line.strip() for line in str(caught.value).splitlines()] == said


def test_a_closed_schema_takes_only_variables_that_it_knows():
    schema = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    environment = {"TAP_X_A": "1", "TAP_X_HUB_TOKEN": "of tap-x-hub", "TAP_X_PAGE_MAX_ROWS": "5"}
    assert load(environment=environment, tap_name="tap-x", form=form(schema)).config == {"a": "1", "page_max_rows": "5"}


def test_what_meltano_says_beside_the_file_is_no_key():
    """It gives a tap its own words, and keys inside objects with one `_`; validators would refuse them."""
    environment = {
        "TAP_X_A": "1", "TAP_X__SELECT": '["*.*"]', "TAP_X___X": "", "TAP_X_DB_HOST": "other", "TAP_X_DB__HOST": "h",
    }  # fmt: skip
    assert load(environment=environment, tap_name="tap-x", form=form({"a": "", "db": {"host": ""}})).config == {
        "a": "1",
        "db": {"host": "h"},
    }
    named = {"a": "", "_mine": "", "db_host": "", "db": {"host": ""}}
    environment = {"TAP_X__MINE": "1", "TAP_X_DB_HOST": "top", "TAP_X_FURTHER": "2"}
    got = load(environment=environment, tap_name="tap-x", form=form(named)).config
    assert got == {"_mine": "1", "db_host": "top", "further": "2"}


def test_a_key_spelt_with_one_underscore_is_told_where_nothing_sets_it(caplog, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"db": {"host": "of the file"}}')
    environment = {"TAP_X_DB_HOST": "prod"}
    named = form({"db": {"host": "localhost"}})
    assert load([path], environment=environment, tap_name="tap-x", form=named).config["db"] == {"host": "of the file"}
    assert caplog.messages == []
    load(environment=environment, tap_name="tap-x", form=named)
    assert caplog.messages == ["environment variable TAP_X_DB_HOST is not read: TAP_X_DB__HOST sets db.host"]


def test_where_each_value_came_from(tmp_path):
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    one.write_text('{"a": 1}')
    two.write_text('{"b": {"c": 2}}')
    got = load([one, "ENV", two], environment={"TAP_X_B__C": "5", "TAP_X_D": "6"}, tap_name="tap-x")
    assert got.config == {"a": 1, "b": {"c": "5"}, "d": "6"}
    assert got.files == ((one, {"a": 1}), (two, {"b": {"c": 2}}))
    assert got.variables == {("b", "c"): "TAP_X_B__C", ("d",): "TAP_X_D"}
    got.config["b"]["c"] = "changed"
    assert got.files[1][1] == {"b": {"c": 2}}


# ---- marked secrets -------------------------------------------------------------------------------


def test_marked_paths_are_masked():
    config = {"plain": "aaaa", "deep": {"x": {"y": "bbbb"}}, "list": [{"z": "cccc", "w": "dddd"}], "n": 5, "none": None}
    marked = {("plain",), ("deep", "x"), ("list", "*", "z"), ("none",)}
    assert mask(config, marked=marked) == {
        "plain": "***", "deep": {"x": "***"}, "list": [{"z": "***", "w": "dddd"}], "n": 5, "none": None,
    }  # fmt: skip
    text = refused_by_author(config, {("plain",), ("deep", "x"), ("list", "*", "z")})
    assert text == "tap-x: config refused: ValueError: *** *** *** dddd"


def test_any_key_of_an_open_object_may_be_marked():
    assert mask({"tenants": {"a": "aaaa", "b": {"c": 1}}, "x": "y"}, marked={("tenants", "*")}) == {
        "tenants": {"a": "***", "b": "***"}, "x": "y",
    }  # fmt: skip


def refused_by_author(config, marked):
    class Form(type(form(lambda config: None))):
        secret_paths = frozenset(marked)

    def check(config):
        raise ValueError(
            f"{config['plain']} {config['deep']['x']['y']} {config['list'][0]['z']} {config['list'][0]['w']}"
        )

    with pytest.raises(ConfigError) as caught:
        Form(check, check, place="p").check(config, tap_name="tap-x")
    return str(caught.value)
