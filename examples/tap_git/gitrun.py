"""Run `git` in one folder. The user's settings and `GIT_*` variables change nothing, and nothing uses the network."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import chain
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, cast

# fmt: off
_PINNED = [  # "-c" wins over all configuration files
    "core.attributesFile=/dev/null", "core.bigFileThreshold=512m", "core.warnAmbiguousRefs=false",
    "diff.algorithm=default", "diff.relative=false", "diff.renameLimit=1000", "diff.renames=true",
    "log.showRoot=true", "log.showSignature=false",
]
_DROPPED = re.compile("GIT_(?!CONFIG_|EXEC_PATH|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM)")
_ENV = {
    "LC_ALL": "C", "GIT_ATTR_NOSYSTEM": "1", "GIT_GRAFT_FILE": "/dev/null/none", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0",  # never the network
}
# fmt: on
_GIT = ["git", "--no-pager", "--no-replace-objects", *chain(*(("-c", setting) for setting in _PINNED))]
_CURES = {
    "dubious ownership|unsafe repository": "If you trust its owner, run the command that git names above.",
    "not a git repository": "Give the folder of a clone (it holds .git) or of a bare repository.",
    "cannot change to": "Give the path of an existing folder that this user may enter.",
    "promisor|lazy fetching": "This is a partial clone, and nothing is fetched here: clone without --filter.",
    "bad object|unable to read|ould not read|missing": "An object is missing: see `git fsck`, then clone again.",
}


class GitError(Exception):
    """git could not be run or failed: the command, the place, git's own words and, where known, a cure."""


class Git:
    """git in one folder. Errors of git are GitErrors."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def tokens(self, *args: str, given: Iterable[str] = (), end: bytes = b"\0") -> Generator[bytes]:
        """Yield git's output cut at `end`. Closing the generator ends git."""
        with self.output(*args, given=given) as out:
            rest = b""
            while chunk := out.read1(1 << 17):
                *whole, rest = (rest + chunk).split(end)
                yield from whole

    @contextmanager
    def output(self, *args: str, given: Iterable[str] = ()) -> Iterator[BufferedReader]:
        """Start git with the lines `given` on stdin; yield its stdout, which is to be read to the end."""
        with TemporaryFile() as stdin, TemporaryFile() as stderr:  # files: no full pipe can block either side
            stdin.writelines(f"{line}\n".encode() for line in given)
            stdin.seek(0)
            with self.start(*args, stdin=stdin, stderr=stderr) as process:
                try:
                    yield cast(BufferedReader, process.stdout)
                    code = process.wait()
                finally:
                    process.kill()
            if code:
                raise self.failed(args[0], stderr, code)

    def start(self, *args: str, stdin: IO[bytes] | int, stderr: IO[bytes]) -> Popen[bytes]:
        """Start git and return its process."""
        env = {key: value for key, value in os.environ.items() if not _DROPPED.match(key)} | _ENV
        command = [*_GIT, "-C", str(self.path), *args]
        try:
            # A process group of its own: Ctrl-C reaches us alone, and we end git ourselves.
            return Popen(command, stdin=stdin, stdout=PIPE, stderr=stderr, env=env, process_group=0)
        except (OSError, ValueError) as error:
            raise GitError(f"git cannot be started: {error}. Install git and put it on PATH.") from error

    def failed(self, command: str, stderr: IO[bytes], code: int) -> GitError:
        """Return the error for a git that has ended with `code`; `stderr` is the file that it wrote to."""
        stderr.seek(0)
        said = stderr.read().decode("utf-8", "backslashreplace").strip() or f"ended with code {code}"
        cure = next((cure for signs, cure in _CURES.items() if re.search(signs, said)), "")
        return GitError(f"git {command} in {self.path}: {said}\n{cure}".strip())
