"""Cursors: the reply names what the next request must carry."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.errors import PagingError
from burler.http.misspelt import options_named
from burler.http.paginator_parts import Into, allowing, check_into, check_path, check_several, dotted, ended, put, shown

if TYPE_CHECKING:
    from burler.http.reply import Reply
    from burler.http.request import Request


@options_named
@dataclass(frozen=True, slots=True)
class Cursor:
    """The reply names a cursor, and the next request carries it: ``Cursor("meta.next_cursor", param="cursor")``.

    null, "", false or nothing in the cursor's place is the end; 0 is a cursor.

    Attributes:
        path: where it stands: ``meta.next``, ``data.-1.id`` (of the last row), ``header:X-Next-Page``.
        param: what the source calls it: a query parameter, or a path in the body (``page.cursor``).
        into: "params", "json" for the body of a POST, "headers".
        more: where true or false says whether there is a next page. Without it, and in a reply that does not say so,
            the cursor alone decides.
        end_values: further values that are no cursor, such as 0 or -1.
        end_statuses: statuses of a page behind the last one, such as 404.
    """

    path: str | tuple[str, ...]
    param: str = "cursor"
    into: Into = "params"
    more: str | tuple[str, ...] | None = None
    end_values: Collection[Any] = ()
    end_statuses: Collection[int] = ()

    def __post_init__(self) -> None:
        check_path(self.path, "Cursor")
        if self.more is not None:
            check_path(self.more, "Cursor")
        check_into(self.param, self.into, "Cursor")
        check_several("Cursor", end_values=self.end_values, end_statuses=self.end_statuses)

    def first(self, request: Request) -> Request:
        """The request as it is: without a cursor."""
        return request

    def following(self, request: Request, reply: Reply) -> Request | None:
        """The request with the reply's cursor.

        Raises:
            PagingError: more pages and no cursor; something that is no cursor.
        """
        if ended(reply, self.end_statuses):
            return None
        cursor = reply.find(self.path)
        is_cursor = not (cursor is None or cursor is False or cursor == "" or cursor in list(self.end_values))
        more = None if self.more is None else _truth(reply.find(self.more), self.more)
        if more and not is_cursor:
            raise PagingError(
                f"'{dotted(self.more or ())}' says that there is a next page, and '{dotted(self.path)}' names no "
                f"cursor: {shown(cursor)}."
            )
        if more is False or not is_cursor:
            return None
        if cursor is True or (isinstance(cursor, dict | list) and self.into != "json"):
            raise PagingError(f"'{dotted(self.path)}' should be text or a number; the reply has {shown(cursor)} there.")
        return put(allowing(request, self.end_statuses), self.param, cursor, self.into)


def _truth(value: Any, path: str | tuple[str, ...]) -> bool | None:
    """Whether there are more pages; None where the reply does not say so."""
    if isinstance(value, str) and value.lower() in ("true", "false", "0", "1"):
        return value.lower() in ("true", "1")
    if value is None or value == "":
        return None
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise PagingError(f"'{dotted(path)}' should be true or false; the reply has {shown(value)} there.")
