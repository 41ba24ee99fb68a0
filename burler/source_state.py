"""Source state: what a source said of itself when it was read last (the ODF source-state RFC).

A list in a stream's state, one entry a source: ``{"kind": "odf/etag", "source": "odf/polling", "value": "...",
"for": "..."}``. ``for`` says what the value speaks of: the schema that was emitted, and whatever else decides what the
source gives. An entry that does not match is ignored, never an error; entries of unknown kinds are carried along.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from burler.errors import BurlerError

ETAG = "odf/etag"
LAST_MODIFIED = "odf/last-modified"
POLLING = "odf/polling"
"""The source that is meant where none is named: the one that a stream polls."""

Entry = Mapping[str, Any]


class SourceStates:
    """The source states of one stream (or of one of its partitions) while it is synced.

    Authors get it as ``stream.source_state``. Entries are replaced, never changed, so what ``entries`` gives stays
    true.

    Args:
        stream: for errors.
        saved: what the state holds: a list of entries, one entry, or anything else, which counts as none.
        schema: the digest of what is emitted, asked for once it is needed.
        automatic: declared with ``source_state=True``: GET requests are made conditional without a word.
        ignored: nothing that was saved counts (``--ignore-source-state``, or a run that leaves rows out).
        refused: why there can be none here; None if there can.
        tell: called when an entry stops counting before rows that it does not speak of go out: a STATE without it must
            be out before them.
    """

    def __init__(
        self,
        stream: str,
        saved: Any = None,
        *,
        schema: Callable[[], str] = lambda: "",
        automatic: bool = False,
        ignored: bool = False,
        refused: str | None = None,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self.automatic = automatic
        self._stream = stream
        self._schema = schema
        self._ignored = ignored
        self._refused = refused
        self._tell = tell
        self._saved = _entries(saved) if saved else []
        self._now = list(self._saved)
        self._fresh: set[str] = set()  # sources that were set in this run: they count although others are ignored
        self._gone: set[str] = set()  # sources whose saved entry no longer counts, in further tries neither
        self._later: list[Callable[[], None]] = []
        self._claimed: dict[str, str] = {}

    def get(self, kind: str, *, source: str = POLLING, of: str = "", foreign: bool = False) -> str | None:
        """The value that was saved last, None if there is none that speaks of the same.

        Args:
            kind: what sort of value it is: ``odf/etag``, ``odf/last-modified``, or a name of your own with a slash.
            source: which source it is about, where a stream has several.
            of: what else it speaks of, any text: a URL, a query, options. The emitted schema is added by itself.
            foreign: an entry counts, too, that does not say what it speaks of: another tool wrote it.
        """
        self._check()
        for entry in self._now:
            if _source_of(entry) == source:
                usable = not self._ignored or source in self._fresh
                fits = entry.get("for") == self._for(of) or (foreign and "for" not in entry)
                match = fits and entry.get("kind") == kind
                value = entry.get("value")
                return value if usable and match and isinstance(value, str) else None
        return None

    def set(self, kind: str, value: str, *, source: str = POLLING, of: str = "") -> None:
        """Save a value in place of the source's last one. It gets into a STATE once all rows that were yielded before
        are out; in a full table, once the whole table is.

        Call it after yielding the rows it speaks of.

        Raises:
            BurlerError: a kind, source or value that is no text, or a stream that can have none.
        """
        self._check()
        for name, given in (("kind", kind), ("source", source), ("value", value)):
            if not isinstance(given, str) or (name != "value" and not given):
                raise BurlerError(
                    f"stream '{self._stream}': source_state.set: '{name}' must be text, not {type(given).__name__}. "
                    "What is no text: json.dumps(...)."
                )
        self._put(source, {"kind": kind, "source": source, "value": value, "for": self._for(of)})

    def forget(self, source: str = POLLING) -> None:
        """Take a source's entry away: it said nothing of itself this time."""
        self._check()
        self._put(source, None)

    def drop(self, source: str = POLLING) -> None:
        """What was saved no longer counts: rows of another fetch follow, and a run that ends among them must not leave
        word of the one before. Unlike ``forget``, it holds at once."""
        self._check()
        left = [entry for entry in self._now if _source_of(entry) != source]
        if len(left) < len(self._now):
            self._now = left
            self._gone.add(source)
            self._fresh.add(source)
            self._tell()

    # ---- for the engine and the HTTP client ------------------------------------------------------------

    def claim(self, of: str, *, source: str = POLLING) -> bool:
        """Whether this resource is the one that a source's entry is about: the first that is asked for."""
        return self._claimed.setdefault(source, of) == of

    def later(self, act: Callable[[], None]) -> None:
        """Do this once the function has come to its end, and all of its rows are yielded."""
        self._later.append(act)

    def settle(self) -> None:
        """The function has come to its end."""
        acts, self._later = self._later, []
        for act in acts:
            act()

    def restart(self) -> None:
        """A further try: as it was at the beginning."""
        self._now = [entry for entry in self._saved if _source_of(entry) not in self._gone]
        self._claimed.clear()
        self._later.clear()
        self._fresh.clear()

    @property
    def has_entries(self) -> bool:
        """Whether a STATE says anything of it."""
        return bool(self._now)

    def entries(self) -> tuple[Entry, ...]:
        """What a STATE says of it."""
        return tuple(self._now)

    def _put(self, source: str, entry: Entry | None) -> None:
        before = [one for one in self._now if _source_of(one) == source]
        self._fresh.add(source)
        if entry is None and not before:
            return
        at = self._now.index(before[0]) if before else len(self._now)
        left = [one for one in self._now if _source_of(one) != source]
        self._now = [*left[:at], *([entry] if entry is not None else []), *left[at:]]

    def _for(self, of: str) -> str:
        schema = self._schema()
        return f"{schema}-{hashlib.sha256(of.encode()).hexdigest()[:16]}" if of else schema

    def _check(self) -> None:
        if self._refused is not None:
            raise BurlerError(f"stream '{self._stream}': {self._refused}")


