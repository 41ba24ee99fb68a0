"""What one use of an app shares between its streams: config, client, instances of its classes."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from burler.call import call
from burler.config.loading import Loaded
from burler.config.secrets import hide_config
from burler.config.writeback import ConfigFiles
from burler.context import StreamRun, call_bound
from burler.declare.app import App
from burler.declare.classes import Stream
from burler.declare.spec import UserFunction
from burler.errors import BurlerError, ConfigError, DeclarationError
from burler.log_settings import log_settings
from burler.logs import short
from burler.settings import Settings, read_settings

logger = logging.getLogger(__name__)

Given = Mapping[str, Callable[[], Any]]
_CLOSE_SECONDS = 2.0


def open_session(app: App, config: Mapping[str, Any] | Loaded) -> tuple[Session, Settings]:
    """Check a config and open a session. What the tap changes in a config that was loaded from files goes back
    into them.

    Raises:
        ConfigError: all that is wrong with the tap's own keys, burler's settings and environment variables.
        DeclarationError: the tap's declarations have gaps, or there is no stream.
    """
    loaded = config if isinstance(config, Loaded) else Loaded(dict(config))
    marked = app.config_form.secret_paths
    hide_config(loaded.config, marked=marked)
    if not app.streams and app.discover is None:
        forgotten = [cls.__name__ for cls in Stream.__subclasses__() if not cls.__name__.startswith("_")]
        hint = f"Put @tap.stream above class {forgotten[0]}. " if forgotten else ""
        raise DeclarationError(
            f"{app.name} ({app.place}): declares no stream. {hint}A stream is a function with @tap.sync('contacts')."
        )
    checked, settings = _check(app, loaded)
    log_settings.follow(settings)
    hide_config(checked, marked=marked, more=True)
    return Session(app, checked, files=ConfigFiles(loaded, checked) if loaded is config else None), settings


def _check(app: App, loaded: Loaded) -> tuple[dict[str, Any], Settings]:
    problems = [f"{app.name}: {sentence}" for sentence in loaded.problems]
    checked, settings = dict(loaded.config), Settings()
    try:
        checked = app.config_form.check(loaded.config, tap_name=app.name)
    except ConfigError as error:
        problems.append(str(error))
    try:
        settings = read_settings({**loaded.config, **checked}, loaded.variables, own=app.config_form.keys)
    except ConfigError as error:
        problems.append(f"{app.name}: {error}")
    if problems:
        raise ConfigError("\n  ".join(problems))
    return checked, settings


class Session:
    """One use of an app: its config and, once somebody asks for it, its client. ``wrap_client`` may be set
    before the first use: the tap uses what it makes of the client."""

    def __init__(self, app: App, config: dict[str, Any], *, files: ConfigFiles | None = None) -> None:
        self.app = app
        self.config = config
        self.wrap_client: Callable[[Any], Any] = lambda client: client
        self._files = files
        self._files_lock = threading.Lock()
        self._lock = threading.RLock()
        self._instances: dict[tuple[type, str], Any] = {}
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

    def save_config(self, *, last: bool = False) -> None:
        """Write back what the tap has changed in its config: a token that was refreshed must not be lost with a
        run that is killed. Cheap when nothing has changed; called after each page, and by the timer meanwhile."""
        if self._files is not None:
            with self._files_lock:
                self._files.save_if_changed(self.config, last=last)

    def close(self, *, tail: bool = False) -> None:
        """Close the client, if one was made and it can be closed, and keep what the tap has changed in its config.

        Args:
            tail: a tail stops at once when told: a client that takes longer is left behind.
        """
        if tail:
            closing = threading.Thread(target=self.clients.close, name="burler-close", daemon=True)
            closing.start()
            closing.join(_CLOSE_SECONDS)
            if closing.is_alive():
                logger.warning(
                    "%s: its client is not closed after %.0f s; it is left behind", self.app.name, _CLOSE_SECONDS
                )
        else:
            self.clients.close()
        self.save_config(last=True)

    def given(self, **more: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        """What functions may ask for, by name (see ``burler.call``)."""
        return {"client": self.client, "config": lambda: self.config, **more}

    def invoke(self, function: UserFunction, given: Given, *, stream: str) -> Any:
        """Call a function of the author's with what it asks for; a method, on its stream's instance."""
        if function.owner is None:
            return call(function.fn, function.names, given)
        with self._lock:
            key = (function.owner, stream)
            if key not in self._instances:
                self._instances[key] = function.owner()
            instance = self._instances[key]
        return call(function.fn.__get__(instance), function.names, given)

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

    def ask(self, function: UserFunction, stream: str, *, what: str, **more: Any) -> Any:
        """What a function gives that describes a stream; see ``guarded``. ``more``: what is known of the stream."""
        run = self.describing(stream, **more)
        made = partial(self.invoke, function, self.given(), stream=stream)
        return self.guarded(made, run=run, what=what, place=function.place)

    def describing(self, stream: str, *, client: Callable[[], Any] | None = None, **more: Any) -> StreamRun:
        """What stands for the running stream while it is described."""
        return StreamRun(self.app.tap, stream, config=self.config, client=client or self.client, told=self.told, **more)

    @contextlib.contextmanager
    def beside(
        self, stream: str, client_of: Callable[[], tuple[int, Any]] | None = None, **more: Any
    ) -> Iterator[tuple[StreamRun, dict[str, Callable[[], Any]]]]:
        """What stands for a stream in a function that runs beside its rounds, and what that may ask for: a client that
        it asks for is not closed meanwhile.

        Args:
            client_of: gives the client and its number, if that is not the one of now.
        """
        with contextlib.ExitStack() as held:

            def client() -> Any:
                number, made = (client_of or self.clients.get)()
                held.enter_context(self.clients.held(number))
                return made

            run = self.describing(stream, client=client, **more)
            yield run, self.given(stream=lambda: run, client=client)


class Clients:
    """The client of a tap, made once, and those that it has replaced. A client has a number: how many there were before
    it.

    Both making a client and closing one are the author's code, and may take as long as a source that is down: whoever
    waits for that holds no lock that anybody else needs.

    Args:
        make: the author's function, called by one thread at a time.
        tap: the tap's name, for the log.
    """

    def __init__(self, make: Callable[[], Any], *, tap: str) -> None:
        self._make = make
        self._tap = tap
        self._lock = threading.Lock()  # never held while code of the author's runs
        self._making = threading.RLock()
        self._made = False
        self._client: Any = None
        self._number = 0
        self._old: list[tuple[int, Any]] = []
        self._held: Counter[int] = Counter()

    def get(self, wanted: int | None = None) -> tuple[int, Any]:
        """The client and its number; made, if there is none.

        Args:
            wanted: the number of the client that is meant, if that is not closed.

        Raises:
            what the author's function raised.
        """
        with self._lock:
            earlier = next((one for one in self._old if one[0] == wanted), None)
        if earlier is not None:
            return earlier
        while True:
            with self._lock:
                if self._made:
                    return self._number, self._client
                making, number = self._making, self._number
            with making:
                with self._lock:
                    if self._made or self._number != number:
                        continue
                client = self._make()
                with self._lock:
                    if self._number == number:
                        self._client, self._made = client, True
                    else:  # it was renewed meanwhile
                        self._old.append((number, client))

    @contextlib.contextmanager
    def held(self, number: int) -> Iterator[None]:
        """While somebody beside the rounds is at the client with this number, it is not closed."""
        with self._lock:
            self._held[number] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[number] -= 1

    def renew(self, *, only: Collection[int] | None = None) -> bool:
        """The next one who asks gets a new client; ``close_old`` closes the one before. One that is being made just now
        may never come back, so it is given up, too.

        Args:
            only: not where the client of now has none of these numbers.

        Returns:
            whether it was renewed.
        """
        with self._lock:
            if only is not None and (not self._made or self._number not in only):
                return False
            if self._made:
                self._old.append((self._number, self._client))
            self._client, self._made = None, False
            self._number += 1
            self._making = threading.RLock()
            return True

    def close_old(self, *, keep: Collection[int] = ()) -> threading.Thread | None:
        """Close clients that were replaced, but for those with the numbers in ``keep``, which somebody is at: in a
        thread of its own, which is given back. What one raises is no error of the run's."""
        with self._lock:
            kept = {*keep, *(number for number, count in self._held.items() if count > 0)}
            old = [client for number, client in self._old if number not in kept]
            self._old = [(number, client) for number, client in self._old if number in kept]
        if not old:
            return None
        thread = threading.Thread(target=self._close, args=(old,), name="burler-close", daemon=True)
        thread.start()
        return thread

    def _close(self, clients: list[Any]) -> None:
        for client in clients:
            try:
                close = getattr(client, "close", None)
                if callable(close):
                    close()
            except Exception as error:
                logger.warning("%s: its client raised when it was closed: %s", self._tap, short(error))

    def close(self) -> None:
        """Close the client, if one was made and it can be closed. One that fails to close spoils no run."""
        self.close_old()
        with self._lock:
            client = self._client
        self._close([client])
