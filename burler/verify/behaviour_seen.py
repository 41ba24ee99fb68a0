"""What a run wrote, counted line by line as it comes: rows and keys, STATEs, and whether its last line is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from burler.singer.lines import LineCut

MOST_KEYS = 200_000
"""So many keys of rows are held to compare runs; of a larger source nothing is said."""

_ROWS = ("RECORD", "BATCH")


class Seen:
    """Takes the output of a run in pieces.

    Args:
        keys: whether to hold the keys of rows.
        look: gets each row with the name of its stream.

    Attributes:
        bytes, lines: of all that came.
        rows: RECORDs (and BATCHes) by stream. batches: whether a BATCH was among them.
        schemas: streams -> their key properties, of the SCHEMAs.
        schemaless: streams of which a row came before a SCHEMA.
        activated: streams -> rows that had come when the last ACTIVATE_VERSION of theirs came.
        state: the value of the last STATE. states: how many. rows_after_state: since the last one.
        keys: stream and key values of rows, as JSON; None once they are too many.
        keyless: streams whose rows have no key to be told apart by.
    """

    def __init__(self, *, keys: bool = False, look: Callable[[str, Any], None] | None = None) -> None:
        self.bytes = self.lines = self.states = self.rows_after_state = 0
        self.rows: dict[str, int] = {}
        self.batches = False
        self.schemas: dict[str, tuple[str, ...]] = {}
        self.schemaless: dict[str, None] = {}
        self.activated: dict[str, int] = {}
        self.state: Any = None
        self.keys: set[bytes] | None = set() if keys else None
        self.keyless: dict[str, None] = {}
        self._cut = LineCut()
        self._at = 0  # where the line begins
        self._holds_keys, self._look = keys, look
        self._marked_at: int | None = None
        self._news_after: list[tuple[int, str]] = []

    @property
    def started(self) -> bool:
        """Whether a row has come."""
        return bool(self.rows)

    @property
    def torn(self) -> bytes | None:
        """What stands behind the last line end and is no whole message."""
        last = self._cut.begun
        return None if not last or isinstance(_decoded(last), dict) else last

    def take(self, block: bytes) -> None:
        """One more piece."""
        self.bytes += len(block)
        for line in self._cut.take(block).split(b"\n")[:-1]:
            self._line(line)
            self._at += len(line) + 1

    def end(self) -> None:
        """Nothing comes any more: a last line without a line end counts if it is whole."""
        if self.torn is None:
            self._line(self._cut.rest())

    def mark(self) -> None:
        """From here on it is noted when a stream begins and when a STATE says something new: see ``news_after``."""
        self._marked_at = self.bytes

    def news_after(self, allowance: int) -> list[str]:
        """What came more than so many bytes behind the mark: "stream x", "STATE"."""
        return [what for at, what in self._news_after if at > allowance]

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        self.lines += 1
        message = _decoded(line)
        kind = message.get("type") if isinstance(message, dict) else None
        if isinstance(kind, str):
            self._message(kind.upper(), message)

    def _message(self, kind: str, message: Mapping[str, Any]) -> None:
        stream = message.get("stream")
        if kind == "STATE":
            value = message.get("value")
            if value != self.state:
                self._news("STATE")
            self.state, self.states, self.rows_after_state = value, self.states + 1, 0
        elif not isinstance(stream, str):
            return
        elif kind == "SCHEMA":
            self.schemas[stream] = _names(message.get("key_properties"))
        elif kind == "ACTIVATE_VERSION":
            self.activated[stream] = self.rows.get(stream, 0)
        elif kind in _ROWS:
            self._row(kind, stream, message)

    def _row(self, kind: str, stream: str, message: Mapping[str, Any]) -> None:
        if stream not in self.rows:
            self._news(f"stream '{stream}'")
            if stream not in self.schemas:
                self.schemaless[stream] = None
        self.rows[stream] = self.rows.get(stream, 0) + 1
        self.rows_after_state += 1
        if self._look is not None:
            self._look(stream, message.get("record"))
        if kind == "BATCH":
            self.batches = True
        elif self._holds_keys:
            self._key(stream, message.get("record"))

    def _key(self, stream: str, row: Any) -> None:
        names = self.schemas.get(stream, ())
        if not names or not isinstance(row, dict) or any(name not in row for name in names):
            self.keyless[stream] = None
        elif self.keys is not None:
            self.keys.add(msgspec.json.encode([stream, *(row[name] for name in names)]))
            if len(self.keys) > MOST_KEYS:
                self.keys = None

    def _news(self, what: str) -> None:
        if self._marked_at is not None:
            self._news_after.append((self._at - self._marked_at, what))


def shown_keys(keys: Iterable[bytes], names: Mapping[str, tuple[str, ...]], most: int = 3) -> str:
    """Some keys for people: ``orders id=4; orders id=5 and 12 more``."""
    ordered = sorted(keys)
    texts = []
    for key in ordered[:most]:
        stream, *values = msgspec.json.decode(key)
        pairs = ", ".join(f"{name}={value}" for name, value in zip(names.get(stream, ()), values, strict=False))
        texts.append(f"{stream} {pairs:.80}")
    more = f" and {len(ordered) - most:,} more" if len(ordered) > most else ""
    return "; ".join(texts) + more


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _names(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
