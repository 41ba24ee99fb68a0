"""The lines of one data file, on their way out: untouched where nothing is left out, else read no deeper than needed.

Three ways, a block of about a MiB at a time:

* as it stands, if the block has only RECORD lines in burler's own form (seen by counting their common beginning), of a
  file that a manifest knows, and all of them are wanted;
* decoded by a msgspec type that leaves values as source text, if fields or times are left out;
* line by line, for whatever is not of that form: ACTIVATE_VERSION, lines of other writers.

What is taken out of a row goes at any depth, while all that stays keeps its bytes: a row is taken apart into its
fields' source texts (``msgspec.Raw``), and below a field only where something in it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import msgspec
from msgspec import UNSET, Raw, UnsetType

from burler import times
from burler.errors import LakeError, MessageError
from burler.lake.datafile import CURE_DAMAGED, Head, head_of, read_blocks
from burler.lake.reading.choice import ALL_TIMES, Window
from burler.lake.snapshot import DataFile
from burler.singer.lines import Message, Numbered, bad, decode_all, one_by_one
from burler.singer.messages import encode
from burler.storage.base import Store
from burler.surrogates import decode_veiled, unveil

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
            if name in cut.drop or (cut.keep is not None and name not in cut.keep):
                return
            if at + 2 == len(crumb):
                cut.drop.add(name)
                cut.below.pop(name, None)
                return
            cut = cut.below.setdefault(name, Cut())
            at += 2
        else:
            return  # no place that rows have


def kept_struct(cut: Cut, names: Iterable[str]) -> tuple[Any, dict[str, str]] | None:
    """A msgspec type that reads the fields of ``names`` that stay and passes over all others, and its attribute for
    each of them; None where a name can't be a struct's. Only for rows of which no other field is wanted."""
    kept = [name for name in dict.fromkeys(names) if name not in cut.drop and (cut.keep is None or name in cut.keep)]
    attributes = {name: f"f{at}" for at, name in enumerate(kept)}
    try:
        made = msgspec.defstruct(
            "Row",
            [(attribute, Raw | UnsetType, UNSET) for attribute in attributes.values()],
            rename={attribute: name for name, attribute in attributes.items()},
            gc=False,
        )
        msgspec.json.Decoder(made)
    except (ValueError, TypeError):
        return None
    return made, attributes


Lines = tuple[bytes, int]
"""Complete lines, and how many of them are RECORDs."""

_encode_lines = msgspec.json.Encoder().encode_lines
_MOST_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a file.

    ``times``: rows extracted then; a row that does not say when is taken. ``cut``: what is taken out of rows. ``name``:
    the stream's name in the lines, None for that of line 1. ``activations``: whether ACTIVATE_VERSION comes, at its
    place. ``bare``: rows alone, one JSON object a line.
    """

    times: Window = ALL_TIMES
    cut: Cut | None = None
    name: str | None = None
    activations: bool = True
    bare: bool = False


