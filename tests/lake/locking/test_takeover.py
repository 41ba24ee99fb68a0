"""A writer is paused for longer than its lock lives, another takes over, and the first wakes up.

The whole of it with real processes: ``burler lake write``, SIGSTOP and SIGCONT, on a local disk and on an S3 server.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "model"))

from lake_writers import Writing

from burler.lake import load, open_store, read_lines
from support.clocks import until

SHORT = ("--lock-ttl-seconds", "0.6", "--lock-timeout-seconds", "60")
LONG = ("--lock-ttl-seconds", "3600", "--lock-timeout-seconds", "60")


@dataclass(frozen=True)
class Somewhere:
    """A lake, and how processes get there."""

    url: str
    environment: dict[str, str]
    options: dict[str, Any] | None = None

    def writing(self, *options: str, **more: Any) -> Writing:
        return Writing(self.url, *options, environment=self.environment, **more)

    def ids(self) -> list[int]:
        """The rows that the manifest leads to."""
        store = open_store(self.url, options=self.options)
        lines = [line for file in load(store, "t", "s").files for line in list(read_lines(store, file.path))[1:]]
        return sorted(json.loads(line)["record"]["id"] for line in lines)

    def manifest(self) -> bytes:
        blob = open_store(self.url, options=self.options).read("raw/t/s/manifest.json")
        assert blob is not None
        return blob.data

    def locks(self) -> list[str]:
        return [
            file.path for file in open_store(self.url, options=self.options).files("raw") if file.path.endswith(".lock")
        ]

    def claim(self) -> dict[str, Any]:
        (claim,) = json.loads(self.manifest())["writers"].values()
        return claim


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.nightly)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Somewhere]:
    if request.param == "disk":
        yield Somewhere(str(tmp_path / "lake"), {})
    else:
        server = request.getfixturevalue("s3_server")
        yield Somewhere(server.url(tmp_path.name), {**server.environment, "NO_PROXY": "127.0.0.1"}, server.options)


@pytest.fixture
def disk(tmp_path: Path) -> Somewhere:
    return Somewhere(str(tmp_path / "lake"), {})


def test_who_is_taken_over_while_paused_fails_and_commits_nothing(lake: Somewhere) -> None:
    """Paused with a row on its way; the other takes over, commits and is still there when the first wakes up.

    On S3 by night: that its writes are as exclusive as a disk's is shown in ``tests/storage``.
    """
    with lake.writing(*SHORT) as older, lake.writing(*SHORT) as newer:
        older.commit(1, 2)
        older.pause()
        older.rows(3)
        newer.commit(11)
        before = lake.manifest()
        assert json.loads(before)["writers"]
        older.resume()
        assert older.end() == 3
        assert older.acked == [1, 2]
        assert lake.manifest() == before
        assert "Traceback" not in older.said
        assert older.said.count("CRITICAL") == 1
        assert "run again from the last STATE" in older.said
        newer.commit(12)
        assert newer.end() == 0
    assert lake.ids() == [1, 2, 11, 12]
    assert lake.locks() == []


def test_who_is_taken_over_and_wakes_up_when_all_is_over_fails_too(disk: Somewhere) -> None:
    """No lock is there any more when it wakes up: the claim tells."""
    with disk.writing(*SHORT) as older, disk.writing(*SHORT) as newer:
        older.commit(1)
        older.pause()
        newer.commit(11)
        assert newer.end() == 0
        before, claim = disk.manifest(), disk.claim()
        assert disk.locks() == []
        older.rows(2)
        older.resume()
        assert older.end() == 3
        assert older.acked == [1]
        assert disk.manifest() == before
        assert claim["epoch"] == 2
    assert disk.ids() == [1, 11]
    assert disk.locks() == []
    with disk.writing(*SHORT) as again:  # it starts again, and brings the row once more
        again.commit(2, 3)
        assert again.end() == 0
    assert disk.ids() == [1, 2, 3, 11]
    assert disk.claim()["epoch"] == 3


def test_a_short_pause_is_waited_for_and_both_come_through(disk: Somewhere) -> None:
    with disk.writing(*LONG) as older, disk.writing(*LONG) as newer:
        older.commit(1)
        newer.rows(11)
        until(lambda: "waiting for the lock" in newer.said)
        older.pause()
        assert newer.quiet() == []
        older.resume()
        older.commit(2)
        assert newer.quiet() == []
        assert older.end() == 0
        assert newer.state() == 11
        assert newer.end() == 0
    assert disk.ids() == [1, 2, 11]


def test_who_waits_too_long_gives_up_and_names_the_holder(disk: Somewhere) -> None:
    with disk.writing(*LONG) as older:
        older.commit(1)
        holder = disk.claim()["writer-id"]
        with disk.writing("--lock-timeout-seconds", "0.5") as newer:
            newer.rows(11)
            assert newer.end() == 3
            assert newer.acked == []
            assert holder in newer.said
            assert "lock_timeout_seconds" in newer.said
        older.commit(2)
        assert older.end() == 0
    assert disk.ids() == [1, 2]


def test_a_signal_ends_the_wait(disk: Somewhere) -> None:
    with disk.writing(*LONG) as older, disk.writing(*LONG) as newer:
        older.commit(1)
        newer.rows(11)
        until(lambda: "waiting for the lock" in newer.said)
        newer.process.send_signal(signal.SIGINT)  # SIGTERM: see the tap below
        assert newer.wait() == 0, newer.said
        assert newer.acked == []
        assert "stopped while waiting" in newer.said
        assert "Traceback" not in newer.said
        older.commit(2)
        assert older.end() == 0
    assert disk.ids() == [1, 2]


TAP = """
import burler

