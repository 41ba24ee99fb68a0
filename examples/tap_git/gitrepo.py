"""Read a local git repository by running `git`: refs, commits with their file changes, authors.

Nothing here writes or uses the network. Output is parsed while git prints it, so memory stays flat. The
user's git settings and `GIT_*` variables change nothing; `.gitattributes` files count, as in `git log`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

from .changes import Changes, add_change
from .gitrun import Git, GitError
from .gittext import name_of, text_of, time_of

__all__ = ["Frontier", "GitError", "Repo"]

Row = dict[str, Any]
Shas = Iterable[str]

FIGURES = ("files_changed", "lines_added", "lines_removed")
# fmt: off
_COLUMNS = {
    "sha": "%H", "parents": "%P", "tree": "%T", "author_name": "%an", "author_email": "%ae",
    "authored_at": "%at", "committer_name": "%cn", "committer_email": "%ce", "committed_at": "%ct",
    "subject": "%s", "message": "%B",
}
# fmt: on
_LOG = ["log", "--stdin", "-z", "--encoding=UTF-8", "--no-color", "--no-ext-diff", "--no-textconv"]
_ORDER = ["--topo-order", "--reverse"]
_DIFF, _NO_DIFF = ["--raw", "--numstat", "--ignore-submodules=none", "-O/dev/null"], ["--no-patch"]
_FORMAT = "--format=tformat:>" + "%x00".join(_COLUMNS.values())
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Repo:
    """One local repository (a folder in a work tree, a `.git` folder, a bare one); else GitError, at once."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._git = Git(self.path)
        self._changes = Changes(self._git)
        list(self._git.tokens("rev-parse", "--git-dir"))

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
        self, tips: Shas, known: Shas = (), *, reopen: Shas = (), figures: bool = True, changes: bool = True
    ) -> Iterator[Row]:
        """Yield the commit rows of what `tips` reach and `known` do not, parents first.

        A shallow clone's boundary commit has its true parents, but None for its three figures: without its
        parent nobody can tell what it changed. A merge's figures are 0: see `changes`.

        Args:
            known: shas read before, with all they reach. Lost ones (gc; see `missing`) are left out.
            reopen: an earlier run's boundary commits that are none now, as the clone was deepened. They and
                all they reach come first, even if read before.
            figures: False leaves `files_changed`, `lines_added` and `lines_removed` out of the rows.
            changes: whether `changes` will be asked for these commits, soon: then it costs next to nothing.
                Where nobody wants figures or changes, git compares no trees.
        """
        old, tops = list(dict.fromkeys(reopen)), list(tips)
        lost = self.missing(known := [*known, *old])
        old, seen = [sha for sha in old if sha not in lost], [f"^{sha}" for sha in known if sha not in lost]
        stored = ((sha, text.partition(b"\n\n")[0]) for sha, text in self._objects(self.shallow()))
        cut = {sha: re.findall(r"^parent (\w+)$", text_of(head), re.MULTILINE) for sha, head in stored}
        hidden = {sha for sha, parents in cut.items() if parents}  # a root is complete, wherever the depth ends
        self._changes.begin(hidden)
        how = [*_LOG, *_ORDER, *(_DIFF if figures or changes else _NO_DIFF), _FORMAT]
        for wanted in filter(None, (old, tops and tops + seen)):
            with closing(self._git.tokens(*how, given=wanted)) as log:
                for fields, files in _records(log):
                    row = _commit(dict(zip(_COLUMNS, map(text_of, fields), strict=True)), cut)
                    files = [] if row["sha"] in hidden else files
                    if figures:
                        row |= dict.fromkeys(FIGURES) if row["sha"] in hidden else _figures(files)
                    if changes:
                        self._changes.keep(row["sha"], files)
                    yield row

    def changes(self, sha: str) -> list[Row]:
        """Return the file change rows of a commit, sorted by path.

        Merges have none, as in `git log --numstat`: their changes stand in the commits they merge. A root adds
        all its files. A shallow clone's boundary commit has none. Those of the commits that were just read are
        at hand; for others git is asked, and one process answers for all of them.
        """
        return self._changes.of(sha)

    def close(self) -> None:
        """End the git that `changes` may have started. The repository can be used again."""
        self._changes.close()

    def missing(self, shas: Shas) -> set[str]:
        """Return those of `shas` that are no commit, or tag of one, in this repository (or no sha at all)."""
        every = set(shas)
        valid = [sha for sha in every if _SHA.fullmatch(sha)]
        found = self._types(f"{sha}^{{commit}}" for sha in valid)
        return every - {sha for sha, (_, kind) in zip(valid, found, strict=True) if kind}

    def shallow(self) -> list[str]:
        """Return the boundary commits of a shallow clone, sorted; [] for a complete one."""
        name = b"\n".join(self._git.tokens("rev-parse", "--git-path", "shallow", end=b"\n"))
        file = self.path / os.fsdecode(name)  # git answers relative to its folder, or absolute
        return sorted(file.read_text("ascii").split()) if file.exists() else []

    def authors(self) -> Iterator[Row]:
        """Yield one row per author (name, email) of all commits that `HEAD` and the refs reach."""
        found: dict[tuple[str, str], Row] = {}
        if not (tips := set(self.tips().values())):
            return
        with closing(self._git.tokens(*_LOG, "-s", "--format=tformat:%an%x00%ae%x00%at", given=tips)) as log:
            for name, email, seconds in zip(log, log, log, strict=True):
                key, at = (text_of(name), text_of(email)), time_of(seconds)
                row = found.setdefault(key, {"commits": 0, "first_authored_at": at, "last_authored_at": at})
                row["commits"] += 1
                for field, pick in (("first_authored_at", min), ("last_authored_at", max)):
                    row[field] = pick(row[field] or at, at or row[field], key=str)  # texts that sort by time
        for (author, address), row in found.items():
            yield {"name": author, "email": address} | row

    def _refs(self) -> list[Row]:
        """Return the ref rows without the details of tags; git opens no object here that may be missing."""
        form = "--format=%(refname)%00%(objectname)%00%(symref)%00%(HEAD)%00"
        with closing(self._git.tokens("for-each-ref", form)) as out:
            listed = list(zip(out, out, out, out, strict=True))
        refs = [(name.lstrip(b"\n"), sha.decode(), to) for name, sha, to, _ in listed]
        here = next((ref for ref, (*_, mark) in zip(refs, listed, strict=True) if mark == b"*"), None)
        refs.insert(0, (b"HEAD", *here[1::-1]) if here else (b"HEAD", "HEAD", b""))  # else detached or unborn
        found = self._types(line for _, sha, _ in refs for line in (sha, f"{sha}^{{commit}}"))
        return [
            {"name": name_of(name), "type": kind, "sha": sha, "commit_sha": commit, "symref": name_of(to) or None}
            for (name, _, to), (sha, kind), (commit, _) in zip(refs, found, found, strict=True)
            if kind
        ]

    def _types(self, names: Iterable[str]) -> Iterator[tuple[str | None, str | None]]:
        """Yield (sha, type) for each object name, (None, None) for one that is not there."""
        form = "--batch-check=%(objectname) %(objecttype)"
        with closing(self._git.tokens("cat-file", form, given=names, end=b"\n")) as lines:
            for line in lines:
                sha, _, kind = line.decode().rpartition(" ")
                yield (None, None) if kind == "missing" else (sha, kind)

    def _objects(self, shas: Shas) -> Iterator[tuple[str, bytes]]:
        """Yield (sha, content) of each object that is there."""
        with self._git.output("cat-file", "--batch", given=shas) as out:
            for line in out:
                sha, kind, *size = line.decode().split()
                if kind != "missing":
                    yield sha, out.read(int(size[0]) + 1)[:-1]


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

    A piece that begins with ">" is a commit, others are its changes. Text and paths are taken by count and never
    looked at, so nothing they hold can be mistaken for a beginning.
    """
    fields: list[bytes] = []
    files: dict[bytes, Row] = {}
    for token in chain(tokens, (b">",)):  # one more beginning, so that the last commit goes out too
        token = token.removeprefix(b"\n")
        if token.startswith(b">"):
            if fields:
                yield fields, list(files.values())
            fields, files = [token[1:], *islice(tokens, len(_COLUMNS) - 1)], {}
        else:
            add_change(files, text_of(fields[0]), token, tokens)


def _commit(row: Row, cut: dict[str, list[str]]) -> Row:
    """Type a commit row; `cut` holds the true parents of boundary commits, which git hides."""
    parents = cut.get(row["sha"]) or row["parents"].split()
    return row | {
        "parents": parents,
        "authored_at": time_of(row["authored_at"]),
        "committed_at": time_of(row["committed_at"]),
        "message": row["message"].rstrip("\n"),
        "is_merge": len(parents) > 1,
    }


def _figures(files: list[Row]) -> Row:
    """Sum up file change rows; binary files have no lines."""
    added, removed = (sum(file[field] or 0 for file in files) for field in FIGURES[1:])
    return dict(zip(FIGURES, (len(files), added, removed), strict=True))


def _tag_details(tag: bytes | None) -> Row:
    """Return what only an annotated tag has; the subject is the first paragraph, in one line."""
    header, _, message = (tag or b"").partition(b"\n\n")
    tagger = re.search(rb"^tagger (.*?) ?<.*?>(?: (-?\d+))?", header, re.MULTILINE)
    subject = " ".join(text_of(message).lstrip("\n").partition("\n\n")[0].split("\n")).strip()
    return {
        "tagger_name": text_of(tagger[1]) if tagger else None,
        "tagged_at": time_of(tagger[2] or "") if tagger else None,
        "subject": None if tag is None else "" if subject.startswith("-----BEGIN ") else subject,
    }
