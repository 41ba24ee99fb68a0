"""Config: files, environment, every form of a spec; what is said is complete and holds no value."""

from __future__ import annotations

import contextlib
import copy
import json
import logging

import pytest

import burler
from burler.config import check_config, environment_prefix, known_keys, load_config, variable_of
from burler.errors import ConfigError, DeclarationError
from burler.testing import run_tap

SECRET = "canary-s3cr3t-config-0123456789abcdef"  # not a new one each time: it is part of names of tests


@pytest.fixture
def write(tmp_path):
    def write(content, name="config.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


def load(*files, spec=None, tap_name="tap-x", **environment):
    return load_config(files, environment=environment, tap_name=tap_name, spec=spec)


# ---- files ---------------------------------------------------------------------------------------


def test_later_files_win_key_by_key_at_every_depth(write):
    one = write({"a": 1, "b": {"x": 1, "deep": {"p": 1, "q": 1}}, "c": 3, "list": [1, 2], "obj": {"k": 1}, "n": {}})
    two = write({"a": 2, "b": {"y": 2, "deep": {"q": 2}}, "list": [3], "obj": None, "n": 5}, "two.json")
    assert load(one, two) == {
        "a": 2, "b": {"x": 1, "y": 2, "deep": {"p": 1, "q": 2}}, "c": 3, "list": [3], "obj": None, "n": 5,
    }  # fmt: skip
    assert load() == {}


def test_the_word_env_stands_for_no_file(write, monkeypatch):
    path = write({"a": 1, "b": 1})
    assert load("ENV", TAP_X_A="env") == {"a": "env"}
    assert load(path, "ENV", TAP_X_A="env") == load("ENV", path, TAP_X_A="env") == {"a": "env", "b": 1}
    write({"of": "a file"}, "ENV")
    monkeypatch.chdir(path.parent)
    assert load("ENV") == {} and load("./ENV") == load(path.parent / "ENV") == {"of": "a file"}


def test_a_byte_order_mark_is_no_error(write):
    assert load(write(b"\xef\xbb\xbf" + b'{"a": 1}')) == {"a": 1}


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b'{"a": 1,\n "token": "%s" x}' % SECRET.encode(), f"line 2, column {14 + len(SECRET)}"),
        (b'{"t\xc3\xa9l\xc3\xa9": x}', "line 1, column 10"),
        (b'\xef\xbb\xbf{"a": x}', "line 1, column 7"),
        (b'{"token": "%s"' % SECRET.encode(), f"line 1, column {13 + len(SECRET)}"),
        (b'{\n"token": "%s",\n' % SECRET.encode(), f"line 2, column {13 + len(SECRET)}"),
    ],
)
def test_broken_json_is_named_by_line_and_column(write, content, where):
    with pytest.raises(ConfigError) as caught:
        load(write(content))
    assert f"({where})" in str(caught.value)
    assert "config.json is not JSON" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_broken_encodings(write):
    with pytest.raises(ConfigError, match="is not JSON: it is not UTF-8"):
        load(write(b'{"token": "\xff\xfe%s"}' % SECRET.encode()))
    with pytest.raises(ConfigError, match=r"is not JSON: .*\(line 1, column 1\)"):
        load(write('{"a": 1}'.encode("utf-16")))


@pytest.mark.parametrize("content", [[SECRET], SECRET, 5, None, True])
def test_only_objects(write, content):
    with pytest.raises(ConfigError, match="must hold a JSON object") as caught:
        load(write(content))
    assert SECRET not in str(caught.value)


def test_an_empty_file_and_a_config_in_place_of_a_files_name(tmp_path):
    (tmp_path / "c.json").write_text(" \n")
    with pytest.raises(ConfigError, match=r"c\.json is empty\. A config without keys is: \{\}"):
        load(tmp_path / "c.json")
    with pytest.raises(ConfigError, match=r"^--config takes the name of a file, not the config itself\.$"):
        load('{"token": "hush-hush"}')


def test_missing_and_unreadable(tmp_path):
    with pytest.raises(ConfigError, match=r"no\.json does not exist\. Give the right path with --config"):
        load(tmp_path / "no.json")
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        load(tmp_path)


# ---- environment ---------------------------------------------------------------------------------


def test_the_environment_wins_and_nests(write):
    path = write({"a": "file", "db": {"host": "file", "port": 1}, "n": "text"})
    got = load(path, TAP_X_A="env", TAP_X_DB__HOST="env", TAP_X_N__M__O="deep", TAP_Y_A="no", TAP_X_="no", OTHER="no")
    assert got == {"a": "env", "db": {"host": "env", "port": 1}, "n": {"m": {"o": "deep"}}}


