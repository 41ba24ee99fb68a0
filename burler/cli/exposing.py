"""Numbers on a tail for Prometheus: on a port of this machine, and in a file for node_exporter's textfile collector.

They are made when somebody asks for them; a row costs nothing. Every metric has the label ``tap``: the files of several
taps on one machine are read together.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from burler.cli import common
from burler.config.atomic import replace_file
from burler.errors import UsageError
from burler.extras import require
from burler.runtime import logs
from burler.runtime.report_views import StreamView
from burler.runtime.tail_watch import TailWatch
from burler.settings import Settings

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
FILE_SECONDS = 15.0
"""How often the file is written."""

_LEAVE_SECONDS = 5.0

# name, kind, help, attribute of a StreamView. Names as Prometheus wants them: base units, counters end with _total.
_OF_STREAMS = (
    ("burler_records", "counter", "Rows that came out.", "rows"),
    ("burler_repeated_records", "counter", "Rows that were dropped since they had been out before.", "repeated"),
    ("burler_errors", "counter", "Rounds, partitions and calls that failed.", "errors"),
    ("burler_failures_in_a_row", "gauge", "Rounds that failed since the last good one.", "failures"),
    ("burler_bookmark_lag_seconds", "gauge", "Time by which the bookmark lies behind now.", "lag_seconds"),
    ("burler_last_poll_timestamp_seconds", "gauge", "End of the last round that did not fail.", "last_poll_at"),
)
# the same, of a RunView.
_OF_RUN = (
    ("burler_state_messages", "counter", "STATE messages that were written.", "states"),
    ("burler_state_bytes", "counter", "Bytes of STATE messages that were written.", "state_bytes"),
    ("burler_last_state_timestamp_seconds", "gauge", "When the last STATE was written.", "last_state_at"),
    ("burler_clients_renewed", "counter", "Times that the tap's client was made anew.", "clients_renewed"),
    ("burler_run_duration_seconds", "gauge", "How long the run has lasted.", "seconds"),
)


class Collector:
    """What prometheus_client asks when somebody asks it."""

    def __init__(self, watch: TailWatch, tap_id: str, metrics: Any) -> None:
        self._watch = watch
        self._tap = str(logs.clean(tap_id))
        self._families = {"counter": metrics.CounterMetricFamily, "gauge": metrics.GaugeMetricFamily}
        self._summary = metrics.SummaryMetricFamily
        self.up = True

    def collect(self) -> Iterator[Any]:
        """All metrics, as families of prometheus_client."""
        yield self._gauge("burler_up", "1 while the tap runs, 0 once it has ended.", float(self.up))
        run = self._watch.totals()
        for name, kind, about, attribute in _OF_RUN:
            value = getattr(run, attribute)
            family = self._families[kind](name, about, labels=["tap"])
            if value is not None:
                family.add_metric([self._tap], value)
            yield family
        streams = list(_named(self._watch.snapshot()))
        for name, kind, about, attribute in _OF_STREAMS:
            family = self._families[kind](name, about, labels=["tap", "stream"])
            for stream, view in streams:
                if (value := getattr(view, attribute)) is not None:
                    family.add_metric([self._tap, stream], value)
            yield family
        yield from self._further(streams)

    def _further(self, streams: list[tuple[str, StreamView]]) -> Iterator[Any]:
        labels = ["tap", "stream"]
        rounds = self._summary("burler_poll_duration_seconds", "Rounds that have ended, and how long.", labels=labels)
        failed = self._families["gauge"]("burler_stream_failed", "1 if the stream has failed for good.", labels=labels)
        for stream, view in streams:
            rounds.add_metric([self._tap, stream], count_value=view.polls, sum_value=view.polls_seconds)
            failed.add_metric([self._tap, stream], float(view.status == "failed"))
        yield rounds
        yield failed

    def _gauge(self, name: str, about: str, value: float) -> Any:
        family = self._families["gauge"](name, about, labels=["tap"])
        family.add_metric([self._tap], value)
        return family


def _named(views: Iterable[StreamView]) -> Iterator[tuple[str, StreamView]]:
    """Names for labels: two that are the same without their secrets would make the whole answer invalid."""
    seen: Counter[str] = Counter()
    for view in views:
        name = str(view.name)
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}#{seen[name]}"), view


@contextlib.contextmanager
def exposing(watch: TailWatch, settings: Settings, *, tap_id: str) -> Iterator[None]:
    """Offer the numbers while the run goes on, as ``metrics_port`` and ``metrics_file`` say.

    Raises:
        UsageError: the port is taken; the file can't be written; prometheus_client is not installed.
    """
    if settings.metrics_port is None and settings.metrics_file is None:
        yield
        return
    client = require("prometheus_client", extra="metrics", needed_for="what metrics_port and metrics_file ask for")
    collector = Collector(watch, tap_id, require("prometheus_client.core", extra="metrics", needed_for="metrics"))
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
        _end(server, thread)


def _end(server: Any, thread: threading.Thread) -> None:
    """End the server now: left alone, it looks only twice a second whether it is to end."""
    ending = threading.Thread(target=server.shutdown, name="burler-metrics-end", daemon=True)
    ending.start()
    limit = time.monotonic() + _LEAVE_SECONDS
    while ending.is_alive() and time.monotonic() < limit:
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, server.server_port), timeout=1).close()
        ending.join(0.05)
    server.server_close()
    thread.join(_LEAVE_SECONDS)


class _Writer(threading.Thread):
    """Writes the file now and then; what goes wrong is said once, until it goes well again."""

    def __init__(self, path: str, target: Path, content: Any) -> None:
        super().__init__(name="burler-metrics", daemon=True)
        self._path, self._target, self._content = path, target, content
        self._over = threading.Event()
        self._failing = False

    def run(self) -> None:
        """Write until told to stop."""
        while True:
            self.write()
            if self._over.wait(FILE_SECONDS):
                return

    def write(self) -> None:
        """Write once. Nothing is raised: the rows are more than their numbers."""
        try:
            replace_file(self._target, self._content())
        except Exception as error:
            reason = error.strerror if isinstance(error, OSError) else logs.short(error)
            if not self._failing:
                logger.warning("metrics_file %s can't be written: %s. The run goes on without.", self._path, reason)
            self._failing = True
        else:
            self._failing = False

    def stop(self) -> None:
        """End, after a write that is under way."""
        self._over.set()
        self.join(_LEAVE_SECONDS)


@contextlib.contextmanager
def _written(path: str, content: Any, collector: Collector) -> Iterator[None]:
    target = common.replaceable("metrics_file", path, UsageError)
    writer = _Writer(path, target, content)
    writer.start()
    try:
        yield
    finally:
        writer.stop()
        collector.up = False
        writer.write()
