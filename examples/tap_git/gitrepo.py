"""Read a local git repository by running `git`: refs, commits with their file changes, authors.

Nothing here writes or uses the network. Output is parsed while git prints it, so memory stays flat. The
user's git settings and `GIT_*` variables change nothing; `.gitattributes` files count, as in `git log`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import Any, cast

Row = dict[str, Any]
Shas = Iterable[str]

# fmt: off
_PINNED = [  # "-c" wins over all configuration files
    "core.attributesFile=/dev/null", "core.bigFileThreshold=512m", "core.warnAmbiguousRefs=false",
    "diff.algorithm=default", "diff.relative=false", "diff.renameLimit=1000", "diff.renames=true",
    "log.showRoot=true", "log.showSignature=false",
]
_COLUMNS = {
    "sha": "%H", "parents": "%P", "tree": "%T", "author_name": "%an", "author_email": "%ae",
    "authored_at": "%at", "committer_name": "%cn", "committer_email": "%ce", "committed_at": "%ct",
    "subject": "%s", "message": "%B",
}
_DROPPED = re.compile("GIT_(?!CONFIG_|EXEC_PATH|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM)")
_ENV = {
    "LC_ALL": "C", "GIT_ATTR_NOSYSTEM": "1", "GIT_GRAFT_FILE": "/dev/null/none", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0",  # never the network
}
_CHANGE = ("sha", "path", "old_path", "status", "lines_added", "lines_removed")
# fmt: on
_GIT = ["git", "--no-pager", "--no-replace-objects", *chain(*(("-c", setting) for setting in _PINNED))]
_LOG = ["log", "--stdin", "-z", "--encoding=UTF-8", "--no-color", "--no-ext-diff", "--no-textconv"]
_DIFF = ["--raw", "--numstat", "--ignore-submodules=none", "-O/dev/null", "--topo-order", "--reverse"]
_FORMAT = "--format=tformat:>" + "%x00".join(_COLUMNS.values())
_CURES = {
    "dubious ownership|unsafe repository": "If you trust its owner, run the command that git names above.",
    "not a git repository": "Give the folder of a clone (it holds .git) or of a bare repository.",
    "cannot change to": "Give the path of an existing folder that this user may enter.",
    "promisor|lazy fetching": "This is a partial clone, and nothing is fetched here: clone without --filter.",
    "bad object|unable to read|ould not read|missing": "An object is missing: see `git fsck`, then clone again.",
}
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ESCAPES = {ord(c): f"\\{e}" for c, e in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}


class GitError(Exception):
    """git could not be run or failed: the command, the place, git's own words and, where known, a cure."""


