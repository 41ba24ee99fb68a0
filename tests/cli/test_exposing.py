"""Numbers on a tail for Prometheus, on a port and in a file: the taps here look at their own."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tapprocess import write_tap

from support.cli import Ended, burler, environment

# Each round of `looks` keeps what the port, the file and the kernel say meanwhile.
TAP = """
import datetime, json, pathlib, urllib.request
import burler

tap = burler.tap("tap-crm", config_spec={"type": "object", "properties": {"password": {"secret": True}}})
rounds = []
AT = {"type": "string", "format": "date-time"}


@tap.sync("orders", key_properties="id", replication_key="at", order="asc",
          schema={"properties": {"id": {"type": "integer"}, "at": AT}})
def orders():
    yield {"id": 1, "at": "2024-05-01T00:00:00Z"}
    yield {"id": 2, "at": "2024-05-02T00:00:00Z"}


@tap.sync("ids", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
def ids(stream):
    yield {"id": (stream.bookmark or 0) + 1}


@tap.sync("users", key_properties="id", replication_key="id", schema=SCHEMA)
def users():
    raise ValueError("no luck")
    yield


MORE

@tap.sync("looks", key_properties="id", replication_key="id", order="asc", schema=SCHEMA)
def looks(config, stream):
    rounds.append(1)
    found = pathlib.Path(f"seen-{len(rounds)}")
    if port := config.get("metrics_port"):
        HOLD
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            found.write_bytes(answer.read())
        pathlib.Path("sockets").write_text(pathlib.Path("/proc/net/tcp").read_text())
    file = pathlib.Path(config.get("metrics_file") or "none")
    if file.exists():
        pathlib.Path(f"file-{len(rounds)}").write_bytes(file.read_bytes())
    LATER
    yield {"id": len(rounds)}
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def tail(folder: Path, config: dict[str, Any], *, more: str = "", hold: str = "", later: str = "") -> Ended:
    """Three rounds of the tap."""
    source = TAP.replace("MORE\n", more).replace("HOLD", hold or "pass").replace("LATER", later or "pass")
    write_tap(folder, source)
    told = {
        "tail": True,
        "tail_max_rounds": 3,
        "tail_stop_on_failure": False,
        "new_record_polling_interval_ms": 20,
        "tail_max_retries": 0,
    }
    (folder / "config.json").write_text(json.dumps({**told, **config}))
    return burler("run", "tap_x.py", "-c", "config.json", cwd=folder)


Numbers = dict[tuple[str, tuple[str, ...]], float]


def numbers_of(text: str) -> Numbers:
    """Name and labels of each number; fails on what Prometheus would not read."""
    found: Numbers = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type != "unknown", family.name
        if family.name.startswith("burler_"):
            assert re.fullmatch(r"burler_[a-z]+(_[a-z]+)*", family.name)
            assert not re.search(r"_(ms|minutes|total|milliseconds|count)$", family.name)
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in ("tap", "stream") if name in sample.labels)
            assert (sample.name, labels) not in found, "twice"
            found[sample.name, labels] = sample.value
    return found


def numbers_in(path: Path) -> Numbers:
    return numbers_of(path.read_text())


def streams_of(found: Numbers) -> list[str]:
    return [labels[1] for name, labels in found if name == "burler_records_total"]


# ---- on a port -----------------------------------------------------------------------------------


