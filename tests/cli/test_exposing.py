"""Numbers on a tail for Prometheus: on a port, and in a file."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tapprocess import ROOT, environment, write_tap

from burler.errors import MissingExtra, UsageError
from burler.testing import FakeClock, canary
from support import internals
from support.internals import exposing, logs, tail_watch
from support.internals import exposing as module

LABELS = {"tap": "tap-crm", "stream": "orders"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def watch(clock: FakeClock) -> tail_watch.TailWatch:
    made = tail_watch.TailWatch(clock, [("orders", "poll"), ("users", "full")])
    made.round_began("orders")
    made.rows("orders", 12, "2025-12-31T23:59:57Z")
    made.round_ended("orders", rows={"orders": 12}, repeated=2, seconds=0.5, status="succeeded", next_at=8.0)
    made.failed("users", ValueError("no luck"), failures=2, wait_seconds=None)
    made.state_written(100)
    clock.advance(7)
    return made


@pytest.fixture
def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


Numbers = dict[tuple[str, tuple[str, ...]], float]


def numbers_of(text: str) -> Numbers:
    """Name and labels of each number; fails on what Prometheus would not read."""
    found: Numbers = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type != "unknown", family.name
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in ("tap", "stream") if name in sample.labels)
            assert (sample.name, labels) not in found, "twice"
            found[sample.name, labels] = sample.value
    return found


def fetch(port: int) -> Numbers:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return numbers_of(answer.read().decode())


def wait_for(done: Callable[[], bool], seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.01)


# ---- on a port -----------------------------------------------------------------------------------


def test_the_numbers_of_a_run(watch: tail_watch.TailWatch, port: int):
    with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
        found = fetch(port)
    orders, users = ("tap-crm", "orders"), ("tap-crm", "users")
    ours = {key: value for key, value in found.items() if key[0].startswith("burler_")}
    assert ours == {
        ("burler_up", ("tap-crm",)): 1,
        ("burler_state_messages_total", ("tap-crm",)): 1,
        ("burler_state_bytes_total", ("tap-crm",)): 100,
        ("burler_last_state_timestamp_seconds", ("tap-crm",)): 1767225600,
        ("burler_clients_renewed_total", ("tap-crm",)): 0,
        ("burler_run_duration_seconds", ("tap-crm",)): 7,
        ("burler_records_total", orders): 12,
        ("burler_records_total", users): 0,
        ("burler_repeated_records_total", orders): 2,
        ("burler_repeated_records_total", users): 0,
        ("burler_errors_total", orders): 0,
        ("burler_errors_total", users): 1,
        ("burler_failures_in_a_row", orders): 0,
        ("burler_failures_in_a_row", users): 2,
        ("burler_bookmark_lag_seconds", orders): 10,
        ("burler_last_poll_timestamp_seconds", orders): 1767225600,
        ("burler_poll_duration_seconds_count", orders): 1,
        ("burler_poll_duration_seconds_sum", orders): 0.5,
        ("burler_poll_duration_seconds_count", users): 0,
        ("burler_poll_duration_seconds_sum", users): 0,
        ("burler_stream_failed", orders): 0,
        ("burler_stream_failed", users): 1,
    }
    assert found["process_resident_memory_bytes", ()] > 1_000_000
    told = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", module.markdown_table(), re.MULTILINE)
    assert {(name, len(labels.split(","))) for name, kind, labels in told if kind != "summary"} == {
        (name, len(labels)) for name, labels in ours if "poll_duration" not in name
    }
    assert [name for name, kind, _ in told if kind == "summary"] == ["burler_poll_duration_seconds"]


def test_counters_only_grow_and_the_lag_follows_the_clock(watch: tail_watch.TailWatch, clock: FakeClock, port: int):
    with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
        before = fetch(port)
        watch.rows("orders", 3, None)
        clock.advance(20)
        after = fetch(port)
    assert after["burler_records_total", ("tap-crm", "orders")] == 15
    assert after["burler_bookmark_lag_seconds", ("tap-crm", "orders")] == 30
    assert all(after[key] >= before[key] for key in before if key[0].endswith("_total"))


def test_a_stream_whose_bookmark_is_a_number_has_no_lag(watch: tail_watch.TailWatch, port: int):
    watch.rows("ids", 1, 17)
    with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
        found = fetch(port)
    assert ("burler_bookmark_lag_seconds", ("tap-crm", "ids")) not in found
    assert found["burler_records_total", ("tap-crm", "ids")] == 1


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks Linux who listens")
def test_nobody_else_on_the_network_can_ask(watch: tail_watch.TailWatch, port: int):
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
        listening = listeners(port)
        for address in others:
            if not str(address).startswith("127."):
                with pytest.raises(OSError), socket.create_connection((str(address), port), timeout=5):
                    pass
    assert listening == {"0100007F"}


def listeners(port: int) -> set[str]:
    """The addresses, as Linux writes them, on which somebody of this machine listens on a port."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    sockets = [[*line.split()[1].split(":"), line.split()[3]] for line in lines]
    return {address for address, number, state in sockets if int(number, 16) == port and state == "0A"}


