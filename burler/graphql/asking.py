"""One request to a GraphQL server: what is sent, which errors are waited out, and what becomes of the others."""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from burler.config.secrets import hide, masked
from burler.context import running
from burler.errors import GraphQLError, HttpError
from burler.graphql.replies import codes_of, errors_of, first_line, glimpse, has_code, read_whole, told, wait_seconds
from burler.http.failed import of_status
from burler.http.masking import secrets_in

if TYPE_CHECKING:
    import requests

    from burler.http.client import Client

logger = logging.getLogger("burler")

_ACCEPT = "application/graphql-response+json, application/json;q=0.9"
_SAID_IN_BODY = (400, 422)  # statuses with which servers send errors of the query itself
_TOO_MUCH_STATUSES = (502, 504)  # a gateway that gave up waiting
_NOT_STORED = frozenset({"PERSISTED_QUERY_NOT_FOUND", "PERSISTED_QUERY_NOT_SUPPORTED"})
_encoder = msgspec.json.Encoder(decimal_format="number")


class Part(Protocol):
    """A reply as far as it was read."""

    data: Any
    errors: Any
    extensions: Any


Decode = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class How:
    """How a query is sent and judged; see ``Query``."""

    where: str
    endpoint: str
    method: str
    persisted: bool
    on_error: str
    retry_codes: frozenset[str]
    too_complex_codes: frozenset[str]


class TooComplex(Exception):
    """The server does not answer so much at once."""


class Throttled(ValueError):
    """The server asks to wait. ``burler.http`` reads the two attributes."""

    def __init__(self, message: str, seconds: float | None) -> None:
        super().__init__(message)
        self.reason = "throttled"
        self.retry_after_seconds = seconds


