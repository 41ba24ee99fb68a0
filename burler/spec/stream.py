"""One stream of a run: its SCHEMA, its rows and what is found in them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from burler.config.secrets import surely_secret
from burler.spec.bookmarks import BookmarkWatch
from burler.spec.declared import Declared
from burler.spec.finding import Findings
from burler.spec.fit import Fit
from burler.spec.hard_values import places_of_nul
from burler.spec.limits import Limits
from burler.spec.patch import Patch
from burler.spec.rowlog import RowLog, numbers_of
from burler.spec.saying import say_lines
from burler.spec.states import MISSING, entry_of, is_of_full_table, version_of
from burler.spec.times import TimeWatch
from burler.spec.versions import Versions

if TYPE_CHECKING:
    from burler.spec.lines import Line

_PATCHED = frozenset({"R501", "M205", "M217", "M218"})
_ENOUGH_ROWS = 10
_MOST_LOOKS = 20
_SCHEMAS = 20
"""Of so many SCHEMAs of a stream is noted what came."""


class StreamCheck:
    """Takes what a run says of one stream.

    Args:
        log_all: keep a log of all rows, also of streams without keys: another run is to be held against this one.
    """

    def __init__(
        self,
        name: str,
        findings: Findings,
        limits: Limits,
        *,
        given: Any,
        declared: Declared | None,
        log_all: bool,
    ) -> None:
        self.name = name
        self.declared = declared
        self.schema: Mapping[str, Any] | None = None
        self.keys: tuple[str, ...] = declared.key_properties if declared is not None else ()
        self.replication_key: str | None = None
        self.rows = self.bytes = self.states = 0
        self.began: float | None = None
        self.ended = 0.0
        self.log = RowLog(limits.keys_in_memory)
        self.bookmarks: BookmarkWatch | None = None
        self.tap_stream_id = declared.tap_stream_id if declared is not None else ""
        entry = entry_of(given, name, self.tap_stream_id)
        held, was_whole = version_of(given, name, self.tap_stream_id)
        resumed = entry is not MISSING and (held is not None or not is_of_full_table(entry))
        self.versions = Versions(name, findings, resumed=resumed, held=held, was_whole=was_whole)
        self.times = TimeWatch(name, findings, limits)
        self.patch = Patch()
        self.fits: list[Fit] = []
        self._fit: Fit | None = None
        self._goes_on = not is_of_full_table(entry)
        self.forms: set[str] = set()
        self._findings, self._limits, self._given, self._log_all = findings, limits, given, log_all
        self._version_start = 0
        self._last_schema: Any = None
        self._key_of: Any = None
        self._page: Sequence[dict[str, Any]] = ()
        self._page_lines: Sequence[int] = ()
        self._looks = 0
        self._misfits: set[str] = set()

    @property
    def incremental(self) -> bool:
        """Whether the stream surely goes on where it was: by the catalog, or by a replication key."""
        method = None if self.declared is None else self.declared.replication_method
        return method in ("INCREMENTAL", "LOG_BASED") or (method is None and self.replication_key is not None)

    @property
    def full_table(self) -> bool:
        """Whether the stream is read whole each time, as far as can be told: bookmark_properties may be left out."""
        if self.declared is not None and self.declared.replication_method is not None:
            return self.declared.replication_method == "FULL_TABLE"
        return self.replication_key is None and not self._goes_on

    def take_state(self, state: Any, line: int, now: dt.datetime, seconds: float) -> None:
        """A STATE, which may speak of the stream."""
        if self.bookmarks is not None:
            self.bookmarks.add_state(state, line, now, seconds)
        elif not self._goes_on:
            self._goes_on = not is_of_full_table(entry_of(state, self.name, self.tap_stream_id))

    def begin_with(self, state: Any) -> None:
        """The state that the run seems to have been given: it is written again before all rows."""
        self._given = state
        self._goes_on = not is_of_full_table(entry_of(state, self.name, self.tap_stream_id))
        if self.bookmarks is not None:
            self.bookmarks.begin_with(state)

    def take_schema(self, wire: Mapping[str, Any], line: int) -> None:
        """A SCHEMA: its parts as plain JSON."""
        if wire == self._last_schema:
            self._say("M209", "the same SCHEMA comes again: targets flush what they hold at each one", line)
            return
        self._last_schema = wire
        schema = wire.get("schema")
        self.schema = schema if isinstance(schema, Mapping) else {}
        given = wire.get("key_properties")
        keys = tuple(given) if isinstance(given, list) and all(isinstance(key, str) for key in given) else ()
        if self.rows and keys != self.keys:
            self._end_version()  # with other keys rows can't be held against those before
        self.keys = keys
        self._key_of = itemgetter(*self.keys) if self.keys else None
        said = self._said_key(wire.get("bookmark_properties"))
        if said is not None and (self.bookmarks is None or said != self.replication_key):
            fields = self.schema.get("properties")
            self.bookmarks = BookmarkWatch(
                self.name,
                said,
                self._given,
                self._findings,
                self._limits,
                tap_stream_id=self.tap_stream_id,
                in_schema=not isinstance(fields, Mapping) or said in fields,
                came_before=self._came_before,
            )
        self.replication_key = said
        self._take_fit(self.schema)

    def _said_key(self, given: Any) -> str | None:
        """The replication key, by a SCHEMA's bookmark_properties and by the catalog."""
        if self.declared is not None and self.declared.replication_method == "FULL_TABLE":
            return None  # what bookmark_properties names is then not used
        names = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        said = next((name for name in names if isinstance(name, str)), None)
        if said is None and self.declared is not None and self.declared.replication_method != "LOG_BASED":
            return self.declared.replication_key
        return said

    def _take_fit(self, schema: Mapping[str, Any]) -> None:
        """What rows are held against from here on. A SCHEMA that was there before goes on where it was."""
        self._fit = next((fit for fit in self.fits if fit.schema == schema), None)
        if self._fit is None:
            self._fit = Fit(schema, self._misfit)
            if len(self.fits) < _SCHEMAS:
                self.fits.append(self._fit)

    def take_records(self, lines: Sequence[Line], first: int, size: int, seconds: float, now: dt.datetime) -> None:
        """Neighbouring RECORDs of one version; ``first`` is the number of the first one's line."""
        rows = [line.record if isinstance(line.record, dict) else {} for line in lines]
        self.forms.add("RECORD")
        self.bytes += size
        self.times.page([line.time_extracted for line in lines], first, now)
        self.take_rows(rows, range(first, first + len(rows)), lines[0].version, seconds)

    def take_rows(
        self, rows: Sequence[dict[str, Any]], lines: Sequence[int], version: int | None, seconds: float
    ) -> None:
        """Some rows, with the numbers of their lines."""
        self.began = seconds if self.began is None else self.began
        self.ended = seconds
        self._page, self._page_lines, self._misfits = rows, lines, set()
        if self.versions.rows(version, len(rows), lines[0]):
            self._end_version()
        assert self._fit is not None  # the SCHEMA came, or was made up
        self._fit.page(rows)
        if self._misfits:
            self.patch.see(rows, self._misfits)
        marks = None
        if self.bookmarks is not None and self.replication_key is not None:
            key = self.replication_key
            marks = self.bookmarks.add_rows([row.get(key) for row in rows], lines, seconds)
        self._log(rows, lines, marks)
        if self.declared is not None and self.declared.unselected:
            self._unselected(rows, lines)
        self.rows += len(rows)
        self._page = ()

    def _came_before(self, places: Sequence[int], marks: Sequence[float] | None) -> set[int]:
        """Those of some rows of this page that had come in a page before, by key and place. A stream whose windows
        overlap is looked through some times; then they count as such."""
        if not self.keys:
            return set()
        self._looks += 1
        if self._looks > _MOST_LOOKS:
            return set(places)
        keys = [tuple(map(self._page[at].get, self.keys)) for at in places]
        numbers = numbers_of(keys if len(self.keys) > 1 else [key[0] for key in keys])
        where = marks or [math.nan] * len(numbers)
        found = self.log.found_before(self.log.count, dict(zip(numbers, where, strict=True)))
        return {at for at, number in zip(places, numbers, strict=True) if number in found}

    def _log(self, rows: Sequence[dict[str, Any]], lines: Sequence[int], marks: Sequence[float] | None) -> None:
        """Look at the rows' keys, and note them."""
        if self._key_of is None:
            if self._log_all:
                self.log.add(numbers_of([repr(row) for row in rows]), lines, marks)
            return
        try:
            keys = list(map(self._key_of, rows))
        except KeyError:
            keys = [tuple(map(row.get, self.keys)) if len(self.keys) > 1 else row.get(self.keys[0]) for row in rows]
        if None in (keys if len(self.keys) == 1 else chain.from_iterable(keys)):
            for name in self.keys:
                bad = [(name in row, line) for row, line in zip(rows, lines, strict=True) if row.get(name) is None]
                for is_there, those in groupby(bad, key=itemgetter(0)):  # in the order of the lines
                    fact = f"whose key '{name}' is null" if is_there else f"without its key '{name}'"
                    message = f"a row {fact}: it can't be told from others"
                    self._say_lines("M207", message, [line for _, line in those], name)
        self.log.add(numbers_of(keys), lines, marks)

    def take_nul(self, record: Any, line: int) -> None:
        """A row whose line has the character NUL in it, somewhere."""
        for path in places_of_nul(record):
            self._say("M219", f"'{path}' holds the character NUL, which PostgreSQL can't take", line, path)

    def _unselected(self, rows: Sequence[dict[str, Any]], lines: Sequence[int]) -> None:
        assert self.declared is not None
        for name in set().union(*rows) & self.declared.unselected:
            own = [line for row, line in zip(rows, lines, strict=True) if name in row]
            self._say_lines("M224", f"the field '{name}' is not selected, and comes", own, name)

    def _misfit(self, code: str, path: str, message: str, places: Sequence[int], count: int) -> None:
        if code in _PATCHED:
            self._misfits.add(path)
        if "came as" in message and any(surely_secret(name.rstrip("[]")) for name in path.split(".")):
            message = f"'{path}' came as *** and does not fit the SCHEMA"
        lines = [self._page_lines[place] for place in places]
        say_lines(self._findings, code, message, lines, stream=self.name, path=path, count=count)

    def _end_version(self, *, known: bool = True) -> None:
        """Look for keys that came twice in the version that has ended. ``known``: that the stream would stand in the
        STATE if it went on there (some taps have one place for all streams)."""
        known = known or (self.declared is not None and self.declared.replication_method is not None)
        if self.full_table and self.keys and known:
            for before, line in self.log.repeated(self._version_start):
                keys = ", ".join(self.keys)
                self._say(
                    "M208", f"a full table has two rows of one key ({keys}): lines {before} and {line}", line, keys
                )
        self._version_start = self.log.count

    def _look_at_keys(self) -> None:
        """Rows of an incremental stream may come again; if most do, they have come under one key. Without a catalog and
        a replication key they may be the changes of a log."""
        changes = self.declared is not None and self.declared.replication_method == "LOG_BASED"
        if not self.incremental or changes or not self.keys or self.log.count < _ENOUGH_ROWS:
            return
        again = self.log.again()
        if 2 * again > self.log.count:
            keys = ", ".join(self.keys)
            also = "" if self.replication_key is None else f" and the same '{self.replication_key}'"
            fact = f"{again} of {self.log.count} rows have the key ({keys}){also} of a row before them"
            self._say("M227", f"{fact}: targets keep one", None, keys)

    def finish(
        self,
        *,
        whole: bool,
        last_state: Any,
        now: dt.datetime,
        own_layout: bool = False,
        nothing_new: bool = False,
    ) -> None:
        """The end of the messages. ``whole``: the tap had come to its end. Others: see ``MessageCheck.finish``."""
        self._end_version(known=not own_layout or self.versions.current is not None)
        self._look_at_keys()
        self.versions.finish(whole=whole, full_table=self.full_table)
        if self.bookmarks is not None:
            self.bookmarks.nothing_new = nothing_new
            self.bookmarks.finish(
                whole=whole, last_state=last_state, seconds=self.read_seconds, now=now, own_layout=own_layout
            )
        if self.rows:
            for fit in self.fits:
                others = (other.seen() for other in self.fits if other is not fit)
                fit.finish(self._say_field, set().union(*others))

    @property
    def read_seconds(self) -> float:
        """How long the stream took: by its rows' times where they have some, else by the clock."""
        return self.times.seconds or (0.0 if self.began is None else self.ended - self.began)

    def fields(self) -> dict[str, dict[str, Any]]:
        """See ``burler.verify.result.StreamFacts.fields``."""
        return {path: facts for fit in self.fits for path, facts in fit.fields().items()}

    def _say_lines(self, code: str, message: str, lines: Sequence[int], path: str) -> None:
        say_lines(self._findings, code, message, lines, stream=self.name, path=path)

    def _say_field(self, code: str, path: str, message: str) -> None:
        self._findings.add(code, message, stream=self.name, path=path)

    def _say(self, code: str, message: str, line: int | None, path: str | None = None) -> None:
        place = None if line is None else f"line {line}"
        self._findings.add(code, message, stream=self.name, path=path, place=place)
