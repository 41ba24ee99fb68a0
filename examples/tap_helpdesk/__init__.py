"""tap-helpdesk: partitions, workers, substreams and retries over a small HTTP API (`server.py` beside this)."""

import time

import burler

from .api import Api, NotFound, Unavailable

tap = burler.tap(
    "tap-helpdesk",
    config_spec={
        "type": "object",
        "required": ["base_url"],
        "properties": {
            "base_url": {"type": "string", "description": "Where the helpdesk is, as http://127.0.0.1:8765."},
            "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 30, "description": "Of a reply."},
            "retry_pause_seconds": {
                "type": "number",
                "minimum": 0,
                "default": 0.5,
                "description": "Doubles each time.",
            },
        },
    },
    version="1.0.0",
    description="Accounts, tickets with their comments, events and agents of a helpdesk.",
)


@tap.client
def client(config):
    return Api(config["base_url"], config["timeout_seconds"])


def pause(retry, config):
    """Wait before a sync is begun anew: longer each time."""
    time.sleep(config["retry_pause_seconds"] * 2 ** (retry - 1))


@tap.sync("accounts", key_properties="id", retry_sync_on=Unavailable, setup_retry=pause)
def accounts(client):
    return client.pages("/accounts")


# Tickets can only be asked for account by account: each account is a partition with a bookmark of its own, and four
# are read at a time. The short key keeps the state small.
@tap.partitions("tickets", key="account")
def accounts_with_tickets(client):
    for account in client.rows("/accounts"):
        yield {"account": account["id"]}


@tap.sync(
    "tickets",
    key_properties="id",
    replication_key="updated_at",
    bookmark_strategy="every_n(200)",
    workers=4,
    retry_sync_on=Unavailable,
    setup_retry=pause,
)
def tickets(client, partition, stream):
    return client.pages(f"/accounts/{partition['account']}/tickets", updated_since=stream.bookmark)


# One request for each ticket. One that fails for good is reported at the end, and its account's bookmark stays before
# that ticket, so that the next run asks again; all other comments come.
@tap.sync(
    "comments",
    parent="tickets",
    key_properties="id",
    retry_sync_on=(NotFound, Unavailable),
    setup_retry=pause,
    max_retries=2,
)
def comments(client, parent):
    if parent["comment_count"]:
        yield from client.pages(f"/tickets/{parent['id']}/comments")


# All events of a month are older than those of the next, so finished months leave nothing in the state but the
# stream's own bookmark, and need not be asked for again.
@tap.partitions("events", order="asc")
def months(client, stream):
    for row in client.rows("/events/months"):
        if stream.bookmark is None or row["month"] >= stream.bookmark[:7]:
            yield row


@tap.sync(
    "events",
    key_properties="id",
    replication_key="at",
    bookmark_strategy="every_n(500)",
    workers=2,
    retry_sync_on=Unavailable,
    setup_retry=pause,
)
def events(client, partition, stream):
    return client.pages("/events", month=partition["month"], since=stream.bookmark)


@tap.sync("agents", key_properties="id", retry_sync_on=Unavailable, setup_retry=pause)
def agents(client, stream):
    reply = client.get("/agents", headers={"If-None-Match": stream.state.get("etag")})
    if reply.status_code == 304:
        stream.not_modified()
        return
    yield reply.content
    stream.state["etag"] = reply.headers["ETag"]


for name in ("accounts", "tickets", "comments", "events", "agents"):
    tap.schema(name, burler.json_file(f"schemas/{name}.json"))
