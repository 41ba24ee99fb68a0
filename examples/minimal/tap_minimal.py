"""The smallest tap that has all: one stream, its schema, a key, a bookmark. Its source is a list."""

import burler

tap = burler.tap("tap-minimal")

CONTACTS = [
    {"id": 1, "name": "Ada", "updated_at": "2024-05-01T09:00:00Z"},
    {"id": 2, "name": "Grace", "updated_at": "2024-05-02T10:30:00Z"},
    {"id": 3, "name": "Edsger", "updated_at": "2024-05-03T08:15:00Z"},
]


@tap.sync("contacts", key_properties="id", replication_key="updated_at", order="asc")
def contacts(stream):
    since = stream.bookmark or ""
    yield from (contact for contact in CONTACTS if str(contact["updated_at"]) >= since)


tap.schema(
    "contacts",
    {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "updated_at": {"type": "string", "format": "date-time"},
        },
    },
)

if __name__ == "__main__":
    tap.cli()
