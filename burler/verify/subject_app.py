"""A burler tap in this process, to be verified: the same engine, with a sink that looks at what goes by and a client
that notes what it is asked. Nothing is patched."""

from __future__ import annotations

import copy
import datetime as dt
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from burler import logs
from burler.appref import find_tap
from burler.config.loading import Loaded
from burler.config.secrets import secret_values
from burler.context import running
from burler.declare.spec import StreamSpec
from burler.declare.tap import Tap
from burler.engine.catalog.discovery import discover_app
from burler.engine.run.signals import Stopper
from burler.engine.run.start import calm_collector, run_session
from burler.engine.session import open_session
from burler.errors import BurlerError, UnsortedStreamError
from burler.events import DroppedField, Event, FamilyEnded, Incomplete
from burler.records.shape.unknown import kept_schema
from burler.records.shape.values import show
from burler.singer.messages import ArrowPage, Message, Records, to_line
from burler.sinks import Sink, with_batches
from burler.spec.finding import Findings
from burler.spec.messages import MessageCheck
from burler.spec.table import RULES
from burler.verify.options import Options
from burler.verify.ordering import noting_order
from burler.verify.program import Program
from burler.verify.requests_check import check_requests
from burler.verify.requests_clients import watch_client
from burler.verify.requests_watch import RequestWatch
from burler.verify.subject import RunEnd
from burler.verify.subject_program import ProgramSubject

_FLIPS = 10


class AppSubject:
    """A burler tap.

    Args:
        config: gives the config, anew for each run: a run may change it (a token that is renewed) and save it.
        program: the same tap as a command, for how it behaves; None where there is none.
        name: as people call it.
    """

    selects_all = True

    def __init__(
        self,
        tap: Tap,
        config: Callable[[], Mapping[str, Any] | Loaded],
        *,
        program: Program | None = None,
        name: str | None = None,
    ) -> None:
        self._app, self._config, self._program = tap.seal(), config, program
        self.name = name or tap.name
        self._specs: Mapping[str, StreamSpec] = {}
        given = config()
        plain = given.config if isinstance(given, Loaded) else given
        self._secrets = tuple(secret_values(plain, marked=tap.config_form.secret_paths))

    @property
    def secrets(self) -> Collection[str]:
        """See ``Subject``."""
        return self._secrets

    def discover(self, findings: Findings, options: Options) -> tuple[Any, dict[str, str]]:
        """See ``Subject``. A burler tap's discovery fails with an error of its own: there is nothing to verify then."""
        found = discover_app(self._app, self._config())
        self._specs = found.specs
        return found.catalog.to_wire(), {}

    def sync(
        self,
        check: MessageCheck,
        findings: Findings,
        options: Options,
        *,
        run: str,
        catalog: Any,
        state: Any,
        stop: Callable[[], bool],
    ) -> RunEnd:
        """See ``Subject``."""
        stopper = Stopper()
        watcher = Watching(findings, watch_requests=options.watch_requests)
        session, settings = open_session(self._app, self._config())
        session.wrap_client = watcher.client
        sink = CheckSink(check, stop, stopper)
        try:
            with calm_collector(), noting_order(self._app.tap, watcher.order):
                result = run_session(
                    session,
                    settings,
                    with_batches(sink, settings, tap=self._app.name, state=state),
                    catalog=options.catalog,  # None selects everything, as a run without a catalog does
                    state=copy.deepcopy(state),
                    stopper=stopper,
                    listeners=[watcher],
                )
        finally:
            watcher.requests.undo()
        _tell_failures(findings, run, result.errors)
        how = (
            "stopped"
            if stopper.requested and stopper.signal is None and not result.errors
            else "failed"
            if result.errors
            else "succeeded"
        )
        if result.stopped_by is not None:  # whoever told this run to stop means the whole verification
            raise SystemExit(128 + result.stopped_by)
        unchecked: dict[str, str] = {}
        if options.watch_requests:
            unchecked = check_requests(
                watcher.requests,
                _rows_of(watcher.requests, check),
                findings,
                options.limits,
                ended_well=lambda stream: how == "succeeded" or (how == "failed" and stream not in result.errors),
                resumed=state is not None,
            )
        for stream, why in watcher.incomplete_streams.items():
            if not any((one.code, one.stream) == ("H709", stream) for one in findings):
                endpoint, colon, _ = why.partition(": ")
                findings.add("H709", f"{why}.", stream=stream, path=endpoint if colon else None)
        if not watcher.ordered:
            unchecked["O401"] = "no function that declares an order (burler.verify.ensure_ordering) gave a record"
        return RunEnd(
            how,
            result.exit_code,
            requests=watcher.requests.to_json(),
            patches=watcher.patches,
            orders=watcher.orders,
            unchecked=unchecked,
            lookbacks=_lookbacks_of(self._specs),
            held=watcher.held,
            exclusive={name for name, spec in self._specs.items() if spec.resume == "exclusive"},
        )

    def behave(
        self,
        findings: Findings,
        options: Options,
        *,
        catalog: Any,
        state: Any,
        streams: Collection[str],
        first_rows: float | None,
    ) -> dict[str, str]:
        """See ``Subject``."""
        if self._program is None:
            reason = "the tap is an object in this process, and no command"
            return {code: reason for code in RULES if (code[0] == "P" and code != "P609") or code == "B314"}
        return ProgramSubject(self._program).behave(
            findings, options, catalog=catalog, state=state, streams=streams, first_rows=first_rows
        )


