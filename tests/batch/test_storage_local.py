"""Batch files in a folder: there whole and durable under their names, or not at all."""

from __future__ import annotations

import errno
import fcntl
import gc
import logging
import os
import tempfile
import warnings
from pathlib import Path

import pytest
from stored_files import NAME, OTHER, nobody, stored

from burler.errors import StorageError, UsageError
from support.internals import batch_config, batch_storage


def opened(root, prefix=""):
    return batch_storage.open_storage(batch_config.BatchStorage(str(root), prefix))


@pytest.fixture
def root(tmp_path):
    return tmp_path / "batches"


@pytest.fixture
def storage(root):
    return opened(root, "crm-")


def test_a_file_has_its_name_once_it_is_whole(root, storage):
    assert not root.exists()  # a run without rows leaves no folder
    file = storage.new_file(NAME)
    file.write(b"one\n")
    file.write(memoryview(bytearray(b"two\n")))
    assert all(name.startswith(".tmp-") for name in stored(root))
    url = file.publish()
    assert url == f"file://{root}/crm-{NAME}"
    assert stored(root) == {f"crm-{NAME}": b"one\ntwo\n"}


def test_a_relative_root_is_said_absolutely(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = opened("here/../batches", "")
    monkeypatch.chdir("/")
    assert storage.root == f"file://{tmp_path}/batches"
    assert storage.new_file(NAME).publish() == f"file://{tmp_path}/batches/{NAME}"


def test_a_prefix_may_name_folders(root):
    storage = opened(root, "2024/01/crm-")
    storage.new_file(NAME).publish()
    storage = opened(root, "2024/02/")
    storage.new_file(NAME).publish()
    assert set(stored(root)) == {f"2024/01/crm-{NAME}", f"2024/02/{NAME}"}


def test_a_name_that_is_taken_is_left_alone_and_another_may_be_tried(root, storage):
    one, two = storage.new_file(NAME), storage.new_file(NAME)
    one.write(b"one")
    two.write(b"two")
    one.publish()
    with pytest.raises(FileExistsError):
        two.publish()
    assert two.publish(OTHER) == f"file://{root}/crm-{OTHER}"
    assert stored(root) == {f"crm-{NAME}": b"one", f"crm-{OTHER}": b"two"}
    assert len(stored(root)) == 2


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_hard_links_will_do(root, storage, monkeypatch, code):
    def no_link(*_names):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", no_link)
    one, two = storage.new_file(NAME), storage.new_file(NAME)
    one.write(b"one")
    two.write(b"two")
    one.publish()
    with pytest.raises(FileExistsError):
        two.publish()
    two.publish(OTHER)
    assert stored(root) == {f"crm-{NAME}": b"one", f"crm-{OTHER}": b"two"}


def test_without_hard_links_two_processes_never_share_a_name(root, storage, monkeypatch):
    """The other one takes the name between the look and the renaming."""
    one, two = storage.new_file(NAME), storage.new_file(NAME)
    one.write(b"one")
    two.write(b"two")
    rename = Path.rename

    def late(path, target):
        monkeypatch.setattr(Path, "rename", rename)
        with pytest.raises(FileExistsError):
            two.publish()
        rename(path, target)

    def no_link(*_names):
        raise PermissionError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(Path, "rename", late)
    one.publish()
    two.discard()
    assert stored(root) == {f"crm-{NAME}": b"one"}


def test_a_file_that_is_given_up_leaves_nothing(root, storage):
    file = storage.new_file(NAME)
    file.write(b"x")
    file.discard()
    file.discard()
    assert stored(root) == {}
    with pytest.raises(StorageError, match="given up"):
        file.write(b"y")
    with pytest.raises(StorageError, match="given up"):
        file.publish()
    assert stored(root) == {}


def test_a_file_that_is_dropped_leaves_nothing(root, storage):
    file = storage.new_file(NAME)
    file.write(b"x")
    assert len(stored(root)) == 1
    del file
    gc.collect()
    assert stored(root) == {}


def test_a_forked_process_leaves_its_parents_files_alone(root, storage):
    file = storage.new_file(NAME)
    file.write(b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        file.discard()
        os._exit(0)
    os.waitpid(child, 0)
    file.write(b"y")
    file.publish()
    assert stored(root) == {f"crm-{NAME}": b"xy"}


def test_a_file_whose_message_did_not_go_out_is_withdrawn(root, storage):
    file = storage.new_file(NAME)
    file.write(b"x")
    file.publish()
    file.discard()  # never touches what is published
    assert len(stored(root)) == 1
    file.withdraw()
    file.withdraw()
    assert stored(root) == {}
    other = storage.new_file(OTHER)
    other.withdraw()
    assert stored(root) == {}


def test_a_file_that_cannot_be_withdrawn_is_said(root, storage, caplog):
    file = storage.new_file(NAME)
    file.publish()
    root.chmod(0o555)
    with nobody(), caplog.at_level(logging.WARNING, "burler"):
        file.withdraw()
    root.chmod(0o755)
    assert f"{root}/crm-{NAME}, whose message did not go out, can't be removed" in caplog.text


def fails(call, after, code=errno.ENOSPC):
    """A function of ``os`` that fails from its ``after``-th call on."""
    calls = []

    def failing(*args):
        calls.append(args)
        if len(calls) > after:
            raise OSError(code, os.strerror(code))
        return call(*args)

    return failing


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize(("name", "after"), [("write", 0), ("write", 1), ("fsync", 0), ("fsync", 1)])
def test_a_disk_that_fails_leaves_no_torn_file(root, storage, monkeypatch, name, after, code):
    """On write; on the sync of the content, and that of the folder."""
    file = storage.new_file(NAME)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))  # a write may take less than it is given
    with monkeypatch.context() as patch, pytest.raises(StorageError) as caught:
        patch.setattr(os, name, fails(getattr(os, name), after, code))
        file.write(b"abcdef")
        file.publish()
    said = str(caught.value)
    assert str(root) in said and os.strerror(code) in said and "no message names this file" in said
    assert ("Make room" in said) == (code != errno.EIO and (name, after) != ("fsync", 1))
    file.discard()
    assert stored(root) == {}
    other = storage.new_file(OTHER)
    other.write(b"abcdef")
    other.publish()
    assert stored(root) == {f"crm-{OTHER}": b"abcdef"}


