"""A schema inferred from records: in one go, or record by record in memory that does not grow with their number.

    infer_schema([{"id": 1}, {"id": 2.5, "tags": []}])
    # {"type": "object", "properties": {"id": {"type": "number"}, "tags": {"type": "array", "items": {}}}}

What is written is what loses nothing: every record that was seen fits the schema and comes out unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from burler.call import callers_folder
from burler.errors import DataError, DeclarationError
from burler.schema.infer_formats import FORMATS
from burler.schema.infer_types import Node, Observer, Rules, Unfit, to_schema, untyped

DEFAULT_FORMATS = ("date-time", "date")
DEFAULT_MAP_KEYS = 200


class Inference:
    """Takes records, gives their schema.

    Args:
        map_keys: an object below the record with more different keys than this, over all records, is a map:
            ``additionalProperties`` with one schema for all values.
        formats: formats to look for in text: date-time, date, time, uuid. One is written only if every text
            in that place fits it.

    Raises:
        ValueError: ``map_keys`` below 1 or an unknown format.
    """

    def __init__(self, *, map_keys: int = DEFAULT_MAP_KEYS, formats: Iterable[str] = DEFAULT_FORMATS) -> None:
        chosen = tuple(dict.fromkeys((formats,) if isinstance(formats, str) else formats))
        unknown = [name for name in chosen if name not in FORMATS]
        if unknown:
            raise ValueError(f"format {unknown[0]!r} is not looked for. Known: {', '.join(FORMATS)}.")
        if map_keys < 1:
            raise ValueError(f"map_keys is {map_keys}; it must be 1 or more.")
        self._rules = Rules(map_keys, chosen)
        self._root = Node({"object"})
        self._observer = Observer(self._rules, self._root)
        self.records = 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Widen the schema by one record, which is not changed.

        Raises:
            DataError: it is no object, or holds what JSON has no form for (NaN, an object of the author's, more
                than 100 levels). The inference must not be used any more.
        """
        if not isinstance(record, Mapping):
            raise DataError(f"a record is {_describe(record)}; it must be an object with named fields.")
        try:
            self._observer.see(self._root, record)
        except Unfit as unfit:
            raise _error(unfit) from None
        self.records += 1

    def add_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Widen the schema by many records; the error of one names its place in the order, from 1."""
        for record in records:
            try:
                self.add(record)
            except DataError as error:
                raise DataError(f"record {self.records + 1}: {error}") from None

    def merge(self, other: Inference) -> None:
        """Widen the schema by all that another inference saw; that one is not changed.

        Raises:
            ValueError: it went by other rules, so that the outcome would depend on the order.
            DataError: together they have too many fields.
        """
        if (other._rules.map_keys, set(other._rules.formats)) != (self._rules.map_keys, set(self._rules.formats)):
            raise ValueError("two inferences with different map_keys or formats can't be merged.")
        try:
            self._observer.merge(self._root, other._root)
        except Unfit as unfit:
            raise _error(unfit) from None
        self.records += other.records

    def schema(self, *, nullable: bool = False) -> dict[str, Any]:
        """The schema of all records so far: a new object at each call.

        Args:
            nullable: let every field be null, also those that never were: for a small sample of much data.

        Raises:
            DataError: a field holds bytes in some records and text in others.
        """
        try:
            return to_schema(self._root, nullable=nullable, top=True)
        except Unfit as unfit:
            raise _error(unfit) from None

    @property
    def untyped(self) -> list[str]:
        """Dotted paths of fields that were always null, and of arrays that were always empty (``tags[]``)."""
        return untyped(self._root)


def infer_schema(
    records: Iterable[Mapping[str, Any]],
    *,
    nullable: bool = False,
    map_keys: int = DEFAULT_MAP_KEYS,
    formats: Iterable[str] = DEFAULT_FORMATS,
) -> dict[str, Any]:
    """The JSON Schema that all records fit. For the arguments see ``Inference``.

    Raises:
        DataError: no record at all, or one that no schema can be made of.
    """
    inference = Inference(map_keys=map_keys, formats=formats)
    inference.add_all([records] if isinstance(records, Mapping) else records)
    if not inference.records:
        raise DataError("there is no record to infer a schema from.")
    return inference.schema(nullable=nullable)


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
        from burler.schema.infer_collect import Collector
        from burler.schema.infer_read import read_documents

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


def _error(unfit: Unfit) -> DataError:
    place = unfit.place
    return DataError(f"field '{place}': {unfit.fact}." if place else f"{unfit.fact}.")


def _describe(value: Any) -> str:
    """What stands where a record was expected."""
    for kind, words in (
        (bool, "true or false"),
        (str, "text"),
        (list, "an array"),
        (int | float | Decimal, "a number"),
    ):
        if isinstance(value, kind):
            return words
    return "null" if value is None else f"of the type {type(value).__name__}"
