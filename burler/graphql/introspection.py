"""What a GraphQL server says of its types: asked once a client, or read from a file."""

from __future__ import annotations

import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from burler.errors import DeclarationError, HttpError, SourceError
from burler.graphql.asking import Asker, How, TooComplex
from burler.graphql.document import core
from burler.graphql.replies import THROTTLED, first_line, read_whole

if TYPE_CHECKING:
    from graphql import GraphQLSchema

    from burler.http.client import Client


class _Server:
    """What is known of one server. The lock is its own: one that is slow must hold up nobody who asks another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.types: GraphQLSchema | None = None


_lock = threading.Lock()
_known: weakref.WeakKeyDictionary[Any, dict[tuple[str, str], _Server]] = weakref.WeakKeyDictionary()


def types_of(client: Client, endpoint: str, *, where: str, method: str = "POST") -> GraphQLSchema:
    """The types of the server behind a client; it is asked once.

    Raises:
        DeclarationError: it does not say. HttpError: it gives no answer.
    """
    with _lock:
        server = _known.setdefault(client, {}).setdefault((endpoint, method), _Server())
    with server.lock:
        if server.types is None:
            server.types = _asked(client, endpoint, where, method)
        return server.types


def _asked(client: Client, endpoint: str, where: str, method: str) -> GraphQLSchema:
    graphql = core()
    how = How(where, endpoint, method, False, "fail", THROTTLED, frozenset())
    asker = Asker(client, how)
    refusal: Exception = SourceError("it says nothing")
    refused = False
    # The second form is for servers that do not know what newer ones say of their scalars.
    for form in ({"specified_by_url": True}, {}):
        text = graphql.get_introspection_query(descriptions=False, **form)
        try:
            data = asker.ask(text, "IntrospectionQuery", {}, read_whole).data
            return graphql.build_client_schema(msgspec.to_builtins(data))  # type: ignore[no-any-return]
        except (SourceError, TooComplex) as error:
            if isinstance(error, HttpError):
                raise
            refusal, refused = (refusal if refused else error), True
        except (TypeError, graphql.GraphQLError) as error:
            refusal, refused = (refusal if refused else error), True
    raise DeclarationError(
        f"{where}: the server does not describe its types (introspection): {first_line(refusal)}.\n"
        "If it never does, save its schema and say file='schema.graphql' (or the JSON of an introspection)."
    )


def types_in(path: Path, *, where: str) -> GraphQLSchema:
    """The types that a file describes: GraphQL's own language, or the JSON of an introspection.

    Raises:
        DeclarationError: it is missing, or neither.
    """
    graphql = core()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DeclarationError(f"{where}: {path} can't be read: {error.strerror or error}.") from None
    try:
        if content.lstrip()[:1] == b"{":
            found = msgspec.json.decode(content)
            data = found.get("data", found) if isinstance(found, dict) else found
            return graphql.build_client_schema(data)  # type: ignore[no-any-return]
        return graphql.build_schema(content.decode())  # type: ignore[no-any-return]
    except (ValueError, TypeError, KeyError, graphql.GraphQLError, RecursionError) as error:
        raise DeclarationError(
            f"{where}: {path} is no schema of GraphQL, nor the JSON of an introspection: {str(error)[:200]}"
        ) from None
