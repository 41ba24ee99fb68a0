"""Files on a local disk that are there whole or not at all, locks among processes, and what OSErrors mean.

Everything a reader can see is complete at any moment, also after SIGKILL or a power cut. flock does not work reliably
over NFS.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import random
import re
import secrets
import shutil
import stat
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from burler.errors import BurlerError, StorageError, UsageError

_log = logging.getLogger("burler")

_LEFTOVER_SECONDS = 60.0  # a writer that takes longer is none of ours
_POLITE_SECONDS = 5.0  # longer than any honest writer holds a file; a stopped one must not hold us up for ever
_GIVE_UP_SECONDS = 60.0
_WORD_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 0.05

TEMPORARY = ".tmp-"
"""What the hidden names of files begin with that are being written, or were when their process was killed."""
MOST_OF_A_NAME = 200
"""Of a name in a hidden name: with what stands before it, that has no more than the 255 bytes that a name may have."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}  # ENOENT: /proc and the like take no folders
_WRONG_KIND = {errno.ENOTDIR, errno.EISDIR, errno.ELOOP}
_TOO_MANY_OPEN = {errno.EMFILE, errno.ENFILE}
_NO_LINKS = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Cures:
    """What to do about each kind of OSError, as people read it behind the fact."""

    refused: str
    full: str = "Make room and run again: nothing is half written."
    too_many_open: str = "Let fewer files be open (--max-open-files, max_open_files), or allow more (ulimit -n)."
    wrong_kind: str = "A file stands where a folder must be, or the reverse: move it away."
    no_links: str = "The file system must offer hard links and flock: use another."
    too_long: str = "Use shorter names."
    other: str = "Check the disk and run again: nothing is half written."