tap = burler.tap("tap-two")
for name in ("users", "orders"):
    tap.schema(name, {"properties": {"id": {"type": "integer"}}})


@tap.sync("users", key_properties=["id"], replication_key="id")
def users():
    yield {"id": 1}


@tap.sync("orders", key_properties=["id"], replication_key="id")
def orders():
    yield {"id": 2}
"""


def test_a_burler_tap_that_is_told_to_stop_in_a_wait_keeps_what_came_before(tmp_path: Path) -> None:
    (tmp_path / "tap_two.py").write_text(TAP)
    run = [sys.executable, "-m", "burler", "run", "tap_two.py", "--sink", "lake:lake"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    (file,) = tmp_path.glob("lake/raw/*/orders/*/*.gz")
    file.with_name("singerlake.lock").write_text('{"writer-id":"somebody"}')
    with (tmp_path / "said").open("wb") as said:
        waiting = subprocess.Popen([*run, "--full-refresh"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=said)
    try:
        until(lambda: b"waiting for the lock of somebody" in (tmp_path / "said").read_bytes())
        waiting.send_signal(signal.SIGTERM)
        out, _ = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
    states = [message["value"] for message in map(json.loads, out.splitlines()) if message["type"] == "STATE"]
    assert b"Traceback" not in (tmp_path / "said").read_bytes()
    store = open_store(str(tmp_path / "lake"))
    assert [len(load(store, "tap-two", stream).files) for stream in ("users", "orders")] == [2, 1]
    assert states and "orders" not in str(states[-1].get("bookmarks", {})), states
    assert waiting.returncode == 0, (tmp_path / "said").read_text()


def test_two_schema_versions_of_one_stream_are_written_at_one_time(disk: Somewhere) -> None:
    """Each has its own lock, so nobody waits; the manifest is theirs together, and forgets nothing."""
    with disk.writing(*LONG) as one, disk.writing(*LONG, variant=1) as other:
        for number in range(5):
            one.rows(number)
            other.rows(100 + number)
        assert [one.state() for _ in range(5)] == [0, 1, 2, 3, 4]
        assert [other.state() for _ in range(5)] == [100, 101, 102, 103, 104]
        assert (one.end(), other.end()) == (0, 0)
        assert "waiting" not in one.said + other.said
    manifest = json.loads(disk.manifest())
    assert sorted(manifest["versions"].values()) == ["v1", "v2"]
    assert manifest["sequence"] == 10
    assert disk.ids() == [*range(5), *range(100, 105)]


def test_the_manifest_is_deleted_under_a_writer_that_holds_its_lock(disk: Somewhere) -> None:
    """It is made anew from the files, and the writer goes on."""
    with disk.writing(*LONG) as writer:
        writer.commit(1, 2)
        (Path(disk.url) / "raw/t/s/manifest.json").unlink()
        writer.commit(3)
        assert writer.end() == 0
    assert disk.ids() == [1, 2, 3]


def test_the_manifest_is_deleted_under_a_paused_writer_that_was_taken_over(disk: Somewhere) -> None:
    """Nobody is named in the new manifest; the lock still tells that the first has lost it."""
    with disk.writing(*SHORT) as older, disk.writing(*SHORT) as newer:
        older.commit(1)
        older.pause()
        newer.commit(11)
        older.rows(2)
        (Path(disk.url) / "raw/t/s/manifest.json").unlink()
        older.resume()
        assert older.end() == 3
        assert older.acked == [1]
        newer.commit(12)
        assert newer.end() == 0
    assert set(disk.ids()) >= {1, 11, 12}