def app_subject(app: str, configs: Sequence[str]) -> AppSubject:
    """The tap that APP names, with its config files: in this process, and as a command for how it behaves.

    Raises:
        AppError: there is none. ConfigError: a config can't be read.
    """
    tap = find_tap(app)
    sealed = tap.seal()
    words = tuple(word for path in configs for word in ("--config", path))
    burler = (sys.executable, "-m", "burler")

    config = partial(sealed.load_config, configs)
    secrets = AppSubject(tap, config).secrets
    # No file confirms that the rows of these runs are stored anywhere: the source is to keep them.
    acknowledges = any(spec.acknowledge is not None for spec in sealed.streams.values())
    keeps = ("--acknowledge-state-file", os.devnull) if acknowledges else ()
    program = Program(
        words=(*burler, "run", app, *words, *keeps),
        discover_words=(*burler, "discover", app, *words),
        secrets=tuple(secrets),
    )
    return AppSubject(tap, config, program=program, name=app)


class CheckSink(Sink):
    """Hands all that goes by to the checks, as the lines that would stand on stdout. Nobody is told of a STATE: these
    rows are stored nowhere, and a source that forgets what is acknowledged must keep them."""

    def __init__(self, check: MessageCheck, stop: Callable[[], bool], stopper: Stopper) -> None:
        self._check, self._stop, self._stopper = check, stop, stopper

    def write(self, message: Message) -> None:
        """Look at a message."""
        if isinstance(message, Records):
            self._check.feed(bytes(message.lines))
        else:
            assert not isinstance(message, ArrowPage)  # nobody makes one for this sink
            self._check.feed(to_line(message))
        self.tick()

    def tick(self) -> None:
        """End the run once it is enough."""
        if not self._stopper.requested and self._stop():
            self._stopper.end(now=False)


class Watching:
    """Looks on while the tap runs: at its client, the order of its records, and what the run tells."""

    def __init__(self, findings: Findings, *, watch_requests: bool) -> None:
        self.requests = RequestWatch(_stream_that_runs)
        self.patches: dict[str, dict[str, Any]] = {}
        self.orders: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.ordered = False
        self.incomplete_streams: dict[str, str] = {}
        self.held: set[str] = set()
        self._findings, self._watch_requests = findings, watch_requests
        self._lock = threading.Lock()

    def client(self, client: Any) -> Any:
        """What a client function has given; gives what the tap is to use in its place."""
        return watch_client(client, self.requests) if self._watch_requests else client

    def hear(self, event: Event) -> None:
        """See ``burler.events``."""
        if isinstance(event, FamilyEnded):
            for one in event.streams:
                if one.remarked:
                    self._dropped(one.name, one.remarks().dropped)
        elif isinstance(event, Incomplete):
            with self._lock:
                self.incomplete_streams.setdefault(event.stream, event.why)
                self.held.update(event.waiting)

    def _dropped(self, stream: str, fields: tuple[DroppedField, ...]) -> None:
        if not fields:
            return
        with self._lock:
            self.patches[stream] = kept_schema(fields)
            for field in fields:
                path = show(field.path)
                message = f"the source sends '{path}', and the stream's schema drops it ({field.count} times)"
                self._findings.add("R502", message, stream=stream, path=path, count=field.count)

    def order(self, stream: str, place: str, key: str, order: str, flip: Mapping[str, Any] | None) -> None:
        """A function that says in which order its records come has given its first (no ``flip``), or two in the other
        order."""
        self.ordered = True
        if flip is None:
            return
        with self._lock:
            message = f"{place} says {order} by '{key}', and {flip['fact']}"
            self._findings.add("O401", message, stream=stream or None, path=key, place=f"record {flip['row']}")
            if len(self.orders[stream]) < _FLIPS:
                shown = {
                    name: None if value is None else str(value)[:100] for name, value in flip.items() if name != "row"
                }
                self.orders[stream].append({"function": place, "key": key, "order": order, "row": flip["row"], **shown})


def _tell_failures(findings: Findings, run: str, errors: Mapping[str, BaseException]) -> None:
    for stream, error in errors.items():
        at = None if isinstance(error, BurlerError) else logs.place_of_error(error)
        where = "" if at is None else f" at {at}"
        told = " ".join(logs.short(error).split())
        findings.add("P609", f"{run}: the stream failed{where}: {told}", stream=stream, place=run)
        if isinstance(error, UnsortedStreamError):  # for which burler takes the bookmark back to where the run began
            findings.withdraw(("B304", "B316"), stream)


def _rows_of(requests: RequestWatch, check: MessageCheck) -> dict[str, int]:
    """How many rows a stream's requests may have brought: its own, and those of streams that asked for nothing
    (substreams whose rows came along)."""
    asking = {stream for stream, _endpoint in requests.endpoints}
    along = sum(one.rows for name, one in check.streams.items() if name not in asking)
    own = {name: one.rows for name, one in check.streams.items()}
    return {stream: own.get(stream, 0) + along for stream in {*own, *asking} if stream is not None}


def _lookbacks_of(specs: Mapping[str, StreamSpec]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, spec in specs.items():
        if spec.lookback is not None:
            back = spec.lookback
            found[name] = back.total_seconds() if isinstance(back, dt.timedelta) else float(back)
    return found


def _stream_that_runs() -> str | None:
    run = running()
    return run.name if run is not None else None
