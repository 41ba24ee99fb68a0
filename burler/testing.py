"""Run a tap in a test: declare, run, compare messages.

from burler.testing import run_tap

def test_contacts():
    messages = run_tap(tap, config={"base_url": "..."}).messages
    assert [m["record"] for m in messages if m["type"] == "RECORD"] == [...]
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from burler.clock import Clock, FakeClock
from burler.config.canaries import canaries_in, canary
from burler.context import Call, Channel, StreamRun, bind, unbind
from burler.declare.tap import Tap
from burler.engine.catalog.discovery import discover_app
from burler.engine.run.signals import Stopper
from burler.engine.run.start import run_session
from burler.engine.run.sync import SyncResult
from burler.engine.session import open_session
from burler.errors import UsageError
from burler.numbers import is_count
from burler.singer.catalog import Catalog
from burler.singer.messages import ArrowPage, Message, Records, State, parse_line
from burler.sinks import Sink, with_batches

if TYPE_CHECKING:
    from burler.source_state import SourceStates
    from burler.spec.limits import Limits
    from burler.verify.result import Verification

__all__ = [
    "FakeClock",
    "MemorySink",
    "TapRun",
    "bind_stream",
    "canaries_in",
    "canary",
    "discover",
    "run_tap",
    "verify_class",
    "verify_tap",
    "without_times",
]


class _Bound(TypedDict, total=False):
    """What ``bind_stream`` takes beside the bookmark."""

    state: dict[str, Any] | None
    selected: frozenset[str]
    schema: Mapping[str, Any] | None
    metadata: Mapping[tuple[str, ...], Mapping[str, Any]]
    config: Mapping[str, Any] | None
    client: Callable[[], Any] | None
    key_properties: tuple[str, ...]
    replication_key: str | None
    replication_method: str | None
    partition: Mapping[str, Any] | None
    start_date: str | None
    manual: bool
    in_parts: bool
    source_state: SourceStates
    schemas: Mapping[str, Mapping[str, Any]]
    resumable_by: str | None
    sends_versions: bool
    tailing: bool


class _Verified(TypedDict, total=False):
    """What a verification takes beside ``ignore``."""

    select: Iterable[str]
    per_stream_ignores: Mapping[str, Iterable[str]] | None
    limits: Limits | None
    catalog: Any
    state: Mapping[str, Any] | None
    max_records: int | None
    max_seconds: float | None
    resume: bool


@dataclass(frozen=True, slots=True)
class TapRun:
    """What a run gave: every message as a plain dict, and how it ended."""

    messages: list[dict[str, Any]]
    result: SyncResult

    def records(self, stream: str) -> list[dict[str, Any]]:
        """The rows of one stream, in order."""
        return [m["record"] for m in self.messages if m["type"] == "RECORD" and m["stream"] == stream]

    @property
    def states(self) -> list[dict[str, Any]]:
        """The values of all STATEs, in order."""
        return [m["value"] for m in self.messages if m["type"] == "STATE"]

    @property
    def types(self) -> list[str]:
        """The types of all messages, in order: ``["SCHEMA", "RECORD", "STATE"]``."""
        return [m["type"] for m in self.messages]


class MemorySink(Sink):
    """Keeps every message in ``messages``, one dict each, as they would stand on the wire."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.closed = False

    def write(self, message: Message) -> None:
        """Keep a message; a page becomes its RECORDs."""
        if isinstance(message, Records):
            self.messages += [parse_line(line) for line in bytes(message.lines).splitlines()]
        else:
            assert not isinstance(message, ArrowPage)  # nobody makes one for this sink
            self.messages.append(copy.deepcopy(message.to_wire()))
        if isinstance(message, State) and self._told is not None:
            self._told(message)

    def close(self, *, complete: bool) -> None:
        """Note the end."""
        self.closed = True


def run_tap(
    tap: Tap,
    config: dict[str, Any] | None = None,
    *,
    state: dict[str, Any] | None = None,
    catalog: Any = None,
    select: str | None = None,
    stopper: Stopper | None = None,
    limit: int | None = None,
    schemas_only: bool = False,
    clock: Clock | None = None,
) -> TapRun:
    """Run a tap into memory. Errors of streams stand in ``result.errors``, as in a real run.

    Args:
        limit: rows of each stream; then there is no STATE. ``schemas_only``: SCHEMA messages alone.
        clock: a ``FakeClock`` lets the waits of a tail pass at once.

    Raises:
        UsageError: config, catalog, state or the declarations are wrong.
    """
    sink = MemorySink()
    if limit is not None and not is_count(limit, 1):
        raise UsageError(
            f"limit must be a whole number above 0, not {limit!r:.60}. For SCHEMA lines only: schemas_only=True"
        )
    session, settings = open_session(tap.seal(), dict(config or {}))
    result = run_session(
        session,
        settings,
        with_batches(sink, settings, tap=tap.name, state=state),
        catalog=catalog,
        state=state,
        select=select,
        stopper=stopper,
        limit=limit,
        schemas_only=schemas_only,
        clock=clock,
    )
    return TapRun(sink.messages, result)


