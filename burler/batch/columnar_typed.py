"""Columns of values that the decoder has read, by the type of the column: no text of theirs is looked at again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from burler.batch.columnar_times import days, moments
from burler.batch.columnar_values import Column
from burler.columns.kinds import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, FieldType, ListOf
from burler.columns.types import arrow_type
from burler.columns.values import Path, Report, converter

_PLAIN: dict[FieldType, Any] = {
    BIGINT: int | None,
    DOUBLE: float | None,
    BOOLEAN: bool | None,
    STRING: str | None,
}
_TEXTS: dict[FieldType, Callable[[Any], Any]] = {TIMESTAMP: moments, DATE: days}
_encode = msgspec.json.encode


TypedColumn = Callable[[Sequence[Any], Report], Any]
"""Makes a column's array. Raises one of ``columnar_values.uncertain`` where only the source texts can tell."""


def typed_form(kind: FieldType) -> Any:
    """What the decoder is to read; ``msgspec.Raw``: the source text."""
    if isinstance(kind, ListOf) and kind.item in _PLAIN:
        item = _PLAIN[kind.item]
        return list[item] | None  # type: ignore[valid-type]  # a type that is made at run time
    return str | None if kind in _TEXTS else _PLAIN.get(kind, msgspec.Raw)


def typed_column(kind: FieldType, path: Path, of_texts: Column) -> TypedColumn:
    """What makes the arrays of a column whose values are of ``typed_form``."""
    if kind in _TEXTS:
        return _times(kind, path, _TEXTS[kind])
    if typed_form(kind) is msgspec.Raw:
        return of_texts
    made = arrow_type(kind)

    def make(values: Sequence[Any], report: Report) -> Any:
        import pyarrow as pa

        return pa.array(values, made)

    return make


def _times(kind: FieldType, path: Path, read: Callable[[Any], Any]) -> TypedColumn:
    exact, made = converter(kind, path), arrow_type(kind)

    def make(values: Sequence[Any], report: Report) -> Any:
        import pyarrow as pa

        try:
            array = read(pa.array(values, pa.string()))
        except pa.ArrowInvalid:
            array = None
        if array is not None:
            return array
        return pa.array([None if text is None else exact(_encode(text), report) for text in values], made)

    return make
