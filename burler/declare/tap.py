"""``Tap``: the facade people declare on. It registers; it runs nothing."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Never, TypeVar, Unpack, overload

from burler import hangups
from burler.call import caller
from burler.config.forms import ConfigSpec
from burler.config.loading import variable_of
from burler.config.spec import parse_spec
from burler.context import current_run
from burler.declare.app import App
from burler.declare.classes import register_class
from burler.declare.handle import StreamHandle
from burler.declare.hooks import OF_TAP
from burler.declare.modules import load_streams
from burler.declare.options import NOT_GIVEN, Order, StreamOptions
from burler.declare.registry import Registry
from burler.declare.spec import UserFunction
from burler.errors import BurlerError, ConfigError, DeclarationError
from burler.schema.sources import Generated, SchemaLike, generated
from burler.suggest import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)
_ARGUMENTS = ("name", "config_spec", "version", "description")


class Tap:
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
        self._registry = Registry()
        if not isinstance(name, str):
            client = name
            name = _name_from(here.file, str(here.namespace.get("__name__", "")))
            self._registry.set_function("client", _client_from(client, tap_name=name, place=here.place))
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
        return self._registry.decorator("sync", stream, options)

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
        self._registry.declare_options(stream, options, place=here.place, file=here.file)
        return StreamHandle(self._registry, stream, of=self.name)

    def bookmark(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a function of a row that gives its bookmark value; it may ask for ``record, state, stream``, for
        ``partition``, and for ``children``: what came for this row, substream name -> :class:`burler.Children`."""
        return self._registry.decorator("bookmark", stream)

    def schema(
        self, stream: str = NOT_GIVEN, method: SchemaLike | Generated = generated
    ) -> Callable[[Function], Function]:
        """A stream's JSON Schema: ``tap.schema("x", burler.json_file("x.json"))``, a dict, a typed class
        or a decorator.

        As a decorator, the function (it may ask for ``client, config``) gives the schema, or a mapping
        of stream names to schemas.
        """
        if not isinstance(method, Generated):
            self._registry.declare_schema(stream, method, caller())
        return self._registry.decorator("schema", stream)

    def metadata(
        self, stream: str = NOT_GIVEN, values: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Callable[[Function], Function]:
        """Decorator: a function that is called for the stream and each of its fields, and writes metadata: by
        ``tap.write_metadata(key, value)`` or ``field.inclusion.automatic()``. It may ask for ``breadcrumb,
        sub_schema, field, key_properties, stream, client, config``.

        Or a mapping: ``tap.metadata("contacts", {"email": {"selected-by-default": False}})``.
        """
        if values is not None:
            self._registry.declare_metadata(stream, values, caller().place)
        return self._registry.decorator("metadata", stream)

    def post_transform(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a function of each row after it was shaped, just before it is written. It may ask for
        ``record, stream, state, client, config, partition`` and gives the row back, changed or not, or None to leave
        it out.

        Raises:
            DeclarationError: a function without ``return``: every row would be left out.
        """
        return self._registry.decorator("post_transform", stream)

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
        return self._registry.decorator("partitions", stream, {"partition_order": order, "partition_key": key})

    def tail(
        self, stream: str = NOT_GIVEN, *, overlap: bool = False, **options: Unpack[StreamOptions]
    ) -> Callable[[Function], Function]:
        """Decorator: the function of a source that pushes (a queue, a socket, a replication log). It is called in a
        tail run only, and as a rule never returns by itself.

        It may ask for ``client, config, state, catalog, stream`` and yields what a sync function may yield. Where
        there is a sync function, too, that one brings all rows up to now first; then this one goes on, and each time
        that it ends or fails, the same again. A stream without one is left out of plain runs, and is LOG_BASED unless
        it says otherwise: its rows are never the whole table.

        Args:
            overlap: for a source that can't give again what it sent: this function is called first, subscribes, and
                then calls ``yield from stream.catch_up()``, the rows of the sync function. A few rows come twice, and
                none is lost.

        Raises:
            DeclarationError: no stream's name, unknown options or parameters, a function that can give nothing.
        """
        said = options if overlap is False else {**options, "overlap": overlap}
        return self._registry.decorator("tail", stream, said)

    def wake(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a generator that yields whenever the stream should be polled at once, in a tail run (LISTEN and
        NOTIFY, a file that changed, a webhook); what it yields does not matter.

        It may ask for ``client, config, stream``, runs in a thread of its own, and yields once when it is subscribed.
        The stream is polled at its interval as well, so a lost call costs time, never rows.

        Raises:
            DeclarationError: no stream's name, unknown parameters, a function without ``yield``.
        """
        return self._registry.decorator("wake", stream)

    def acknowledge(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """Decorator: a function that is called after a STATE that moved the stream has been written: to tell a queue
        or a log how far it may forget. It may ask for ``bookmark, state, stream, client, config``.

        It proves that the line left the tap (with a lake: that the data is committed), not that a target stored it.
        With the setting ``acknowledge_state_file`` it is called with what that file confirms only.
        """
        return self._registry.decorator("acknowledge", stream)

    def ack(self, stream: str = NOT_GIVEN) -> Callable[[Function], Function]:
        """The same as ``acknowledge``."""
        return self._registry.decorator("ack", stream)

    def discover(self, fn: Function) -> Function:
        """Decorator: a function (it may ask for ``client, config``) that gives a whole catalog: a Singer catalog,
        or a mapping of stream names to schemas. Streams that it finds are synced by the function declared for
        their name, or for a pattern: ``@tap.sync("*")``."""
        self._registry.set_function("discover", OF_TAP["discover"].function(fn))
        return fn

    def load_streams(self, module: str) -> None:
        """Import a module, or all modules of a package, that declare streams of this tap: ``"tap_crm.streams"``, or
        ``".streams"`` beside the caller. Classes on ``burler.Stream`` in them need no decorator."""
        here = caller()
        load_streams(self._registry, module, namespace=here.namespace, place=here.place)

    # ---- inside of a run: sugar for the parameter ``stream``; BurlerError outside of one ---------

    def get_bookmark(self) -> Any:
        """The running stream's bookmark; the same as ``stream.bookmark``."""
        return current_run("tap.get_bookmark()", self).bookmark

    def stream_metadata(self) -> Mapping[str, Any]:
        """The running stream's own metadata."""
        return current_run("tap.stream_metadata()", self).metadata

    @property
    def key_properties(self) -> tuple[str, ...]:
        """The running stream's key properties."""
        return current_run("tap.key_properties", self).key_properties

    def emit_record(self, record: Mapping[str, Any], stream: str | None = None) -> None:
        """Emit one row from anywhere in a sync function; the same as ``stream.emit_record``.

        Args:
            stream: the stream that it belongs to; by default the one that is running.
        """
        current_run("tap.emit_record()", self).emit_record(record, stream)

    def emit_records(self, records: Iterable[Mapping[str, Any]], stream: str | None = None) -> None:
        """Emit several rows; see ``emit_record``."""
        current_run("tap.emit_records()", self).emit_records(records, stream)

    def write_metadata(self, key: str, value: Any) -> None:
        """Write metadata of the node that a ``@tap.metadata`` function is called for.

        Raises:
            BurlerError: outside of such a function.
            DeclarationError: an unknown key, or one that only users write.
        """
        run = current_run("tap.write_metadata()", self, declared_with="@tap.metadata")
        if run.field is None:
            raise BurlerError(
                f"stream '{run.name}': tap.write_metadata() was called outside a @tap.metadata function; call it there."
            )
        run.field.set(key, value)

    # ---- for the engine --------------------------------------------------------------------------

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
            client=self._registry.functions["client"],
            discover=self._registry.functions["discover"],
            tap=self,
        )

    def cli(self, args: list[str] | None = None) -> None:
        """The tap's own command, with Singer's flags; use it as a console script. Ends the process."""
        hangups.hold()
        # By name: the command line stands above all that it runs, and this is how a tap's script reaches it.
        importlib.import_module("burler.cli.singer_flags").main(self, args)


def tap(
    name: Any, config_spec: ConfigSpec = None, *, version: str | None = None, description: str = "", **unknown: Never
) -> Tap:
    """A new :class:`Tap`.

    Raises:
        DeclarationError: an argument that it does not take, or that is of the wrong kind.
    """
    return Tap(name, config_spec, version=version, description=description, **unknown)


class ClientHandle:
    """Called with a function, it declares it; otherwise it stands for the running tap's client:
    ``tap.client.describe()`` is the client's own ``describe``."""

    __slots__ = ("_burler_tap",)  # every other name belongs to the client

    def __init__(self, tap: Any) -> None:
        object.__setattr__(self, "_burler_tap", tap)

    def __reduce__(self) -> tuple[Any, ...]:
        return ClientHandle, (self._burler_tap,)

    @overload
    def __call__(self, fn: Function) -> Function: ...
    @overload
    def __call__(self) -> ClientHandle: ...
    def __call__(self, fn: Any = NOT_GIVEN) -> Any:
        """Decorator, with or without empty parentheses: the function (or class) that makes the client, once per run,
        from ``config``."""
        if fn is NOT_GIVEN:
            return self
        self._burler_tap._registry.set_function("client", OF_TAP["client"].function(fn))
        return fn

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # what copy, pickle and inspect ask of any object
        run = current_run(f"tap.client.{name}", self._burler_tap)
        return getattr(run.client, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(current_run(f"tap.client.{name}", self._burler_tap).client, name, value)

    def __repr__(self) -> str:
        return f"<client of {self._burler_tap!r}>"


def _client_from(given: Any, *, tap_name: str, place: str) -> UserFunction:
    """The client function behind ``burler.tap(CoolClient, ...)``: a class or a factory, or a client that is
    made already. Parameters other than ``config`` are taken from the config by their names.

    Raises:
        DeclarationError: nothing that could be a client.
    """
    if given is None or isinstance(given, bool | int | float | bytes | list | tuple | dict | set):
        raise DeclarationError(
            f"{place}: a tap's name must be text like 'tap-contacts', or its client's class or factory, not {given!r}."
        )
    if not callable(given):
        return UserFunction(lambda: given, (), place)
    try:
        parameters = list(inspect.signature(given).parameters.values())
    except ValueError:
        parameters = []
    named = [one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    needed = [one.name for one in named if one.default is one.empty]
    if not needed or "config" in {one.name for one in named}:
        return replace(OF_TAP["client"].function(given, "the client"), place=place)

    def make(config: dict[str, Any]) -> Any:
        missing = [name for name in needed if name not in config]
        if missing:
            how = ", ".join(f"'{name}' ({variable_of(tap_name, (name,))})" for name in missing)
            raise ConfigError(f"{tap_name}: the client ({place}) needs {how}. Put it into the --config file.")
        return given(**{one.name: config[one.name] for one in named if one.name in config})

    return UserFunction(make, ("config",), place)


def _name_from(file: str | None, module: str) -> str:
    """A tap's name from its module: ``tap_contacts`` -> tap-contacts, ``tap_crm.main`` -> tap-crm; a script's from
    its file."""
    base = module.partition(".")[0]
    if base in ("", "__main__") and file:
        path = Path(file)
        base = path.parent.name if path.stem in ("__init__", "__main__") else path.stem
    return base.replace("_", "-").strip("-").lower() or "tap"
