"""A file that is about to be replaced by a process that was stopped in between."""

import fcntl
import logging
import os
import threading

import pytest

from burler.errors import StorageError
from burler.lake import open_store


@pytest.fixture
def store(tmp_path):
    """A lake with a manifest."""
    store = open_store(str(tmp_path))
    store.create("raw/manifest.json", b"1")
    return store


@pytest.fixture
def stopped(store, tmp_path):
    """What a process holds that was stopped between the look and the rename."""
    fd = os.open(tmp_path / "raw/.manifest.json.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield fd
    os.close(fd)


def test_a_stopped_process_is_waited_for_and_once_it_goes_on_the_others_do(store, stopped, caplog):
    threading.Timer(5.5, fcntl.flock, (stopped, fcntl.LOCK_UN)).start()  # a word comes after 5 seconds
    with caplog.at_level(logging.WARNING, "burler.lake"):
        store.replace("raw/manifest.json", b"2", tag=store.read("raw/manifest.json").tag)
    assert store.read("raw/manifest.json").data == b"2"
    assert ["another process is in the middle of replacing it" in text for text in caplog.messages] == [True]


@pytest.mark.nightly
def test_a_process_that_stays_stopped_is_named(store, stopped, tmp_path):
    """After a minute."""
    with pytest.raises(StorageError) as told:
        store.replace("raw/manifest.json", b"2", tag=store.read("raw/manifest.json").tag)
    assert f"fuser {tmp_path / 'raw/.manifest.json.lock'}" in str(told.value)
    assert store.read("raw/manifest.json").data == b"1"


def test_a_new_content_is_on_disk_before_the_lock_is_asked_for(store, monkeypatch):
    """So that it is held for a look and a rename, not for the time that a disk takes."""
    tag, calls = store.read("raw/manifest.json").tag, []

    def noted(name, real):
        return lambda *args, **more: (calls.append(name), real(*args, **more))[1]

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(fcntl, "flock", noted("flock", fcntl.flock))
    store.replace("raw/manifest.json", b"2", tag=tag)
    assert calls == ["fsync", "flock", "fsync"]
    assert store.read("raw/manifest.json").data == b"2"
