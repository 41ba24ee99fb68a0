"""``Tap``: the facade people declare on. It registers; it runs nothing (style 7.1)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from burler.config.spec import ConfigSpec, check_spec
from burler.context import current_run
from burler.declare import registry as reg
from burler.declare.inject import place_of, short_path, wanted
from burler.declare.spec import StreamSpec, UserFunction
from burler.declare.strategies import Strategy
from burler.errors import DeclarationError
from burler.schema.sources import Generated, SchemaSource, generated

Function = TypeVar("Function", bound=Callable[..., Any])


def _caller() -> str:
    """file:line of the line outside burler that is being run: the place of a plain call."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("burler."):
        frame = frame.f_back
    return f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno}"


class Tap:
    """A Singer tap, declared by decorators that return your functions unchanged.

    Args:
        name: the tap's name, as ``tap-contacts``. Config variables start with ``TAP_CONTACTS_``.
        config_spec: what the config must hold: None, a list of keys, an example dict, a function
            that raises, or an object with ``validate``.
        version: shown by ``--version`` and ``--about``.
        description: one sentence for ``--about``.
    """

    def __init__(
        self, name: str, config_spec: ConfigSpec = None, *, version: str | None = None, description: str = ""
    ) -> None:
        place = _caller()
        if not isinstance(name, str) or not name.strip():
            raise DeclarationError(f"{place}: a tap's name must be text like 'tap-contacts', not {name!r}.")
        check_spec(config_spec, place=place)
        self.name = name
        self.config_spec = config_spec
        self.version = version
        self.description = description
        self.place = place
        self._registry = reg.Registry()

    def __repr__(self) -> str:
        return f"<Tap {self.name!r}: {', '.join(self._registry.names) or 'no streams yet'}>"

    # ---- declaring -------------------------------------------------------------------------------

    def client(self, fn: Function) -> Function:
        """Decorator: the function that makes the client, once per run, from ``config``."""
        names = wanted(fn, reg.CLIENT_PARAMETERS, what="the client function")
        self._registry.set_client(UserFunction(fn, names, place_of(fn)))
        return fn

    def sync(
        self,
        stream: str,
        *,
        key_properties: str | tuple[str, ...] | list[str] = (),
        replication_key: str | None = None,
        replication_method: str | None = None,
        bookmark_strategy: str | Strategy = "end_of_sync",
        order: str | None = None,
        versions: bool | None = None,
    ) -> Callable[[Function], Function]:
        """Decorator: the function that gives a stream's rows.

        It may ask for ``client, config, state, catalog, stream`` and yields rows (dicts), lists of
        rows, iterators of either, or ``(stream_name, any of these)`` for a stream declared with
        ``emitted_by``.

        Args:
            key_properties: the field or fields that identify a row.
            replication_key: the field whose greatest value is the bookmark; makes it INCREMENTAL.
            bookmark_strategy: ``end_of_sync`` or ``every_n(count)``.
            order: ``"asc"`` if rows rise by the replication key (checked), else ``"none"``.
            versions: send ``version`` and ACTIVATE_VERSION for a FULL_TABLE stream (default: yes).
        """

        reg.check_name(stream, _caller())

        def decorate(fn: Function) -> Function:
            names = wanted(fn, reg.SYNC_PARAMETERS, what=f"the sync function of '{stream}'")
            place = place_of(fn)
            self._registry.declare_stream(
                stream,
                place=place,
                sync=UserFunction(fn, names, place),
                key_properties=key_properties,
                replication_key=replication_key,
                replication_method=replication_method,
                bookmark_strategy=bookmark_strategy,
                order=order,
                versions=versions,
            )
            return fn

        return decorate

    def stream(
        self,
        stream: str,
        *,
        emitted_by: str,
        key_properties: str | tuple[str, ...] | list[str] = (),
        replication_key: str | None = None,
        replication_method: str | None = None,
        versions: bool | None = None,
        schema: SchemaSource | None = None,
    ) -> None:
        """Declare a stream whose rows another stream's sync function yields as ``(stream, rows)``."""
        place = _caller()
        self._registry.declare_stream(
            stream,
            place=place,
            emitted_by=emitted_by,
            key_properties=key_properties,
            replication_key=replication_key,
            replication_method=replication_method,
            versions=versions,
        )
        if schema is not None:
            self.schema(stream, schema)

    def bookmark(self, stream: str) -> Callable[[Function], Function]:
        """Decorator: a function of a row that gives its bookmark value; may ask for ``record, state, stream``."""

        reg.check_name(stream, _caller())

        def decorate(fn: Function) -> Function:
            names = wanted(fn, reg.BOOKMARK_PARAMETERS, what=f"the bookmark function of '{stream}'")
            place = place_of(fn)
            self._registry.declare(stream, "bookmark", UserFunction(fn, names, place), place=place)
            return fn

        return decorate

    def schema(self, stream: str, method: SchemaSource = generated) -> Callable[[Function], Function]:
        """A stream's JSON Schema: ``tap.schema("x", burler.json_file("x.json"))``, a dict, or a decorator.

        As a decorator, the function (it may ask for ``client, config``) gives the schema, or a mapping
        of stream names to schemas.
        """
        place = _caller()
        reg.check_name(stream, place)
        if not isinstance(method, Generated):
            if not isinstance(method, Mapping) and not hasattr(method, "load"):
                raise DeclarationError(
                    f"stream '{stream}' ({place}): a schema is a dict, burler.json_file(...) or a function, "
                    f"not {type(method).__name__}."
                )
            self._registry.declare(stream, "schema", method, place=place)

        def decorate(fn: Function) -> Function:
            if not isinstance(method, Generated):
                raise DeclarationError(f"stream '{stream}' ({place}): has a schema already; this decorates nothing.")
            names = wanted(fn, reg.SCHEMA_PARAMETERS, what=f"the schema function of '{stream}'")
            function = UserFunction(fn, names, place_of(fn))
            self._registry.declare(stream, "schema_fn", function, place=function.place)
            return fn

        return decorate

    # ---- while a stream runs ---------------------------------------------------------------------

    def get_bookmark(self) -> Any:
        """The running stream's bookmark; the same as ``stream.bookmark``."""
        return current_run("tap.get_bookmark()", self).bookmark

    def stream_metadata(self) -> Mapping[str, Any]:
        """The running stream's own metadata."""
        return current_run("tap.stream_metadata()", self).metadata

    # ---- for the runtime -------------------------------------------------------------------------

    def seal(self) -> dict[str, StreamSpec]:
        """All streams, checked as a whole. From here on nothing more can be declared."""
        return self._registry.seal()

    @property
    def client_function(self) -> UserFunction | None:
        """The declared client function."""
        return self._registry.client

    def cli(self, args: list[str] | None = None) -> None:
        """The tap's own command, with Singer's flags; use it as a console script. Ends the process."""
        from burler.cli.singer_flags import main

        main(self, args)


def tap(name: str, config_spec: ConfigSpec = None, *, version: str | None = None, description: str = "") -> Tap:
    """A new :class:`Tap`."""
    return Tap(name, config_spec, version=version, description=description)
