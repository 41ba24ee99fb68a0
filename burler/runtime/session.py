"""What one run of a tap shares between its streams: config, client, schemas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from burler.declare.inject import call
from burler.declare.spec import StreamSpec
from burler.declare.tap import Tap
from burler.errors import BurlerError, DeclarationError
from burler.runtime.logs import short
from burler.schema.refs import resolve_refs
from burler.singer import metadata as md
from burler.singer.catalog import Catalog, CatalogEntry


class Session:
    """One use of a tap: its config and, once somebody asks for it, its client."""

    def __init__(self, tap: Tap, config: dict[str, Any]) -> None:
        self.tap = tap
        self.config = config
        self.specs = tap.seal()
        self._client: Any = None
        self._client_made = False
        self._lock = threading.Lock()
        self._generated: dict[int, Any] = {}

    def client(self) -> Any:
        """The client, made at the first call.

        Raises:
            DeclarationError: a function asks for it and the tap declares none.
            BurlerError: the client function failed; its own burler errors come through as they are.
        """
        with self._lock:
            if not self._client_made:
                function = self.tap.client_function
                if function is None:
                    raise DeclarationError(
                        f"{self.tap.name}: a function asks for 'client', but no @tap.client is declared."
                    )
                try:
                    self._client = call(function.fn, function.names, {"config": lambda: self.config})
                except BurlerError:
                    raise
                except (Exception, SystemExit) as error:
                    raise BurlerError(
                        f"{self.tap.name}: the client function ({function.place}) failed: {short(error)}"
                    ) from error
                self._client_made = True
            return self._client

    def close(self) -> None:
        """Close the client, if one was made and it can be closed."""
        close = getattr(self._client, "close", None)
        if callable(close):
            close()

    def given(self, **more: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        """What functions may ask for, by name (see ``declare.inject``)."""
        return {"client": self.client, "config": lambda: self.config, **more}

    def catalog(self) -> Catalog:
        """The tap's own catalog: schemas without references, standard metadata.

        Raises:
            DeclarationError: a schema that is missing, unreadable, or no JSON Schema of an object.
        """
        entries: dict[str, CatalogEntry] = {}
        for name, spec in self.specs.items():
            schema = self._schema(spec)
            entries[name] = CatalogEntry(
                tap_stream_id=name,
                stream=name,
                schema=schema,
                key_properties=spec.key_properties,
                replication_key=spec.replication_key,
                replication_method=spec.replication_method,
                metadata=md.standard_metadata(
                    schema,
                    key_properties=spec.key_properties,
                    replication_method=spec.replication_method,
                    replication_key=spec.replication_key,
                ),
            )
        return Catalog(entries)

    def _schema(self, spec: StreamSpec) -> dict[str, Any]:
        where = f"stream '{spec.tap_stream_id}' ({spec.place})"
        raw: Any = spec.schema
        if spec.schema_fn is not None:
            raw = self._call_schema_function(spec, where)
        elif spec.schema is not None and not isinstance(spec.schema, Mapping):
            raw = spec.schema.load()  # type: ignore[union-attr]
        schema = resolve_refs(raw, source=where)
        if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
            raise DeclarationError(f"{where}: its schema must be a JSON object with 'properties'.")
        missing = [
            key for key in (*spec.key_properties, spec.replication_key) if key and key not in schema["properties"]
        ]
        if missing:
            raise DeclarationError(
                f"{where}: {', '.join(repr(key) for key in missing)} not in the schema. "
                f"Its fields: {', '.join(schema['properties']) or 'none'}."
            )
        return schema

    def _call_schema_function(self, spec: StreamSpec, where: str) -> Any:
        function = spec.schema_fn
        assert function is not None
        key = id(function.fn)
        if key not in self._generated:
            try:
                self._generated[key] = call(function.fn, function.names, self.given())
            except BurlerError:
                raise
            except (Exception, SystemExit) as error:
                raise DeclarationError(
                    f"{where}: its schema function ({function.place}) failed: {short(error)}"
                ) from error
        made = self._generated[key]
        if isinstance(made, Mapping) and "properties" not in made and spec.tap_stream_id in made:
            return made[spec.tap_stream_id]
        return made