class Asker:
    """Sends one query after the other with a client.

    Args:
        client: a ``burler.http.Client``.
    """

    def __init__(self, client: Client, how: How) -> None:
        if not callable(getattr(client, "request", None)):
            raise GraphQLError(
                f"{how.where}: it is sent with a burler.http.Client, not with {type(client).__name__}. "
                "Give the client of the tap: query.pages(client)."
            )
        self._client = client
        self.how = how

    def ask(self, text: str, name: str, variables: Mapping[str, Any], decode: Decode) -> Any:
        """The reply to a query, read by ``decode``. Its errors have been judged.

        Raises:
            GraphQLError: the reply has errors, after waiting out those that pass.
            TooComplex: the query is too much for the server.
            HttpError: there is no reply, or none in JSON.
        """
        reply = self._try(text, name, variables, decode)
        errors = errors_of(reply.errors)
        if not errors:
            return reply
        if has_code(errors, self.how.too_complex_codes):
            raise TooComplex(told(errors, text))
        if reply.data is None or self.how.on_error == "fail":
            raise GraphQLError(self._failed(errors, text, partial=reply.data is not None), errors)
        self._warn(errors)
        return reply

    def _try(self, text: str, name: str, variables: Mapping[str, Any], decode: Decode) -> Any:
        if self.how.persisted:
            reply = self._send(text, name, variables, decode, stored=True)
            if not has_code(errors_of(reply.errors), _NOT_STORED, text="persistedquerynotfound"):
                return reply
        return self._send(text, name, variables, decode, stored=False)

    def _send(self, text: str, name: str, variables: Mapping[str, Any], decode: Decode, *, stored: bool) -> Any:
        held: list[Any] = []
        throttled: list[list[dict[str, Any]]] = []

        def check(response: requests.Response) -> None:
            held.clear()
            throttled.clear()
            refused = response.status_code in _SAID_IN_BODY
            try:
                reply = _read(response.content, decode)
            except ValueError:
                if refused:
                    return  # a refusal that is none of GraphQL
                raise
            errors = errors_of(reply.errors)
            if has_code(errors, self.how.retry_codes, text="throttled"):
                throttled.append(errors)
                raise Throttled(f"the server throttles: {told(errors)}", wait_seconds(reply.extensions, errors))
            if reply.data is None and not errors and not refused:
                raise ValueError(f"neither data nor errors{glimpse(response.content)}")
            if errors or not refused:
                held.append(reply)

        try:
            response = self._request(text, name, variables, check, stored=stored)
        except HttpError as error:
            if throttled:
                raise GraphQLError(
                    f"{self.how.where}: {first_line(error)}.\n"
                    "Ask less often: requests_per_second= of the client, or a smaller page_size.",
                    throttled[0],
                ) from None
            if self.how.method == "GET":
                _shorten(error)
            if error.status in _TOO_MUCH_STATUSES:
                raise TooComplex(first_line(error)) from error
            raise
        if not held:
            raise of_status(response, ()).error(1)
        return held[0]

    def _request(
        self, text: str, name: str, variables: Mapping[str, Any], check: Callable[[Any], None], *, stored: bool
    ) -> requests.Response:
        given = {key: _plain(value) for key, value in variables.items()}
        parts: dict[str, Any] = {} if stored else {"query": text}
        if given:
            parts["variables"] = given
        if name:
            parts["operationName"] = name
        if self.how.persisted:
            digest = hashlib.sha256(text.encode()).hexdigest()
            parts["extensions"] = {"persistedQuery": {"version": 1, "sha256Hash": digest}}
        more: dict[str, Any] = {"headers": {"Accept": _ACCEPT}}
        if self.how.method == "GET":
            more["params"] = {key: _text(value) for key, value in parts.items()}
        else:
            more["headers"]["Content-Type"] = "application/json"
            more["data"] = _encoder.encode(parts)
        return self._client.request(
            self.how.method,
            self.how.endpoint,
            endpoint=f"graphql {name}".strip(),
            retry=True,  # a query changes nothing
            allow_statuses=_SAID_IN_BODY,
            check=check,
            **more,
        )

    def _failed(self, errors: list[dict[str, Any]], text: str, *, partial: bool) -> str:
        cure = ""
        codes = {code for error in errors for code in codes_of(error)}
        if partial:
            cure = "\nRows came along with it. If they are good without these fields: on_error='warn'."
        elif codes & {"UNAUTHENTICATED", "FORBIDDEN", "UNAUTHORIZED", "ACCESS_DENIED"}:
            cure = "\nLook whether the credentials are right, and may read this."
        return f"{self.how.where}: {told(errors, text)}.{cure}"

    def _warn(self, errors: list[dict[str, Any]]) -> None:
        run = running()
        for error in errors:
            if run is not None:
                run.tally.add("graphql_errors", ", ".join(sorted(codes_of(error))) or "without a code")
        logger.warning("%s: rows go out with null where the server failed: %s.", self.how.where, told(errors))


def hide_secrets(variables: Any, name: str = "", *, but: Collection[str | None] = ()) -> None:
    """Hide what stands in variables of names that look secret: a server may repeat it, and GET sends it in the URL.

    Args:
        but: names of variables that hold a page's cursor, whatever they are called.
    """
    if isinstance(variables, Mapping):
        for key, value in variables.items():
            if key not in but:
                hide_secrets(value, str(key))
    elif isinstance(variables, list | tuple):
        for value in variables:
            hide_secrets(value, name)
    else:
        for text in secrets_in(name, variables):
            if masked(text) == text:
                hide(text)


def _shorten(error: HttpError) -> None:
    """A URL with the whole query in it makes nobody wiser."""
    short = error.url.partition("?")[0]
    if short:
        error.args = (str(error).replace(error.url, short), *error.args[1:])
        error.url = short


def _read(content: bytes, decode: Decode) -> Any:
    """A reply; one whose rows are of another shape than the query's text suggests is read whole."""
    try:
        return decode(content)
    except (msgspec.DecodeError, RecursionError, ArithmeticError):
        return read_whole(content)


def _plain(value: Any) -> Any:
    """A variable's value as JSON has it: date-times in UTC as RFC 3339 has them; one without a zone is taken as UTC."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=dt.UTC)
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | Collection) and not isinstance(value, str | bytes):
        return [_plain(one) for one in value]
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _encoder.encode(value).decode()
