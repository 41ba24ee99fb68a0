"""Pieces that paginators are made of: where a value goes in a request, and checks of what the author wrote."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from burler.config.secrets import mask
from burler.errors import PagingError
from burler.http.masking import mask_url
from burler.paths import path_of

if TYPE_CHECKING:
    from burler.http.reply import Reply
    from burler.http.request import Request

Into = Literal["params", "json", "headers"]

_GLIMPSE = 100


def put(request: Request, param: str, value: Any, into: Into) -> Request:
    """The request with a value in its params or headers, or at a path of its JSON body; the given one stays as it is.

    Raises:
        PagingError: the body is no object there.
    """
    if into == "params":
        return request.replace(params={**(request.params or {}), param: value})
    if into == "headers":
        return request.replace(headers={**(request.headers or {}), param: str(value)})
    return request.replace(json=_with(request.json, path_of(param), value, param))


def _with(body: Any, path: tuple[str, ...], value: Any, param: str) -> Any:
    if not path:
        return value
    if body is not None and not isinstance(body, Mapping):
        raise PagingError(f"the request's JSON body has no object where '{param}' should go, but {shown(body)}.")
    return {**(body or {}), path[0]: _with((body or {}).get(path[0]), path[1:], value, param)}


def allowing(request: Request, statuses: Collection[int]) -> Request:
    """The request with further statuses that are no error: a page behind the last one may have them."""
    if not statuses:
        return request
    return request.replace(allow_statuses=tuple({*request.allow_statuses, *statuses}))


def ended(reply: Reply, statuses: Collection[int]) -> bool:
    """Whether the status of a reply says that there is no such page."""
    return reply.response.status_code in statuses


def check_path(path: Any, who: str) -> None:
    """Raise ValueError for a path that can't be one."""
    try:
        found = path_of(path)
    except ValueError:
        found = ()
    if not found:
        raise ValueError(f"{who}: {path!r:.60} is no place in a reply. Write 'meta.next', or 'header:X-Next'.")


def check_into(param: Any, into: Any, who: str) -> None:
    """Raise ValueError for a parameter or a target that there is not."""
    if into not in ("params", "json", "headers"):
        raise ValueError(f"{who}: into={into!r:.60} must be 'params', 'json' or 'headers'.")
    if not isinstance(param, str) or not param:
        raise ValueError(f"{who}: param={param!r:.60} must be the name that the source has for it.")


def check_several(who: str, **given: Any) -> None:
    """Raise ValueError for one value where a list of them belongs."""
    for name, values in given.items():
        if isinstance(values, str | bytes) or not isinstance(values, Collection):
            raise ValueError(f"{who}: {name}={values!r:.60} must be a list: {name}=[{values!r:.60}].")


def dotted(path: str | tuple[str, ...]) -> str:
    """A path as people write it."""
    return path if isinstance(path, str) else ".".join(path)


def shown(value: Any) -> str:
    """A value as messages show it; secrets are masked where names tell them: it may be a URL, or hold one."""
    value = mask(value)
    if isinstance(value, str) and ("//" in value or "?" in value):
        value = mask_url(value)
    return f"{value!r:.{_GLIMPSE}}"


def where_it_begins(request: Request, param: str, into: Into, default: int, who: str) -> int:
    """The number that the author's own request carries, or ``default``.

    Raises:
        PagingError: what it carries is no whole number.
    """
    given = _carried(request, param, into)
    if given is None:
        return default
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, str) and re.fullmatch(r"\d{1,18}", given):
        return int(given)
    raise PagingError(f"{who}: the request's '{param}' is {shown(given)}; it must be a whole number.")


def _carried(request: Request, param: str, into: Into) -> Any:
    if into != "json":
        return ((request.params if into == "params" else request.headers) or {}).get(param)
    body = request.json
    for name in path_of(param):
        body = body.get(name) if isinstance(body, Mapping) else None
    return body


def total_of(reply: Reply, path: str | tuple[str, ...] | None) -> int | None:
    """A total that the reply names, as a number or as digits; None if it names none.

    Raises:
        PagingError: something else stands there.
    """
    found = None if path is None else reply.find(path)
    if found is None or found == "":
        return None
    if isinstance(found, str) and re.fullmatch(r"\d{1,18}", found):
        return int(found)
    if isinstance(found, int | Decimal) and not isinstance(found, bool) and found >= 0 and found == int(found):
        return int(found)
    raise PagingError(f"'{dotted(path or ())}' should be a total; the reply has {shown(found)} there.")


def count_of(reply: Reply, who: str) -> int:
    """How many rows a reply has.

    Raises:
        PagingError: they can't be counted, since nothing says where they are.
    """
    try:
        return reply.rows_found()
    except ValueError:
        where = f"at '{dotted(reply.records_path)}'" if reply.records_path else "in the body"
        raise PagingError(
            f'{who} counts rows, and there is no list of rows {where}. Say records_path="..." for the call, the '
            "client or the stream: names with dots between them that lead to it."
        ) from None
