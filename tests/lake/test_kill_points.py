"""kill -9 at every point of a write: nothing acknowledged is lost, nobody waits, nothing is left that has no cure."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "model" / "lake_kills.py"


def told(folder: Path, how: str) -> list[dict[str, Any]]:
    """What ``lake_kills`` tells of each point; first of a run that comes to its end."""
    command = [sys.executable, str(PROGRAM), str(folder), how]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """In memory where there is such a place: thousands of fsyncs take long on a disk that others use."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def points(folder: Path) -> list[dict[str, Any]]:
    return told(folder / "kill", "kill")


@pytest.fixture(scope="module")
def full(folder: Path) -> list[dict[str, Any]]:
    return told(folder / "full", "full")


def test_a_writer_that_nobody_kills(points: list[dict[str, Any]]) -> None:
    whole = points[0]
    assert (whole["code"], whole["acked"], whole["in manifest"]) == (0, [0, 1], [0, 1])
    assert (whole["found"], whole["locks"]) == ([], [])
    assert len(whole["calls"]) > 50
    assert {"write", "fsync", "link", "replace", "unlink", "mkdir"} <= set(whole["calls"])


def test_at_every_point_what_was_acknowledged_is_in_the_manifest(points: list[dict[str, Any]]) -> None:
    for point in points[1:]:
        assert point["code"] == -signal.SIGKILL
        assert set(point["acked"]) <= set(point["in manifest"]), point
        assert not point["torn"], point


def test_at_every_point_the_next_writer_need_not_wait(points: list[dict[str, Any]]) -> None:
    """The ttl of the dead is an hour; on a local disk the kernel tells that he is."""
    for point in points[1:]:
        assert (point["next code"], point["next acked"]) == (0, [100]), point
        assert point["next seconds"] < 15, point
        assert set(point["in manifest"]) | {100} <= set(point["next in manifest"]), point
        assert not point["locks at last"], point


def test_at_some_points_a_file_is_left_that_no_manifest_names_and_rebuild_adopts_it(
    points: list[dict[str, Any]],
) -> None:
    orphaned = [point for point in points if point.get("orphans")]
    assert orphaned
    for point in orphaned:
        assert Counter(point["found"])["orphan"] == point["orphans"], point
    for point in points:
        assert point["rebuilt"] == point["on disk at last"], point
        assert point["found at last"] == [], point


def test_the_commands_find_such_a_file_and_take_it_in(points: list[dict[str, Any]], folder: Path) -> None:
    at = next(point["at"] for point in points if point.get("orphans"))
    lake = str(folder / "left")
    subprocess.run([sys.executable, str(PROGRAM), lake, "leave", str(at)], check=True, timeout=60)

    def burler(command: str, *options: str) -> subprocess.CompletedProcess[str]:
        arguments = [sys.executable, "-m", "burler", "lake", command, lake, *options]
        return subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)

    found = burler("check")
    assert found.returncode == 1, found.stderr
    assert "orphan" in found.stdout + found.stderr
    assert burler("rebuild").returncode == 0
    rows = [json.loads(line) for line in burler("read", "--tap", "t").stdout.splitlines()]
    assert [row["record"]["id"] for row in rows if row["type"] == "RECORD"] == rows_on_disk(Path(lake))
    for lock in Path(lake).rglob("singerlake.lock"):
        lock.unlink()  # of the dead; the next writer would take it over
    again = burler("check")
    assert again.returncode == 0, again.stdout


def rows_on_disk(lake: Path) -> list[int]:
    lines = [line for path in lake.rglob("*.singer.gz") for line in gzip.decompress(path.read_bytes()).splitlines()]
    return sorted(message["record"]["id"] for message in map(json.loads, lines) if message["type"] == "RECORD")


def test_a_commit_is_there_or_not_and_no_row_stands_twice(points: list[dict[str, Any]]) -> None:
    assert {tuple(point["in manifest"]) for point in points} == {(), (0,), (0, 1)}
    assert {tuple(point["acked"]) for point in points} == {(), (0,), (0, 1)}
    for point in points:
        assert len(set(point["rebuilt"])) == len(point["rebuilt"]), point


def test_a_disk_that_is_full_at_any_point_ends_the_run_and_nothing_is_half_written(full: list[dict[str, Any]]) -> None:
    """From there on; it is said so, with no STATE for what is not committed. Later there is room again."""
    notes = 0
    for point in full[1:]:
        assert set(point["acked"]) <= set(point["in manifest"]), point
        assert not point["torn"], point
        assert not point["hidden"], point
        assert not point["locks"], point
        if point["code"] == 0:  # only the tap's status was not written: that fails no run
            notes += 1
            assert point["acked"] == [0, 1], point
        else:
            assert point["code"] in (10, 11), point  # 11: it is written, but may not be on disk
        assert (point["next code"], point["next acked"]) == (0, [100]), point
        assert point["rebuilt"] == point["on disk at last"], point
    assert len(full) > 30
    assert Counter(point["code"] for point in full)[10] > 20
    assert notes < 10
