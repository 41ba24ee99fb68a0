"""The shipyard's types, as its GraphQL server describes them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Generic, NewType, TypeVar

import strawberry
from graphql import GraphQLError
from strawberry.schema.config import StrawberryConfig

from . import data

T = TypeVar("T")
MOST_ROWS = 100

ShipClass = strawberry.enum(Enum("ShipClass", {name: name for name in data.CLASSES}))
BigInt = NewType("BigInt", int)


@strawberry.type
class PageInfo:
    has_next_page: bool
    end_cursor: str | None


@strawberry.type
class Edge(Generic[T]):
    cursor: str
    node: T | None


@strawberry.type
class Connection(Generic[T]):
    edges: list[Edge[T]]
    page_info: PageInfo
    total_count: int

    @strawberry.field
    def nodes(self) -> list[T | None]:
        return [edge.node for edge in self.edges]


@strawberry.interface
class Node:
    id: strawberry.ID


@strawberry.type
class CrewMember(Node):
    name: str
    rank: str
    joined: date


@strawberry.interface
class LogEntry(Node):
    at: datetime


@strawberry.type
class Docking(LogEntry):
    port: str


@strawberry.type
class Jump(LogEntry):
    light_years: Decimal


@strawberry.type
class Ship(Node):
    name: str
    ship_class: ShipClass
    updated_at: datetime
    odometer: BigInt
    row: strawberry.Private[data.Ship]

    @strawberry.field
    def mass_tons(self, info: strawberry.Info) -> Decimal | None:
        if self.row.id in info.context["broken"]:
            raise GraphQLError("the scales are broken", extensions={"code": "SCALES"})
        return self.row.mass_tons

    @strawberry.field
    def crew(self, first: int = 5, after: str | None = None) -> Connection[CrewMember]:
        return connection(self.row.crew, member_node, lambda one: one.id, first, after)

    @strawberry.field
    def log(self) -> list[LogEntry]:
        return [entry_node(one) for one in self.row.log]


@strawberry.type
class Port:
    code: str
    name: str


@strawberry.type
class Query:
    @strawberry.field
    def ships(
        self, info: strawberry.Info, first: int = 20, after: str | None = None, updated_since: datetime | None = None
    ) -> Connection[Ship]:
        ships = info.context["data"].ships(updated_since)
        return connection(ships, ship_node, lambda one: f"{one.updated_at.isoformat()} {one.id}", first, after)

    @strawberry.field
    def node(self, info: strawberry.Info, id: strawberry.ID) -> Node | None:
        for ship in info.context["data"].ships():
            if ship.id == id:
                return ship_node(ship)
        return None

    @strawberry.field
    def ports(self, info: strawberry.Info, offset: int = 0, limit: int = 10) -> list[Port]:
        return [Port(**row) for row in info.context["data"].ports[offset : offset + min(limit, MOST_ROWS)]]


def ship_node(row: data.Ship) -> Ship:
    """A ship as the server shows it."""
    return Ship(
        id=strawberry.ID(row.id),
        name=row.name,
        ship_class=ShipClass[row.kind],
        updated_at=row.updated_at,
        odometer=row.odometer,
        row=row,
    )


def member_node(row: data.Member) -> CrewMember:
    """One of a crew as the server shows it."""
    return CrewMember(id=strawberry.ID(row.id), name=row.name, rank=row.rank, joined=row.joined)


def entry_node(row: data.Entry) -> LogEntry:
    """A line of the log as the server shows it."""
    if row.port is not None:
        return Docking(id=strawberry.ID(row.id), at=row.at, port=row.port)
    return Jump(id=strawberry.ID(row.id), at=row.at, light_years=row.light_years)


def connection(
    rows: Sequence[Any], node: Callable[[Any], Any], key: Callable[[Any], str], first: int, after: str | None
) -> Any:
    """A page of rows that are in order, behind a cursor."""
    if not 0 < first <= MOST_ROWS:
        raise GraphQLError(f"first is 1 to {MOST_ROWS}", extensions={"code": "BAD_USER_INPUT"})
    begin = 0
    if after is not None:
        keys = [key(row) for row in rows]
        at = base64.b64decode(after).decode()
        begin = keys.index(at) + 1 if at in keys else sum(one <= at for one in keys)
    page = rows[begin : begin + first]
    edges = [Edge(cursor=base64.b64encode(key(row).encode()).decode(), node=node(row)) for row in page]
    info = PageInfo(has_next_page=begin + first < len(rows), end_cursor=edges[-1].cursor if edges else None)
    return Connection(edges=edges, page_info=info, total_count=len(rows))


class _Schema(strawberry.Schema):
    def process_errors(self, errors: Any, execution_context: Any = None) -> None:
        """Say nothing: who asks gets to know."""


schema = _Schema(
    Query,
    types=[Ship, CrewMember, Docking, Jump],
    config=StrawberryConfig(scalar_map={BigInt: strawberry.scalar(name="BigInt", serialize=str, parse_value=int)}),
)
