"""Schemas from samples: records, in an envelope or not, or a tap's messages stream by stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.call import callers_folder
from burler.errors import DataError, DeclarationError
from burler.schema.infer import DEFAULT_FORMATS, DEFAULT_MAP_KEYS, Inference
from burler.schema.infer_read import Batch, read_documents

_MESSAGES = {"SCHEMA": "schema", "RECORD": "record", "STATE": "value", "ACTIVATE_VERSION": "version", "BATCH": "stream"}


@dataclass(frozen=True, slots=True)
class Inferred:
    """A schema that is inferred from a sample; see ``inferred``."""

    sample: Any = field(repr=False)
    rows: str | None = None
    stream: str | None = None
    limit: int | None = None
    nullable: bool = False
    map_keys: int = DEFAULT_MAP_KEYS
    formats: tuple[str, ...] = DEFAULT_FORMATS

    def load(self, *, where: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """The schema.

        Raises:
            DeclarationError: the sample is missing, broken, or holds no record.
        """
        source = f"sample {self.sample}" if isinstance(self.sample, Path) else "the sample"
        try:
            collector = Collector(
                rows=self.rows, stream=self.stream, limit=self.limit, map_keys=self.map_keys, formats=self.formats
            )
            if isinstance(self.sample, Path):
                with self.sample.open("rb") as file:
                    collector.take_all(read_documents(file))
            else:
                collector.take_values(self.sample)
            return collector.only(hint="stream=").schema(nullable=self.nullable)
        except OSError as error:
            raise DeclarationError(f"{where}: {source}: {error.strerror or error}. Is the path right?") from None
        except (DataError, ValueError) as error:
            raise DeclarationError(f"{where}: {source}: {error}") from None


def inferred(
    sample: Mapping[str, Any] | Iterable[Mapping[str, Any]] | str | Path,
    *,
    rows: str | None = None,
    stream: str | None = None,
    limit: int | None = None,
    nullable: bool = False,
    map_keys: int = DEFAULT_MAP_KEYS,
    formats: Iterable[str] = DEFAULT_FORMATS,
) -> Inferred:
    """A schema from a sample: a record, a list of records, or the path of a JSON or JSON lines file (also .gz).

    A relative path counts from the folder of the module that calls this. The file may also hold a tap's messages.

    Args:
        rows: where the records lie in each document: ``"data.items"``.
        stream: the stream to take, if the file holds messages of several.
        limit: take at most so many records.
        nullable, map_keys, formats: see ``Inference``.
    """
    if isinstance(sample, str | Path):
        sample = callers_folder() / sample
    elif not isinstance(sample, Mapping):
        sample = list(sample)
    chosen = (formats,) if isinstance(formats, str) else tuple(formats)
    return Inferred(sample, rows, stream, limit, nullable, map_keys, chosen)


class Collector:
    """Makes inferences of documents: of records, or, stream by stream, of a tap's messages.

    Args:
        rows: dotted path to the records in each document.
        stream: the only stream to take.
        limit: at most so many records (of each stream).
        kind: "records", "messages", or "auto": the first document decides.

    Raises:
        ValueError: ``limit`` below 1, or see ``Inference``.
    """

    def __init__(
        self,
        *,
        rows: str | None = None,
        stream: str | None = None,
        limit: int | None = None,
        kind: str = "auto",
        **rules: Any,
    ) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"limit is {limit}; it must be 1 or more.")
        if rows is not None and not all(rows.split(".")):
            raise ValueError(f"rows {rows!r} is no path. Write names parted by dots, as in 'data.items'.")
        self._rows = rows.split(".") if rows else []
        self._stream = stream
        self._limit = limit
        self._kind = "records" if rows else kind
        self._rules = rules
        self.by_stream: dict[str | None, Inference] = {}
        self.skipped: set[str] = set()
        self._new_inference()  # wrong rules are said at once

    @property
    def is_messages(self) -> bool:
        """Whether the input was found to be a tap's messages."""
        return self._kind == "messages"

    @property
    def full(self) -> bool:
        """Whether nothing more is wanted."""
        inference = self.by_stream.get(self._stream if self.is_messages else None)
        return self._limit is not None and inference is not None and inference.records >= self._limit

    def take_all(self, batches: Iterable[Batch]) -> None:
        """Take documents until there are no more, or enough.

        Raises:
            DataError: a document that is no record or no message; with its line.
        """
        for batch in batches:
            for line, value in zip(batch.lines, batch.values, strict=True):
                if self._limit is not None and self.full:
                    return
                try:
                    self._take(value)
                except DataError as error:
                    raise DataError(f"line {line}: {error}") from None
            if self.full:
                return

    def take_values(self, sample: Any) -> None:
        """Take a record, or a list of them, that is in memory."""
        for number, value in enumerate([sample] if isinstance(sample, Mapping) else sample, 1):
            if self.full:
                return
            try:
                self._take(value)
            except DataError as error:
                raise DataError(f"record {number}: {error}") from None

    def only(self, *, hint: str) -> Inference:
        """The one inference that was made.

        Raises:
            DataError: none, or several streams.
        """
        if not self.by_stream:
            raise DataError(self.nothing())
        if len(self.by_stream) > 1:
            names = ", ".join(str(name) for name in self.by_stream)
            raise DataError(f"it holds the streams {names}. Say which one with {hint}.")
        return next(iter(self.by_stream.values()))

    def nothing(self) -> str:
        """Why there is no schema."""
        if self.is_messages:
            others = f" It has: {', '.join(sorted(self.skipped))}." if self.skipped else ""
            return f"it holds no RECORD{f' of stream {self._stream!r}' if self._stream else ''}.{others}"
        return "it holds no record, so there is no schema to infer."

    def _take(self, value: Any) -> None:
        if self._kind == "auto":
            self._kind = "messages" if _is_message(value) else "records"
            if self._stream is not None and self._kind == "records":
                raise DataError("these are records, not a tap's messages: a stream can't be chosen.")
        if self._kind == "messages":
            self._message(value)
            return
        for record in _below(value, self._rows):
            if self._limit is not None and self.full:
                return
            self._add(None, record)

    def _message(self, value: Any) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            raise DataError("no Singer message: a JSON object with a text 'type' was expected.")
        if kind.upper() != "RECORD":
            return
        stream = value.get("stream")
        if not isinstance(stream, str) or not isinstance(value.get("record"), dict):
            raise DataError("a RECORD needs 'stream' (text) and 'record' (an object).")
        if self._stream is None or stream == self._stream:
            self._add(stream, value["record"])
        else:
            self.skipped.add(stream)

    def _add(self, stream: str | None, record: Any) -> None:
        inference = self.by_stream.get(stream)
        if inference is None:
            inference = self.by_stream[stream] = self._new_inference()
        if self._limit is None or inference.records < self._limit:
            inference.add(record)

    def _new_inference(self) -> Inference:
        return Inference(**self._rules)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return _MESSAGES.get(value["type"].upper(), "\0") in value


def _below(value: Any, names: list[str]) -> Iterator[Any]:
    """The records at a path; arrays on the way are gone through, null holds none."""
    if isinstance(value, list) and names:
        for item in value:
            yield from _below(item, names)
    elif names and value is not None:
        if not isinstance(value, Mapping) or names[0] not in value:
            found = ", ".join(repr(name) for name in list(value)[:10]) if isinstance(value, Mapping) else "no object"
            raise DataError(f"rows: there is no '{names[0]}'; found: {found or 'nothing'}.")
        yield from _at_end(value[names[0]]) if len(names) == 1 else _below(value[names[0]], names[1:])
    elif not names:
        yield value


def _at_end(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        yield from value
    elif value is not None:
        yield value
