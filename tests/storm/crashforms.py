"""The forms in which an author may give rows: dicts, lists, bytes, iterators, named for their stream, emitted."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from storm.crashworld import Line, Row


def native(rng: random.Random, row: Row, line: Line) -> dict[str, Any]:
    """A row as a client might give it: with Python's own types."""
    data = dict(row.data)
    if "key" in data and rng.random() < 0.5:
        if line.kind == "date-time":
            data["key"] = dt.datetime.fromisoformat(data["key"]).astimezone(dt.timezone(dt.timedelta(hours=2)))
        elif line.kind == "date":
            data["key"] = dt.date.fromisoformat(data["key"])
        elif line.kind == "number":
            data["key"] = Decimal(data["key"])
    return data


def in_form(stream: Any, rng: random.Random, lot: list[Row], line: Line) -> Iterator[Any]:
    """Rows of one stream as the author gives them."""
    if not lot:
        return
    own, name = lot[0].stream == stream.name, lot[0].stream
    form = rng.choice(line.forms)
    rows = [native(rng, row, line) for row in lot] if "json" not in form else [row.data for row in lot]
    if form == "emit":
        if rng.random() < 0.5:
            stream.emit_records(rows, **({} if own else {"stream": name}))
        else:
            for row in rows:
                stream.emit_record(row, **({} if own else {"stream": name}))
        return
    page: Any = rows
    if form == "json":
        page = json.dumps(rows).encode()
    elif form == "json lines":
        page = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    elif form == "iterator" and line.page_first and name == line.name:
        page = iter(rows)
    if form in ("row", "named"):
        yield from ((row if own and form == "row" else (name, row)) for row in rows)
    else:
        yield page if own else (name, page)