class FileLines:
    """One data file; ``head`` is its line 1, read and checked at once.

    Attributes:
        skipped: types of messages that no data file should hold, each with the number of its first line.

    Raises:
        LakeError: the file is missing or damaged, or its line 1 is no SCHEMA. So may ``lines``.
    """

    def __init__(self, store: Store, file: DataFile) -> None:
        self._place = store.locate(file.path)
        self._file = file
        self._blocks = read_blocks(store, file.path)
        self.skipped: dict[str, int] = {}
        self.head: Head = head_of(next(self._blocks), self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._blocks.close()

    def lines(self, wanted: Wanted) -> Iterator[Lines]:
        """Yield what is wanted of the lines behind the first, about a MiB at a time.

        Raises:
            LakeError: a line is no message of this stream, or not so many rows stand there as the manifest says.
        """
        way = _Way(self._file, self.head, wanted, self.skipped)
        number, records = 2, 0
        for block in self._blocks:
            count = block.count(b"\n")
            try:
                page, seen = way.take(number, block, count)
            except MessageError as error:
                raise LakeError(f"{self._place}, {error}.\n{CURE_DAMAGED}") from None
            number += count
            records += seen
            if page[0]:
                yield page
        stats = self._file.stats
        if stats is not None and records != stats.records:
            raise LakeError(
                f"{self._place} holds {records:,} rows where the manifest says {stats.records:,}.\n"
                "If it was changed, restore it from a copy; burler lake rebuild takes it as it is."
            )


class _Times(dict[Any, bool]):
    """``time_extracted`` as it stands in a line -> whether it is wanted. A file has few different ones."""

    def __init__(self, times: Window) -> None:
        self._window = times

    def __missing__(self, text: Any) -> bool:
        if len(self) > _MOST_TIMES:
            self.clear()
        try:
            wanted = not isinstance(text, str) or self._window.holds(times.lake(text)[0])
        except ValueError as error:
            raise MessageError(f"a row's time_extracted: {error}") from None
        self[text] = wanted
        return wanted


class _Way:
    """How the blocks of one file are read."""

    def __init__(self, file: DataFile, head: Head, wanted: Wanted, skipped: dict[str, int]) -> None:
        stats = file.stats
        self._known = stats is not None
        self._stream = head.message.stream
        self._name = wanted.name or self._stream
        self._filters = not wanted.times.is_all and not (
            stats is not None and wanted.times.covers(stats.first, stats.last)
        )
        self._times = _Times(wanted.times)
        self._cut = wanted.cut or None
        self._wanted = wanted
        self._skipped = skipped
        self._begin = b'{"type":"RECORD","stream":' + encode(self._stream) + b',"record":'
        self._is_plain = not self._cut and not self._filters and self._name == self._stream and not wanted.bare
        row, self._finish = self._row_type(file, head)
        self._decode: Callable[[bytes], list[Any]] = msgspec.json.Decoder(_line_type(row)).decode_lines

    def _row_type(self, file: DataFile, head: Head) -> tuple[Any, Callable[[list[Any]], None] | None]:
        """The type of ``record``, and what is done with decoded lines before they are encoded again."""
        cut = self._cut
        if cut is None:
            return Raw, None
        names: Iterable[str] | None = cut.keep
        if names is None and file.clean:  # no row has a field that the schema does not name
            names = head.message.schema.get("properties") or {}
        kept = None if names is None else kept_struct(cut, names)
        if kept is None:
            return Fields, _each(cut.fields)
        return kept[0], _below(kept[1], cut)

    def take(self, number: int, block: bytes, lines: int) -> tuple[Lines, int]:
        """What is wanted of a block of so many lines, whose first one has this number; and how many RECORDs it holds.

        Raises:
            MessageError: a line is no message of this stream.
        """
        if self._known and block.startswith(self._begin) and block.count(b"\n" + self._begin) == lines - 1:
            if self._is_plain:
                return (block, lines), lines
            try:
                return self._typed(block), lines
            except (msgspec.DecodeError, RecursionError):
                pass  # a line wants a closer look
        return self._looked_at(number, block)

    def _typed(self, block: bytes) -> Lines:
        rows = self._decode(block)
        if self._filters:
            holds = self._times
            rows = [row for row in rows if holds[row.time_extracted]]
        if self._finish is not None:
            self._finish(rows)
        if not rows:
            return b"", 0
        if self._wanted.bare:
            records = [row.record for row in rows]
            return (_encode_lines(records) if self._cut else b"\n".join(records) + b"\n"), len(rows)
        if self._name != self._stream:
            for row in rows:
                row.stream = self._name
        return _encode_lines(rows), len(rows)

    def _looked_at(self, number: int, block: bytes) -> tuple[Lines, int]:
        lines = block[:-1].split(b"\n")
        messages = decode_all(block, lines)
        if messages is not None and self._is_plain and all(map(self._is_right, messages)):
            return (block, len(lines)), len(lines)
        found: Any = one_by_one(number, lines)
        out: list[bytes] = []
        seen = taken = 0
        for one in found:
            line = self._record(one) if one[1].type.upper() == "RECORD" else self._other(one)
            is_record = one[1].type.upper() == "RECORD"
            seen += is_record
            if line:
                out.append(line)
                taken += is_record
        return (b"".join(out), taken), seen

    def _is_right(self, message: Message) -> bool:
        """Whether a line may go out as it is."""
        record = message.record
        return (
            message.type == "RECORD"
            and message.stream == self._stream
            and record is not UNSET
            and bytes(memoryview(record)[:1]) == b"{"
        )

    def _record(self, one: Numbered) -> bytes | None:
        """A RECORD as it goes out; None if it is not wanted."""
        number, message, line, extras = one
        record = b"" if message.record is UNSET else bytes(message.record)
        if record[:1] != b"{":
            raise bad(number, line, "the 'record' of a RECORD must be a JSON object")
        self._check_stream(one)
        if self._filters and not self._times[message.time_extracted]:
            return None
        if self._cut is not None:
            record = self._cut.record(record)
        elif message.type == "RECORD" and self._name == self._stream and not self._wanted.bare:
            return line + b"\n"
        if self._wanted.bare:
            return record + b"\n"
        parts = [b'{"type":"RECORD","stream":', encode(self._name), b',"record":', record]
        if message.time_extracted is not None:
            parts += (b',"time_extracted":', encode(message.time_extracted))
        if message.version is not None:
            parts += (b',"version":', encode(message.version))
        return b"".join((*parts, extras, b"}\n"))

    def _other(self, one: Numbered) -> bytes | None:
        """Another message as it goes out: ACTIVATE_VERSION does, all else does not belong into a data file."""
        number, message, line, _ = one
        if message.type.upper() != "ACTIVATE_VERSION":
            self._skipped.setdefault(message.type.upper()[:40], number)
            return None
        self._check_stream(one)
        if message.version is None:
            raise bad(number, line, "an ACTIVATE_VERSION without 'version'")
        if not self._wanted.activations or self._wanted.bare:
            return None
        if message.type == "ACTIVATE_VERSION" and self._name == self._stream:
            return line + b"\n"
        return encode({"type": "ACTIVATE_VERSION", "stream": self._name, "version": message.version}) + b"\n"

    def _check_stream(self, one: Numbered) -> None:
        number, message, line, _ = one
        if message.stream != self._stream:
            raise bad(number, line, f"a message of stream {message.stream!r} in a file of stream '{self._stream}'")


def _line_type(row: Any) -> Any:
    """A RECORD line, decoded as deep as ``row`` says."""
    return msgspec.defstruct(
        "Line",
        [
            ("type", Literal["RECORD"]),
            ("stream", str),
            ("record", row),
            ("time_extracted", str | UnsetType, UNSET),
            ("version", int | UnsetType, UNSET),
        ],
        forbid_unknown_fields=True,
        gc=False,
    )


def _each(change: Callable[[Any], None]) -> Callable[[list[Any]], None]:
    def finish(rows: list[Any]) -> None:
        for row in rows:
            change(row.record)

    return finish


def _below(attributes: dict[str, str], cut: Cut) -> Callable[[list[Any]], None] | None:
    """What goes inside of fields that stay. ``attributes``: those of the struct, by the field's name."""
    inner = [(attributes[name], below) for name, below in cut.below.items() if name in attributes]
    if not inner:
        return None

    def finish(rows: list[Any]) -> None:
        for attribute, below in inner:
            for row in rows:
                value = getattr(row.record, attribute)
                if value is not UNSET:
                    setattr(row.record, attribute, below.value(value))

    return finish
