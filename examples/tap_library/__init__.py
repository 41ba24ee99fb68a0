"""tap-library: paging of many kinds, ETags, substreams and partitions over datasette's HTTP API (`server.py`)."""

import burler
from burler.http import Cursor, LinkHeader, NextUrl, Offset

from .api import LibraryApi

tap = burler.tap(
    "tap-library",
    config_spec={
        "type": "object",
        "required": ["base_url", "access_token"],
        "properties": {
            "base_url": {"type": "string", "description": "Where the library is, as http://127.0.0.1:8001."},
            "access_token": {"type": "string", "secret": True, "description": "What it lets you in with."},
            "requests_per_second": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "At most; default: any number.",
            },
            "max_wait_seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "default": 300,
                "description": "Of one request.",
            },
        },
    },
    version="1.0.0",
    description="Branches, books, loans and what happened to them, from a library.",
)

WHOLE = {"_shape": "array", "_size": "max"}  # the rows and nothing else: a resource that has an ETag
PAGE = {"_shape": "objects", "_size": 200}  # {"rows": [...], "next": ..., "next_url": ...}


@tap.client
def client(config):
    limits = {"requests_per_second": config.get("requests_per_second"), "max_wait_seconds": config["max_wait_seconds"]}
    api = LibraryApi(config["base_url"], token=config["access_token"], **limits)
    api.check()
    return api


# One reply holds them all, and the library says with an ETag whether they have changed: nothing else has to be said.
@tap.sync("branches", key_properties="id", source_state=True)
def branches(client):
    return client.pages_branches(params=WHOLE)


# Where nothing is new of the branches, nothing is asked for here, and targets keep their rooms.
@tap.sync("rooms", parent="branches", key_properties="id")
def rooms(client, parent):
    return client.pages_rooms(params={**WHOLE, "branch": parent["id"]})


# The same said of one request: here the library gives a Last-Modified.
@tap.sync("opening_hours", key_properties=["branch", "weekday"])
def opening_hours(client):
    return client.conditional("/library/opening_hours.json", params=WHOLE)


# Two sources of one stream, each with a state of its own. Both are asked before the first row is yielded: if one of
# them has not changed, the rows of the other belong to the table as it stands, and targets drop nothing.
@tap.sync("closed_days", key_properties="id")
def closed_days(client):
    holidays = client.conditional("/library/holidays.json", params=WHOLE, source="library/holidays")
    closings = client.conditional("/library/closings.json", params=WHOLE, source="library/closings")
    yield from holidays
    yield from closings


# JSON lines; the next page is in the header `Link`.
@tap.sync("authors", key_properties="id")
def authors(client):
    return client.pages_authors(params={"_shape": "array", "_nl": "on", "_size": 100}, paginator=LinkHeader())


# The next page's address is in the body.
@tap.sync("books", key_properties="isbn", replication_key="updated_at", order="asc", bookmark_strategy="every_n(200)")
def books(client, stream):
    since = {"_sort": "updated_at", "updated_at__gte": stream.bookmark, "_nocol": "summary"}
    return client.pages_books(params={**PAGE, **since}, paginator=NextUrl("next_url"), records_path="rows")


# A request for each new or changed book.
@tap.sync("summaries", parent="books", key_properties="isbn")
def summaries(client, parent):
    for book in client.rows_book(isbn=parent["isbn"], params={"_shape": "objects"}, records_path="rows"):
        yield {"isbn": book["isbn"], "summary": book["summary"]}


# Loans are asked for branch by branch, four at a time, each with a bookmark of its own.
@tap.partitions("loans", key="branch")
def branches_with_loans(client):
    for branch in client.rows_branches(params=WHOLE):
        yield {"branch": branch["id"]}


# The next page's token is in the body.
@tap.sync(
    "loans",
    key_properties="id",
    replication_key="updated_at",
    order="asc",
    bookmark_strategy="every_n(200)",
    workers=4,
)
def loans(client, partition, stream):
    since = {"branch": partition["branch"], "_sort": "updated_at", "updated_at__gte": stream.bookmark}
    return client.pages_loans(params={**PAGE, **since}, paginator=Cursor("next", param="_next"), records_path="rows")


@tap.sync("loan_events", parent="loans", key_properties="id")
def loan_events(client, parent):
    return client.pages_loan_events(params={**PAGE, "loan": parent["id"]}, records_path="rows")


# A view has no keys, so datasette counts rows: `_next` is how many to skip. The body says how many there are in all.
@tap.sync("overdue", key_properties="loan")
def overdue(client):
    by_number = Offset(100, offset_param="_next", limit_param="_size", total="filtered_table_rows_count")
    return client.pages_overdue(params={"_shape": "objects"}, paginator=by_number, records_path="rows")


STREAMS = (
    "branches",
    "rooms",
    "opening_hours",
    "closed_days",
    "authors",
    "books",
    "summaries",
    "loans",
    "loan_events",
    "overdue",
)
for name in STREAMS:
    tap.schema(name, burler.json_file(f"schemas/{name}.json"))
