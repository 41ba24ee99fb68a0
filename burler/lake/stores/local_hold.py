"""A sign of life on a local disk: an flock, which the kernel drops when its process ends, however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from pathlib import Path

_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


class LocalHold:
    """Tries to take the flock of a file, which is made if need be, without waiting. See ``Hold``.

    Raises:
        OSError: the file can't be opened, or its file system has no flock.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if error.errno not in _BUSY:
                raise
        else:
            _HELD.add(self)

    @property
    def taken(self) -> bool:
        """See ``Hold.taken``."""
        return self._fd >= 0

    def release(self) -> None:
        """See ``Hold.release``."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


_HELD: weakref.WeakSet[LocalHold] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """A forked child shares the flock, and would keep it alive when its parent is dead."""
    for hold in list(_HELD):
        hold.release()


os.register_at_fork(after_in_child=_let_go_in_child)
