"""Reading GraphQL: queries whose pages burler follows, and schemas from what the server says of itself.

What to open for what:

    query                       what authors write: the text, where its rows are, and options; its schemas
    document                    a text becomes one operation without fragments; parts of it are exchanged
    connections, spots          where the rows, the connections and the streams of an operation are
    plan, adding, pruning       an operation ready to be sent; what the pager adds; fields that nobody selected go
    rewriting                   the walk over an operation that the three share
    paging, sizes               which variables ask for the next page, and for how many rows
    asking, replies             one request; its errors; waits, and pages that are too much for the server
    raw, unwrapping, reading    rows of a reply as bytes; as dicts out of connections; page after page
    introspection, json_schema, scalars    a stream's JSON Schema
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.graphql.paging import Cursor, Offset, PageNumber
    from burler.graphql.query import Query, schema, schemas
    from burler.graphql.scalars import SCALARS
    from burler.graphql.spots import Rows

__all__ = ["SCALARS", "Cursor", "Offset", "PageNumber", "Query", "Rows", "schema", "schemas"]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "SCALARS": "scalars",
            "Cursor": "paging",
            "Offset": "paging",
            "PageNumber": "paging",
            "Query": "query",
            "Rows": "spots",
            "schema": "query",
            "schemas": "query",
        },
    )
