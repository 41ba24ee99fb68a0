"""``Tap``: the facade people declare on. It registers; it runs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Never, TypeVar, Unpack, overload

from burler import hangups
from burler.call import caller, place_of, wanted
from burler.config.forms import ConfigSpec, parse_spec
from burler.declare import registry as reg
from burler.declare.app import App
from burler.declare.classes import register_class
from burler.declare.client import ClientHandle, client_from, name_from
from burler.declare.field import check_mapping
from burler.declare.handle import StreamHandle
from burler.declare.modules import load_streams
from burler.declare.options import NOT_GIVEN, Order, StreamOptions, check_name
from burler.declare.running import InsideRun
from burler.declare.spec import UserFunction
from burler.declare.tailing import TailParts
from burler.errors import DeclarationError
from burler.schema.sources import Generated, SchemaLike, as_source, generated
from burler.suggest import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)
_ARGUMENTS = ("name", "config_spec", "version", "description")


class Tap(TailParts, InsideRun):
    """A Singer tap, declared by decorators that return your functions unchanged.

    Args:
        name: the tap's name, as ``tap-contacts``. Config variables start with ``TAP_CONTACTS_``. Or, as first
            argument, the client's class or factory: the name then comes from the module.
        config_spec: what the config must hold: None, a list of keys, an example dict, a JSON Schema, the path of
            a sample file, a function that raises, or an object with ``validate``.
        version: shown by ``--version`` and ``--about``.
        description: one sentence for ``--about``.
    """

    def __init__(
        self,
        name: Any,
        config_spec: ConfigSpec = None,
        *,
        version: str | None = None,
        description: str = "",
        **unknown: Never,
    ) -> None:
        here = caller()
        for given in unknown:
            hint = did_you_mean(given, _ARGUMENTS)
            raise DeclarationError(
                f"{here.place}: burler.tap takes no '{given}'.{hint} It takes {', '.join(_ARGUMENTS)}."
            )
        self._registry = reg.Registry()
        if not isinstance(name, str):
            client = name
            name = name_from(here.file, str(here.namespace.get("__name__", "")))
            self._registry.set_function("client", client_from(client, tap_name=name, place=here.place))
        if not name.strip():
            raise DeclarationError(f"{here.place}: a tap's name must be text like 'tap-contacts', not {name!r}.")
        self.folder = Path(here.file).resolve().parent if here.file else None
        self.config_form = parse_spec(config_spec, place=here.place, folder=self.folder)
        self.name = name
        self.config_spec = config_spec
        self.version = version
        self.description = description
        self.place = here.place

    def __repr__(self) -> str:
        return f"<Tap {self.name!r}: {', '.join(self._registry.names) or 'no streams yet'}>"

    # ---- declaring -------------------------------------------------------------------------------

    @property
    def client(self) -> ClientHandle:
        """Decorator: the function that makes the client, once per run, from ``config``. Inside a run, and in schema,
        metadata and discover functions, it stands for that client: ``tap.client.describe()``."""
        return ClientHandle(self)

    def sync(self, stream: str = NOT_GIVEN, **options: Unpack[StreamOptions]) -> Callable[[Function], Function]:
        """Decorator: the function that gives a stream's rows.

        It may ask for ``client, config, state, catalog, stream`` (``parent`` in a substream, ``partition`` where there
        are partitions) and yields rows (dicts), lists of rows, iterators of either, or ``(stream_name, any of these)``
        for a stream declared with ``emitted_by``. Options: see :class:`StreamOptions`. A name with ``*`` stands for all
        streams that discovery finds and nothing else declares.
        """
        place = caller().place
        check_name(stream, place)

        def decorate(fn: Function) -> Function:
            names = wanted(fn, reg.SYNC_PARAMETERS, what=f"the sync function of '{stream}'")
            where = place_of(fn)
            self._registry.check_open(where)
            self._registry.check_free(stream, "sync", place=where)  # before its options, which would be there twice too
            self._registry.declare_options(stream, options, place=where)
            self._registry.declare(stream, "sync", UserFunction(fn, names, where), place=where)
            return fn

        return decorate

    @overload
    def stream(self, stream: Class) -> Class: ...
    @overload
    def stream(self, stream: str, **options: Unpack[StreamOptions]) -> StreamHandle: ...
    def stream(self, stream: Any = NOT_GIVEN, **options: Unpack[StreamOptions]) -> Any:
        """A stream as a handle, or a class as a stream.

        ``contacts = tap.stream("contacts", key_properties="id")`` gives a handle: ``@contacts.sync``,
        ``@contacts.bookmark``, ``contacts.schema(...)``, ``contacts.substream("notes")``. With ``emitted_by`` its
        rows come from another stream's function. ``@tap.stream`` registers a class on ``burler.Stream``.
        """
        here = caller()
        if stream is NOT_GIVEN:
            raise DeclarationError(
                f"{here.place}: tap.stream needs the stream's name: tap.stream('contacts'). Above a class, leave out "
                "the parentheses: @tap.stream"
            )
        if isinstance(stream, type):
            self._registry.check_open(here.place)
            if stream in self._registry.classes:
                raise DeclarationError(f"{here.place}: class {stream.__name__} is registered already.")
            self._registry.classes.add(stream)
            register_class(self._registry, stream, **options)
            return stream
        self._registry.declare_options(stream, options, place=here.place)
        self._registry.declare_module(stream, here.file)
        return StreamHandle(self, stream)

    def bookmark(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a function of a row that gives its bookmark value; it may ask for ``record, state, stream``, for
        ``partition``, and for ``children``: what came for this row, substream name -> :class:`burler.Children`."""
        return self._part(stream, "bookmark", reg.BOOKMARK_PARAMETERS)

    def schema(
        self, stream: str = NOT_GIVEN, method: SchemaLike | Generated = generated
    ) -> Callable[[Function], Function]:
        """A stream's JSON Schema: ``tap.schema("x", burler.json_file("x.json"))``, a dict, a typed class
        or a decorator.

        As a decorator, the function (it may ask for ``client, config``) gives the schema, or a mapping
        of stream names to schemas.
        """
        here = caller()
        check_name(stream, here.place, decorator="schema")
        if not isinstance(method, Generated):
            source = as_source(method, where=f"stream '{stream}' ({here.place})")
            self._registry.declare(stream, "schema", source, place=here.place)
            self._registry.declare_module(stream, here.file)

        def decorate(fn: Function) -> Function:
            if not isinstance(method, Generated):
                raise DeclarationError(
                    f"stream '{stream}' ({here.place}): has a schema already; this decorates nothing."
                )
            names = wanted(fn, reg.SCHEMA_PARAMETERS, what=f"the schema function of '{stream}'")
            function = UserFunction(fn, names, place_of(fn))
            self._registry.declare(stream, "schema_fn", function, place=function.place)
            self._registry.declare_module(stream, here.file)
            return fn

        return decorate

    def metadata(
        self, stream: str = NOT_GIVEN, values: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Callable[[Function], Function]:
        """Decorator: a function that is called for the stream and each of its fields, and writes metadata: by
        ``tap.write_metadata(key, value)`` or ``field.inclusion.automatic()``. It may ask for ``breadcrumb,
        sub_schema, field, key_properties, stream, client, config``.

        Or a mapping: ``tap.metadata("contacts", {"email": {"selected-by-default": False}})``.
        """
        here = caller()
        check_name(stream, here.place, decorator="metadata")
        if values is not None:
            check_mapping(values, where=f"stream '{stream}' ({here.place})")
            self._registry.declare(stream, "fixed_metadata", values, place=here.place)
        return self._part(stream, "metadata", reg.METADATA_PARAMETERS)

    def post_transform(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a function of each row after it was shaped, just before it is written. It may ask for
        ``record, stream, state, client, config, partition`` and gives the row back, changed or not, or None to leave
        it out.

        Raises:
            DeclarationError: a function without ``return``: every row would be left out.
        """
        return self._part(stream, "post_transform", reg.TRANSFORM_PARAMETERS)

    def partitions(
        self, stream: str = NOT_GIVEN, *, order: Order = None, key: str | Callable[[Any], str] | None = None
    ) -> Callable[[Function], Function]:
        """Decorator: a function that gives a stream's partitions, dicts of JSON values such as ``{"account": "a"}``.
        The sync function then runs once for each, with the parameter ``partition``, and each has a bookmark.

        It may ask for ``client, config, state, catalog, stream`` and yields the dicts, or returns them.

        Args:
            order: ``"asc"`` if each row's replication key is at least that of every row of the partitions before its
                own (checked); then one bookmark says how far the stream is. Default: ``"none"``.
            key: what names a partition in the state: a field of it, or a function of it that gives text. Default: the
                whole dict, as JSON.
        """
        check_name(stream, caller().place, decorator="partitions")

        def decorate(fn: Function) -> Function:
            self._part(stream, "partitions", reg.PARTITIONS_PARAMETERS)(fn)
            self._registry.declare_partition_options(stream, order=order, key=key, place=place_of(fn))
            return fn

        return decorate

    def discover(self, fn: Function) -> Function:
        """Decorator: a function (it may ask for ``client, config``) that gives a whole catalog: a Singer catalog,
        or a mapping of stream names to schemas. Streams that it finds are synced by the function declared for
        their name, or for a pattern: ``@tap.sync("*")``."""
        names = wanted(fn, reg.DISCOVER_PARAMETERS, what="the discover function")
        self._registry.set_function("discover", UserFunction(fn, names, place_of(fn)))
        return fn

    def load_streams(self, module: str) -> None:
        """Import a module, or all modules of a package, that declare streams of this tap: ``"tap_crm.streams"``, or
        ``".streams"`` beside the caller. Classes on ``burler.Stream`` in them need no decorator."""
        here = caller()
        load_streams(self._registry, module, namespace=here.namespace, place=here.place)

    # ---- for the runtime -------------------------------------------------------------------------

    def seal(self) -> App:
        """The tap as it runs: all streams, checked as a whole. From here on nothing more can be declared.

        Raises:
            DeclarationError: what is declared does not fit together.
        """
        return App(
            self.name,
            self.place,
            self.version,
            self.description,
            streams=self._registry.seal(),
            config_form=self.config_form,
            client=self._registry.client,
            discover=self._registry.discover,
            tap=self,
        )

    def cli(self, args: list[str] | None = None) -> None:
        """The tap's own command, with Singer's flags; use it as a console script. Ends the process."""
        hangups.hold()
        # By name: the command line stands above all that it runs, and this is how a tap's script reaches it.
        importlib.import_module("burler.cli.singer_flags").main(self, args)


def tap(
    name: Any,
    config_spec: ConfigSpec = None,
    *,
    version: str | None = None,
    description: str = "",
    **unknown: Never,
) -> Tap:
    """A new :class:`Tap`.

    Raises:
        DeclarationError: an argument that it does not take, or that is of the wrong kind.
    """
    return Tap(name, config_spec, version=version, description=description, **unknown)
