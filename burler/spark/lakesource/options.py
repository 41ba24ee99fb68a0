"""The options of ``format("singerlake")``, from texts to values; a misspelt one is an error that names the right one.

Spark hands every option over as text, and takes their names in any case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from burler.errors import UsageError
from burler.lake.choice import ALL_TIMES, Window, window
from burler.spark.readoptions import ReadOptions
from burler.suggest import did_you_mean

READ_OPTIONS = (
    "path", "tap", "stream", "schema", "since", "until", "after_sequence", "to_sequence", "fields", "versions",
    "bad", "new_fields", "timestamps", "as_text", "task_bytes",
)  # fmt: skip
"""Options of a batch read. ``path`` is what ``load(...)`` is given."""
FOLLOW_OPTIONS = ("poll_seconds", "behind", "starting", "maxRowsPerTrigger", "maxFilesPerTrigger", "maxBytesPerTrigger")
"""Options that a stream takes beside them."""

TASK_BYTES = 64 << 20
"""Uncompressed bytes of lake files for each task: about half a second of one core."""

Bad = Literal["fail", "keep"]
Versions = Literal["active", "all"]
_T = TypeVar("_T")


class Texts:
    """Options as Spark hands them over: text by name, whatever the case of the name.

    Args:
        also: names that are let pass, but not recommended.

    Raises:
        UsageError: an option that ``known`` does not have; names the one that was probably meant.
    """

    def __init__(
        self, given: Mapping[str, str], known: Iterable[str], *, also: Iterable[str] = (), format: str
    ) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        self._format = format
        spelled = {name.lower(): name for name in known}
        passing = {name.lower() for name in also}
        for name in self._given:
            if name not in spelled and name not in passing:
                hint = did_you_mean(name, spelled.values())
                raise UsageError(
                    f"format '{format}' has no option '{name}'.{hint} Its options: {', '.join(spelled.values())}."
                )

    def get(self, name: str) -> str | None:
        """The text; None where the option is not given, or empty."""
        return self._given.get(name.lower()) or None

    def needed(self, name: str, hint: str) -> str:
        """The text of an option that must be there."""
        value = self.get(name)
        if value is None:
            raise UsageError(f"format '{self._format}' needs the option '{name}': {hint}")
        return value

    def one_of(self, name: str, allowed: tuple[_T, ...], *, more: str = "") -> _T:
        """One of a few words; the first where the option is not given. ``more``: what the caller takes besides."""
        value = self.get(name)
        if value is None:
            return allowed[0]
        found = next((one for one in allowed if one == value.strip().lower()), None)
        if found is None:
            raise self._wrong(name, value, " or ".join([*map(str, allowed), *([more] if more else [])]))
        return found

    def whole(self, name: str, *, least: int = 0) -> int | None:
        """A whole number; None where the option is not given."""
        return self._number(name, int, least, f"a whole number, {least} or more")

    def number(self, name: str, default: float) -> float:
        """A number, 0 or more."""
        value = self._number(name, float, 0, "a number, 0 or more")
        return default if value is None else value

    def _number(self, name: str, read: Callable[[str], _T], least: float, wanted: str) -> _T | None:
        text = self.get(name)
        if text is None:
            return None
        try:
            value: Any = read(text)
        except ValueError:
            raise self._wrong(name, text, wanted) from None
        if not least <= value < float("inf"):
            raise self._wrong(name, text, wanted)
        number: _T = value
        return number

    def names(self, name: str) -> tuple[str, ...] | None:
        """Names with commas between, or a JSON list of them (for names that hold a comma)."""
        text = self.get(name)
        if text is None:
            return None
        wanted = 'names with commas between, as id,name, or a JSON list, as ["id", "last, first"]'
        found = [one.strip() for one in text.split(",")]
        if text.lstrip().startswith("["):
            try:
                found = json.loads(text)
            except ValueError:
                raise self._wrong(name, text, wanted) from None
        if not found or not all(isinstance(one, str) and one for one in found):
            raise self._wrong(name, text, wanted)
        return tuple(dict.fromkeys(found))

    def _wrong(self, name: str, value: str, wanted: str) -> UsageError:
        return UsageError(f"format '{self._format}': option {name}={value[:60]!r} must be {wanted}.")


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """What is wanted of a lake.

    ``schema``: ``v2``, ``v2..`` or a hash. ``times``: by ``time_extracted``. ``after`` and ``to``: rows
    of commits behind the one sequence, up to and with the other; None is no bound. ``fields``: these columns alone.
    ``versions``: rows that count now, or all. ``bad``: what to do with a row that a column can't hold exactly.
    ``ignores_new``: leave out fields of schema versions that came after the columns were decided. ``may_lack``: a
    column that no schema version has yet is null (a tap's discovery knew it, its rows are still to come).
    ``task_bytes``: uncompressed.
    """

    url: str
    tap: str | None = None
    stream: str | None = None
    schema: str | None = None
    times: Window = ALL_TIMES
    after: int | None = None
    to: int | None = None
    fields: tuple[str, ...] | None = None
    versions: Versions = "active"
    bad: Bad = "fail"
    ignores_new: bool = False
    may_lack: bool = False
    read: ReadOptions = field(default_factory=ReadOptions)
    task_bytes: int = TASK_BYTES


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """How a stream follows a lake.

    ``poll_seconds``: the manifest is read no more often. ``again``: where a range can't be told from what was read
    before, rows come again instead of an error. ``starting``: where a new query begins: ``earliest``, ``latest``, or
    the sequence of the last commit that it leaves out. The rest limits a batch; None is no limit.
    """

    poll_seconds: float = 1.0
    again: bool = False
    starting: str | int = "earliest"
    max_rows: int | None = None
    max_files: int | None = None
    max_bytes: int | None = None


def lake_options(texts: Texts) -> LakeOptions:
    """Raises: UsageError: an option is wrong, or the lake's path is missing."""
    return LakeOptions(
        url=absolute(texts.needed("path", 'the lake, as spark.read.format("singerlake").load("./lake")')),
        tap=texts.get("tap"),
        stream=texts.get("stream"),
        schema=texts.get("schema"),
        times=window(texts.get("since"), texts.get("until")),
        after=texts.whole("after_sequence"),
        to=texts.whole("to_sequence"),
        fields=texts.names("fields"),
        versions=texts.one_of("versions", ("active", "all")),
        bad=texts.one_of("bad", ("fail", "keep")),
        ignores_new=texts.one_of("new_fields", ("fail", "ignore")) == "ignore",
        read=read_options(texts),
        task_bytes=texts.whole("task_bytes", least=1) or TASK_BYTES,
    )


def absolute(url: str) -> str:
    """A path as every process of this machine finds it: executors work in folders of their own."""
    return url if "://" in url else str(Path(url).absolute())


def read_options(texts: Texts) -> ReadOptions:
    """How values become columns (``timestamps``, ``as_text``)."""
    return ReadOptions(
        timestamps=texts.one_of("timestamps", ("micros", "text")),
        as_text=frozenset(texts.names("as_text") or ()),
    )


def follow_options(texts: Texts, *, poll_seconds: float = 1.0) -> FollowOptions:
    """Raises: UsageError: an option is wrong."""
    text = texts.get("starting")
    starting: str | int = "earliest"
    if text is not None:
        words = ("earliest", "latest")
        starting = int(text) if text.isdecimal() else texts.one_of("starting", words, more="the number of a commit")
    return FollowOptions(
        poll_seconds=texts.number("poll_seconds", poll_seconds),
        again=texts.one_of("behind", ("fail", "again")) == "again",
        starting=starting,
        max_rows=texts.whole("maxRowsPerTrigger", least=1),
        max_files=texts.whole("maxFilesPerTrigger", least=1),
        max_bytes=texts.whole("maxBytesPerTrigger", least=1),
    )