def test_a_new_file_that_another_run_takes_for_a_dead_one_is_begun_again(root, storage, monkeypatch):
    """Between its making and its lock."""
    lock, stolen = fcntl.flock, []

    def late(fd, how):
        if not stolen:
            stolen.extend(root.iterdir())
            stolen[0].unlink()
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    file = storage.new_file(NAME)
    file.write(b"x")
    file.publish()
    assert len(stolen) == 1 and stored(root) == {f"crm-{NAME}": b"x"}


def test_a_file_system_without_locks_will_do(root, monkeypatch):
    def no_lock(_fd, _how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_lock)
    storage = opened(root)
    file = storage.new_file(NAME)
    file.write(b"x")
    assert opened(root).remove_leftovers() == 0  # nobody can know whether it is dead
    file.publish()
    assert stored(root) == {NAME: b"x"}


# ---- places that can't be ----------------------------------------------------------------------------------


def test_a_root_that_is_a_file(tmp_path):
    (tmp_path / "f").write_text("")
    for root in (tmp_path / "f", tmp_path / "f" / "deep" / "er"):
        with pytest.raises(UsageError, match=f"{tmp_path}/f can't be used: it is no folder. A file stands"):
            opened(root)


def test_a_prefix_whose_folder_is_a_file(tmp_path):
    (tmp_path / "crm").write_text("")
    with pytest.raises(UsageError, match="A file stands where a folder must be"):
        opened(tmp_path, "crm/x-")


def test_a_root_that_is_a_link_to_nowhere(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match="link can't be used"):
        opened(tmp_path / "link")


def test_a_folder_that_may_not_be_written_to():
    with tempfile.TemporaryDirectory() as outer:  # not below pytest's folders, which are closed to others
        Path(outer).chmod(0o555)
        for root in (outer, f"{outer}/new/batches"):
            with nobody(), pytest.raises(UsageError) as caught:
                opened(root)
            assert str(caught.value).startswith(f"{outer} can't be written to by this user.")
            assert "batch_config.storage.root" in str(caught.value)


def test_a_place_that_takes_no_files_whatever_its_rights_say(tmp_path):
    """What root may do by the rights of /proc, nobody can."""
    with pytest.raises(UsageError, match=r"^/proc can't be written to.*\(batch_config.storage.root\)"):
        opened("/proc/nope")
    opened(tmp_path / "new" / "batches", "crm/x-")
    assert list(tmp_path.iterdir()) == []  # of the try nothing stays


def test_a_folder_that_may_not_be_looked_into():
    with (
        tempfile.TemporaryDirectory() as outer,
        nobody(),
        pytest.raises(UsageError, match=f"{outer}/batches can't be used: Permission denied. Check the owner"),
    ):
        opened(f"{outer}/batches")


def test_rights_that_are_taken_away_later(root, storage):
    storage.new_file(NAME).publish()
    root.chmod(0o555)
    try:
        with nobody(), pytest.raises(UsageError, match="Check the owner and the rights"):
            storage.new_file(OTHER)
    finally:
        root.chmod(0o755)


def test_a_folder_that_is_removed_while_a_file_is_written(root, storage):
    file = storage.new_file(NAME)
    file.write(b"x")
    next(root.iterdir()).unlink()
    with pytest.raises(UsageError, match=f"{root}/crm-{NAME} can't be written"):
        file.publish()
    assert stored(root) == {}


def test_a_name_that_is_too_long(root):
    storage = opened(root, "p" * 100)
    with pytest.raises(UsageError, match=r"Use a shorter batch_config.storage.prefix"):
        storage.new_file(f"{'t' * 150}--s-0123456789ab-00001.jsonl").publish()
    assert stored(root) == {}


def test_a_folder_on_another_device(tmp_path):
    """The hidden file lies in the folder of the file, so it can be linked."""
    elsewhere = Path(f"/dev/shm/burler-test-{os.getpid()}")
    elsewhere.mkdir()
    try:
        (tmp_path / "batches").symlink_to(elsewhere)
        url = opened(tmp_path / "batches").new_file(NAME).publish()
        assert url == f"file://{tmp_path}/batches/{NAME}"
        assert stored(elsewhere) == {NAME: b""}
    finally:
        for path in elsewhere.iterdir():
            path.unlink()
        elsewhere.rmdir()