def test_an_object_in_a_variable_comes_before_its_parts():
    spec = {"db": {"host": "h", "port": 1}}
    got = load(spec=spec, TAP_X_DB='{"host": "a", "port": 2}', TAP_X_DB__HOST="b")
    assert got == {"db": {"host": "b", "port": 2}}


def test_nesting_does_not_change_what_a_file_gave(write):
    files = [write({"db": {"host": "file"}}), write({}, "two.json")]
    assert load(*files, TAP_X_DB__HOST="env")["db"] == {"host": "env"}
    assert load(*files)["db"] == {"host": "file"}


def test_variables_are_read_as_the_example_is():
    spec = {"text": "x", "n": 1, "f": 1.5, "yes": True, "list": [1], "obj": {"deep": 1, "word": "x"}, "any": None}
    got = load(
        spec=spec,
        TAP_X_TEXT="5", TAP_X_N="5", TAP_X_F="2.5", TAP_X_YES="True", TAP_X_LIST="[1, 2]", TAP_X_OBJ__DEEP="7",
        TAP_X_OBJ__WORD="7", TAP_X_ANY="7", TAP_X_UNKNOWN="7",
    )  # fmt: skip
    assert got == {
        "text": "5", "n": 5, "f": 2.5, "yes": True, "list": [1, 2], "obj": {"deep": 7, "word": "7"}, "any": "7",
        "unknown": "7",
    }  # fmt: skip


@pytest.mark.parametrize("text", [SECRET, "", "\udcff", "{"])
def test_a_variable_that_is_not_what_the_example_is(text):
    with pytest.raises(ConfigError, match=r"environment variable TAP_X_N must be a whole number\.") as caught:
        load(spec={"n": 1}, TAP_X_N=text)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("spec", [["clientId", "api-key"], {"clientId": "x", "api-key": "x"}])
def test_keys_are_found_whatever_their_case_and_signs(spec):
    with pytest.raises(ConfigError) as caught:
        check_config(spec, {}, tap_name="tap-x", variables=True)
    assert "set TAP_X_CLIENTID, TAP_X_API_KEY" in str(caught.value)
    got = load(spec=spec, TAP_X_CLIENTID="a", TAP_X_API_KEY="b")
    assert got == {"clientId": "a", "api-key": "b"}
    check_config(spec, got, tap_name="tap-x")


def test_prefixes():
    assert environment_prefix("tap-git") == "TAP_GIT_"
    assert environment_prefix("tap.x--y 2") == "TAP_X_Y_2_"
    assert variable_of("tap-x", ("db", "user name")) == "TAP_X_DB__USER_NAME"


# ---- specs ---------------------------------------------------------------------------------------


def refused(spec, config):
    with pytest.raises(ConfigError) as caught:
        check_config(spec, config, tap_name="tap-x", variables=True)
    return str(caught.value)


def test_no_spec_takes_all():
    check_config(None, {"x": object()}, tap_name="tap-x")
    assert known_keys(None) == known_keys(len) == ()


@pytest.mark.parametrize("spec", [["a", "b", "c"], ("a", "b", "c")])
def test_a_list_names_what_must_be_there(spec):
    assert known_keys(spec) == ("a", "b", "c")
    check_config(spec, {"a": 0, "b": "", "c": False, "more": 1}, tap_name="tap-x")
    assert refused(spec, {"b": 1, "c": None}) == (
        "tap-x: config lacks 'a', 'c'. Put it into the --config file or set TAP_X_A, TAP_X_C"
    )


EXAMPLE = {
    "url": "https://x",
    "n": 1,
    "f": 1.5,
    "yes": True,
    "ids": [1],
    "db": {"host": "h", "tls": {"ca": "x"}},
    "any": None,
}


def test_an_example_checks_types_and_nesting():
    good = {"url": "", "n": 0, "f": 1, "yes": False, "ids": [], "db": {"host": "a", "tls": {"ca": "b"}}}
    check_config(EXAMPLE, {**good, "any": object(), "more": 1, "db": {**good["db"], "more": 2}}, tap_name="tap-x")
    assert known_keys(EXAMPLE) == tuple(EXAMPLE)


