"""Rows as the server sent them: bytes of a reply, cut out of ``data``, never read into dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from burler.graphql.connections import Connection
from burler.graphql.plan import Plan
from burler.graphql.spots import Path, Spot

if TYPE_CHECKING:
    from burler.pages import JsonPage


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What a connection says of the page after this one. ``absent``: null stands in place of its rows."""

    more: bool | None
    cursor: Any
    rows: int
    absent: bool = False

    @property
    def silent(self) -> bool:
        """Whether there are rows, and no word on whether there are more."""
        return self.more is None and self.rows > 0


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one stream in one reply: bytes of a JSON array. ``missing``: null stands where they should."""

    stream: str | None
    data: bytes
    rows: int
    nulls: int
    missing: bool = False

    def page(self) -> JsonPage:
        """A page that may be yielded."""
        from burler.pages import JsonPage

        return JsonPage(self.data, ())


class _Nothing(msgspec.Struct):
    """An object of which nothing is wanted."""


def decoder_of(plan: Plan) -> Callable[[bytes], Any]:
    """What reads a reply to a plan of which ``plain`` is true.

    Its result has ``data``, ``errors`` and ``extensions``. Rows are ``msgspec.Raw``.
    """
    made = plan.once("decoder", lambda: _decoder_of(plan))
    return made  # type: ignore[no-any-return]


def _decoder_of(plan: Plan) -> Callable[[bytes], Any]:
    wanted = {one.path for one in plan.streams}
    envelope = msgspec.defstruct(
        "Reply",
        [
            ("data", _object(plan.root, wanted) | None, None),
            ("errors", Any, None),
            ("extensions", Any, None),
        ],
    )
    return msgspec.json.Decoder(envelope).decode


def _object(spot: Spot, wanted: set[Path]) -> Any:
    """The type of an object; one that lacks a field that is sure to be there is refused, and read whole."""
    fields: list[Any] = []
    names: dict[str, str] = {}
    for number, (key, child) in enumerate(spot.children.items()):
        if not any(path[: len(child.path)] == child.path for path in wanted):
            continue
        name = f"f{number}"
        names[name] = key
        default: Any = None
        if child.path not in wanted:
            kind = _object(child, wanted) | None
        elif child.connection is None:
            kind, default = msgspec.Raw, msgspec.Raw(b"null")
        else:
            kind = _connection(child.connection) | None
        fields.append((name, kind) if key in spot.sure else (name, kind, default))
    fields.sort(key=len)
    return msgspec.defstruct("Object", fields, rename=names) if fields else _Nothing


def _connection(connection: Connection) -> Any:
    row: Any = msgspec.Raw
    if connection.node_key is not None:
        edge = msgspec.defstruct(
            "Edge", [("node", msgspec.Raw, msgspec.Raw(b"null"))], rename={"node": connection.node_key}
        )
        row = edge | None
    fields: list[Any] = [("rows", list[row] | None)]
    names = {"rows": connection.rows_key}
    if connection.info_key:
        info = msgspec.defstruct(
            "Info",
            [("more", bool | None, None), ("cursor", str | int | None, None)],
            rename={"more": connection.more_key or "\0", "cursor": connection.cursor_key or "\1"},
        )
        fields.append(("info", info | None, None))
        names["info"] = connection.info_key
    return msgspec.defstruct("Connection", fields, rename=names)


def found_in(plan: Plan, data: Any) -> tuple[list[Found], dict[Path, PageInfo | None]]:
    """The rows of each stream in what ``decoder_of`` read, and what outer connections say of the next page (None: the
    connection is null)."""
    found: list[Found] = []
    infos: dict[Path, PageInfo | None] = {}
    wanted = {one.path: one.name for one in plan.streams}
    for spot, value in _walk(plan.root, data):
        if spot.path not in wanted:
            continue
        if spot.connection is None:
            found.append(_listed(wanted[spot.path], bytes(value)))
            continue
        info = getattr(value, "info", None)
        rows = (value.rows if value is not None else None) or []
        said = (info.more, info.cursor) if info else (None, None)
        absent = value is None or value.rows is None
        infos[spot.path] = None if value is None else PageInfo(said[0], said[1], len(rows), absent)
        if spot.connection.node_key is not None:
            rows = [b"null" if one is None else one.node for one in rows]
        kept = [one for one in rows if len(one) != 4 or bytes(one) != b"null"]
        data_bytes = b"[" + b",".join(kept) + b"]"
        found.append(Found(wanted[spot.path], data_bytes, len(kept), len(rows) - len(kept), absent))
    return found, infos


def _walk(spot: Spot, value: Any) -> Iterator[tuple[Spot, Any]]:
    for number, child in enumerate(spot.children.values()):
        inner = getattr(value, f"f{number}", msgspec.UNSET)
        if inner is msgspec.UNSET:
            continue
        yield child, inner
        if inner is not None and not isinstance(inner, msgspec.Raw) and child.emitted is None:
            yield from _walk(child, inner)


_list = msgspec.json.Decoder(list[msgspec.Raw])


def _listed(stream: str | None, data: bytes) -> Found:
    """Rows that stand in no connection: a list, or one object."""
    data = data.strip()
    if data == b"null":
        return Found(stream, b"[]", 0, 0, True)
    if data[:1] != b"[":
        return Found(stream, b"[" + data + b"]", 1, 0)
    rows = _list.decode(data)
    kept = [one for one in rows if len(one) != 4 or bytes(one) != b"null"]
    if len(kept) == len(rows):
        return Found(stream, data, len(rows), 0)
    return Found(stream, b"[" + b",".join(kept) + b"]", len(kept), len(rows) - len(kept))


def find(content: bytes, path: str) -> Any:
    """What stands at a path under ``data`` of a reply; None where nothing does. The rest of it is passed over."""
    current: Any = msgspec.Raw(content)
    for name in ("data", *path.split(".")):
        try:
            holder = msgspec.json.decode(current, type=dict[str, msgspec.Raw] | None)
        except msgspec.DecodeError:
            return None
        if not isinstance(holder, Mapping) or name not in holder:
            return None
        current = holder[name]
    return msgspec.json.decode(current)
