"""Streams as classes: attributes are set, methods written, without a word to the checker."""

from collections.abc import Iterator
from typing import Any

import burler
from burler.http import Client

tap = burler.tap("tap-crm")


@tap.stream
class Contacts(burler.Stream):
    key_properties = "id"
    replication_key = "updated_at"
    bookmark_strategy = "on_page"
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}  # noqa: RUF012

    def sync(self, client: Client) -> Iterator[burler.JsonPage]:
        yield from client.pages("/contacts", params={"since": self.bookmark_of(None)})

    def bookmark_of(self, value: str | None) -> str | None:
        return value

    def post_transform(self, record: dict[str, Any]) -> dict[str, Any]:
        return record


@tap.stream
class Notes(burler.Stream):
    name = "call_notes"
    parent = "contacts"
    key_properties = ["id", "contact"]  # noqa: RUF012

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}

    def sync(self, parent: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": 1, "contact": parent["id"]}]
