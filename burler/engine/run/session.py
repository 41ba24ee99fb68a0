"""What one run of a tap shares between its streams: config, client, instances of its classes, its catalog."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from burler.call import call
from burler.config.writeback import ConfigFiles
from burler.context import StreamRun, call_bound
from burler.declare.app import App
from burler.declare.spec import StreamSpec, UserFunction
from burler.engine.catalog import discovery
from burler.engine.run.clients import Clients
from burler.errors import BurlerError, DeclarationError
from burler.logs import short
from burler.singer.catalog import Catalog

Given = Mapping[str, Callable[[], Any]]


class Session:
    """One use of an app: its config and, once somebody asks for it, its client and its catalog.

    ``specs`` holds the streams there are: those declared and, once ``catalog`` was asked for, those that
    discovery found. ``wrap_client`` may be set before the first use: the tap uses what it makes of the client.
    """

    def __init__(self, app: App, config: dict[str, Any], *, files: ConfigFiles | None = None) -> None:
        self.app = app
        self.config = config
        self.wrap_client: Callable[[Any], Any] = lambda client: client
        self._files = files
        self._files_lock = threading.Lock()
        self.specs: dict[str, StreamSpec] = {name: spec for name, spec in app.streams.items() if not spec.is_pattern}
        self._lock = threading.RLock()
        self._instances: dict[tuple[type, str], Any] = {}
        self._catalog: Catalog | None = None
        self._lines: dict[str, list[StreamSpec]] | None = None
        self.clients = Clients(self._make_client, tap=app.name)
        self.told: dict[int, Any] = {}  # what was said once in this run, by client

    def client(self) -> Any:
        """The client, made at the first call.

        Raises:
            DeclarationError: a function asks for it and the tap declares none.
            BurlerError: the client function failed; its own burler errors come through as they are.
        """
        return self.clients.get()[1]

    def _make_client(self) -> Any:
        function = self.app.client
        if function is None:
            raise DeclarationError(f"{self.app.name}: a function asks for 'client', but no @tap.client is declared.")
        try:
            client = call(function.fn, function.names, {"config": lambda: self.config})
        except BurlerError:
            raise
        except (Exception, SystemExit) as error:
            raise BurlerError(
                f"{self.app.name}: the client function ({function.place}) failed: {short(error)}"
            ) from error
        self.save_config()
        return self.wrap_client(client)

    def renew_client(self, *, only: Collection[int] | None = None) -> None:
        """The next one who asks for the client gets a new one; instances of classes are made anew with it.

        Args:
            only: not where the client of now has none of these numbers: it has been renewed already.
        """
        if self.clients.renew(only=only):
            with self._lock:
                self._instances.clear()

    def rediscover(self) -> Catalog:
        """Make the tap's own catalog once more.

        Raises:
            as ``catalog``; then the earlier one stays.
        """
        specs, catalog = discovery.describe(self)
        with self._lock:
            self.specs, self._catalog, self._lines = specs, catalog, None
        return catalog

    def save_config(self, *, last: bool = False) -> None:
        """Write back what the tap has changed in its config: a token that was refreshed must not be lost with a
        run that is killed. Cheap when nothing has changed; called after each page, and by the timer meanwhile."""
        if self._files is not None:
            with self._files_lock:
                self._files.save_if_changed(self.config, last=last)

    def close(self) -> None:
        """Close the client, if one was made and it can be closed."""
        self.clients.close()

    def given(self, **more: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        """What functions may ask for, by name (see ``burler.call``)."""
        return {"client": self.client, "config": lambda: self.config, **more}

    def line(self, root: StreamSpec) -> list[StreamSpec]:
        """The streams that are synced in the run of one: itself, its substreams, what they emit."""
        lines = self._lines
        if lines is None:
            lines = {}
            for spec in self.specs.values():
                lines.setdefault(spec.root, []).append(spec)
            self._lines = lines  # whole: other threads may ask meanwhile
        return lines.get(root.tap_stream_id, [])

    def invoke(self, function: UserFunction, given: Given, *, stream: str) -> Any:
        """Call a function of the author's with what it asks for; a method, on its stream's instance."""
        if function.owner is None:
            return call(function.fn, function.names, given)
        instance = self.instance(function.owner, stream)
        return call(function.fn.__get__(instance), function.names, given)

    def instance(self, owner: type, stream: str) -> Any:
        """The instance of a class-style stream in this session."""
        with self._lock:
            key = (owner, stream)
            if key not in self._instances:
                try:
                    self._instances[key] = owner()
                except TypeError as error:
                    raise DeclarationError(
                        f"stream '{stream}': class {owner.__name__} can't be made: {short(error)}. It takes no "
                        "arguments: its methods ask for client and config by name."
                    ) from error
            return self._instances[key]

    def guarded(self, action: Callable[[], Any], *, run: StreamRun, what: str, place: str) -> Any:
        """Call code of the author's that describes a stream (its schema, its metadata), with ``run`` as the running
        stream, so that ``tap.client`` and the like work in it. Whatever it raises becomes one error.

        Raises:
            DeclarationError: the code failed.
        """
        try:
            return call_bound(run, action)
        except BurlerError:
            raise
        except (Exception, SystemExit) as error:
            raise DeclarationError(f"{what} ({place}) failed: {short(error)}") from error

    def describing(self, stream: str, *, client: Callable[[], Any] | None = None, **more: Any) -> StreamRun:
        """What stands for the running stream while it is described."""
        return StreamRun(self.app.tap, stream, config=self.config, client=client or self.client, told=self.told, **more)

    def catalog(self) -> Catalog:
        """The tap's own catalog: schemas without references, metadata written. Made once.

        Raises:
            DeclarationError: a schema that is missing, unreadable, or no JSON Schema of an object; metadata
                that no catalog may carry; a discovered stream that nobody syncs.
        """
        with self._lock:
            if self._catalog is None:
                self.specs, self._catalog = discovery.describe(self)
                self._lines = None
            return self._catalog
