"""Numbers on a tail for Prometheus: on a port of this machine, and in a file for node_exporter's textfile collector.

They are made when somebody asks for them; a row costs nothing. Every metric has the label ``tap``: the files of several
taps on one machine are read together.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from burler import logs
from burler.cli import common
from burler.config.secrets import masked
from burler.errors import UsageError
from burler.extras import require
from burler.localfile import replace_file
from burler.report.stats import RunStats, StreamStats
from burler.settings import Settings

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
FILE_SECONDS = 15.0
"""How often the file is written."""

_SOON_SECONDS = 1.0  # until the first stream has begun
_LEAVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Number:
    """One metric. Names as Prometheus wants them: base units; those of counters get ``_total`` when they are told.

    Attributes:
        about: its HELP text, also in the docs.
        attribute: where it stands in RunStats, or in StreamStats; empty where more is to be done.
    """

    name: str
    kind: str
    about: str
    attribute: str = ""

    @property
    def told(self) -> str:
        """The name that Prometheus sees."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


_UP = Number("burler_up", "gauge", "1 while the tap runs, 0 once it has ended.")
_OF_RUN = (
    Number("burler_state_messages", "counter", "STATE messages that were written.", "states"),
    Number("burler_state_bytes", "counter", "Bytes of STATE messages that were written.", "state_bytes"),
    Number("burler_last_state_timestamp_seconds", "gauge", "When the last STATE was written.", "last_state_at"),
    Number(
        "burler_clients_renewed",
        "counter",
        "Times that the tap's client was made anew: SIGHUP, lost connections.",
        "clients_renewed",
    ),
    Number("burler_run_duration_seconds", "gauge", "How long the run has lasted.", "seconds"),
)
_OF_STREAMS = (
    Number("burler_records", "counter", "Rows that came out.", "rows"),
    Number("burler_repeated_records", "counter", "Rows that were dropped since they had been out before.", "repeated"),
    Number("burler_errors", "counter", "Rounds, partitions and calls that failed.", "errors"),
    Number("burler_failures_in_a_row", "gauge", "Rounds that failed since the last good one.", "failures"),
    Number(
        "burler_bookmark_lag_seconds",
        "gauge",
        "Time by which the bookmark lies behind now; of bookmarks that are times.",
        "lag_seconds",
    ),
    Number(
        "burler_last_poll_timestamp_seconds",
        "gauge",
        "End of the last round that did not fail; of a tail function, its last rows.",
        "polled_at",
    ),
)
_ROUNDS = Number("burler_poll_duration_seconds", "summary", "Rounds that have ended (_count), and how long (_sum).")
_FAILED = Number("burler_stream_failed", "gauge", "1 if the stream has failed for good.")


def markdown_table() -> str:
    """All of them as a Markdown table, for the docs."""
    rows = ["| metric | kind | labels | is |", "|---|---|---|---|"]
    for labels, numbers in (("`tap`", (_UP, *_OF_RUN)), ("`tap`, `stream`", (*_OF_STREAMS, _ROUNDS, _FAILED))):
        rows += [f"| `{each.told}` | {each.kind} | {labels} | {each.about} |" for each in numbers]
    return "\n".join(rows) + "\n"


