"""The methods that an endpoint gets: one for each verb, with a signature of its own and a docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burler.http.endpoint_own import OwnSource, own_options
from burler.http.endpoint_paths import PathTemplate
from burler.http.paginators import Paginator
from burler.http.request import Request
from burler.pages import JsonPage
from burler.suggest import did_you_mean

VERBS = ("get", "pages", "rows", "post", "put", "patch", "delete")
KNOWN_VERBS = ("get", "head", "pages", "rows", "post", "put", "patch", "delete")
PAGING = ("pages", "rows")


class _Requests:
    """The package in annotations: it is loaded when somebody resolves them."""

    def __getattr__(self, name: str) -> Any:
        import requests

        return getattr(requests, name)


requests = _Requests()
_IN_ANNOTATIONS = (Collection, Iterator, JsonPage, Mapping, Paginator, Sequence)  # found by whoever resolves them

_PATH_VALUE = "str | int"
_REQUEST_OPTIONS = {
    "params": "Mapping[str, Any] | None",
    "headers": "Mapping[str, Any] | None",
    "json": "Any",
    "data": "Any",
    "retry": "bool | None",
    "timeout_seconds": "float | tuple[float, float] | None",
    "max_response_bytes": "int | None",
    "allow_statuses": "Collection[int]",
}
_PAGE_OPTIONS = {"paginator": "Paginator | None", "records_path": "str | Sequence[str] | None"}
_GIVES = {"pages": "Iterator[JsonPage]", "rows": "Iterator[dict[str, Any]]"}
_SAYS = {
    "params": "of the query; None leaves one out.",
    "headers": "beside the client's.",
    "json": "the body, written as JSON.",
    "data": "the body as bytes, text or the fields of a form.",
    "retry": "whether it may be sent again after no answer.",
    "timeout_seconds": "to connect, and between two bytes.",
    "max_response_bytes": "of the body; more is an error.",
    "allow_statuses": "statuses beside 200 to 299 that are no error.",
    "paginator": "which request follows, in place of the endpoint's.",
    "records_path": "the way to the rows, in place of the endpoint's.",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint as it was declared.

    Attributes:
        name: the second half of its methods' names.
        path: with its places.
        verbs: which methods it gets.
        paginator, records_path: of ``pages`` and ``rows``; None: the client's.
        own_request: requests go through the author's own ``request``.
    """

    name: str
    path: PathTemplate
    verbs: tuple[str, ...]
    paginator: Any = None
    records_path: Any = None
    own_request: Callable[..., Any] | None = None


def make_method(endpoint: Endpoint, verb: str, owner: str, module: str) -> Callable[..., Any]:
    """A method for a class.

    Args:
        owner, module: of the class, for ``help()``.
    """
    name = f"{verb}_{endpoint.name}"
    options = _options_of(endpoint, verb)
    signature = _signature(endpoint, verb, options)
    rest = next((one.name for one in options.values() if one.kind is one.VAR_KEYWORD), "")
    send = _paging(endpoint, verb) if verb in PAGING else _single(endpoint, verb)

    def method(self: Any, *args: Any, **given: Any) -> Any:
        try:
            bound = signature.bind(self, *args, **given)
        except TypeError as error:
            raise TypeError(_misfit(name, endpoint, signature, str(error), given)) from None
        values = {key: value for key, value in bound.arguments.items() if key not in ("self", rest)} | bound.kwargs
        path = endpoint.path.fill({key: values.pop(key) for key in endpoint.path.names}, name)
        return send(self, path, values)

    method.__name__ = name
    method.__qualname__ = f"{owner}.{name}"
    method.__module__ = module
    method.__doc__ = _doc(endpoint, verb, options)
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__annotations__ = {one.name: one.annotation for one in signature.parameters.values() if one.name != "self"}
    method.__annotations__ = {
        key: value for key, value in method.__annotations__.items() if value is not inspect.Parameter.empty
    }
    if signature.return_annotation is not inspect.Signature.empty:
        method.__annotations__["return"] = signature.return_annotation
    return method