def test_an_example_reports_everything_at_once_and_no_value():
    config = {"url": 5, "n": True, "f": SECRET, "yes": 1, "ids": SECRET, "db": {"host": [SECRET], "tls": SECRET}}
    assert refused(EXAMPLE, config).splitlines() == [
        "tap-x: config 'url' must be text, not a whole number",
        "  config 'n' must be a whole number, not true or false",
        "  config 'f' must be a number, not text",
        "  config 'yes' must be true or false, not a whole number",
        "  config 'ids' must be a list, not text",
        "  config 'db.host' must be text, not a list",
        "  config 'db.tls' must be an object, not text",
    ]
    text = refused(EXAMPLE, {"n": 1.0, "db": {"tls": {}}})
    assert text.splitlines() == [
        "tap-x: config lacks 'url', 'f', 'yes', 'ids', 'db.host', 'db.tls.ca'. Put it into the --config file or set "
        "TAP_X_URL, TAP_X_F, TAP_X_YES, TAP_X_IDS, TAP_X_DB__HOST, TAP_X_DB__TLS__CA",
        "  config 'n' must be a whole number, not a number",
    ]


def test_a_function_that_raises():
    def check(config):
        if "a" not in config:
            raise KeyError("a")
        if config["a"] == "bad":
            raise ValueError(f"{config['access_token']} is no token for {config['db_url']}")

    check_config(check, {"a": 1}, tap_name="tap-x")
    assert refused(check, {}) == "tap-x: config refused: KeyError: 'a'"
    url = f"postgresql://me:{SECRET}@db/x"
    text = refused(check, {"a": "bad", "access_token": SECRET + "\n'", "db_url": url})
    assert "hunter2" not in text
    assert "*** is no token for postgresql://me:***@db/x" in text


def test_an_object_with_validate():
    class Schema:
        def __call__(self, config):
            raise AssertionError("validate comes first")

        def validate(self, config):
            if config != {"a": 1}:
                raise RuntimeError("a must be 1")

    check_config(Schema(), {"a": 1}, tap_name="tap-x")
    assert "RuntimeError: a must be 1" in refused(Schema(), {})


@pytest.mark.parametrize("spec", ["base_url", 5, {"a"}, ["a", 5], b"ab", object(), True])
def test_other_specs_are_refused_when_declared(spec):
    with pytest.raises(DeclarationError, match=r"test_config\.py:\d+: config_spec is \w+; give a list of keys"):
        burler.tap("tap-x", config_spec=spec)


def test_a_run_checks_before_it_does_anything(caplog):
    tap = burler.tap("tap-x", config_spec={"access_token": "x", "n": 1})
    tap.schema("a", {"type": "object", "properties": {"id": {}}})
    config = {"access_token": SECRET, "n": SECRET}
    before = copy.deepcopy(config)

    @tap.sync("a")
    def rows(config):
        yield {"id": config["n"]}

    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError, match="'n' must be a whole number") as caught:
        run_tap(tap, config)
    assert SECRET not in str(caught.value) + caplog.text
    assert config == before
    assert run_tap(tap, {**config, "n": 5}).records("a") == [{"id": 5}]


# ---- settings ------------------------------------------------------------------------------------


def test_a_misspelt_key_is_named_in_the_error_and_no_variable_that_nobody_reads():
    with pytest.raises(ConfigError) as caught:
        check_config(["api_code"], {"api_cod": "x"}, tap_name="tap-x")
    assert str(caught.value).splitlines() == [
        "tap-x: config lacks 'api_code'. Put it into the --config file",
        "  config key 'api_cod' is not known. Did you mean 'api_code'?",
    ]


def test_variables_that_contradict_each_other():
    with pytest.raises(ConfigError, match="TAP_X_A and TAP_X_A__B contradict"):
        load(TAP_X_A="2", TAP_X_A__B="1")


def test_defaults_below_patterns_and_places():
    part = {"type": "object", "properties": {"n": {"default": 1}}}
    spec = {
        "type": "object",
        "properties": {"p": {"type": "array", "prefixItems": [part]}},
        "patternProperties": {"^x_": part},
    }
    got = check_config(spec, {"x_a": {}, "p": [{}, {}]}, tap_name="tap-x")
    assert got == {"x_a": {"n": 1}, "p": [{"n": 1}, {}]}


@pytest.mark.parametrize(
    ("value", "step", "fits"), [(1e300, 0.01, True), (10**400 + 1, 5, False), (10**400, 5, True), (0.075, 0.01, False)]
)
def test_numbers_of_any_size_and_multiple_of(value, step, fits):
    spec = {"type": "object", "properties": {"n": {"multipleOf": step}}}
    with contextlib.nullcontext() if fits else pytest.raises(ConfigError, match="'n'"):
        check_config(spec, {"n": value}, tap_name="tap-x")


def test_a_config_nested_too_deep(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"a":' * 900 + "1" + "}" * 900)
    with pytest.raises(ConfigError, match="nested too deep"):
        load(path)
