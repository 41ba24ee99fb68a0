"""Batch files of processes that are killed, run out of room, or write side by side."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from stored_files import NAME, stored

from support.internals import batch_config, batch_storage

SECONDS = 60  # generous: only a test that fails waits so long
WHOLE = 300_000

# Writes files of one letter each for ever, and says each name that is published.
WRITER = f"""
import itertools, sys
from support.internals import batch_storage
open_storage = batch_storage.open_storage
from support.internals import batch_config
BatchStorage = batch_config.BatchStorage
storage = open_storage(BatchStorage(sys.argv[1], "crm-"))
for number in itertools.count(1):
    try:
        file = storage.new_file(f"tap-crm--contacts-0123456789ab-{{number:05d}}.jsonl")
        for _ in range(30):
            file.write(sys.argv[2].encode() * {WHOLE // 30})
        print(file.publish(), flush=True)
    except FileExistsError:
        pass
"""

# Begins a file and waits for a word.
HOLDER = f"""
import sys
from support.internals import batch_storage
open_storage = batch_storage.open_storage
from support.internals import batch_config
BatchStorage = batch_config.BatchStorage
file = open_storage(BatchStorage(sys.argv[1], "crm-")).new_file("{NAME}")
file.write(b"x" * 1000)
print("begun", flush=True)
sys.stdin.readline()
print(file.publish(), flush=True)
"""

# Writes a file in pieces until there is no room; says the error. Its arguments: the folder; how many bytes a file may
# have; what says, in place of a disk, that this is full, once so many bytes are written.
FILLER = f"""
import errno, os, resource, sys
from support.internals import batch_storage
open_storage = batch_storage.open_storage
from support.internals import batch_config
BatchStorage = batch_config.BatchStorage
from burler.errors import BurlerError
root, most, full, room = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
if most:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
real = {{name: getattr(os, name) for name in ("write", "fsync", "link")}}
def counted(fd, data):
    global room
    room -= len(data)
    if full == "write" and room < 0:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return real["write"](fd, data)
def late(*arguments):
    if room < 0:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return real[full](*arguments)
if full:
    os.write = counted
    if full != "write":
        setattr(os, full, late)
storage = open_storage(BatchStorage(root))
file = storage.new_file("tap-crm--small-0123456789ab-00001.jsonl")
file.write(b"small")
file.publish()
file = storage.new_file("{NAME}")
try:
    for _ in range(100):
        file.write(b"x" * 50_000)
    file.publish()
except BurlerError as error:
    print(type(error).__name__, error)
    file.discard()
import pathlib
print(sorted(path.name for path in pathlib.Path(root).iterdir()))
"""


@contextlib.contextmanager
def running(program, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def hidden(root):
    return [name for name in stored(root) if name.startswith(".tmp-")]


@pytest.mark.parametrize("wait_seconds", [0.0, 0.017])
def test_a_killed_process_leaves_no_torn_file_under_a_final_name(tmp_path, wait_seconds):
    with running(WRITER, tmp_path, "a") as process:
        said = [process.stdout.readline().strip() for _ in range(5)]
        time.sleep(wait_seconds)
        process.send_signal(signal.SIGKILL)
        said += [line.strip() for line in process.stdout if line.endswith("\n")]
        process.wait(SECONDS)
    found = {name: content for name, content in stored(tmp_path).items() if not name.startswith(".tmp-")}
    assert len(said) >= 5 and {url.rpartition("/")[2] for url in said} <= set(found)
    assert all(content == b"a" * WHOLE for content in found.values())


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path, caplog):
    with running(HOLDER, tmp_path) as dead, running(HOLDER, tmp_path) as alive:
        assert dead.stdout.readline() == alive.stdout.readline() == "begun\n"
        assert len(hidden(tmp_path)) == 2
        with caplog.at_level(logging.INFO, "burler"):
            batch_storage.open_storage(batch_config.BatchStorage(str(tmp_path), "crm-"))
        assert len(hidden(tmp_path)) == 2 and caplog.messages == []
        dead.kill()
        dead.wait(SECONDS)
        batch_storage.open_storage(batch_config.BatchStorage(str(tmp_path), "erp-"))  # another prefix: not its own
        assert len(hidden(tmp_path)) == 2
        with caplog.at_level(logging.INFO, "burler"):
            batch_storage.open_storage(batch_config.BatchStorage(str(tmp_path), "crm-"))
        assert caplog.messages == [f"batch files: 1 temporary file of killed runs removed from {tmp_path}."]
        assert len(hidden(tmp_path)) == 1
        alive.stdin.write("go on\n")
        alive.stdin.flush()
        assert alive.stdout.readline() == f"file://{tmp_path}/crm-{NAME}\n"
    assert stored(tmp_path) == {f"crm-{NAME}": b"x" * 1000}


def test_leftovers_of_its_own_are_removed(tmp_path):
    storage = batch_storage.open_storage(batch_config.BatchStorage(str(tmp_path), "deep/crm-"))
    (tmp_path / "deep").mkdir()
    dead = tmp_path / "deep" / f".tmp-{'0' * 16}-crm-{NAME}"
    others = [
        tmp_path / "deep" / f".tmp-{'0' * 16}-{NAME}",  # not its prefix
        tmp_path / "deep" / ".tmp-of-somebody-else",
        tmp_path / f".tmp-{'0' * 16}-crm-{NAME}",  # not its folder
    ]
    for path in (dead, *others):
        path.write_bytes(b"x")
    assert storage.remove_leftovers() == 1
    assert not dead.exists() and all(path.exists() for path in others)


def test_a_link_with_a_leftovers_name_is_left_alone(tmp_path):
    (tmp_path / "precious").write_text("x")
    link = tmp_path / f".tmp-{'0' * 16}-{NAME}"
    link.symlink_to(tmp_path / "precious")
    batch_storage.open_storage(batch_config.BatchStorage(str(tmp_path)))
    assert link.is_symlink() and (tmp_path / "precious").exists()


def test_two_processes_with_one_prefix_never_share_a_file(tmp_path):
    with running(WRITER, tmp_path, "a") as one, running(WRITER, tmp_path, "b") as two:
        said = {"a": [], "b": []}
        for _ in range(25):
            said["a"].append(one.stdout.readline().strip())
            said["b"].append(two.stdout.readline().strip())
        for process in (one, two):
            process.kill()
            process.wait(SECONDS)
    assert all(len(set(urls)) == 25 for urls in said.values()) and not set(said["a"]) & set(said["b"])
    found = stored(tmp_path)
    for letter, urls in said.items():
        for url in urls:
            assert found[url.rpartition("/")[2]] == letter.encode() * WHOLE


def test_a_file_that_may_not_grow_leaves_nothing_torn(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FILLER, tmp_path, "120000", "", "0"], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    error, left = done.stdout.splitlines()
    assert error.startswith(f"StorageError {tmp_path}/{NAME} can't be written: File too large. Make room")
    assert left == "['tap-crm--small-0123456789ab-00001.jsonl']"


OWN_MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]
SMALL_DISK = 'mount -t tmpfs -o size=300k none "$1" && exec "$2" -c "$3" "$1" 0 "" 0'


def _may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    mounting = [*OWN_MOUNTS, "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]
    return subprocess.run(mounting, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("says", ["disk", "write", "fsync", "link"])
def test_a_full_disk_leaves_nothing_torn(tmp_path, says):
    """A small disk, where a test may mount one (else writing fails as it does there); and disks that say so late."""
    if says == "disk" and _may_mount():
        filling = [*OWN_MOUNTS, "sh", "-c", SMALL_DISK, "sh", tmp_path, sys.executable, FILLER]
    else:
        filling = [sys.executable, "-c", FILLER, tmp_path, "0", says.replace("disk", "write"), "250000"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(filling, capture_output=True, text=True, timeout=SECONDS, env=environment)
    assert done.returncode == 0, done.stderr
    error, left = done.stdout.splitlines()
    assert error.startswith(f"StorageError {tmp_path}/{NAME} can't be written: No space left on device. Make room")
    assert left == "['tap-crm--small-0123456789ab-00001.jsonl']"