def _options_of(endpoint: Endpoint, verb: str) -> dict[str, inspect.Parameter]:
    """The keywords of a method beside the places of its path."""
    if endpoint.own_request is not None and verb not in PAGING:
        return own_options(endpoint.own_request)
    kinds = dict(_REQUEST_OPTIONS)
    if verb == "get":
        kinds = {key: kind for key, kind in kinds.items() if key not in ("json", "data")}
    if verb in PAGING:
        kinds = {"params": kinds["params"], "headers": kinds["headers"], "timeout_seconds": kinds["timeout_seconds"]}
        kinds |= _PAGE_OPTIONS
        if endpoint.own_request is not None:
            kinds.pop("timeout_seconds")
    return {
        key: inspect.Parameter(
            key, inspect.Parameter.KEYWORD_ONLY, default=() if key == "allow_statuses" else None, annotation=kind
        )
        for key, kind in kinds.items()
    }


def _signature(endpoint: Endpoint, verb: str, options: dict[str, inspect.Parameter]) -> inspect.Signature:
    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    places = [inspect.Parameter(name, both, annotation=_PATH_VALUE) for name in endpoint.path.names]
    if endpoint.own_request is not None and verb not in PAGING:
        gives: Any = inspect.signature(endpoint.own_request).return_annotation
    else:
        gives = _GIVES.get(verb, "requests.Response")
    return inspect.Signature([inspect.Parameter("self", both), *places, *options.values()], return_annotation=gives)


def _single(endpoint: Endpoint, verb: str) -> Callable[[Any, str, dict[str, Any]], Any]:
    def send(self: Any, path: str, values: dict[str, Any]) -> Any:
        if endpoint.own_request is None:
            return self.request(verb.upper(), path, endpoint=endpoint.path.text, **values)
        return OwnSource(self, endpoint.path.text).call(verb.upper(), path, values)

    return send


def _paging(endpoint: Endpoint, verb: str) -> Callable[[Any, str, dict[str, Any]], Any]:
    def send(self: Any, path: str, values: dict[str, Any]) -> Any:
        from burler.http import paging

        paginator = values.pop("paginator", None) or endpoint.paginator
        records_path = values.pop("records_path", None)
        records_path = endpoint.records_path if records_path is None else records_path
        source = self if endpoint.own_request is None else OwnSource(self, endpoint.path.text)
        request = Request("GET", path, endpoint=endpoint.path.text, **values)
        read = paging.pages if verb == "pages" else paging.rows
        return read(source, request, paginator=paginator, records_path=records_path)

    return send


def _misfit(name: str, endpoint: Endpoint, signature: inspect.Signature, fact: str, given: Mapping[str, Any]) -> str:
    """What is wrong with a call, with the names there are."""
    known = [one for one in signature.parameters if one != "self"]
    places = ", ".join(f"'{one}'" for one in endpoint.path.names) or "no value"
    hint = ""
    unknown = next((one for one in given if one not in known), None)
    if unknown is not None and f"'{unknown}'" not in fact:
        fact = f"{fact}, and there is no '{unknown}'"
    if unknown is not None:
        hint = did_you_mean(unknown, known)
    return f"{name}(): {fact}.{hint} The path {endpoint.path.text} takes {places}; the method takes {', '.join(known)}."


def _doc(endpoint: Endpoint, verb: str, options: dict[str, inspect.Parameter]) -> str:
    what = {
        "pages": f"The pages of ``GET {endpoint.path.text}``, as bytes, for a sync function to yield.",
        "rows": f"The rows of ``GET {endpoint.path.text}`` as dicts, page after page.",
    }.get(verb, f"``{verb.upper()} {endpoint.path.text}``")
    lines = [what, "", "Args:"]
    lines += [f"    {name}: goes into the path, escaped." for name in endpoint.path.names]
    lines += [f"    {name}: {_SAYS[name]}" for name in options if name in _SAYS]
    if lines[-1] == "Args:":
        del lines[-2:]
    if endpoint.own_request is None:
        lines += ["", "Raises:", "    burler.errors.HttpError: no answer, or one that is an error."]
    return "\n".join(lines) + "\n"
