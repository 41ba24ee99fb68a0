"""A file that is about to be replaced by a process that was stopped in between."""

import fcntl
import logging
import os

import pytest

from burler.errors import StorageError
from burler.lake import open_store
from support.internals import lake_pace, local_lock


class Time:
    def __init__(self, ends=None):
        self.now, self.ends = 0.0, ends or (lambda: None)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += max(seconds, 0.01)
        self.ends()


@pytest.fixture
def stopped(tmp_path):
    """What a process holds that was stopped between the look and the rename."""
    fd = os.open(tmp_path / ".manifest.json.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield fd
    os.close(fd)


def test_a_stopped_process_is_waited_for_and_then_named(tmp_path, stopped, caplog):
    time = Time()
    caplog.set_level(logging.WARNING, "burler.lake")
    lock = local_lock.flocked(
        tmp_path / "manifest.json", pace=lake_pace.Pace(monotonic=time.monotonic, sleep=time.sleep)
    )
    with pytest.raises(StorageError) as told, lock:
        pytest.fail("two at once")
    assert f"fuser {tmp_path / '.manifest.json.lock'}" in str(told.value)
    assert local_lock.GIVE_UP_SECONDS < time.now < local_lock.GIVE_UP_SECONDS + 1
    assert len(caplog.records) == 1


def test_once_it_goes_on_the_others_do(tmp_path, stopped):
    time = Time()
    time.ends = lambda: time.now > 20 and fcntl.flock(stopped, fcntl.LOCK_UN)
    with local_lock.flocked(
        tmp_path / "manifest.json", pace=lake_pace.Pace(monotonic=time.monotonic, sleep=time.sleep)
    ):
        assert 20 < time.now < 21


def test_a_new_content_is_on_disk_before_the_lock_is_asked_for(tmp_path, monkeypatch):
    """So that it is held for a look and a rename, not for the time that a disk takes."""
    store = open_store(str(tmp_path))
    tag = store.create("raw/a.json", b"1")
    calls = []

    def noted(name, real):
        return lambda *args, **more: (calls.append(name), real(*args, **more))[1]

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(fcntl, "flock", noted("flock", fcntl.flock))
    store.replace("raw/a.json", b"2", tag=tag)
    assert calls == ["fsync", "flock", "fsync"]
    assert store.read("raw/a.json").data == b"2"