def test_the_numbers_of_a_run(tmp_path: Path, port: int, docs_pages: dict[str, str]):
    ended = tail(tmp_path, {"metrics_port": port, "metrics_file": "x.prom", "state_message_min_interval_ms": 1})
    assert ended.code == 1 and "no luck" in ended.stderr  # `users` has failed for good
    assert f"INFO metrics: http://127.0.0.1:{port}/metrics" in ended.stderr
    first, last = numbers_in(tmp_path / "seen-1"), numbers_in(tmp_path / "seen-3")
    run, orders, ids, users = ("tap-crm",), ("tap-crm", "orders"), ("tap-crm", "ids"), ("tap-crm", "users")
    assert last["burler_up", run] == 1
    assert 0 < last["burler_run_duration_seconds", run] < 100 and last["burler_clients_renewed_total", run] == 0
    assert last["burler_records_total", orders] >= 2 and last["burler_repeated_records_total", orders] >= 1
    assert last["burler_errors_total", orders] == 0 and last["burler_failures_in_a_row", orders] == 0
    lag = time.time() - 1714608000
    assert lag - 100 < last["burler_bookmark_lag_seconds", orders] <= lag
    assert ("burler_bookmark_lag_seconds", ids) not in last and last["burler_records_total", ids] >= 2
    assert abs(last["burler_last_poll_timestamp_seconds", orders] - time.time()) < 100
    assert last["burler_poll_duration_seconds_count", orders] >= 2
    assert 0 < last["burler_poll_duration_seconds_sum", orders] < 100
    assert (last["burler_errors_total", users], last["burler_failures_in_a_row", users]) == (1, 1)
    assert (last["burler_stream_failed", orders], last["burler_stream_failed", users]) == (0, 1)
    assert last["process_resident_memory_bytes", ()] > 1_000_000
    assert all(last[key] >= first[key] for key in first if key[0].endswith("_total"))

    there = {re.sub(r"(_duration_seconds)_(count|sum)$", r"\1", name) for name, _ in numbers_in(tmp_path / "x.prom")}
    page = docs_pages["reports.md"].partition("### With Prometheus")[2]
    assert set(re.findall(r"^\| `(burler_\w+)` \|", page, re.MULTILINE)) == there
    assert set(re.findall(r"burler_[a-z_]+", page)) <= there

    at_the_end = numbers_in(tmp_path / "x.prom")
    assert numbers_in(tmp_path / "file-3")["burler_up", run] == 1 and at_the_end["burler_up", run] == 0
    assert at_the_end["burler_records_total", ids] == 3
    assert at_the_end["burler_state_messages_total", run] >= 1 and at_the_end["burler_state_bytes_total", run] > 50
    assert abs(at_the_end["burler_last_state_timestamp_seconds", run] - time.time()) < 100
    assert not [name for name, _ in at_the_end if name.startswith("process_")]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]

    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
    assert [one.name for one in threading.enumerate() if one.name.startswith("burler-metrics")] == []


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks Linux who listens")
def test_nobody_else_on_the_network_can_ask_and_who_says_nothing_holds_up_nobody(tmp_path: Path, port: int):
    hold = 'import socket; silent = socket.create_connection(("127.0.0.1", port), timeout=10)'
    tail(tmp_path, {"metrics_port": port}, hold=hold, later="silent.close()")
    assert len(list(tmp_path.glob("seen-*"))) == 3
    lines = (tmp_path / "sockets").read_text().splitlines()[1:]
    sockets = [[*line.split()[1].split(":"), line.split()[3]] for line in lines]
    listening = {address for address, number, state in sockets if int(number, 16) == port and state == "0A"}
    assert listening == {"0100007F"}


