"""tap-depot: a SOAP service's rows, by its own WSDL (`server.py` beside this)."""

import burler
import burler.http
import burler.soap

tap = burler.tap(
    "tap-depot",
    config_spec={
        "type": "object",
        "required": ["base_url"],
        "properties": {
            "base_url": {"type": "string", "description": "Where the service is, as http://127.0.0.1:8767."},
            "retries": {"type": "integer", "minimum": 0, "default": 5, "description": "Of a call without an answer."},
        },
    },
    version="1.0.0",
    description="Orders, products and stock of a depot, over SOAP.",
)


def wsdl_address(config):
    return config["base_url"] + "/?wsdl"


@tap.client
def client(config):
    # These operations only read, so each may be sent again when no answer comes.
    http = burler.http.Client(config["base_url"], retries=config["retries"])
    return burler.soap.Client(wsdl_address(config), http=http, safe=["ListOrders", "ListProducts", "ListStock"])


# What a row holds, the WSDL says: each list's rows lie in ``Rows`` of its result.
for stream, operation in (("orders", "ListOrders"), ("products", "ListProducts"), ("stock", "ListStock")):
    rows = f"{operation}Result.Rows"
    tap.schema(stream, burler.wsdl(url=wsdl_address, operation=operation, rows=rows))


def pages(client, operation):
    """An operation's pages: each answer says which is next."""
    result = f"{operation}Result"
    return client.pages(operation, rows=f"{result}.Rows", page_param="Page", next_page=f"{result}.NextPage")


# Orders come by the time of their last change. One that changes while they are read moves to the end, and all behind it
# move up, so that a numbered page would miss one: each call asks for what changed since the last row instead. That row
# comes again then, and is left out.
@tap.sync("orders", key_properties="Number", replication_key="Changed", order="asc", bookmark_strategy="every_n(100)")
def orders(client, stream):
    def following(answer, params):
        result = answer["ListOrdersResult"]
        return {"Since": result["Rows"][-1]["Changed"], "Page": 1} if result["NextPage"] else None

    last = None
    first = {"Since": stream.bookmark, "Page": 1}
    for page in client.pages("ListOrders", first, rows="ListOrdersResult.Rows", following=following):
        yield [row for row in page if (row["Number"], row["Changed"]) != last]
        last = page[-1]["Number"], page[-1]["Changed"]


@tap.sync("products", key_properties="Number")
def products(client):
    return pages(client, "ListProducts")


@tap.sync("stock", key_properties="Product")
def stock(client):
    return pages(client, "ListStock")
