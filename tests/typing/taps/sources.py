"""What a tap reads from: databases, files, exports, pages that one asks for oneself."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import requests

import burler
import burler.files
import burler.http
import burler.patterns
import burler.sql
from burler import JsonPage, StreamRun
from burler.http import LinkHeader, NextUrl, Offset, PageNumber, Paginator
from burler.singer import Catalog
from burler.verify import ensure_ordering

Row = dict[str, Any]


@dataclass
class Order:
    id: int
    total: float | None
    at: dt.datetime


tap = burler.tap("tap-shop", config_spec=["database_url"])


@tap.client
def client(config: dict[str, Any]) -> burler.sql.Database:
    return burler.sql.Database(config["database_url"], statement_timeout_seconds=60)


@tap.discover
def discover(client: burler.sql.Database) -> Catalog:
    return client.discover(tables=["orders", "crm.*"], replication_keys="updated_at", views=False)


@tap.sync("*", order="asc", resumable_by="*", bookmark_strategy="every_n(10000)")
def rows(client: burler.sql.Database, stream: StreamRun) -> Iterator[Any]:
    return client.pages(stream)


assert_type(discover(client({})), Catalog)
assert_type(next(client({}).rows("select 1")), Row)
assert_type(client({}).table("orders"), burler.sql.Table)


@tap.sync("files", key_properties="id", schema=burler.files.schema("in/*.csv.gz", csv=burler.files.Csv(delimiter=";")))
def files(stream: StreamRun) -> Iterator[Any]:
    yield from burler.files.read("in/*.csv.gz", stream=stream, csv=burler.files.Csv(delimiter=";"))


@tap.sync("orders", schema=Order, records_path=["data", "items"], lookback=3)
def orders(stream: StreamRun) -> Iterator[Any]:
    def ask() -> str:
        return "job-1"

    def ready(job: str) -> list[burler.files.Part]:
        return [burler.files.Part(f"/exports/{job}.csv", size_bytes=10)]

    def fetch(part: burler.files.Part, path: Path) -> None:
        path.write_text(part.url)

    yield from burler.files.export(request=ask, ready=ready, download=fetch, stream=stream)


@tap.sync("bulk", key_properties="id")
def bulk() -> burler.batch.BatchFiles:
    return burler.batch_files(["https://example.com/a.parquet"], format="parquet")


http = burler.http.Client("https://api.example.com", auth=burler.http.basic("me", "secret"), max_wait_seconds=60)
assert_type(http.get("/a", params={"b": 1}, allow_statuses=[404]), requests.Response)
assert_type(http.post("/a", json={"b": 1}, retry=True), requests.Response)
assert_type(next(http.pages("/a", paginator=PageNumber(), records_path="items")), JsonPage)
assert_type(next(http.rows("/a", paginator=Offset(limit=100))), Row)
assert_type(http.with_options(retries=0), burler.http.Client)
links: list[Paginator] = [LinkHeader(), NextUrl("next"), burler.http.SinglePage()]


def by_hand(request: burler.http.Request, reply: burler.http.Reply) -> dict[str, Any] | None:
    return {"page": 2} if reply.url else None


assert_type(http.rows("/a", paginator=by_hand), Iterator[Row])


@ensure_ordering("created_at", "ASC")
def page(number: int) -> list[Row]:
    return [{"created_at": number}]


assert_type(page(1), list[Row])
assert_type(burler.patterns.pages(page, most_pages=10), Iterator[list[Row]])
assert_type(burler.patterns.offsets(lambda offset, size: page(offset), 100), Iterator[list[Row]])


@tap.sync("days", replication_key="at")
def days(stream: StreamRun) -> Iterator[Row]:
    for window in burler.patterns.windows(stream, dt.timedelta(days=1), overlap=dt.timedelta(hours=1)):
        assert_type(window, burler.patterns.Window)
        assert_type(window.start, str)
        yield {"at": window.start}
    for ids in burler.patterns.id_ranges(stream, 100, last=1000):
        assert_type(ids.first, int)


@burler.http.endpoints(contacts="/contacts", notes="/contacts/{id}/notes")
class Crm(burler.http.Client):
    rows_contacts: Callable[..., Iterator[Row]]


crm = Crm("https://crm.example.com", token="x")
assert_type(crm, Crm)
assert_type(next(crm.pages("/contacts")), JsonPage)
assert_type(crm.rows_contacts(), Iterator[Row])