class Repo:
    """One local repository (a folder in a work tree, a `.git` folder, a bare one); else GitError, at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        list(self._tokens("rev-parse", "--git-dir"))

    def refs(self) -> Iterator[Row]:
        """Yield one row per ref: `HEAD`, then by name. `commit_sha` is the end of nested tags, or None.

        Refs that lead nowhere (dangling symref, missing object) are left out, as in `git log --all`.
        `tagger_name`, `tagged_at` and `subject` are None unless `type` is "tag".
        """
        rows = self._refs()
        tags = dict(self._objects({row["sha"] for row in rows if row["type"] == "tag"}))
        for row in rows:
            yield row | _tag_details(tags.get(row["sha"]))

    def tips(self) -> dict[str, str]:
        """Return name -> commit sha of `HEAD` and all refs that lead to a commit: one snapshot."""
        return {row["name"]: row["commit_sha"] for row in self._refs() if row["commit_sha"]}

    def commits(
        self, tips: Shas, known: Shas = (), *, reopen: Shas = (), changes: bool = True
    ) -> Iterator[tuple[Row, list[Row]]]:
        """Yield (commit row, file change rows) of what `tips` reach and `known` do not, parents first.

        Merges have no file rows, as in `git log --numstat`: their changes stand in the commits they merge. A
        root adds all its files. A shallow clone's boundary commit has its true parents, but no file rows and
        None for its three figures: without its parent nobody can tell what it changed.

        Args:
            known: shas read before, with all they reach. Lost ones (gc; see `missing`) are left out.
            reopen: an earlier run's boundary commits that are none now, as the clone was deepened. They and
                all they reach come first, even if read before.
            changes: False leaves the lists empty; the commit rows stay the same.
        """
        old, tops = list(dict.fromkeys(reopen)), list(tips)
        lost = self.missing(known := [*known, *old])
        old, seen = [sha for sha in old if sha not in lost], [f"^{sha}" for sha in known if sha not in lost]
        stored = ((sha, text.partition(b"\n\n")[0]) for sha, text in self._objects(self.shallow()))
        cut = {sha: re.findall(r"^parent (\w+)$", _text(head), re.MULTILINE) for sha, head in stored}
        for wanted in filter(None, (old, tops and tops + seen)):
            with closing(self._tokens(*_LOG, *_DIFF, _FORMAT, given=wanted)) as log:
                for fields, files in _records(log):
                    row = _commit(dict(zip(_COLUMNS, map(_text, fields), strict=True)), files, cut)
                    yield row, files if changes and row["files_changed"] else []

    def missing(self, shas: Shas) -> set[str]:
        """Return those of `shas` that are no commit, or tag of one, in this repository (or no sha at all)."""
        every = set(shas)
        valid = [sha for sha in every if _SHA.fullmatch(sha)]
        found = self._types(f"{sha}^{{commit}}" for sha in valid)
        return every - {sha for sha, (_, kind) in zip(valid, found, strict=True) if kind}

    def shallow(self) -> list[str]:
        """Return the boundary commits of a shallow clone, sorted; [] for a complete one."""
        name = b"\n".join(self._tokens("rev-parse", "--git-path", "shallow", end=b"\n"))
        file = self.path / os.fsdecode(name)  # git answers relative to its folder, or absolute
        return sorted(file.read_text("ascii").split()) if file.exists() else []

    def authors(self) -> Iterator[Row]:
        """Yield one row per author (name, email) of all commits that `HEAD` and the refs reach."""
        found: dict[tuple[str, str], Row] = {}
        if not (tips := set(self.tips().values())):
            return
        with closing(self._tokens(*_LOG, "-s", "--format=tformat:%an%x00%ae%x00%at", given=tips)) as log:
            for name, email, seconds in zip(log, log, log, strict=True):
                key, at = (_text(name), _text(email)), _time(seconds)
                row = found.setdefault(key, {"commits": 0, "first_authored_at": at, "last_authored_at": at})
                row["commits"] += 1
                for field, pick in (("first_authored_at", min), ("last_authored_at", max)):
                    row[field] = pick(row[field] or at, at or row[field], key=str)  # texts that sort by time
        for (author, address), row in found.items():
            yield {"name": author, "email": address} | row

    def _refs(self) -> list[Row]:
        """Return the ref rows without the details of tags; git opens no object here that may be missing."""
        form = "--format=%(refname)%00%(objectname)%00%(symref)%00%(HEAD)%00"
        with closing(self._tokens("for-each-ref", form)) as out:
            listed = list(zip(out, out, out, out, strict=True))
        refs = [(name.lstrip(b"\n"), sha.decode(), to) for name, sha, to, _ in listed]
        here = next((ref for ref, (*_, mark) in zip(refs, listed, strict=True) if mark == b"*"), None)
        refs.insert(0, (b"HEAD", *here[1::-1]) if here else (b"HEAD", "HEAD", b""))  # else detached or unborn
        found = self._types(line for _, sha, _ in refs for line in (sha, f"{sha}^{{commit}}"))
        return [
            {"name": _key(name), "type": kind, "sha": sha, "commit_sha": commit, "symref": _key(to) or None}
            for (name, _, to), (sha, kind), (commit, _) in zip(refs, found, found, strict=True)
            if kind
        ]

    def _types(self, names: Iterable[str]) -> Iterator[tuple[str | None, str | None]]:
        """Yield (sha, type) for each object name, (None, None) for one that is not there."""
        form = "--batch-check=%(objectname) %(objecttype)"
        with closing(self._tokens("cat-file", form, given=names, end=b"\n")) as lines:
            for line in lines:
                sha, _, kind = line.decode().rpartition(" ")
                yield (None, None) if kind == "missing" else (sha, kind)

    def _objects(self, shas: Shas) -> Iterator[tuple[str, bytes]]:
        """Yield (sha, content) of each object that is there."""
        with self._git("cat-file", "--batch", given=shas) as out:
            for line in out:
                sha, kind, *size = line.decode().split()
                if kind != "missing":
                    yield sha, out.read(int(size[0]) + 1)[:-1]

    def _tokens(self, *args: str, given: Iterable[str] = (), end: bytes = b"\0") -> Generator[bytes]:
        """Yield git's output cut at `end`. Closing the generator ends git."""
        with self._git(*args, given=given) as out:
            rest = b""
            while chunk := out.read1(1 << 17):
                *whole, rest = (rest + chunk).split(end)
                yield from whole

    @contextmanager
    def _git(self, *args: str, given: Iterable[str] = ()) -> Iterator[BufferedReader]:
        """Start git with the lines `given` on stdin; yield its stdout, which is to be read to the end."""
        env = {key: value for key, value in os.environ.items() if not _DROPPED.match(key)} | _ENV
        command = [*_GIT, "-C", str(self.path), *args]
        with TemporaryFile() as stdin, TemporaryFile() as stderr:  # files: no full pipe can block either side
            stdin.writelines(f"{line}\n".encode() for line in given)
            stdin.seek(0)
            try:
                # A process group of its own: Ctrl-C reaches us alone, and we end git ourselves.
                process = Popen(command, stdin=stdin, stdout=PIPE, stderr=stderr, env=env, process_group=0)
            except (OSError, ValueError) as error:
                raise GitError(f"git cannot be started: {error}. Install git and put it on PATH.") from error
            with process:
                try:
                    yield cast(BufferedReader, process.stdout)
                    code = process.wait()
                finally:
                    process.kill()
            if code:
                stderr.seek(0)
                said = stderr.read().decode("utf-8", "backslashreplace").strip() or f"ended with code {code}"
                cure = next((cure for signs, cure in _CURES.items() if re.search(signs, said)), "")
                raise GitError(f"git {args[0]} in {self.path}: {said}\n{cure}".strip())


