"""What of a stream is wanted: which files, by schema version and by time, from the manifest and the names alone; which
rows, by time; and which fields of them.

What is taken out of a row goes at any depth, while all that stays keeps its bytes: a row is taken apart into its
fields' source texts (``msgspec.Raw``), and below a field only where something in it goes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from burler import times
from burler.errors import UsageError
from burler.lake.datafile import head_of
from burler.lake.snapshot import DataFile, Snapshot
from burler.singer.messages import UTC, encode
from burler.suggest import did_you_mean
from burler.surrogates import decode_veiled, unveil
from burler.words import some


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


@dataclass(frozen=True, slots=True)
class Choice:
    """What is wanted of a stream's files. ``hashes``: these schema versions; None for all."""

    hashes: frozenset[str] | None = None
    times: Window = ALL_TIMES

    @classmethod
    def among(cls, snapshot: Snapshot, schema: str | None, times: Window = ALL_TIMES) -> Choice:
        """What these options ask for (see ``Snapshot.versions_asked``).

        Raises:
            UsageError: there is no such schema version; names those there are.
        """
        hashes = snapshot.versions_asked(schema)
        if schema is not None and not hashes:
            raise no_such_version(schema, [snapshot])
        return cls(hashes, times)

    def wants(self, file: DataFile) -> bool:
        """Whether a file can hold something that is wanted."""
        if self.hashes is not None and file.hash not in self.hashes:
            return False
        span = None if self.times.is_all else file.span
        return span is None or self.times.touches(*span)

    def of(self, snapshot: Snapshot) -> tuple[DataFile, ...]:
        """The files that can hold what is wanted, in replay order."""
        return tuple(filter(self.wants, snapshot.files))

    def fields(self, snapshot: Snapshot) -> list[str] | None:
        """The fields that the wanted schema versions declare; None where the manifest does not know one of them."""
        known: dict[str, None] = {}
        for digest in snapshot.hashes:
            if self.hashes is None or digest in self.hashes:
                line = snapshot.schema_lines.get(digest)
                if line is None:
                    return None
                known |= dict.fromkeys(head_of(line, snapshot.folder).properties)
        return list(known)


def no_such_version(text: str, snapshots: Sequence[Snapshot]) -> UsageError:
    """None of the streams has the version that was asked for."""
    shown = [
        f"{one.stream}: " + ", ".join(f"{name} ({digest})" for digest, name in one.version_names.items())
        for one in snapshots[:3]
    ]
    more = " ..." if len(snapshots) > len(shown) else ""
    return UsageError(f"no stream has the schema version '{text}'. There are: {'; '.join(shown)}{more}.")


def refuse_unknown_fields(columns: Sequence[str], chosen: Sequence[tuple[Choice, Snapshot]]) -> None:
    """A column that is in no schema is a slip of the pen; where a schema is not known beforehand, nothing is said.

    Raises:
        UsageError: one is in none of the schema versions that are wanted; names those there are.
    """
    known: dict[str, None] = {}
    for choice, snapshot in chosen:
        fields = choice.fields(snapshot)
        if fields is None:
            return
        known |= dict.fromkeys(fields)
    unknown = [name for name in columns if name not in known]
    if unknown and chosen:
        who = f"stream '{chosen[0][1].stream}' has no" if len(chosen) == 1 else "no stream that is read has the"
        hint = did_you_mean(unknown[0], known)
        raise UsageError(f"{who} field '{unknown[0]}'. Fields: {some(list(known))}.{hint}")


Fields = dict[str, Raw]
_decode_fields = msgspec.json.Decoder(Fields).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_BLANKS = b" \t\r\n"


@dataclass(slots=True)
class Cut:
    """What goes at one place of the rows. ``keep``: these fields alone stay, less those of ``drop``; None: all others.

    ``below``: what goes inside of fields that stay. ``items``: what goes inside of the items, if here is an array.
    """

    drop: set[str] = field(default_factory=set)
    keep: dict[str, None] | None = None  # a set that has an order
    below: dict[str, Cut] = field(default_factory=dict)
    items: Cut | None = None

    def __bool__(self) -> bool:
        """Whether anything goes."""
        return bool(self.drop or self.keep is not None or self.below or self.items)

    def stays(self, name: str) -> bool:
        """Whether a field stays, if not all that is in it."""
        return name not in self.drop and (self.keep is None or name in self.keep)

    def fields(self, row: Fields) -> None:
        """Take out of an object, in place."""
        if self.keep is not None:
            for name in [name for name in row if name not in self.keep]:
                del row[name]
        for name in self.drop:
            row.pop(name, None)
        for name, inner in self.below.items():
            value = row.get(name)
            if value is not None:
                row[name] = inner.value(value)

    def value(self, raw: Raw) -> Raw:
        """Take out of any JSON value: an object, or the items of an array."""
        text = bytes(raw)
        begins = text.lstrip(_BLANKS)[:1]
        if begins == b"{":
            row = _decode_fields(text)
            self.fields(row)
            return Raw(encode(row))
        if begins == b"[" and self.items:
            return Raw(encode([self.items.value(item) for item in _decode_items(text)]))
        return raw

    def record(self, text: bytes) -> bytes:
        """Take out of one row, given as JSON; also where a text of it holds half of a surrogate pair.

        Raises:
            msgspec.DecodeError: it is no JSON object.
        """
        cut, veiled = decode_veiled(self._record, text)
        return unveil(cut) if veiled else cut

    def _record(self, text: bytes) -> bytes:
        row = _decode_fields(text)
        self.fields(row)
        return encode(row)


def cut_of(off: Iterable[tuple[str, ...]], keep: Iterable[str] | None = None) -> Cut:
    """What to take out. ``off``: breadcrumbs of what is not wanted; ``keep``: the fields of a row that stay at most."""
    root = Cut(keep=None if keep is None else dict.fromkeys(keep))
    for crumb in sorted(off, key=len):
        _add(root, crumb)
    return root


def _add(cut: Cut, crumb: tuple[str, ...]) -> None:
    at = 0
    while at < len(crumb):
        step = crumb[at]
        if step == "items":
            if cut.items is None:
                cut.items = Cut()
            cut = cut.items
            at += 1
        elif step == "properties" and at + 1 < len(crumb):
            name = crumb[at + 1]
            if not cut.stays(name):
                return
            if at + 2 == len(crumb):
                cut.drop.add(name)
                cut.below.pop(name, None)
                return
            cut = cut.below.setdefault(name, Cut())
            at += 2
        else:
            return  # no place that rows have
