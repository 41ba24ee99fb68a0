"""Checks that authors bring: functions, validators of voluptuous, schema and others, models of pydantic, classes."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import logging
import subprocess
import sys
import typing
from decimal import Decimal

import msgspec
import pydantic
import pytest
import schema as schema_package
import voluptuous as vol

from burler.config import load, parse_spec
from burler.errors import ConfigError, DeclarationError

SECRET = "canary-s3cr3t-config-0123456789abcdef"  # not a new one each time: it is part of names of tests


def form(spec):
    return parse_spec(spec, place="tap_x.py:3", folder=None)


def check(spec, config):
    before = copy.deepcopy(config)
    try:
        return form(spec).check(config, tap_name="tap-x")
    finally:
        assert config == before


def refused(spec, config):
    with pytest.raises(ConfigError) as caught:
        check(spec, config)
    assert SECRET not in str(caught.value)
    return str(caught.value).removeprefix("tap-x: ")


# ---- functions ------------------------------------------------------------------------------------


def test_what_a_function_answers():
    assert check(lambda config: None, {"a": 1}) == {"a": 1}
    assert check(lambda config: True, {"a": 1}) == {"a": 1}
    assert check(lambda config: config["a"], {"a": 0}) == {"a": 0}
    assert check(lambda config: {**config, "b": 2}, {"a": 1}) == {"a": 1, "b": 2}
    assert check(lambda config: config.setdefault("b", []).append(1), {"a": 1}) == {"a": 1, "b": [1]}


def test_a_predicate():
    def has_token(config):
        return "token" in config

    assert check(has_token, {"token": "x"}) == {"token": "x"}
    text = refused(has_token, {"plain": SECRET})
    assert "has_token() returned False; let it raise an error that says what is wrong" in text


def test_what_a_function_raises():
    def several(config):
        raise ExceptionGroup("all", [ValueError("one"), ExceptionGroup("in", [KeyError("two"), TypeError("three")])])

    assert refused(several, {}).splitlines() == [
        "config refused: ValueError: one",
        "  config refused: KeyError: 'two'",
        "  config refused: TypeError: three",
    ]

    def leaves(config):
        sys.exit(f"no {config['token']}")

    assert refused(leaves, {"token": SECRET}) == "config refused: SystemExit: no ***"

    def long(config):
        raise ValueError("line\n" * 50 + "x" * 5000)

    assert len(refused(long, {})) < 700

    class Broken(Exception):
        def __str__(self):
            raise RuntimeError

    def broken(config):
        raise Broken

    assert refused(broken, {}) == "config refused: Broken"


def test_an_object_whose_validate_gives_the_config():
    class Doubling:
        def validate(self, config):
            return {key: value * 2 for key, value in config.items()}

    assert check(Doubling(), {"a": 1}) == {"a": 2}


# ---- voluptuous -----------------------------------------------------------------------------------

VOLUPTUOUS = vol.Schema(
    {
        vol.Required("url", description="Where the API is."): str,
        vol.Required("pages", default=10): int,
        vol.Optional("token"): vol.All(str, vol.Length(min=50)),
        vol.Optional("db"): {vol.Required("host"): str, "port": int},
        vol.Optional("tags"): [str],
    }
)


def test_voluptuous():
    assert check(VOLUPTUOUS, {"url": "x", "page_max_rows": 5}) == {"url": "x", "pages": 10, "page_max_rows": 5}
    config = {"pages": SECRET, "token": SECRET, "db": {"port": SECRET}, "other": SECRET, "tags": [5]}
    first, *others = refused(VOLUPTUOUS, config).splitlines()
    assert "'db.host'" in first and "'url'" in first and "TAP_X_DB__HOST" in first and first.startswith("config lacks")
    assert sorted(others) == [
        "  config 'db.port': expected int",
        "  config 'other': extra keys not allowed",
        "  config 'pages': expected int",
        "  config 'tags.0': expected str",
        "  config 'token': length of value must be at least 50",
    ]


def test_what_voluptuous_says_of_keys():
    assert form(VOLUPTUOUS).json_schema() == {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "Where the API is."},
            "pages": {"type": "integer", "default": 10},
            "token": {},
            "db": {
                "type": "object",
                "properties": {"host": {"type": "string"}, "port": {"type": "integer"}},
                "required": ["host"],
            },
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["url"],
    }
    got = load(environment={"TAP_X_PAGES": "5", "TAP_X_TAGS": "a, b"}, tap_name="tap-x", form=form(VOLUPTUOUS))
    assert got.config == {"pages": 5, "tags": ["a", "b"]}


# ---- schema ---------------------------------------------------------------------------------------

PACKAGE = schema_package.Schema(
    {
        "url": str,
        schema_package.Optional("pages", default=10): int,
        schema_package.Optional("token"): schema_package.And(str, lambda text: len(text) > 50),
        schema_package.Optional("kind"): schema_package.Or("a", "b", error="kind is a or b"),
        "db": {"host": str, schema_package.Optional("port"): int},
    }
)


def test_schema():
    config = {"url": "x", "db": {"host": "h"}, "page_max_rows": 5}
    assert check(PACKAGE, config) == {**config, "pages": 10}
    config = {"pages": SECRET, "token": SECRET, "db": {"port": SECRET}, "kind": SECRET}
    lines = [line.strip() for line in refused(PACKAGE, config).splitlines()]
    assert lines[0].startswith("config lacks 'url'")
    assert "config 'pages' should be instance of 'int'" in lines
    assert "config 'token' should evaluate to True" in lines
    assert "config 'kind' kind is a or b" in lines
    assert "unknown key 'other'" in refused(PACKAGE, {"url": "x", "db": {"host": "h"}, "other": SECRET})
    assert form(PACKAGE).json_schema()["properties"]["pages"] == {"type": "integer", "default": 10}


def test_a_value_of_no_secret_key_stays_out_too():
    assert "plain-value" not in refused(PACKAGE, {"url": "x", "db": "plain-value"})
    assert "plain-value" not in refused(VOLUPTUOUS, {"url": "x", "pages": "plain-value"})
    assert "plain-value" not in refused(Model, {"url": "x", "key": "y", "pages": "plain-value"})


# ---- pydantic -------------------------------------------------------------------------------------


class Database(pydantic.BaseModel):
    host: str
    port: int = 5432


class Model(pydantic.BaseModel):
    url: str = pydantic.Field(description="Where the API is.")
    key: pydantic.SecretStr
    api_version: str = pydantic.Field("v1", alias="apiVersion")
    pages: int = 10
    since: dt.datetime | None = None
    price: Decimal = Decimal("1.50")
    db: Database | None = None
    seen: set[int] = {1}

    @pydantic.field_validator("url")
    @classmethod
    def _no_ftp(cls, value):
        if value.startswith("ftp"):
            raise ValueError(f"no ftp: {value}")
        return value


def test_pydantic():
    config = {"url": "x", "key": SECRET, "pages": "5", "since": "2024-01-01T00:00:00Z", "db": {"host": "h"}}
    got = check(Model, {**config, "more": 1, "start_date": "2024-01-01T00:00:00Z"})
    assert got == {
        "url": "x", "key": SECRET, "apiVersion": "v1", "pages": 5, "since": "2024-01-01T00:00:00Z", "price": "1.50",
        "db": {"host": "h", "port": 5432}, "seen": [1], "more": 1, "start_date": "2024-01-01T00:00:00Z",
    }  # fmt: skip
    assert msgspec.json.encode(got)
    assert Model.model_validate({k: v for k, v in got.items() if k in config}).key.get_secret_value() == SECRET
    assert form(Model).secret_paths == {("key",)}


def test_what_pydantic_finds():
    text = refused(Model, {"url": f"ftp://{SECRET}", "pages": SECRET, "db": {"port": SECRET}, "key": SECRET})
    assert text.splitlines() == [
        "config lacks 'db.host'. Put it into the --config file or set TAP_X_DB__HOST",
        "  config 'url': Value error, no ftp: ftp://***",
        "  config 'pages': Input should be a valid integer, unable to parse string as an integer",
        "  config 'db.port': Input should be a valid integer, unable to parse string as an integer",
    ]
    assert "lacks 'url', 'key'" in refused(Model, {"url": None})


def test_other_kinds_of_pydantic():
    @pydantic.dataclasses.dataclass
    class Settings:
        host: str
        port: int = 1

        @pydantic.field_validator("host")
        @classmethod
        def _check(cls, value):
            if value == "bad":
                raise ValueError("bad host")
            return value

    assert check(Settings, {"host": "h"}) == {"host": "h", "port": 1}
    assert refused(Settings, {"host": "bad"}) == "config 'host': Value error, bad host"
    assert check(pydantic.TypeAdapter(Database), {"host": "h", "port": "7"}) == {"host": "h", "port": 7}

    class Strict(pydantic.BaseModel, extra="forbid"):
        host: str

    assert check(Strict, {"host": "h", "page_max_rows": 5}) == {"host": "h", "page_max_rows": 5}
    assert refused(Strict, {"host": "h", "token": SECRET}) == "config 'token': Extra inputs are not permitted"


def test_variables_for_a_model():
    environment = {"TAP_X_PAGES": "7", "TAP_X_DB__PORT": "9", "TAP_X_APIVERSION": "2", "TAP_X_SEEN": "1,2"}
    got = load(environment=environment, tap_name="tap-x", form=form(Model))
    assert got.config == {"pages": 7, "db": {"port": 9}, "apiVersion": "2", "seen": [1, 2]}


# ---- classes with fields --------------------------------------------------------------------------


class Server(msgspec.Struct):
    host: str
    port: int = 5432


class Struct(msgspec.Struct, kw_only=True):
    url: str
    key: typing.Annotated[str, msgspec.Meta(extra_json_schema={"secret": True})] = ""
    pages: typing.Annotated[int, msgspec.Meta(ge=1)] = 10
    db: Server | None = None
    servers: list[Server] = []

    def __post_init__(self):
        if self.url == "bad":
            raise ValueError(f"bad url {self.key}")


def test_a_struct():
    assert check(Struct, {"url": "x", "servers": [{"host": "h"}], "more": 1, "page_max_rows": 3}) == {
        "url": "x", "key": "", "pages": 10, "db": None, "servers": [{"host": "h", "port": 5432}], "more": 1,
        "page_max_rows": 3,
    }  # fmt: skip
    text = refused(Struct, {"pages": 0, "db": {"port": SECRET}, "servers": [{}]})
    assert text.splitlines() == [
        "config lacks 'url', 'db.host', 'servers.0.host'. "
        "Put it into the --config file or set TAP_X_URL, TAP_X_DB__HOST",
        "  config 'db.port' must be a whole number, not text",
        "  config 'pages' must be at least 1",
    ]
    assert refused(Struct, {"url": "bad", "key": SECRET}) == "config refused: ValidationError: bad url ***"
    assert form(Struct).secret_paths == {("key",)}


def test_dataclasses_and_typed_dicts():
    @dataclasses.dataclass
    class Settings:
        url: str
        pages: int = 3

    class Typed(typing.TypedDict):
        url: str

    assert check(Settings, {"url": "x"}) == {"url": "x", "pages": 3}
    assert "lacks 'url'" in refused(Settings, {})
    assert check(Typed, {"url": "x"}) == {"url": "x"}
    assert "'url' must be text, not a whole number" in refused(Typed, {"url": 5})


def test_a_class_of_which_no_schema_can_be_made():
    class Odd(msgspec.Struct):
        thing: complex

    with pytest.raises(DeclarationError, match=r"^tap_x\.py:3: config_spec: no JSON Schema can be made of Odd"):
        form(Odd)


# ---- misspellings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "config", "said"),
    [
        (["access_token"], {"access_token": "x", "acess_token": "y"}, []),
        ({"access_token": None}, {"acess_token": SECRET}, ["'acess_token' is not known. Did you mean 'access_token'?"]),
        (["a"], {"a": 1, "start_dat": 1}, ["'start_dat' is not known. Did you mean 'start_date'?"]),
        ({"clientId": None}, {"client_id": "x"}, ["'client_id' is not known. Did you mean 'clientId'?"]),
        ({"db": {"hosts": None}}, {"db": {"host": 1}}, ["'db.host' is not known. Did you mean 'db.hosts'?"]),
        ({"host": None, "a": 1}, {"post": 1, "b": 2, "a": 1}, []),
        (None, {"acess_token": 1, "start_dat": 1}, []),
        (lambda config: None, {"start_dat": 1}, []),
        (["a"], {"a": 1, "page_max_rows": 1, "tap_id": "x"}, []),
    ],
)  # fmt: skip
def test_misspellings_are_warnings(spec, config, said, caplog):
    with caplog.at_level(logging.WARNING, logger="burler"):
        assert check(spec, config) == config
    assert [record.getMessage() for record in caplog.records] == [f"tap-x: config key {text}" for text in said]


def test_nothing_heavy_is_loaded_for_what_needs_none():
    code = (
        "import sys, burler.config as c; f = c.parse_spec({'type': 'object'}, place='x', folder=None); f.json_schema();"
        " print({'jsonschema', 'pydantic', 'voluptuous', 'schema'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"
