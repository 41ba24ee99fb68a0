"""tap-helpdesk: partitions, workers, substreams and retries over a small HTTP API (`server.py` beside this)."""

import time

import backoff

import burler

from .api import Api

tap = burler.tap(
    "tap-helpdesk",
    config_spec={
        "type": "object",
        "required": ["base_url"],
        "properties": {
            "base_url": {"type": "string", "description": "Where the helpdesk is, as http://127.0.0.1:8764."},
            "timeout_seconds": {"type": "number", "exclusiveMinimum": 0, "default": 30, "description": "Of a reply."},
            "retry_pause_seconds": {
                "type": "number",
                "minimum": 0,
                "default": 0.5,
                "description": "Before asking again, at the longest; doubles each time.",
            },
        },
    },
    version="1.0.0",
    description="Accounts, tickets with their comments, events and agents of a helpdesk.",
)


@tap.client
def client(config):
    return Api(
        config["base_url"],
        timeout_seconds=config["timeout_seconds"],
        retries=3,
        backoff_strategy=lambda: backoff.expo(factor=config["retry_pause_seconds"]),
    )


@tap.sync("accounts", key_properties="id")
def accounts(client):
    return client.pages_accounts()


# Tickets can only be asked for account by account: each account is a partition with a bookmark of its own, and four
# are read at a time. The short key keeps the state small.
@tap.partitions("tickets", key="account")
def accounts_with_tickets(client):
    for account in client.rows_accounts():
        yield {"account": account["id"]}


@tap.sync(
    "tickets",
    key_properties="id",
    replication_key="updated_at",
    bookmark_strategy="every_n(200)",
    workers=4,
)
def tickets(client, partition, stream):
    return client.pages_tickets(partition["account"], params={"updated_since": stream.bookmark})


def pause(retry, config):
    """Wait before a sync is begun anew: longer each time."""
    time.sleep(config["retry_pause_seconds"] * 2 ** (retry - 1))


# One request for each ticket. The client takes 404 for an answer that will stay; here it may come of asking too early,
# so the call is begun anew. One that fails for good is reported at the end, and its account's bookmark stays before
# that ticket, so that the next run asks again; all other comments come.
@tap.sync(
    "comments",
    parent="tickets",
    key_properties="id",
    retry_sync_on=burler.errors.NotFoundError,
    setup_retry=pause,
    max_retries=2,
)
def comments(client, parent):
    if parent["comment_count"]:
        yield from client.pages_comments(parent["id"])


# All events of a month are older than those of the next, so finished months leave nothing in the state but the
# stream's own bookmark, and need not be asked for again.
@tap.partitions("events", order="asc")
def months(client, stream):
    for row in client.rows_months():
        if stream.bookmark is None or row["month"] >= stream.bookmark[:7]:
            yield row


@tap.sync(
    "events",
    key_properties="id",
    replication_key="at",
    bookmark_strategy="every_n(500)",
    workers=2,
)
def events(client, partition, stream):
    return client.pages_events(params={"month": partition["month"], "since": stream.bookmark})


# The reply's ETag is kept in the state and sent with the next run's request; 304 leaves the table as it is.
@tap.sync("agents", key_properties="id", source_state=True)
def agents(client):
    return client.pages_agents()


for name in ("accounts", "tickets", "comments", "events", "agents"):
    tap.schema(name, burler.json_file(f"schemas/{name}.json"))
