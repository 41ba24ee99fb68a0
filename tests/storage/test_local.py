"""The local store: exclusive, conditional, durable, and clear about what is wrong."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import multiprocessing
import os
import pickle
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from burler.errors import StorageError, UsageError
from burler.lake import Store, load, open_store
from support.internals import lake_store, manifest


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "lake"))


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Rights mean nothing to root: for a moment, be nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def hidden(store: Store) -> list[Path]:
    return list(Path(store.url).rglob(".tmp-*"))


def test_nothing_stays_hidden(store: Store) -> None:
    store.replace("raw/a.json", b"2", tag=store.create("raw/a.json", b"1"))
    with pytest.raises(FileExistsError):
        store.create("raw/a.json", b"3")
    assert hidden(store) == []
    file = store.new_file("raw/t")
    file.write(b"x")
    assert len(hidden(store)) == 1
    file.discard()
    file.discard()
    assert hidden(store) == []


def test_files_get_the_usual_rights(store: Store) -> None:
    umask = os.umask(0o022)
    try:
        store.create("raw/a.json", b"1")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(Path(store.locate("raw/a.json")).stat().st_mode) == 0o644


def test_a_file_in_the_way_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "raw").write_text("not a folder")
    store = open_store(str(tmp_path / "lake"))
    for act in (
        lambda: store.create("raw/t/a.json", b""),
        lambda: store.new_file("raw/t/s"),
        lambda: store.read("raw/t/x"),
    ):
        with pytest.raises(UsageError, match="file stands where a folder must be") as caught:
            act()
        assert caught.value.exit_code == 2


def test_a_folder_without_rights_is_a_usage_error(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    store = open_store(str(locked))
    with nobody(), pytest.raises(UsageError, match=r"Check the owner and the rights") as caught:
        store.create("raw/a.json", b"")
    assert caught.value.exit_code == 2
    assert str(locked) in str(caught.value)


def test_a_lake_below_a_folder_that_may_not_be_entered_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "closed" / "lake").mkdir(parents=True)
    (tmp_path / "closed").chmod(0)
    try:
        for url in (str(tmp_path / "closed" / "lake"), str(tmp_path / "x" / ("n" * 300))):
            with nobody(), pytest.raises(UsageError, match=r"can't be looked at: .*Check the path") as caught:
                open_store(url)
            assert caught.value.exit_code == 2
    finally:
        (tmp_path / "closed").chmod(0o700)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_leaves_nothing_behind(store: Store, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    tag = store.create("raw/a.json", b"old")
    real = os.write

    def full(fd: int, data: memoryview) -> int:
        if len(data) > 3:
            return real(fd, data[:3])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", full)
    for act in (lambda: store.create("raw/b.json", b"12345"), lambda: store.replace("raw/a.json", b"12345", tag=tag)):
        with pytest.raises(StorageError, match="Make room") as caught:
            act()
        assert caught.value.exit_code == 1
    monkeypatch.undo()
    assert hidden(store) == []
    assert store.read("raw/b.json") is None
    blob = store.read("raw/a.json")
    assert blob is not None and blob.data == b"old"


def test_a_failed_sync_before_the_name_is_a_failure(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create("raw/x.json", b"")

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError) as caught:
        store.create("raw/a.json", b"1")
    assert not isinstance(caught.value, lake_store.OutcomeUnknown)
    monkeypatch.undo()
    assert store.read("raw/a.json") is None
    assert hidden(store) == []


def test_a_failed_sync_after_the_name_is_not_known(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create("raw/x.json", b"")
    real, calls = os.fsync, []

    def second_fails(fd: int) -> None:
        calls.append(fd)
        if len(calls) == 2:
            raise OSError(errno.EIO, "I/O error")
        real(fd)

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(lake_store.OutcomeUnknown):
        store.create("raw/a.json", b"1")


def test_content_and_folder_are_synced(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = store.create("raw/a.json", b"1")
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink().name) or real(fd))
    store.replace("raw/a.json", b"2", tag=tag)
    assert synced[0].startswith(".tmp-")
    assert synced[1:] == ["raw"]
    synced.clear()
    file = store.new_file("raw/t/s")
    assert synced == ["raw", "t"]
    file.publish("raw/t/s/f")
    assert synced[2].startswith(".tmp-")
    assert synced[3:] == ["s"]


@pytest.mark.parametrize("url", ["file://elsewhere/x", "memory://", "https://h/x", "ftp:///x"])
def test_urls_that_are_no_place_for_a_lake(url: str) -> None:
    with pytest.raises(UsageError):
        open_store(url)


def test_open_store(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    assert open_store(str(tmp_path)).url == str(tmp_path)
    assert open_store((tmp_path / "a b").as_uri()).url == str(tmp_path / "a b")
    assert open_store(f"file://localhost{tmp_path}").url == str(tmp_path)
    (tmp_path / "file").write_text("")
    for bad in (str(tmp_path / "file"), "", f"file://{tmp_path}?x=1"):
        with pytest.raises(UsageError):
            open_store(bad)
    with pytest.raises(UsageError, match="there is no lake"):
        open_store(str(tmp_path / "none"), must_exist=True)
    assert not (tmp_path / "none").exists()


RACERS, ROUNDS = 8, 100


def _create_all(path: str, me: int, start: object, won: object) -> None:
    store = open_store(path)
    start.wait()  # type: ignore[attr-defined]
    mine = []
    for number in range(ROUNDS):
        with contextlib.suppress(FileExistsError):
            store.create(f"raw/{number}", str(me).encode() * 100)
            mine.append(number)
    won.put((me, mine))  # type: ignore[attr-defined]


def test_of_racing_creators_one_wins(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    start, won = context.Barrier(RACERS), context.Queue()
    racers = [context.Process(target=_create_all, args=(str(tmp_path), me, start, won)) for me in range(RACERS)]
    for racer in racers:
        racer.start()
    winners = [(number, me) for me, mine in (won.get(timeout=300) for _ in racers) for number in mine]
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
    assert sorted(number for number, _ in winners) == list(range(ROUNDS))
    for number, me in winners:
        assert (tmp_path / "raw" / str(number)).read_bytes() == str(me).encode() * 100


def _register(path: str, me: int) -> None:
    for number in range(10):
        line = b'{"schema":{"x":"%d.%d"},"stream":"s","type":"SCHEMA"}' % (me, number)
        manifest.register(open_store(path), "t", "s", schema_line=line)


def test_of_racing_changes_none_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    racers = [context.Process(target=_register, args=(str(tmp_path), me)) for me in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
    found = load(open_store(str(tmp_path)), "t", "s")
    assert (len(found.versions), found.sequence) == (40, 40)


def test_a_living_process_is_seen(store: Store) -> None:
    lock = "raw/t/s/h/singerlake.lock"
    mine = store.hold(lock)
    assert mine.taken
    other = store.hold(lock)
    assert not other.taken
    other.release()  # gives back nothing
    assert not store.hold(lock).taken
    mine.release()
    mine.release()
    again = store.hold(lock)
    assert again.taken
    tag = store.create(lock, b"{}")
    store.delete(lock, tag=store.replace(lock, b"{ }", tag=tag))  # a hold is in nobody's way
    assert [file.path for file in store.files("raw")] == [] and store.hold("raw/t/s/other/singerlake.lock").taken
    again.release()


def _hold_and_sleep(path: str, held: object) -> None:
    hold = open_store(path).hold("raw/singerlake.lock")
    held.send(hold is not None and hold.taken)  # type: ignore[attr-defined]
    time.sleep(300)


def test_a_killed_process_is_seen_at_once(store: Store) -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_hold_and_sleep, args=(store.url, there))
    process.start()
    try:
        assert here.poll(60) and here.recv()
        assert not store.hold("raw/singerlake.lock").taken
    finally:
        process.kill()
        process.join()
    assert store.hold("raw/singerlake.lock").taken


def test_a_forked_child_does_not_keep_its_parents_hold(store: Store) -> None:
    hold = store.hold("raw/singerlake.lock")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_say_and_sleep, args=(there,))
    child.start()
    try:
        assert here.poll(60)
        assert hold.taken and not store.hold("raw/singerlake.lock").taken
        hold.release()
        assert store.hold("raw/singerlake.lock").taken
    finally:
        child.kill()
        child.join()


def _say_and_sleep(there: object) -> None:
    there.send("here")  # type: ignore[attr-defined]
    time.sleep(300)


def test_a_file_that_goes_while_it_is_listed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        store.create(f"raw/{name}", b"1")
    listing = store.files("raw")
    assert next(listing).path == "raw/a"
    store.remove("raw/b")
    assert [file.path for file in listing] == ["raw/c"]


def test_hidden_files_are_listed_for_those_who_clean(store: Store) -> None:
    store.replace("raw/a", b"2", tag=store.create("raw/a", b"1"))
    file = store.new_file("raw/t")
    found = [stored.path for stored in store.files("raw", hidden=True)]
    assert found[0] == "raw/.a.lock" and found[1] == "raw/a" and found[2].startswith("raw/t/.tmp-")
    store.remove(found[2])
    assert hidden(store) == []
    file.discard()


def test_a_lake_in_memory_is_one_for_each_name() -> None:
    one, same, other = open_store("memory://one"), open_store("memory://one/"), open_store("memory://other")
    one.create("raw/a", b"1")
    assert [file.path for file in same.files("raw")] == ["raw/a"] and [file.path for file in other.files("raw")] == []
    with pytest.raises(UsageError, match="there is no lake at memory://other"):
        open_store("memory://other", must_exist=True)
    with pytest.raises(TypeError, match="a store in memory can't be sent to another process"):
        pickle.dumps(one)


def test_no_tag_comes_twice_in_memory() -> None:
    store = open_store("memory://tags")
    tags = [store.create("raw/a", b"1")]
    for _ in range(3):
        tags.append(store.replace("raw/a", b"1", tag=tags[-1]))
    store.delete("raw/a", tag=tags[-1])
    tags.append(store.create("raw/a", b"1"))
    assert len(set(tags)) == 5


def test_too_many_open_files_are_told_with_their_own_cure(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "lake"))
    store.create("raw/a.json", b"{}")
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(StorageError, match=r"Too many open files.*max-open-files.*ulimit -n"):
            store.read("raw/a.json")
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---- a file that is about to be replaced by a process that was stopped in between -----------------------------------


@pytest.fixture
def manifested(tmp_path):
    """A lake with a manifest."""
    store = open_store(str(tmp_path))
    store.create("raw/manifest.json", b"1")
    return store


@pytest.fixture
def stopped(manifested, tmp_path):
    """What a process holds that was stopped between the look and the rename."""
    fd = os.open(tmp_path / "raw/.manifest.json.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield fd
    os.close(fd)


def test_a_stopped_process_is_waited_for_and_once_it_goes_on_the_others_do(manifested, stopped, caplog):
    threading.Timer(5.5, fcntl.flock, (stopped, fcntl.LOCK_UN)).start()  # a word comes after 5 seconds
    with caplog.at_level(logging.WARNING, "burler.lake"):
        manifested.replace("raw/manifest.json", b"2", tag=manifested.read("raw/manifest.json").tag)
    assert manifested.read("raw/manifest.json").data == b"2"
    assert ["another process is in the middle of replacing it" in text for text in caplog.messages] == [True]


@pytest.mark.nightly
def test_a_process_that_stays_stopped_is_named(manifested, stopped, tmp_path):
    """After a minute."""
    with pytest.raises(StorageError) as told:
        manifested.replace("raw/manifest.json", b"2", tag=manifested.read("raw/manifest.json").tag)
    assert f"fuser {tmp_path / 'raw/.manifest.json.lock'}" in str(told.value)
    assert manifested.read("raw/manifest.json").data == b"1"


def test_a_new_content_is_on_disk_before_the_lock_is_asked_for(manifested, monkeypatch):
    """So that it is held for a look and a rename, not for the time that a disk takes."""
    tag, calls = manifested.read("raw/manifest.json").tag, []

    def noted(name, real):
        return lambda *args, **more: (calls.append(name), real(*args, **more))[1]

    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    monkeypatch.setattr(fcntl, "flock", noted("flock", fcntl.flock))
    manifested.replace("raw/manifest.json", b"2", tag=tag)
    assert calls == ["fsync", "flock", "fsync"]
    assert manifested.read("raw/manifest.json").data == b"2"