class Frontier:
    """The fewest shas that stand for all commits read, parents first: `known` of the next run.

    They are the keys of the dict `into`, say in a JSON state. Do not add what came again through `reopen`.
    """

    def __init__(self, into: dict[str, str | None]) -> None:
        self.into = into

    def add(self, sha: str, parents: Shas) -> None:
        """Take note of one more commit, which from now on stands for its parents too."""
        for parent in parents:
            self.into.pop(parent, None)
        self.into[sha] = None

    def shas(self) -> list[str]:
        """Return the shas in the order in which they came."""
        return list(self.into)


def _records(tokens: Iterator[bytes]) -> Iterator[tuple[list[bytes], list[Row]]]:
    """Yield (fields of _FORMAT, file change rows) of each commit in the output of `git log`.

    The first byte of a piece tells its kind: ">" a commit, ":" raw, else numstat. Text and paths are taken by
    count and never looked at, so nothing they hold can be mistaken for a beginning.
    """
    fields: list[bytes] = []
    files: dict[bytes, Row] = {}
    for token in chain(tokens, (b">",)):  # one more beginning, so that the last commit goes out too
        token = token.removeprefix(b"\n")
        if token.startswith(b">"):
            if fields:
                yield fields, list(files.values())
            fields, files = [token[1:], *islice(tokens, len(_COLUMNS) - 1)], {}
        elif token.startswith(b":"):
            status, path = chr(token[token.rindex(b" ") + 1]), next(tokens)
            old, path = (path, next(tokens)) if status in "RC" else (None, path)
            texts = (_text(fields[0]), _key(path), old and _key(old), status, 0, 0)
            files[path] = dict(zip(_CHANGE, texts, strict=True))
        elif token:
            added, removed, path = token.split(b"\t", 2)
            row = files[path or (next(tokens), next(tokens))[1]]  # renamed: old path, new path
            row["lines_added"] = None if added == b"-" else int(added)
            row["lines_removed"] = None if removed == b"-" else int(removed)


def _commit(row: Row, files: list[Row], cut: dict[str, list[str]]) -> Row:
    """Complete and type a commit row; `cut` holds the true parents of boundary commits, which git hides."""
    hidden = bool(cut.get(row["sha"]))  # a root is complete, wherever the depth ends
    parents = cut.get(row["sha"]) or row["parents"].split()
    return row | {
        "parents": parents,
        "authored_at": _time(row["authored_at"]),
        "committed_at": _time(row["committed_at"]),
        "message": row["message"].rstrip("\n"),
        "is_merge": len(parents) > 1,
        "files_changed": None if hidden else len(files),
        "lines_added": None if hidden else sum(file["lines_added"] or 0 for file in files),
        "lines_removed": None if hidden else sum(file["lines_removed"] or 0 for file in files),
    }


def _tag_details(tag: bytes | None) -> Row:
    """Return what only an annotated tag has; the subject is the first paragraph, in one line."""
    header, _, message = (tag or b"").partition(b"\n\n")
    tagger = re.search(rb"^tagger (.*?) ?<.*?>(?: (-?\d+))?", header, re.MULTILINE)
    subject = " ".join(_text(message).lstrip("\n").partition("\n\n")[0].split("\n")).strip()
    return {
        "tagger_name": _text(tagger[1]) if tagger else None,
        "tagged_at": _time(tagger[2] or "") if tagger else None,
        "subject": None if tag is None else "" if subject.startswith("-----BEGIN ") else subject,
    }


def _time(seconds: str | bytes) -> str | None:
    """Return Unix seconds as RFC 3339 text in UTC; None if there are none or the year is not 1-9999."""
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds))
    except (ValueError, OverflowError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)  # %Y has no leading zeros everywhere


def _text(raw: bytes) -> str:
    """Return UTF-8, else latin-1 text up to a NUL (git has converted what a commit says it is in)."""
    raw = raw.partition(b"\0")[0]
    with suppress(UnicodeDecodeError):
        return raw.decode()
    return raw.decode("latin-1")


def _key(name: bytes) -> str:
    """Return a path or ref name as text, one to one: what is not UTF-8 comes in git's C-style quotes."""
    if not name.startswith(b'"'):
        with suppress(UnicodeDecodeError):
            return name.decode()
    return '"' + "".join(_ESCAPES.get(b) or (chr(b) if 31 < b < 127 else f"\\{b:03o}") for b in name) + '"'
