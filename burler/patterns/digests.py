"""Emit what changed, for sources that don't say when rows change: digests of all are kept in ``stream.state``."""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from burler.context import StreamRun
from burler.patterns.newer import chosen
from burler.patterns.progress import StatePlace, failed, is_full_table, is_substream

logger = logging.getLogger(__name__)

_PAIR = struct.Struct("<8s8s")
_BYTES_A_ROW = 22  # two digests of 8 bytes in base64


def changed_only(
    stream: StreamRun,
    rows: Iterable[Any],
    key_properties: str | Sequence[str] | None = None,
    *,
    ignore: Sequence[str] = (),
    most: int = 100_000,
    state_key: str = "digests",
) -> Iterator[Any]:
    """``yield from changed_only(stream, client.everything())``: of all rows those that are new, or not as the last run
    had them. A digest of each row is kept in ``stream.state``: 22 bytes a row in every STATE of the tap, and some
    450 bytes a row in memory. Rows that are gone at the source are not told: their keys are not kept.

    The stream must be declared with ``replication_method="LOG_BASED"`` (or INCREMENTAL, if it has a replication key):
    of a full table all rows come, since targets drop the rows that don't.

    Args:
        rows: rows, lists of rows, or a mix; parsed.
        key_properties: what tells rows apart; the stream's own if left out. Rows without them always come.
        ignore: fields that count for nothing, such as the time of the request.
        most: more rows than this are an error.

    Raises:
        StreamError: too many rows; a page of bytes or Arrow; no key properties; values that have no form in JSON.
    """
    names = [key_properties] if isinstance(key_properties, str) else list(key_properties or stream.key_properties)
    if not names:
        raise failed(stream, "changed_only() needs key_properties, of the stream or as an argument.")
    if is_substream(stream):
        raise failed(stream, "changed_only() is not for substreams: stream.state is one for all parents.")
    return _emit(stream, rows, _Seen(stream, names, frozenset(ignore), most, state_key))


def _emit(stream: StreamRun, rows: Iterable[Any], seen: _Seen) -> Iterator[Any]:
    yield from chosen(rows, seen.wants, stream, "changed_only()")
    seen.save()


class _Seen:
    """The rows of the last run, and those of this one, as digests: key -> row."""

    def __init__(
        self, stream: StreamRun, names: Sequence[str], ignore: frozenset[str], most: int, state_key: str
    ) -> None:
        self._stream, self._names, self._ignore, self._most = stream, names, ignore, most
        self._keeps = not is_full_table(stream)
        self._place = StatePlace(stream, state_key)
        self._before: dict[bytes, bytes] = _unpack(self._place.load(), stream, state_key) if self._keeps else {}
        self._now: dict[bytes, bytes] = {}
        self._asked = self._emitted = 0
        if not self._keeps:
            logger.warning(
                "stream '%s': it is a full table, so changed_only() lets all rows through. "
                "For changes alone declare replication_method='LOG_BASED'.",
                stream.name,
            )

    def wants(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is to go out."""
        self._asked += 1
        wanted = not self._keeps or self._is_news(row)
        self._emitted += wanted
        return wanted

    def _is_news(self, row: Mapping[str, Any]) -> bool:
        values = [row.get(name) for name in self._names]
        if None in values:
            return True
        key = self._digest(values)
        content = self._digest({name: value for name, value in row.items() if name not in self._ignore})
        # Of a key that comes twice the later rows always come: a target must end with the last one, as the note does.
        again = key in self._now
        self._now[key] = content
        if len(self._now) > self._most:
            raise failed(
                self._stream,
                f"changed_only() has met more than {self._most} rows (most=), whose digests would be "
                f"{self._most * _BYTES_A_ROW / 1e6:.1f} MB of each STATE.\n  Raise most, or make it a full table: "
                "then targets drop what is gone, too.",
            )
        return again or self._before.get(key) != content

    def _digest(self, value: Any) -> bytes:
        try:
            return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=8).digest()
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise failed(self._stream, f"changed_only() needs values that have a form in JSON: {error}.") from None

    def save(self) -> None:
        """All rows have been yielded."""
        if self._keeps:
            packed = b"".join([key + content for key, content in self._now.items()])
            self._place.store(base64.b64encode(packed).decode())
        logger.info(
            "stream '%s': of %d rows asked for %d are new or changed", self._stream.name, self._asked, self._emitted
        )


def _unpack(text: Any, stream: StreamRun, state_key: str) -> dict[bytes, bytes]:
    """The digests in the state. What can't be read counts as nothing: then all rows come."""
    if text is None:
        return {}
    try:
        return dict(_PAIR.iter_unpack(base64.b64decode(text, validate=True)))
    except (TypeError, ValueError, binascii.Error, struct.error):
        logger.warning("stream '%s': stream_state.%s holds no digests; all rows come", stream.name, state_key)
        return {}