def _entries(saved: Any) -> list[Entry]:
    """What a state holds, as a list; a single object is a list of one, and what is no object is kept out of the way."""
    if isinstance(saved, Mapping):
        saved = [saved]
    if not isinstance(saved, Iterable) or isinstance(saved, str | bytes):
        return []
    return [dict(one) for one in saved if isinstance(one, Mapping)]


def _source_of(entry: Entry) -> Any:
    """The RFC says ``source``; its later schema says ``sourceName``."""
    return entry.get("source", entry.get("sourceName", POLLING))


class SafeEntries:
    """What a STATE may say of the sources of several streams: the entries that it had (``before``), and those that are
    safe to say now.

    Entries are told apart by who they are: one that was saved anew is another object, if an equal one.
    """

    def __init__(self, before: Mapping[str, tuple[Entry, ...]]) -> None:
        self._before = self._safe = before
        self._dropped: set[str] = set()  # streams of which an entry no longer counts, whatever else may be said
        self._gone: set[int] = set()  # these entries

    def keep(self, now: Mapping[str, tuple[Entry, ...]]) -> bool:
        """What sources said of all that is out; True if that is news."""
        news, self._safe = now != self._safe, now
        return news

    def drop(self, stream: str, left: tuple[Entry, ...]) -> None:
        """Of the entries of a stream those that are not ``left`` no longer count, whatever else may be said of it."""
        self._dropped.add(stream)
        self._gone |= {id(entry) for entry in self._before.get(stream, ())} - {id(entry) for entry in left}

    def restart(self) -> None:
        """A further try."""
        self._safe = self._before

    def to_save(self, *, tables_are_whole: bool, drops_rows: bool) -> dict[str, list[Entry]]:
        """What is to be saved, of each stream of which it is other than in the state. Of a full table that is nothing
        before it is whole: 304 would else be the answer to a table whose rows no ACTIVATE_VERSION has followed.

        Args:
            drops_rows: by an ACTIVATE_VERSION of this run, targets drop those of sources that it did not read: what an
                earlier run heard of these no longer counts. Entries of other tools, which do not say what they speak
                of, stay.
        """
        found: dict[str, list[Entry]] = {}
        if not (self._before or self._safe or self._dropped):
            return found  # most streams have none
        safe = self._safe if tables_are_whole else self._before
        for name in self._before.keys() | safe.keys() | self._dropped:
            before = self._before.get(name, ())
            gone = self._gone | {id(entry) for entry in before if drops_rows and "for" in entry}
            now = [entry for entry in safe.get(name, ()) if id(entry) not in gone]
            if name in self._dropped or now != list(before):
                found[name] = now
        return found