def test_a_port_that_is_taken_is_one_clear_error(watch: tail_watch.TailWatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with (
            pytest.raises(UsageError, match=rf"metrics_port {taken}: .*127\.0\.0\.1:{taken}: Address already in use"),
            exposing.exposing(watch, internals.settings.Settings(metrics_port=taken), tap_id="tap-crm"),
        ):
            raise AssertionError("it goes on")


def test_the_port_is_free_again_at_once(watch: tail_watch.TailWatch, port: int):
    for _ in range(3):
        begun = time.monotonic()
        with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
            fetch(port)
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        assert time.monotonic() - begun < 10
    left = [one.name for one in threading.enumerate() if one.name.startswith("burler-metrics")]
    assert left == []


def test_a_client_that_says_nothing_holds_up_nobody(watch: tail_watch.TailWatch, port: int):
    with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
        silent = socket.create_connection(("127.0.0.1", port), timeout=10)
        assert fetch(port)
    silent.close()


# ---- in a file -----------------------------------------------------------------------------------


def test_the_file_is_written_at_once_now_and_then_and_at_the_end(
    watch: tail_watch.TailWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "FILE_SECONDS", 0.02)
    path = tmp_path / "crm.prom"
    key = ("burler_records_total", ("tap-crm", "orders"))
    with exposing.exposing(watch, internals.settings.Settings(metrics_file=str(path)), tap_id="tap-crm"):
        wait_for(path.exists)
        assert numbers_of(path.read_text())[key] == 12
        watch.rows("orders", 1, None)
        wait_for(lambda: numbers_of(path.read_text())[key] == 13)
        assert numbers_of(path.read_text())["burler_up", ("tap-crm",)] == 1
        watch.rows("orders", 2, None)
    found = numbers_of(path.read_text())
    assert (found[key], found["burler_up", ("tap-crm",)]) == (14, 0)
    assert not [name for name, _ in found if name.startswith("process_")]
    assert [one.name for one in tmp_path.iterdir()] == ["crm.prom"]


def test_whoever_reads_sees_a_whole_file(watch: tail_watch.TailWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "FILE_SECONDS", 0.0)
    path = tmp_path / "crm.prom"
    sizes = set()
    with exposing.exposing(watch, internals.settings.Settings(metrics_file=str(path)), tap_id="tap-crm"):
        wait_for(path.exists)
        for n in range(100):
            watch.rows(f"stream_{n}", 1, None)
            sizes.add(len(numbers_of(path.read_text())))
    assert min(sizes) > 15


@pytest.mark.parametrize("trouble", ["no folder", "a folder in its place"])
def test_a_file_that_can_no_longer_be_written_is_one_warning(
    watch: tail_watch.TailWatch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
):
    monkeypatch.setattr(module, "FILE_SECONDS", 0.01)
    folder, path = tmp_path / "metrics", tmp_path / "metrics" / "crm.prom"
    folder.mkdir()

    def count() -> int:
        return len([one for one in caplog.records if one.levelno == logging.WARNING])

    with (
        caplog.at_level(logging.INFO, logger="burler"),
        exposing.exposing(watch, internals.settings.Settings(metrics_file=str(path)), tap_id="tap-crm"),
    ):
        wait_for(path.exists)
        # It is written all the while: the folder goes at once, and the file may be there again before a folder is.
        if trouble == "no folder":
            folder.rename(tmp_path / "gone")
        while trouble != "no folder" and not path.is_dir():
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                path.unlink()
                path.mkdir()
        wait_for(lambda: count() > 0)
        time.sleep(0.1)
        assert count() == 1
        if trouble == "no folder":
            folder.mkdir()
        else:
            path.rmdir()
        wait_for(path.is_file)
        folder.rename(tmp_path / "gone again")
        wait_for(lambda: count() == 2)
    assert "metrics_file" in caplog.records[-1].getMessage()
    assert count() == 2


@pytest.mark.parametrize("name", ["missing/crm.prom", ".", ""])
def test_a_file_that_can_never_be_written_ends_the_run_before_it_begins(
    watch: tail_watch.TailWatch, tmp_path: Path, name: str
):
    path = str(tmp_path / name) if name else ""
    with (
        pytest.raises(UsageError, match="metrics_file"),
        exposing.exposing(watch, internals.settings.Settings(metrics_file=path), tap_id="tap-crm"),
    ):
        raise AssertionError("it goes on")


# ---- secrets, names, the package -----------------------------------------------------------------


def test_no_secret_is_in_a_label(clock: FakeClock, port: int):
    password = canary("password")
    logs.hide({"password": password})
    try:
        watch = tail_watch.TailWatch(clock, [(f"a{password}", "poll"), ("b", "poll"), (f"a{password}", "poll")])
        watch.rows(f"{password}", 1, f"{password}")
        watch.rows(f"x{password}", 2, None)
        watch.failed("b", ValueError(password), failures=1, wait_seconds=1.0)
        with (
            exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id=f"tap-{password}"),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer,
        ):
            text = answer.read().decode()
    finally:
        logs.hide({})
    assert password not in text
    assert {labels for _, labels in numbers_of(text) if len(labels) == 2} == {
        ("tap-***", name) for name in ("a***", "b", "***", "x***")
    }