def discover(tap: Tap, config: Mapping[str, Any] | None = None) -> Catalog:
    """The tap's catalog: its streams with their schemas, keys and metadata, as ``--discover`` prints them.

        assert discover(tap, config).entries["orders"].key_properties == ("id",)

    Raises:
        UsageError: the config or the declarations are wrong; what discovery found does not fit.
    """
    return discover_app(tap.seal(), dict(config or {})).catalog


@contextlib.contextmanager
def bind_stream(tap: Tap, stream: str, *, bookmark: Any = None, **more: Unpack[_Bound]) -> Iterator[StreamRun]:
    """Make ``tap.get_bookmark()`` and the like work in a test that calls a sync function itself.

    Gives the object that the parameter ``stream`` would hold.
    """
    run = StreamRun(tap, stream, call=Call(bookmark, _TakingChannel()), **more)
    token = bind(run)
    try:
        yield run
    finally:
        unbind(token)


class _TakingChannel(Channel):
    """Takes what is emitted, and keeps the bookmarks that are saved (None: as far as the rows go)."""

    def __init__(self) -> None:
        self.saved: list[Any] = []

    def rows(self, emitter: str, stream: str, rows: Iterable[Any]) -> None:
        """Read them."""
        for _row in rows:
            pass

    def save_bookmark(self, stream: str, value: Any, *, given: bool) -> None:
        """Keep it."""
        self.saved.append(value)

    def version_begins(self, stream: str) -> None:
        """Nothing."""

    def not_modified(self, stream: str) -> None:
        """Nothing."""


def without_times(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages less ``time_extracted``, and with versions counted from 1, in STATEs too: what two runs of
    the same input have in common."""
    versions: dict[int, int] = {}

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        out = {key: plain(value) for key, value in node.items() if key != "time_extracted"}
        if isinstance(out.get("version"), int):
            out["version"] = versions.setdefault(out["version"], len(versions) + 1)
        return out

    return [message if message["type"] == "SCHEMA" else plain(message) for message in messages]


Config = Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None


def verify_tap(
    tap: Tap, config: Config = None, *, ignore: Iterable[str] = (), **options: Unpack[_Verified]
) -> Verification:
    """Verify a tap in a test (docs/verify.md): discovery, a run, and runs that are resumed from its STATEs.

        assert not verify_tap(tap, {"base_url": server.url}).findings

    Args:
        config: the config, or a function that gives it.
        ignore: codes of rules that are not looked at.
        options: ``select`` (codes of rules), ``per_stream_ignores``, ``limits``, ``catalog``, ``state``,
            ``max_records``, ``max_seconds``, ``resume``: see docs/verify.md.

    Raises:
        UsageError: config, catalog or the declarations are wrong; an unknown rule.
    """
    from burler.verify.in_tests import verification_of

    return verification_of(tap, config, ignore=ignore, **options)


def verify_class(tap: Tap, config: Config = None, *, ignore: Iterable[str] = (), **options: Unpack[_Verified]) -> type:
    """A class of tests, one for each rule and stream, for pytest::

        TestRules = burler.testing.verify_class(tap, config={"base_url": "..."}, ignore=["B324"])

    The tap runs once, when the first of them does. A rule that could not be looked at is skipped with the reason.
    ``config`` may be a function, so that a server can be started before.
    """
    from burler.spec.choice import Choice, check_choice
    from burler.spec.table import RULES
    from burler.verify.in_tests import cases_of, outcome_of

    ignore = tuple(ignore)
    per_stream = {stream: tuple(codes) for stream, codes in (options.get("per_stream_ignores") or {}).items()}
    choice = Choice(tuple(options.get("select", ("ALL",))), ignore, per_stream)
    check_choice(choice, RULES)
    streams = sorted(name for name, spec in tap.seal().streams.items() if not spec.is_pattern)
    cases = cases_of(streams, choice, behaviour=False)
    done: list[Verification] = []

    class TestRules:
        """The rules of Singer, one by one."""

        def pytest_generate_tests(self, metafunc: Any) -> None:
            if "case" in metafunc.fixturenames:
                metafunc.parametrize("case", cases, ids=[case.name for case in cases])

        def test_rule(self, case: Any) -> None:
            import pytest

            if not done:
                done.append(verify_tap(tap, config, ignore=ignore, **options))
            outcome, text = outcome_of(case, done[0], streams)
            if outcome == "skipped":
                pytest.skip(text)
            assert outcome == "passed", text

    return TestRules
