"""The file changes of commits: which paths each one touches, and how many lines."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from io import BufferedReader
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import IO, Any, cast

from .gitrun import Git, GitError
from .gittext import name_of

Row = dict[str, Any]

KEPT_ROWS = 20_000  # some 10 MB; 100 commits of 200 files each
_FIELDS = ("sha", "path", "old_path", "status", "lines_added", "lines_removed")
# Plumbing follows no settings of git log's, so that what those do by default is asked for here.
_DIFF_TREE = ["diff-tree", "--stdin", "-z", "-r", "--root", "--always", "--raw", "--numstat", "-M"]
_DIFF_TREE += ["--ignore-submodules=none"]


class Changes:
    """The file changes of each commit, by its sha.

    Who reads commits has their changes at hand, but they are asked for later, commit by commit. Those that were
    `keep`t last are remembered, up to `most` rows; git is asked for all others, one process for all of them. So
    it does not matter when they are asked for, or how many commits were read ahead. For one thread at a time.
    """

    def __init__(self, git: Git, most: int = KEPT_ROWS) -> None:
        self._git = git
        self._most = most
        self._kept: dict[str, list[Row]] = {}  # oldest first
        self._rows = 0
        self._hidden: Collection[str] = ()
        self._asked: _DiffTree | None = None

    def begin(self, hidden: Collection[str]) -> None:
        """Commits are read anew. `hidden`: those of which nobody can tell what they changed."""
        self._kept.clear()
        self._rows, self._hidden = 0, hidden

    def keep(self, sha: str, files: list[Row]) -> None:
        """Remember the changes of the commit that was read last; the oldest ones make room, this one never does."""
        self._kept[sha] = files
        self._rows += 1 + len(files)  # a commit without any takes room, too
        while self._rows > self._most and len(self._kept) > 1:
            self._take(next(iter(self._kept)))

    def of(self, sha: str) -> list[Row]:
        """Return the file change rows of a commit, sorted by path. What was kept is forgotten then.

        Raises:
            GitError: it is no commit of this repository, or something of it is missing.
        """
        if sha in self._kept:
            return self._take(sha)
        if sha in self._hidden:
            return []
        if self._asked is None:
            self._asked = _DiffTree(self._git)
        try:
            return self._asked.rows(sha)
        except BaseException:  # a signal may have come in the middle of an answer
            self.close()
            raise

    def close(self) -> None:
        """End git, if it was asked."""
        if self._asked is not None:
            self._asked.close()
            self._asked = None

    def _take(self, sha: str) -> list[Row]:
        files = self._kept.pop(sha)
        self._rows -= 1 + len(files)
        return files


class _DiffTree:
    """A running `git diff-tree --stdin`.

    It repeats a line that is no sha, and sends all that it has printed along: so such a line ends each answer.
    """

    def __init__(self, git: Git) -> None:
        self._git = git
        self._end = f"-{secrets.token_hex(16)}\n".encode()  # no path holds it
        self._stderr = TemporaryFile()  # noqa: SIM115 (closed by close)
        try:
            self._process: Popen[bytes] = git.start(*_DIFF_TREE, stdin=PIPE, stderr=self._stderr)
        except BaseException:
            self._stderr.close()
            raise

    def rows(self, sha: str) -> list[Row]:
        """Ask for one commit."""
        try:
            stdin = cast(IO[bytes], self._process.stdin)
            stdin.write(sha.encode() + b"\n" + self._end)
            stdin.flush()
        except OSError:  # it has ended: what it said is better than "broken pipe"
            raise self._failed() from None
        tokens = iter(self._answer().split(b"\0")[:-1])
        if next(tokens, None) != sha.encode():
            raise GitError(
                f"git diff-tree in {self._git.path}: {sha} is missing or no commit. See `git fsck`, then clone again."
            )
        files: dict[bytes, Row] = {}
        for token in tokens:
            add_change(files, sha, token, tokens)
        return list(files.values())

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            with suppress(OSError):  # what it was not told any more
                cast(IO[bytes], pipe).close()
        self._process.wait()

    def _answer(self) -> bytes:
        out, answer = cast(BufferedReader, self._process.stdout), bytearray()
        while not answer.endswith(self._end):
            chunk = out.read1(1 << 17)
            if not chunk:
                raise self._failed()
            answer += chunk
        return bytes(answer[: -len(self._end)])

    def _failed(self) -> GitError:
        return self._git.failed(_DIFF_TREE[0], self._stderr, self._process.wait())


def add_change(files: dict[bytes, Row], sha: str, token: bytes, rest: Iterator[bytes]) -> None:
    """Take one entry of `--raw --numstat -z` into `files`: it begins with `token`, its paths follow in `rest`.

    The first byte tells its kind: ":" raw, else numstat. Paths are taken by count and never looked at, so
    nothing they hold can be mistaken for a beginning. All raw entries of a commit come before its numstat.
    """
    if token.startswith(b":"):
        status, path = chr(token[token.rindex(b" ") + 1]), next(rest)
        old, path = (path, next(rest)) if status in "RC" else (None, path)
        texts = (sha, name_of(path), old and name_of(old), status, 0, 0)
        files[path] = dict(zip(_FIELDS, texts, strict=True))
    elif token:
        added, removed, path = token.split(b"\t", 2)
        row = files[path or (next(rest), next(rest))[1]]  # renamed: old path, new path
        row["lines_added"] = None if added == b"-" else int(added)
        row["lines_removed"] = None if removed == b"-" else int(removed)