def test_names_that_are_the_same_without_their_secrets_stay_apart(clock: FakeClock, port: int):
    one, other = canary("first password"), canary("second password")
    logs.hide({"password": one, "token": other})
    try:
        watch = tail_watch.TailWatch(clock, [(f"s-{one}", "poll"), (f"s-{other}", "poll")])
        with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
            found = fetch(port)
    finally:
        logs.hide({})
    assert [labels[1] for name, labels in found if name == "burler_records_total"] == ["s-***", "s-***#2"]


def test_names_may_hold_anything(clock: FakeClock, port: int):
    names = ['a "quoted" \\ one', "two\nlines", "Zürich", "", "{x=1}"]
    watch = tail_watch.TailWatch(clock, [(name, "poll") for name in names])
    with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
        found = fetch(port)
    assert [labels[1] for name, labels in found if name == "burler_records_total"] == names


def test_names_of_metrics_are_as_prometheus_wants_them(watch: tail_watch.TailWatch, port: int):
    with (
        exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer,
    ):
        families = list(text_string_to_metric_families(answer.read().decode()))
    for family in families:
        if family.name.startswith("burler_"):
            assert re.fullmatch(r"burler_[a-z]+(_[a-z]+)*", family.name)
            assert not re.search(r"_(ms|minutes|total|milliseconds|count)$", family.name)
            assert all(LABELS.keys() >= sample.labels.keys() for sample in family.samples)


