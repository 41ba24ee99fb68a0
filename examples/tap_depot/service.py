"""The SOAP service: spyne makes the WSDL of these classes, and the envelopes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from typing import Any

from data import Depot, Row
from spyne import (
    Application,
    Array,
    Boolean,
    ComplexModel,
    Date,
    DateTime,
    Decimal,
    Enum,
    Fault,
    Integer,
    ServiceBase,
    Unicode,
    rpc,
)  # fmt: skip
from spyne.protocol.soap import Soap11
from spyne.server.wsgi import WsgiApplication

PAGE = 50
NAMESPACE = "urn:depot"
_UTC = datetime.timezone.utc  # noqa: UP017
_THERE: dict[str, Any] = {"min_occurs": 1, "nillable": False}
_PAGE = Integer(ge=1, **_THERE)


class Entry(ComplexModel):
    """What orders and products share."""

    __namespace__ = NAMESPACE
    _type_info = [("Number", Integer(ge=1, **_THERE)), ("Changed", DateTime(timezone=_UTC, **_THERE))]  # noqa: RUF012


class Line(ComplexModel):
    __namespace__ = NAMESPACE
    _type_info = [  # noqa: RUF012 spyne wants fields in order
        ("Product", Integer(**_THERE)),
        ("Count", Integer(ge=1, **_THERE)),
        ("Price", Decimal(12, 2, **_THERE)),
    ]


class Order(Entry):
    __namespace__ = NAMESPACE
    _type_info = [  # noqa: RUF012
        ("Customer", Unicode(**_THERE)),
        ("Status", Enum("new", "paid", "shipped", type_name="Status")(**_THERE)),
        ("Ordered", Date(**_THERE)),
        ("Shipped", DateTime(timezone=_UTC, min_occurs=0, nillable=True)),
        ("Express", Boolean(**_THERE)),
        ("Total", Decimal(12, 2, **_THERE)),
        ("Lines", Array(Line)),
        ("Note", Unicode(min_occurs=0, nillable=True)),
    ]


class Product(Entry):
    __namespace__ = NAMESPACE
    _type_info = [  # noqa: RUF012
        ("Name", Unicode(**_THERE)),
        ("Price", Decimal(12, 2, **_THERE)),
        ("Weight", Decimal(min_occurs=0)),
        ("Kind", Enum("book", "tool", "toy", type_name="Kind")(**_THERE)),
        ("Tags", Array(Unicode)),
        ("Discontinued", Date(min_occurs=0, nillable=True)),
    ]


class Stock(ComplexModel):
    __namespace__ = NAMESPACE
    _type_info = [("Product", Integer(**_THERE)), ("Count", Integer(ge=0, **_THERE))]  # noqa: RUF012


class OrderPage(ComplexModel):
    __namespace__ = NAMESPACE
    _type_info = [("Rows", Array(Order)), ("NextPage", Integer(min_occurs=0, nillable=True))]  # noqa: RUF012


class ProductPage(ComplexModel):
    __namespace__ = NAMESPACE
    _type_info = [("Rows", Array(Product)), ("NextPage", Integer(min_occurs=0, nillable=True))]  # noqa: RUF012


class StockPage(ComplexModel):
    __namespace__ = NAMESPACE
    _type_info = [("Rows", Array(Stock)), ("NextPage", Integer(min_occurs=0, nillable=True))]  # noqa: RUF012


def application(depot: Depot, *, stock_fails: bool) -> Callable[..., Iterable[bytes]]:
    """The service as a WSGI application.

    Args:
        stock_fails: ListStock answers its second page with a fault.
    """

    class Service(ServiceBase):
        @rpc(DateTime(timezone=_UTC, min_occurs=0), _PAGE, _returns=OrderPage)
        def ListOrders(ctx, Since, Page):
            rows = [{**row, "Lines": [Line(**line) for line in row["Lines"]]} for row in depot.orders(Since)]
            return _page(OrderPage, Order, rows, Page)

        @rpc(_PAGE, _returns=ProductPage)
        def ListProducts(ctx, Page):
            return _page(ProductPage, Product, depot.products, Page)

        @rpc(_PAGE, _returns=StockPage)
        def ListStock(ctx, Page):
            if stock_fails and Page == 2:
                raise Fault("Server.Counting", "the shelves are being counted, ask again tomorrow")
            return _page(StockPage, Stock, depot.stock(), Page)

    soap = Application([Service], NAMESPACE, name="Depot", in_protocol=Soap11(validator="lxml"), out_protocol=Soap11())
    answer: Callable[..., Iterable[bytes]] = WsgiApplication(soap)
    return answer


def _page(kind: Any, of: Any, rows: list[Row], page: int) -> Any:
    first = (page - 1) * PAGE
    after = page + 1 if first + PAGE < len(rows) else None
    return kind(Rows=[of(**row) for row in rows[first : first + PAGE]], NextPage=after)