class Collector:
    """What prometheus_client asks when somebody asks it."""

    def __init__(self, stats: RunStats, tap_id: str, metrics: Any) -> None:
        self._stats = stats
        self._tap = str(masked(tap_id))
        self._families = {
            "counter": metrics.CounterMetricFamily,
            "gauge": metrics.GaugeMetricFamily,
            "summary": metrics.SummaryMetricFamily,
        }
        self.up = True

    @property
    def has_streams(self) -> bool:
        """Whether any stream has begun."""
        return bool(self._stats.streams)

    def collect(self) -> Iterator[Any]:
        """All metrics, as families of prometheus_client."""
        up = self._family(_UP, ["tap"])
        up.add_metric([self._tap], float(self.up))
        yield up
        for number in _OF_RUN:
            value = getattr(self._stats, number.attribute)
            family = self._family(number, ["tap"])
            if value is not None:
                family.add_metric([self._tap], value)
            yield family
        streams = list(_named(self._stats.known))
        for number in _OF_STREAMS:
            family = self._family(number, ["tap", "stream"])
            for stream, view in streams:
                if (value := getattr(view, number.attribute)) is not None:
                    family.add_metric([self._tap, stream], value)
            yield family
        yield from self._further(streams)

    def _further(self, streams: list[tuple[str, StreamStats]]) -> Iterator[Any]:
        rounds, failed = (self._family(number, ["tap", "stream"]) for number in (_ROUNDS, _FAILED))
        for stream, view in streams:
            rounds.add_metric([self._tap, stream], count_value=view.rounds, sum_value=view.seconds or 0.0)
            failed.add_metric([self._tap, stream], float(view.doing == "failed"))
        yield rounds
        yield failed

    def _family(self, number: Number, labels: list[str]) -> Any:
        return self._families[number.kind](number.name, number.about, labels=labels)


def _named(views: Iterable[StreamStats]) -> Iterator[tuple[str, StreamStats]]:
    """Names for labels: two that are the same without their secrets would make the whole answer invalid."""
    seen: Counter[str] = Counter()
    for view in views:
        name = view.shown_name
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}#{seen[name]}"), view


@contextlib.contextmanager
def exposing(stats: RunStats, settings: Settings, *, tap_id: str) -> Iterator[None]:
    """Offer the numbers while the run goes on, as ``metrics_port`` and ``metrics_file`` say.

    Raises:
        UsageError: the port is taken; the file can't be written; prometheus_client is not installed.
    """
    if settings.metrics_port is None and settings.metrics_file is None:
        yield
        return
    client = require("prometheus_client", extra="metrics", needed_for="what metrics_port and metrics_file ask for")
    collector = Collector(stats, tap_id, require("prometheus_client.core", extra="metrics", needed_for="metrics"))
    registry = client.CollectorRegistry()
    registry.register(collector)
    with contextlib.ExitStack() as stack:
        if settings.metrics_file is not None:
            stack.enter_context(_written(settings.metrics_file, lambda: client.generate_latest(registry), collector))
        if settings.metrics_port is not None:
            stack.enter_context(_served(settings.metrics_port, client, collector))
        yield


@contextlib.contextmanager
def _served(port: int, client: Any, collector: Collector) -> Iterator[None]:
    """The numbers, and those of the process (memory, CPU, open files), on a port of this machine."""
    registry = client.CollectorRegistry()
    registry.register(collector)
    client.ProcessCollector(registry=registry)
    try:
        server, thread = client.start_http_server(port, addr=HOST, registry=registry)
    except OSError as error:
        raise UsageError(
            f"metrics_port {port}: can't listen on {HOST}:{port}: {error.strerror or error}. Another program, or "
            "another run of a tap, may have it; give each a port of its own."
        ) from None
    logger.info("metrics: http://%s:%d/metrics", HOST, server.server_port)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_LEAVE_SECONDS)


@contextlib.contextmanager
def _written(path: str, content: Callable[[], bytes], collector: Collector) -> Iterator[None]:
    """The file, written now and then, and at the end; what goes wrong is said once, until it goes well again."""
    target = common.replaceable("metrics_file", path, UsageError)
    over, failing = threading.Event(), threading.Event()

    def write() -> None:
        try:
            replace_file(target, content())
        except Exception as error:  # the rows are more than their numbers
            reason = error.strerror if isinstance(error, OSError) else logs.short(error)
            if not failing.is_set():
                logger.warning("metrics_file %s can't be written: %s. The run goes on without.", path, reason)
            failing.set()
        else:
            failing.clear()

    def keep_writing() -> None:
        write()
        while not over.wait(FILE_SECONDS if collector.has_streams else _SOON_SECONDS):
            write()

    thread = threading.Thread(target=keep_writing, name="burler-metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_LEAVE_SECONDS)
        collector.up = False
        write()
