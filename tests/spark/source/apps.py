"""Burler apps that tests read through Spark's format: in a module, that workers find by its name."""

from __future__ import annotations

import threading
import time
from typing import Any

import burler

LOCK = threading.Lock()  # no pickle takes one: an app of a module goes by its name

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "account": {"type": "string"},
        "name": {"type": ["null", "string"]},
        "price": {"type": "number", "multipleOf": 0.01},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "address": {
            "type": ["null", "object"],
            "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
        },
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "anything": {},
    },
}
CONFIG = {
    "type": "object",
    "properties": {
        "rows": {"type": "integer", "default": 10},
        "password": {"type": "string", "default": ""},
        "fail": {"type": "string", "default": ""},
    },
}
tap = burler.tap("tap-apps", config_spec=CONFIG)


def row(n: int, account: str = "a") -> dict[str, Any]:
    """A row of every kind of column."""
    return {
        "id": n,
        "account": account,
        "name": [None, "", f"n{n}", "K\u00f6ln \U0001f600\n"][n % 4],
        "price": n + 0.25,
        "at": None if n % 5 == 0 else f"2024-05-01T00:00:{n % 60:02}.5Z",
        "tags": ["x"] * (n % 3),
        "address": None if n % 7 == 0 else {"city": "Bonn", "floor": n},
        "counts": {"k": n},
        "anything": ["text", n, {"deep": [n]}, None][n % 4],
    }


@tap.schema("everything")
def everything_schema() -> dict[str, Any]:
    return SCHEMA


@tap.sync("everything", key_properties=["id"])
def everything(config: dict[str, Any]) -> Any:
    with LOCK:
        yield [row(n) for n in range(config["rows"])]
    if config["fail"] == "value":
        yield [{**row(9999), "id": "no integer"}]
    if config["fail"]:
        raise ValueError(f"the source said no to {config['password']}")


@tap.schema("parts")
def parts_schema() -> dict[str, Any]:
    return SCHEMA


@tap.partitions("parts")
def accounts(config: dict[str, Any]) -> Any:
    yield from ({"account": letter} for letter in "abcd")


@tap.sync("parts", key_properties=["id"], replication_key="at", order="none")
def parts(partition: dict[str, Any], stream: Any, config: dict[str, Any]) -> Any:
    if config["fail"] == partition["account"]:
        raise ValueError("this account is closed")
    since = stream.bookmark or ""
    rows = [row(n, partition["account"]) for n in range(1, config["rows"]) if n % 5]
    yield [one for one in rows if one["at"] >= since]


@tap.schema("slow")
def slow_schema() -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "integer"}}}


@tap.sync("slow", key_properties=["id"])
def slow() -> Any:
    for n in range(100_000):
        yield [{"id": n * 10_000 + i} for i in range(10_000)]
        time.sleep(0.01)


@tap.schema("parents")
def parents_schema() -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "integer"}}}


@tap.sync("parents", key_properties=["id"])
def parents() -> Any:
    yield [{"id": n} for n in range(3)]


@tap.schema("children")
def children_schema() -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "integer"}, "parent": {"type": "integer"}}}


@tap.sync("children", parent="parents", key_properties=["id"])
def children(parent: dict[str, Any]) -> Any:
    yield [{"id": parent["id"] * 10 + n, "parent": parent["id"]} for n in range(2)]
