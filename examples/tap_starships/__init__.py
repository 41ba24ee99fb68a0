"""tap-starships: streams from the GraphQL server of a shipyard (`server.py` beside this)."""

import burler

tap = burler.tap(
    "tap-starships",
    config_spec={
        "type": "object",
        "required": ["url", "access_token"],
        "properties": {
            "url": {"type": "string", "description": "Of the GraphQL server, as http://127.0.0.1:8766/graphql."},
            "access_token": {"type": "string", "description": "Shown to the server with each request."},
            "page_size": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        },
    },
    version="1.0.0",
    description="Ships with their crew and log, and ports.",
)

# One query gives the rows of three streams: ships, the crew of each (a connection in a connection, which has pages of
# its own) and the lines of its log (an interface). What nobody selects is not asked for.
SHIPS = burler.graphql.Query(
    """
    query Ships($since: DateTime, $first: Int!) {
      ships(updatedSince: $since, first: $first) {
        edges {
          node {
            id
            name
            shipClass
            massTons
            odometer
            updatedAt
            crew(first: 5) { nodes { id name rank joined } }
            log { ...Entry }
          }
        }
      }
    }

    fragment Entry on LogEntry {
      kind: __typename
      id
      at
      ... on Docking { port }
      ... on Jump { lightYears }
    }
    """,
    rows="ships",
    streams={
        "crew": burler.graphql.Rows("ships.crew", add={"shipId": "id"}),
        "log_entries": burler.graphql.Rows("ships.log", add={"shipId": "id"}),
    },
)

PORTS = burler.graphql.Query(
    "query Ports($offset: Int!, $limit: Int!) { ports(offset: $offset, limit: $limit) { code name } }",
    paging=burler.graphql.Offset("offset", limit="limit"),
    page_size=10,
)


@tap.client
def client(config):
    return burler.http.Client(config["url"], token=config["access_token"])


@tap.sync("ships", key_properties="id", replication_key="updatedAt", order="asc", bookmark_strategy="on_page")
def ships(client, stream, config):
    yield from SHIPS.pages(client, since=stream.bookmark, first=config["page_size"])


tap.stream("crew", emitted_by="ships", key_properties="id")
tap.stream("log_entries", emitted_by="ships", key_properties="id")


@tap.sync("ports", key_properties="code")
def ports(client):
    yield from PORTS.pages(client)


tap.schema("ships", SHIPS.schema())
tap.schema("crew", SHIPS.schema("crew"))
tap.schema("log_entries", SHIPS.schema("log_entries"))
tap.schema("ports", PORTS.schema())