class HiddenFile:
    """A file under a hidden name, until it gets its real one. Raises OSErrors as they come.

    Args:
        path: must not exist; its folder must.
        mode: the rights of a new one, less those of the umask.
    """

    def __init__(self, path: Path, mode: int = 0o666) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(path, flags, mode)
        self._synced = False

    @property
    def fd(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._fd

    def append(self, data: Bytes) -> None:
        """Write all of ``data`` at the end."""
        done = 0
        with memoryview(data) as given, given.cast("B") as view:  # an error must leave no view of the caller's buffer
            while done < len(view):
                with view[done:] as rest:
                    done += os.write(self._fd, rest)

    def sync(self) -> None:
        """Have the content on disk, once."""
        if not self._synced:
            os.fsync(self._fd)
            self._synced = True

    def close(self) -> None:
        """Close the descriptor; a file system may say only now that it could not write."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def discard(self) -> None:
        """Close, and remove the hidden name. Never fails."""
        with contextlib.suppress(OSError):
            self.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def hidden_file(target: Path, *, name: str = "", mode: int = 0o666) -> Iterator[HiddenFile]:
    """A hidden file beside ``target``, which takes its name by ``path.replace`` or ``take_name``; else it is removed.

    Args:
        name: of the hidden file, for those who look for names of their own; else see ``remove_leftovers``.
    """
    file = HiddenFile(target.with_name(name or f"{_beginning(target)}{secrets.token_hex(6)}.tmp"), mode)
    try:
        yield file
    finally:
        file.discard()


def create_file(target: Path, content: Bytes, *, name: str = "") -> None:
    """Make a file with all its content on disk in one step. Its own name there is not yet: see ``sync_path``.

    Args:
        name: see ``hidden_file``.

    Raises:
        FileExistsError: there is one. OSError: the folder can't be written.
    """
    with hidden_file(target, name=name) as file:
        file.append(content)
        file.sync()
        take_name(file.path, target)


def take_name(hidden: Path, target: Path) -> None:
    """Give a file its name in one step, if that is free. Where there are no hard links it is renamed, under a claim
    that one process alone gets.

    Raises:
        FileExistsError: it is not free. OSError: the folder can't be written.
    """
    try:
        os.link(hidden, target)
        return
    except OSError as error:
        if error.errno not in _NO_LINKS | {errno.EPERM}:
            raise
    with hidden_file(target, name=hidden_name(target.name, "0" * 16)) as claim:
        try_lock(claim.fd, wait=True)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        hidden.rename(target)


def hidden_name(name: str = "", digits: str = "") -> str:
    """A name that nobody sees for a file that is being written: of its own to be, the beginning.

    Args:
        digits: 16 hexadecimal ones; random if they are not given.
    """
    digits = digits or secrets.token_hex(8)
    return f"{TEMPORARY}{digits}-{name[:MOST_OF_A_NAME]}" if name else f"{TEMPORARY}{digits}"


def replace_file(path: str | Path, content: bytes) -> None:
    """Write a file anew: a temporary one beside it is filled, made durable, and takes its name.

    Mode bits stay, and owner and group where we may set them; where the group can't be kept its rights are left
    out. At no moment may anybody read the new content who could not read the old one. A symbolic link stays: what
    it points to is replaced. A file that is not there yet gets the usual rights of a new one.

    Raises:
        OSError: no right to, no room, a file that is itself a mount point (EBUSY). The old file is untouched.
    """
    target = Path(os.path.realpath(path))
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    with hidden_file(target, mode=0o666 if old is None else 0o600) as file:
        file.append(content)
        if old is not None:
            os.fchmod(file.fd, _take_over(file.fd, old))
        file.sync()
        file.path.replace(target)
    with contextlib.suppress(OSError):  # some file systems know no fsync of folders
        sync_path(target.parent)


def remove_leftovers(path: str | Path, *, seconds: float = _LEFTOVER_SECONDS) -> None:
    """Remove temporary files that killed writers of this file left beside it: they may hold secrets, or fill the disk.

    Call it while the file is locked. Only files that are named as ours, and older than ``seconds``, go.
    """
    target = Path(os.path.realpath(path))
    ours = re.compile(re.escape(_beginning(target)) + r"[0-9a-f]{12}\.tmp")
    with contextlib.suppress(OSError):
        for item in target.parent.iterdir():
            if ours.fullmatch(item.name):
                with contextlib.suppress(OSError):
                    old = item.lstat()
                    if stat.S_ISREG(old.st_mode) and time.time() - old.st_mtime > seconds:
                        item.unlink()


def _beginning(target: Path) -> str:
    return f".{target.name[:200]}."


def _take_over(fd: int, old: os.stat_result) -> int:
    """Give an open file the owner of another; the mode that it may have then."""
    mine = os.fstat(fd)
    mode = stat.S_IMODE(old.st_mode)
    if mine.st_uid != old.st_uid:
        with contextlib.suppress(OSError):
            os.fchown(fd, old.st_uid, -1)
    if mine.st_gid != old.st_gid:
        try:
            os.fchown(fd, -1, old.st_gid)
        except OSError:
            mode &= ~0o070
    return mode


@contextlib.contextmanager
def new_folder(folder: Path, *, beside: Path | None = None) -> Iterator[Path]:
    """A folder that is filled under a hidden name, and takes its own at the end; an empty one gives way. If anything
    fails nothing is left.

    Args:
        beside: the folder in which it is filled; that which ``folder`` stands in if left out.
    """
    hidden = (beside or folder.parent) / f".{folder.name[:100]}.{secrets.token_hex(6)}.tmp"
    try:
        hidden.mkdir()
        yield hidden
        hidden.rename(folder)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each durable before something is put into it."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    sync_path(folder.parent)


def sync_path(path: Path) -> None:
    """Have a file, or the names in a folder, on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def try_lock(fd: int, *, wait: bool = False) -> bool | None:
    """Whether this process has the flock of a file now; None on file systems that have none."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _wait(fd: int, target: Path, seconds: float) -> bool | None:
    """``try_lock`` until so many seconds have passed."""
    begun, said, pause = time.monotonic(), False, 0.0005
    while (got := try_lock(fd)) is False:
        waited = time.monotonic() - begun
        if waited > seconds:
            break
        if waited > _WORD_SECONDS and not said:
            said = True
            _log.warning("%s: another process is in the middle of replacing it; waiting for it.", target)
        time.sleep(random.uniform(0, pause))
        pause = min(_LONGEST_PAUSE_SECONDS, pause * 2)
    return got


def _no_locks(path: Path) -> OSError:
    return OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(path))


class FileLock:
    """The flock of a file, which is made if need be, or of a folder; it is tried without waiting. The kernel takes it
    away when the process ends, however it ends.

    Args:
        needed: False: on a file system without locks it counts as taken.

    Raises:
        OSError: the file can't be opened, or its file system has no flock.
    """

    def __init__(self, path: Path, *, mode: int = 0o666, needed: bool = True) -> None:
        flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
        self._fd = os.open(path, flags | os.O_CLOEXEC, mode)
        got = try_lock(self._fd)
        if got is False or (got is None and needed):
            self.release()
            if got is None:
                raise _no_locks(path)
        else:
            _HELD.add(self)

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def taken(self) -> bool:
        """False: another living process of this machine (or another lock of this one) has it."""
        return self._fd >= 0

    def release(self) -> None:
        """Give it back. Safe to call again, and where it was not taken."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


_HELD: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _release_in_child() -> None:
    """A forked child shares the flock, and would keep it alive when its parent is dead."""
    for lock in list(_HELD):
        lock.release()


os.register_at_fork(after_in_child=_release_in_child)


@contextlib.contextmanager
def locked_beside(target: Path) -> Iterator[None]:
    """Hold the lock of ``target``: a hidden empty file beside it, which is never removed.

    A holder that is stopped in between (SIGSTOP, a frozen container) keeps it, and nobody can tell what it is about to
    do when it goes on: so it is waited for, with a word after 5 seconds, and given up after 60.

    Raises:
        StorageError: it was not to be had. OSError: the folder can't be written, or its file system has no flock.
    """
    make_folder(target.parent)
    path = target.with_name(f".{target.name}.lock")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        got = _wait(fd, target, _GIVE_UP_SECONDS)
        if got is None:
            raise _no_locks(path)
        if not got:
            raise StorageError(
                f"{target}: another process has been in the middle of replacing it for {_GIVE_UP_SECONDS:g} seconds. "
                f"It must be stopped (SIGSTOP, a frozen container): let it go on, or end it. `fuser {path}` names it."
            )
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked_itself(path: str | Path) -> Iterator[int]:
    """Hold a file against others that replace it through this function too; gives a descriptor to read it from.

    Where the file system knows no locks, or another process holds one for longer than 5 seconds, we go on without:
    the lock guards against lost updates, never against half-written files.

    Raises:
        OSError: the file can't be opened.
    """
    limit = time.monotonic() + _POLITE_SECONDS
    while True:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _wait(fd, Path(path), limit - time.monotonic())
            held, there = os.fstat(fd), os.stat(path)  # noqa: PTH116  # it may have been replaced meanwhile
            if (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino) or time.monotonic() > limit:
                yield fd
                return
        finally:
            os.close(fd)


@contextlib.contextmanager
def errors(target: Path, doing: str, cures: Cures, *, missing_is_an_answer: bool = False) -> Iterator[None]:
    """OSErrors as burler's errors. "The name is taken" goes through: it is an answer, not a failure.

    Args:
        doing: what could not be done to ``target``: "read", "written".

    Raises:
        UsageError: the place is wrong. StorageError: the disk is full, or failed.
    """
    try:
        yield
    except (BurlerError, FileExistsError):
        raise
    except OSError as error:
        if missing_is_an_answer and isinstance(error, FileNotFoundError):
            raise
        raise _translated(target, doing, error, cures) from error


def _translated(target: Path, doing: str, error: OSError, cures: Cures) -> BurlerError:
    fact = f"{target} can't be {doing}: {error.strerror or error}."
    if error.errno in _WRONG_KIND:
        return UsageError(f"{fact} {cures.wrong_kind}")
    if error.errno == errno.ENAMETOOLONG:
        return UsageError(f"{fact} {cures.too_long}")
    if error.errno in _REFUSED:
        return UsageError(f"{fact} {cures.refused}")
    if error.errno in _FULL:
        return StorageError(f"{fact} {cures.full}")
    if error.errno in _TOO_MANY_OPEN:
        return StorageError(f"{fact} {cures.too_many_open}")
    if error.errno in _NO_LINKS:
        return StorageError(f"{fact} {cures.no_links}")
    return StorageError(f"{fact} {cures.other}")
