"""Streams as handles: a part that is a function stays that function, a part that is a value gives the handle back."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, assert_type

import burler
from burler import FULL_TABLE, StreamRun
from burler.declare.field import FieldMetadata
from burler.declare.handle import StreamHandle
from burler.http import Client

Row = dict[str, Any]

tap = burler.tap("tap-crm", config_spec={"base_url": "https://crm.example.com"})
people = tap.stream("people", key_properties="id", replication_key="modified", lookback=timedelta(hours=1))
assert_type(people, StreamHandle)
assert_type(people.name, str)


@people.sync(order="asc", on_unsorted="end_of_sync", retry_sync_on=(ConnectionError, TimeoutError), workers=4)
def get_people(client: Client, stream: StreamRun) -> Iterator[Row]:
    yield from client.rows("/people", params={"since": stream.bookmark})


assert_type(next(get_people(Client("https://crm.example.com"), StreamRun(tap, "people"))), Row)


@people.bookmark
def modified(record: Row) -> str:
    return str(record["modified"])


@people.metadata
def metadata(field: FieldMetadata) -> None:
    if field.name == "id":
        field.inclusion.automatic()


@people.post_transform
def without_names(record: Row) -> Row | None:
    record.pop("name", None)
    return record


@people.partitions(order="asc", key=lambda partition: str(partition["month"]))
def months() -> Iterator[dict[str, str]]:
    yield {"month": "2024-05"}


@people.schema
def people_schema(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": config["id_type"]}}}


assert_type(modified({"modified": "2024-05-01"}), str)
assert_type(without_names({}), Row | None)
assert_type(next(months()), dict[str, str])
assert_type(people_schema({}), dict[str, Any])

letters = people.substream("letters", key_properties=["person", "id"], on_bad_record="skip")
assert_type(letters, StreamHandle)
assert_type(letters.schema({"type": "object"}), StreamHandle)
assert_type(letters.metadata({"text": {"selected-by-default": False}}), StreamHandle)


@letters.sync
def get_letters(parent: Row) -> list[Row]:
    return [{"person": parent["id"], "id": 1}]


assert_type(get_letters({}), list[Row])


@letters.schema()
def letters_schema() -> dict[str, Any]:
    return {"type": "object"}


assert_type(letters_schema(), dict[str, Any])


@tap.stream("visits", replication_method=FULL_TABLE)
def visits() -> list[Row]:
    return []


assert_type(visits(), list[Row])

guests = tap.stream("guests", emitted_by=people, schema=burler.json_file("guests.json"))
hosts = tap.stream("hosts", parent=people, replication_method="LOG_BASED").sync("get_hosts")
assert_type(hosts, StreamHandle)


def get_hosts(parent: Row) -> list[Row]:
    return [parent]


@people.tail(overlap=True)
def as_they_come(client: Client, stream: StreamRun) -> Iterator[Row]:
    yield from stream.catch_up()
    while not stream.wait(1.0):
        yield from client.rows("/people/new")


@people.ack
def are_out(bookmark: str) -> None:
    print(bookmark)


assert_type(are_out("2024-05-01"), None)
