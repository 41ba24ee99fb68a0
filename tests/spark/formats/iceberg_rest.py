"""A REST catalog for Iceberg in this process: the endpoints of the specification that a writer of tables needs, on top
of pyiceberg's own SQL catalog. Real HTTP, real JSON, real conflicts (409)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from support.servers import Asked, serving


@contextmanager
def rest_catalog(uri: str, warehouse: str, token: str) -> Iterator[str]:
    """A server's URL. ``uri``: of the SQL database behind it; who has no ``token`` gets 401."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("behind", uri=uri, warehouse=warehouse)
    lock = threading.Lock()

    def answer(asked: Asked) -> Any:
        if asked.headers.get("authorization") != f"Bearer {token}":
            status, body = 401, _error("NotAuthorizedException", "no such token", 401)
        else:
            with lock:
                status, body = _answer(catalog, asked.method, asked.path, asked.json)
        return status, {"Content-Type": "application/json"}, body

    with serving(answer) as server:
        yield server.url
    catalog.close()


def _error(kind: str, message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code}}


def _answer(catalog: Any, method: str, path: str, body: Any) -> tuple[int, Any]:
    from pyiceberg import exceptions

    codes = {
        exceptions.NoSuchTableError: 404,
        exceptions.NoSuchNamespaceError: 404,
        exceptions.NamespaceAlreadyExistsError: 409,
        exceptions.TableAlreadyExistsError: 409,
        exceptions.CommitFailedException: 409,
    }
    try:
        return 200, _route(catalog, method, [unquote(part) for part in path.strip("/").split("/")], body)
    except tuple(codes) as error:
        return codes[type(error)], _error(type(error).__name__, str(error), codes[type(error)])


def _route(catalog: Any, method: str, parts: list[str], body: Any) -> Any:
    from pyiceberg.table import CommitTableRequest

    match method, parts:
        case "GET", ["v1", "config"]:
            return {"defaults": {}, "overrides": {}}
        case "POST", ["v1", "namespaces"]:
            catalog.create_namespace(tuple(body["namespace"]), body.get("properties") or {})
            return {"namespace": body["namespace"], "properties": {}}
        case "POST", ["v1", "namespaces", namespace, "tables"]:
            return _create(catalog, namespace, body)
        case "GET", ["v1", "namespaces", namespace, "tables", table]:
            return _table(catalog.load_table((namespace, table)))
        case "POST", ["v1", "namespaces", namespace, "tables", table]:
            request = CommitTableRequest.model_validate(body)
            committed = catalog.commit_table(
                SimpleNamespace(name=lambda: (namespace, table)), request.requirements, request.updates
            )
            return json.loads(committed.model_dump_json(by_alias=True))
    raise AssertionError(f"no such endpoint here: {method} /{'/'.join(parts)}")


def _create(catalog: Any, namespace: str, body: Any) -> Any:
    from pyiceberg.catalog.rest import CreateTableRequest

    asked = CreateTableRequest.model_validate({"location": None, "partition-spec": None, "write-order": None, **body})
    known = {"schema": asked.table_schema, "location": asked.location, "properties": asked.properties}
    make = catalog._create_staged_table if asked.stage_create else catalog.create_table
    return _table(make((namespace, asked.name), **known), staged=asked.stage_create)


def _table(table: Any, staged: bool = False) -> Any:
    return {
        "metadata-location": None if staged else table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json(by_alias=True)),
        "config": {},
    }
