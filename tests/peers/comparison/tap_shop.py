import burler
from burler.http import Cursor

tap = burler.tap("tap-shop", config_spec=["url"])
ORDER = {
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "total": {"type": "number"},
        "updated_at": {"type": "string", "format": "date-time"},
    }
}


@tap.client
def client(config):
    return burler.http.Client(config["url"], records_path="data")


@tap.sync("orders", key_properties="id", replication_key="updated_at", bookmark_strategy="on_page", schema=ORDER)
def orders(client, stream):
    yield from client.pages("/orders", params={"since": stream.bookmark}, paginator=Cursor("next_page", param="page"))
