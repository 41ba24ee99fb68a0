"""tap-clicks: a Redis stream that is followed as it grows, and a table beside it (`server.py` makes both)."""

import json

import burler

from . import ids

tap = burler.tap(
    "tap-clicks",
    config_spec={
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "Of the server: redis://127.0.0.1:8770/0, or with a password."},
            "group": {
                "type": "string",
                "minLength": 1,
                "default": "tap-clicks",
                "description": "The consumer group. Each tap needs one of its own.",
            },
            "block_seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "default": 5,
                "description": "How long a read waits for clicks; so soon a server that is gone is noticed.",
            },
        },
    },
    version="1.0.0",
    description="Clicks from a Redis stream, and campaigns from a hash.",
)


@tap.client
def client(config):
    from .clicks import Clicks  # brings the package redis, which `discover` does not need

    return Clicks(config["url"], group=config["group"], block_seconds=config["block_seconds"])


# The stream is a log, and the id of an entry its place there. Ids rise, so the greatest one that is out is a safe
# bookmark at any row, and a STATE may come every 1,000 rows.
@tap.sync(
    "clicks",
    key_properties="entry_id",
    replication_method=burler.LOG_BASED,
    order="asc",
    bookmark_strategy="every_n(1000)",
)
def clicks(client, stream):
    """All that is there now."""
    yield from client.what_is_there(after=ids.from_sortable(stream.bookmark))


# "1700000000000-10" comes after "1700000000000-9", but as text before it: the bookmark is a text that sorts as the ids.
@tap.bookmark("clicks")
def place_in_the_stream(record):
    return ids.sortable(record["entry_id"])


# In a tail run the function above is called first, and this one goes on where that ended: the group's own place in the
# stream is the hand-over, so that nothing is lost between them. After a lost connection both are called anew.
@tap.tail("clicks")
def clicks_as_they_come(client, stream):
    """Each page as soon as it comes; ends when told to."""
    while not stream.stopping:
        if page := client.read(wait=True):
            yield page


# Redis keeps each entry that it has handed out on a list of pending ones. This takes those off it that a STATE covers.
@tap.acknowledge("clicks")
def acknowledge(client, bookmark):
    client.acknowledge(up_to=ids.from_sortable(bookmark))


# A small table that seldom changes: in a tail run it is read again once it is five minutes old.
@tap.sync("campaigns", key_properties="id", max_full_table_age_seconds=300)
def campaigns(client):
    for name, text in client.fields("campaigns"):
        yield {**json.loads(text), "id": name}


for name in ("clicks", "campaigns"):
    tap.schema(name, burler.json_file(f"schemas/{name}.json"))
