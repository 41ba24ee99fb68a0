"""What the commands of a lake print: lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from burler import logs, words
from burler.words import counted

if TYPE_CHECKING:
    from burler.lake.care import LakeInfo, StreamInfo, TapInfo, TapNotes, VersionInfo

_HEAD = ("stream", "version", "", "files", "rows", "bytes", "newest time_extracted")
_NUMBERS = {3, 4, 5}


def plain(text: str) -> str:
    """Text of others as one harmless line of a terminal: control characters are spelled out."""
    return logs.harmless(text).replace("\n", "\n  ")


def size(number: int | None) -> str:
    """Bytes in words, as the site of a lake has them; ``?`` if unknown."""
    return "?" if number is None else words.size(number)


def age(seconds: float) -> str:
    """A time span in words, by its largest unit."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return counted(int(seconds // length), unit)
    return counted(int(max(0, seconds)), "second")


def lake_text(lake: LakeInfo, *, with_files: bool) -> Iterator[str]:
    """The lines of ``burler lake ls``."""
    if lake.problem:
        yield plain(lake.problem)
    for tap in lake.taps:
        yield plain(tap.tap_id) + _about(tap)
        rows: list[tuple[str, ...]] = [_HEAD]
        for stream in tap.streams:
            rows += _rows(stream)
        yield from _aligned(rows) if tap.streams else ("  no streams",)
        for stream in tap.streams:
            if stream.problem:
                yield f"  {plain(stream.stream)}: {plain(stream.problem)}"
            if with_files:
                yield from _files(stream)
    if not lake.taps:
        yield "There is nothing in this lake. Fill it: some-tap | burler lake write LAKE --tap-id some-tap"


def _about(tap: TapInfo) -> str:
    status = tap.status.get("state") if isinstance(tap.status, dict) else tap.status
    state = None if tap.state is None else _moment(tap.state) if tap.state[:1].isdigit() else tap.state
    notes = (("owner", tap.owner), ("status", status), ("state", state))
    told = ", ".join(f"{name}: {plain(str(value))}" for name, value in notes if value)
    return f"  ({told})" if told else ""


def _rows(stream: StreamInfo) -> Iterator[tuple[str, ...]]:
    mark = "" if stream.manifest else "no manifest" if not stream.problem else "broken manifest"
    yield plain(stream.stream), mark, "", *_figures(stream)
    if len(stream.versions) > 1 or not stream.manifest:
        for version in stream.versions:
            yield "", version.version or "", version.hash, *_figures(version)


def _figures(one: StreamInfo | VersionInfo) -> tuple[str, ...]:
    rows = "?" if one.records is None else f"{one.records:,}"
    return f"{one.files:,}", rows, size(one.bytes if one.bytes is not None else one.stored_bytes), _moment(one.last)


def _moment(text: str | None) -> str:
    """A time to the second."""
    return "-" if not text else text.partition(".")[0].removesuffix("Z") + "Z"


def _files(stream: StreamInfo) -> Iterator[str]:
    for file in stream.all_files:
        rows = "? rows" if file.records is None else counted(file.records, "row")
        weight = size(file.bytes if file.bytes is not None else file.stored_bytes)
        yield f"    {plain(file.path)}  {rows}  {weight}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    shown = [at for at, width in enumerate(widths) if width]
    for row in rows:
        cells = (row[at].rjust(widths[at]) if at in _NUMBERS else row[at].ljust(widths[at]) for at in shown)
        yield ("  " + "  ".join(cells)).rstrip()


def notes_text(notes: TapNotes) -> Iterator[str]:
    """The lines of ``burler lake describe``."""
    yield plain(notes.tap_id)
    times = " to ".join(_moment(time) for time in (notes.started, notes.ended) if time)
    status = ", ".join(plain(part) for part in (notes.state, times) if part)
    lines = (
        ("owner", notes.owner),
        ("description", notes.description),
        ("documentation", notes.documentation),
        ("status", status),
        ("log", notes.link),
    )
    for name, value in lines:
        yield f"  {name:<13}  {plain(value) if value else '-'}"