def test_without_the_package_the_error_says_how_to_install_it(
    watch: tail_watch.TailWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real = importlib.import_module

    def missing(name: str, *given: str) -> ModuleType:
        if name.startswith("prometheus_client"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *given)

    monkeypatch.setattr(importlib, "import_module", missing)
    with exposing.exposing(watch, internals.settings.Settings(tail=True), tap_id="tap-crm"):
        pass  # not asked for
    settings = internals.settings.Settings(metrics_file=str(tmp_path / "crm.prom"))
    with (
        pytest.raises(MissingExtra, match="install 'prometheus-client>="),
        exposing.exposing(watch, settings, tap_id="tap-crm"),
    ):
        raise AssertionError("it goes on")
    assert list(tmp_path.iterdir()) == []


# ---- whole processes -----------------------------------------------------------------------------

TAP = """
    import burler
    tap = burler.tap("tap-x")

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc")
    def rows(stream):
        first = (stream.bookmark or 0) + 1
        yield from ({"id": first + i, "text": "x"} for i in range(3))

    tap.schema("rows", SCHEMA)
"""


@contextlib.contextmanager
def tail(folder: Path, **settings: object) -> Iterator[subprocess.Popen[bytes]]:
    write_tap(folder, TAP)
    (folder / "config.json").write_text(json.dumps({"tail": True, "new_record_polling_interval_ms": 50, **settings}))
    process = subprocess.Popen(
        [sys.executable, "-m", "burler", "run", "tap_x.py", "--config", "config.json"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_tail_offers_its_numbers_on_a_port_and_in_a_file(tmp_path: Path, port: int):
    path = tmp_path / "x.prom"
    with tail(tmp_path, metrics_port=port, metrics_file="x.prom", tap_id="tap-mine") as process:
        rows = ("burler_records_total", ("tap-mine", "rows"))

        def seen() -> bool:
            with contextlib.suppress(OSError):
                return fetch(port).get(rows, 0) >= 9
            return False

        wait_for(seen)
        found = fetch(port)
        assert found["burler_poll_duration_seconds_count", ("tap-mine", "rows")] >= 3
        assert found["burler_up", ("tap-mine",)] == 1
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"INFO metrics: http://127.0.0.1:{port}/metrics" in log.decode()
    at_the_end = numbers_of(path.read_text())
    assert at_the_end["burler_up", ("tap-mine",)] == 0
    assert at_the_end[rows] >= found[rows]
    assert at_the_end["burler_state_messages_total", ("tap-mine",)] >= 1


def test_a_tail_whose_port_is_taken_writes_no_message(tmp_path: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        write_tap(tmp_path, TAP)
        taken = other.getsockname()[1]
        (tmp_path / "config.json").write_text(json.dumps({"tail": True, "metrics_port": taken}))
        done = subprocess.run(
            [sys.executable, "-m", "burler", "run", "tap_x.py", "--config", "config.json"],
            cwd=tmp_path,
            capture_output=True,
            env=environment(),
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"CRITICAL metrics_port {taken}: can't listen" in done.stderr.decode()


# ---- the docs ------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8").partition("### With Prometheus")[2]


def test_the_docs_name_every_metric_and_no_other(watch: tail_watch.TailWatch, port: int):
    with exposing.exposing(watch, internals.settings.Settings(metrics_port=port), tap_id="tap-crm"):
        there = {name for name, _ in fetch(port) if name.startswith("burler_")}
    named = set(re.findall(r"`(burler_\w+)`", module.markdown_table()))
    assert {re.sub(r"(_duration_seconds)_(count|sum)$", r"\1", name) for name in there} == named
    assert set(re.findall(r"burler_[a-z_]+", PAGE)) <= named


def test_the_rules_in_the_docs_are_yaml():
    config, rules = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    assert config["scrape_configs"][0]["static_configs"][0]["targets"] == [f"{module.HOST}:9108"]
    alerts = rules["groups"][0]["rules"]
    assert all(re.search(r"burler_|up\{", one["expr"]) for one in alerts)
    assert f"every {module.FILE_SECONDS:.0f} seconds" in PAGE