def test_a_port_that_is_taken_is_one_clear_error(tmp_path: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        ended = tail(tmp_path, {"metrics_port": taken})
    assert (ended.code, ended.stdout) == (2, b"")
    assert f"metrics_port {taken}: can't listen on 127.0.0.1:{taken}: Address already in use" in ended.one_critical()


# ---- in a file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["pathlib.Path('metrics').rename('gone')", "file.unlink() or file.mkdir()"])
def test_a_file_that_can_no_longer_be_written_is_one_warning(tmp_path: Path, trouble: str):
    (tmp_path / "metrics").mkdir()
    once = f"if len(rounds) == 1:\n        while not file.exists(): pass\n        {trouble}"
    ended = tail(tmp_path, {"metrics_file": "metrics/crm.prom"}, later=once)
    told = [line for line in ended.lines("WARNING") if "metrics_file" in line]
    assert len(told) == 1
    assert ended.messages[-1]["type"] == "STATE"


@pytest.mark.parametrize("name", ["missing/crm.prom", ".", ""])
def test_a_file_that_can_never_be_written_ends_the_run_before_it_begins(tmp_path: Path, name: str):
    ended = tail(tmp_path, {"metrics_file": name})
    assert (ended.code, ended.stdout) == (2, b"")
    assert "metrics_file" in ended.one_critical()


@pytest.mark.nightly
def test_the_file_is_written_now_and_then(tmp_path: Path):
    """At night: every 15 seconds."""
    with running(tmp_path, metrics_file="x.prom"):
        path, limit = tmp_path / "x.prom", time.monotonic() + 60
        while not path.exists() or numbers_in(path).get(("burler_records_total", ("tap-x", "rows")), 0) < 6:
            assert time.monotonic() < limit
            time.sleep(0.01)
        assert numbers_in(path)["burler_up", ("tap-x",)] == 1


# ---- secrets, names, the package -----------------------------------------------------------------


def test_names_may_hold_anything_but_secrets(tmp_path: Path, port: int):
    password, other = "hush-hush-number-one", "hush-hush-number-two"
    names = ['a "quoted" \\ one', "two\nlines", "Zürich", "{x=1}", f"a{password}", f"a{other}", password]
    more = f"""
for name in json.loads({json.dumps(json.dumps(names))!s}):
    tap.sync(name, key_properties="id", replication_key="id", schema=SCHEMA)(lambda: [{{"id": 1}}])
"""
    config = {"metrics_port": port, "tap_id": f"tap-{password}", "password": password, "api_token": other}
    tail(tmp_path, config, more=more)
    text = (tmp_path / "seen-3").read_text()
    assert password not in text and other not in text
    found = numbers_of(text)
    assert {labels[0] for _name, labels in found if labels} == {"tap-***"}
    assert [name for name in streams_of(found) if name not in ("orders", "ids", "users", "looks")] == [
        *names[:4], "a***", "a***#2", "***",
    ]  # fmt: skip


def test_without_the_package_the_error_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = importlib.import_module

    def missing(name: str, *given: str) -> ModuleType:
        if name.startswith("prometheus_client"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *given)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert tail(tmp_path, {}).messages  # not asked for
    ended = tail(tmp_path, {"metrics_file": "crm.prom"})
    assert ended.code == 2 and "install 'prometheus-client>=" in ended.one_critical()
    assert not (tmp_path / "crm.prom").exists()


# ---- a process ------------------------------------------------------------------------------------

PLAIN = """
    import burler
    tap = burler.tap("tap-x")

    @tap.sync("rows", key_properties="id", replication_key="id", order="asc")
    def rows(stream):
        first = (stream.bookmark or 0) + 1
        yield from ({"id": first + i, "text": "x"} for i in range(3))

    tap.schema("rows", SCHEMA)
"""


@contextlib.contextmanager
def running(folder: Path, **settings: object) -> Iterator[subprocess.Popen[bytes]]:
    write_tap(folder, PLAIN)
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


def test_a_tail_that_is_told_to_stop_leaves_its_last_numbers(tmp_path: Path, port: int):
    rows = ("burler_records_total", ("tap-mine", "rows"))
    with running(tmp_path, metrics_port=port, metrics_file="x.prom", tap_id="tap-mine") as process:
        found: Numbers = {}
        limit = time.monotonic() + 30
        while found.get(rows, 0) < 9:
            assert time.monotonic() < limit
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                found = numbers_of(answer.read().decode())
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
    at_the_end = numbers_in(tmp_path / "x.prom")
    assert at_the_end["burler_up", ("tap-mine",)] == 0 and at_the_end[rows] >= found[rows]


def test_the_rules_in_the_docs_are_yaml(docs_pages: dict[str, str]):
    page = docs_pages["reports.md"].partition("### With Prometheus")[2]
    config, rules = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    assert config["scrape_configs"][0]["static_configs"][0]["targets"] == ["127.0.0.1:9108"]
    alerts = rules["groups"][0]["rules"]
    assert all(re.search(r"burler_|up\{", one["expr"]) for one in alerts)
