"""The reader goes away, or the disk is full, amid commits: what is out is in, and the next writer goes on."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from burler.lake import load, open_store, read_lines

OPTIONS = ("--tap-id", "t", "--max-file-records", "2", "--compression", "none", "--lock-ttl-seconds", "3600")
SCHEMA = {"type": "SCHEMA", "stream": "s", "key_properties": ["id"], "schema": {"properties": {"id": {}, "text": {}}}}
PATIENCE_SECONDS = 60


def begin(lake: Path, *, most_bytes: int | None = None) -> subprocess.Popen[bytes]:
    """A writer. ``most_bytes``: no file of it may grow beyond that."""

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes or 0, most_bytes or 0))

    return subprocess.Popen(
        [sys.executable, "-m", "burler", "lake", "write", str(lake), *OPTIONS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"} if most_bytes else None,  # a torn one would stay
        preexec_fn=None if most_bytes is None else small_files,
    )


def messages(first: int, count: int, text_bytes: int = 10) -> bytes:
    """Rows, each with a STATE behind it."""
    lines = [SCHEMA]
    for number in range(first, first + count):
        record = {"id": number, "text": secrets.token_hex(text_bytes // 2)}
        lines += [{"type": "RECORD", "stream": "s", "record": record}, {"type": "STATE", "value": {"n": number}}]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def acked(out: bytes) -> int:
    """The number in the last STATE; -1 if there is none."""
    return max((json.loads(line)["value"]["n"] for line in out.splitlines()), default=-1)


def ids(lake: Path) -> list[int]:
    store = open_store(str(lake))
    lines = [line for file in load(store, "t", "s").files for line in list(read_lines(store, file.path))[1:]]
    return sorted(json.loads(line)["record"]["id"] for line in lines)


def go_on(lake: Path) -> None:
    """The next writer gets through at once, and all JSON is whole."""
    for path in lake.rglob("*.json"):
        json.loads(path.read_bytes())
    assert not list(lake.rglob("singerlake.lock"))
    with begin(lake) as next_one:
        out, said = next_one.communicate(messages(10_000, 2), timeout=PATIENCE_SECONDS)
    assert next_one.returncode == 0, said
    assert acked(out) == 10_001
    assert {10_000, 10_001} <= set(ids(lake))


def test_the_reader_of_states_goes_away_amid_commits(tmp_path: Path) -> None:
    with begin(tmp_path) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stderr is not None
        writer.stdin.write(messages(0, 6))
        writer.stdin.flush()
        first = acked(writer.stdout.readline())
        writer.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            writer.stdin.write(messages(6, 200))
            writer.stdin.close()
        said = writer.stderr.read().decode()
        assert writer.wait(PATIENCE_SECONDS) == 4, said
    assert "Traceback" not in said
    assert set(range(first + 1)) <= set(ids(tmp_path))
    go_on(tmp_path)


def test_nobody_reads_states_from_the_beginning(tmp_path: Path) -> None:
    with begin(tmp_path) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stderr is not None
        writer.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            writer.stdin.write(messages(0, 100))
            writer.stdin.close()
        said = writer.stderr.read().decode()
        assert writer.wait(PATIENCE_SECONDS) == 4, said
    assert "Traceback" not in said
    go_on(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, int | None]]:
    """(a disk of a MiB that is nearly full, None) where one may be mounted; else (a folder, most bytes of a file)."""
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    if os.geteuid() or subprocess.run(mounting, capture_output=True, check=False).returncode:
        yield place, 30_000
        return
    try:
        (place / "ballast").write_bytes(bytes(700_000))
        yield place, None
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_the_disk_is_full_amid_commits(small_disk: tuple[Path, int | None]) -> None:
    """It ends with one error that says so; what STATE has covered is in; with room again, another goes on."""
    disk, most_bytes = small_disk
    lake = disk / "lake"
    with begin(lake, most_bytes=most_bytes) as writer:
        data = messages(0, 20, 1000) + messages(20, 20, 40_000)
        out, error = writer.communicate(data, timeout=PATIENCE_SECONDS)
    said = error.decode()
    assert writer.returncode == 1, said
    assert said.count("CRITICAL") == 1
    assert "Traceback" not in said
    assert "Make room" in said
    assert acked(out) >= 1
    assert set(range(acked(out) + 1)) <= set(ids(lake))
    (disk / "ballast").unlink(missing_ok=True)
    go_on(lake)
