"""A tap of functions: each decorator leaves the function as it was, and what is asked for by name has a type."""

from collections.abc import Iterator
from typing import Any, TypedDict, assert_type

import burler
from burler import FULL_TABLE, Children, EveryN, JsonPage, Strategy, StreamRun
from burler.http import Client, Cursor


class Contact(TypedDict):
    id: int
    name: str | None
    updated_at: str


tap = burler.tap("tap-contacts", config_spec=["base_url", "access_token"], version="1.0", description="Contacts.")
assert_type(tap, burler.Tap)


@tap.client
def client(config: dict[str, Any]) -> Client:
    return burler.http.Client(config["base_url"], token=config["access_token"])


@tap.sync("contacts", key_properties="id", replication_key="updated_at", bookmark_strategy="every_n(1000)")
def contacts(client: Client, stream: StreamRun) -> Iterator[JsonPage]:
    yield from client.pages("/contacts", params={"since": stream.bookmark}, paginator=Cursor("next"))


assert_type(next(contacts(client({}), StreamRun(tap, "contacts"))), JsonPage)


@tap.sync("orders", key_properties=["id", "line"], bookmark_strategy=EveryN(10), order="asc", replication_key="at")
def orders() -> Iterator[list[dict[str, Any]]]:
    yield [{"id": 1, "line": 2, "at": "2024-05-01T00:00:00Z"}]


@tap.sync("notes", parent="contacts", key_properties="id")
def notes(client: Client, parent: Contact) -> Iterator[JsonPage]:
    yield from client.pages(f"/contacts/{parent['id']}/notes")


@tap.partitions("orders", order="asc", key="day")
def days() -> Iterator[dict[str, str]]:
    yield {"day": "2024-05-01"}


@tap.bookmark("contacts")
def bookmark(record: Contact, children: dict[str, Children]) -> str:
    return record["updated_at"]


assert_type(bookmark({"id": 1, "name": None, "updated_at": "a"}, {}), str)


@tap.schema("orders")
def schema(client: Client) -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "integer"}}}


tap.schema("contacts", burler.json_file("contacts.json"))
tap.schema("notes", {"type": "object", "properties": {"id": {"type": "integer"}}})


@tap.metadata("contacts")
def metadata(breadcrumb: tuple[str, ...], sub_schema: dict[str, Any]) -> None:
    tap.write_metadata("inclusion", "automatic")


@tap.post_transform("contacts")
def shorten(record: Contact) -> Contact | None:
    return record if record["name"] else None


@tap.tail("contacts")
def follow(stream: StreamRun) -> Iterator[Contact]:
    while not stream.stopping:
        yield {"id": 1, "name": None, "updated_at": "2024-05-01T00:00:00Z"}


@tap.wake("orders")
def wake(stream: StreamRun) -> Iterator[None]:
    yield None


@tap.acknowledge("contacts")
def acknowledge(bookmark: str) -> None:
    print(bookmark)


@tap.discover
def discover(client: Client) -> dict[str, Any]:
    return {"streams": []}


assert_type(discover(client({})), dict[str, Any])


class Nightly(Strategy):
    def is_due(self, since: burler.Since) -> bool:
        return since.rows > 10


archive = tap.stream("archive", key_properties="id", replication_method=FULL_TABLE)


@archive.sync
def old(client: Client) -> Iterator[JsonPage]:
    yield from client.pages("/old")


assert_type(next(old(client({}))), JsonPage)

if __name__ == "__main__":
    tap.cli()
