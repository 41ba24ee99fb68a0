"""Which files of a stream a reader wants: by schema version and by time, from the manifest and the names alone.

A file's name covers [first, last + 1 s). A schema version is a hash (base58 or base85), ``v2``, or ``v2..``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from burler import times
from burler.errors import UsageError
from burler.lake.hashing import other_spelling
from burler.lake.layout import parse_file_name
from burler.lake.snapshot import DataFile, Snapshot
from burler.singer.messages import UTC

_LAST_MICROSECOND = 999_999


@dataclass(frozen=True, slots=True)
class Window:
    """[since, until) of ``time_extracted``, both in the lake's one form, or None for no bound."""

    since: str | None = None
    until: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether any time will do."""
        return self.since is None and self.until is None

    def touches(self, first: str, last: str) -> bool:
        """Whether something between two times (both included) can be inside."""
        return (self.until is None or first < self.until) and (self.since is None or last >= self.since)

    def covers(self, first: str, last: str) -> bool:
        """Whether all between two times (both included) is inside."""
        return self.holds(first) and self.holds(last)

    def holds(self, time: str) -> bool:
        """Whether a time is inside."""
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)


ALL_TIMES = Window()


def window(since: str | dt.date | None, until: str | dt.date | None) -> Window:
    """The window between two times: RFC 3339 texts, dates, datetimes. Without a zone they are in UTC.

    Raises:
        UsageError: one is no time, or nothing lies between them.
    """
    made = Window(_bound("since", since), _bound("until", until))
    if made.since is not None and made.until is not None and made.since >= made.until:
        raise UsageError(f"nothing lies between since {made.since} and until {made.until}: 'until' is not included.")
    return made


def _bound(name: str, given: str | dt.date | None) -> str | None:
    if given is None:
        return None
    try:
        if isinstance(given, dt.datetime):
            return times.format_time(given if given.utcoffset() is not None else given.replace(tzinfo=UTC))
        text = given.isoformat() if isinstance(given, dt.date) else given.strip()
        return times.lake(f"{text}T00:00:00Z" if times.is_date(text) else text)[0]
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{name}: {error}. Write it as 2024-05-01 or 2024-05-01T12:00:00Z.") from None


def span(file: DataFile) -> tuple[str, str] | None:
    """The first and last time that can be in a file, both included; None where nothing says so."""
    if file.stats is not None:
        return file.stats.first, file.stats.last
    name = parse_file_name(file.path.rpartition("/")[2])
    if name is None:
        return None
    return times.format_time(name.first), times.format_time(name.last.replace(microsecond=_LAST_MICROSECOND))


@dataclass(frozen=True, slots=True)
class Choice:
    """What is wanted of a stream's files. ``hashes``: these schema versions; None for all."""

    hashes: frozenset[str] | None = None
    times: Window = ALL_TIMES

    def wants(self, file: DataFile) -> bool:
        """Whether a file can hold something that is wanted."""
        if self.hashes is not None and file.hash not in self.hashes:
            return False
        covered = None if self.times.is_all else span(file)
        return covered is None or self.times.touches(*covered)

    def of(self, snapshot: Snapshot) -> tuple[DataFile, ...]:
        """The files that can hold what is wanted, in replay order."""
        return tuple(filter(self.wants, snapshot.files))


def version_names(snapshot: Snapshot) -> dict[str, str]:
    """Schema hash -> ``v1``, ``v2``, ... in order of first commit; counted in replay order where nothing is known."""
    return {digest: snapshot.versions.get(digest, f"v{at}") for at, digest in enumerate(snapshot.hashes, 1)}


def versions_wanted(snapshot: Snapshot, text: str | None) -> frozenset[str] | None:
    """The schema hashes that ``--schema`` asks for; None for all, empty if this stream has no such version.

    ``text``: ``v2``, a hash as the folder spells it, or its base85 form; with ``..`` behind it, that version and all
    that came later.
    """
    if text is None:
        return None
    names = version_names(snapshot)
    one, onwards = (text[:-2], True) if text.endswith("..") else (text, False)
    wanted = {one, other_spelling(one)}
    order = list(names)
    found = [at for at, digest in enumerate(order) if digest in wanted or names[digest] == one.lower()]
    if not found:
        return frozenset()
    return frozenset(order[found[0] :]) if onwards else frozenset(order[at] for at in found)


def no_such_version(text: str, snapshots: Sequence[Snapshot]) -> UsageError:
    """None of the streams has the version that was asked for."""
    shown = [
        f"{one.stream}: " + ", ".join(f"{name} ({digest})" for digest, name in version_names(one).items())
        for one in snapshots[:3]
    ]
    more = " ..." if len(snapshots) > len(shown) else ""
    return UsageError(f"no stream has the schema version '{text}'. There are: {'; '.join(shown)}{more}.")


def newest(snapshot: Snapshot, hashes: frozenset[str] | None = None) -> str | None:
    """The schema version of the last file; where there is no file, the last that is known. None: there is none."""
    wanted = [digest for digest in snapshot.hashes if hashes is None or digest in hashes]
    for file in reversed(snapshot.files):
        if file.hash in wanted:
            return file.hash
    return wanted[-1] if wanted else None
