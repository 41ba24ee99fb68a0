"""A REST catalog for Iceberg in this process: the endpoints of the specification that a writer of tables needs, on top
of pyiceberg's own SQL catalog. Real HTTP, real JSON, real conflicts (409)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit


@contextmanager
def rest_catalog(uri: str, warehouse: str, token: str) -> Iterator[str]:
    """A server's URL. ``uri``: of the SQL database behind it; who has no ``token`` gets 401."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("behind", uri=uri, warehouse=warehouse)
    lock = threading.Lock()

    class Handler(_Handler):
        def answer(self, body: Any) -> tuple[int, Any]:
            if self.headers.get("Authorization") != f"Bearer {token}":
                return 401, _error("NotAuthorizedException", "no such token", 401)
            with lock:
                return _answer(catalog, self.command, urlsplit(self.path).path, body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        catalog.close()


class _Handler(BaseHTTPRequestHandler):
    def answer(self, body: Any) -> tuple[int, Any]:
        raise NotImplementedError

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        status, reply = self.answer(json.loads(self.rfile.read(length)) if length else None)
        data = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_HEAD = _serve

    def log_message(self, *args: Any) -> None:
        pass


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
