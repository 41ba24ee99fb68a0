"""Shape: rows of user code to RECORD lines: selected fields, typed, lossless, a page at a time.

The fast path converts a page in C; a row that does not fit there goes alone through the exact path,
which repairs it or says what is wrong. Both give the same bytes (a property test holds them together).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

from burler.errors import BadRecordError, StreamError
from burler.pipeline import shape_fast, times
from burler.pipeline.pull import describe
from burler.pipeline.shape_exact import Exact
from burler.pipeline.shape_schema import shaping_form, with_required
from burler.pipeline.shape_values import MISSING, Misfit, note_unknown

_FEW = 8  # rows that are cheaper to do one by one than to try again

_encoder = msgspec.json.Encoder(decimal_format="number")


@dataclass(slots=True)
class ShapedPage:
    """``count`` lines were added to the buffer; ``keys`` are their replication key values, if asked for.

    ``error`` is set where a row did not fit: the rows before it are in the buffer, it and those
    after it are not.
    """

    count: int
    keys: list[Any]
    error: StreamError | None = None


@dataclass(slots=True)
class FittedPage:
    """Rows as they would be emitted, as dicts, with their replication key values; ``error`` as in ``ShapedPage``."""

    rows: list[dict[str, Any]]
    keys: list[Any]
    error: BadRecordError | None = None


class Shaper:
    """Makes RECORD lines of one stream's rows.

    Args:
        schema: what is emitted: selected fields only.
        key_properties: name the row in errors.
        key: the replication key, whose values ``shape`` gives back.
        deselected: breadcrumbs of fields that are known and not wanted. They are dropped without being
            called unknown, also where ``additionalProperties`` would keep them.
        keys_required: a row without its key properties does not fit.
    """

    def __init__(
        self,
        stream: str,
        schema: Mapping[str, Any],
        *,
        key_properties: tuple[str, ...] = (),
        key: str | None = None,
        deselected: Iterable[tuple[str, ...]] = (),
        keys_required: bool = True,
    ) -> None:
        self.stream = stream
        self.schema = with_required(shaping_form(schema, deselected), key_properties if keys_required else ())
        self._key = key
        self._key_properties = key_properties
        self._compiled = shape_fast.compile_schema(self.schema)
        self._exact = Exact()

    @property
    def unknown(self) -> dict[str, int]:
        """Fields that were dropped because no schema knows them: dotted path -> rows (in arrays: objects)."""
        return self._exact.unknown

    def shape(self, rows: list[dict[str, Any]], buffer: bytearray, prefix: bytes, suffix: bytes) -> ShapedPage:
        """Append one line for each row to ``buffer``."""
        compiled = self._compiled
        if compiled is None:
            return self._one_by_one(rows, buffer, prefix, suffix)
        start = len(buffer)
        try:
            if shape_fast.odd_values(compiled.tree, rows):
                return self._halve(rows, buffer, prefix, suffix)
            shaped = compiled.convert(rows)
            encode_into = _encoder.encode_into
            for row in shaped:
                buffer += prefix
                encode_into(row, buffer, -1)
                buffer += suffix
        except (TypeError, ValueError):  # ValidationError, a lone surrogate, an integer of too many digits
            del buffer[start:]
            return self._halve(rows, buffer, prefix, suffix)
        counts: dict[str, int] = {}
        if not shape_fast.count_unknown(compiled.tree, rows, counts):
            del buffer[start:]
            return self._halve(rows, buffer, prefix, suffix)
        for path, count in counts.items():
            note_unknown(self.unknown, path, count)
        if self._key is None:
            return ShapedPage(len(shaped), [])
        attribute = compiled.attributes[self._key]
        return ShapedPage(len(shaped), [getattr(row, attribute) for row in shaped])

    def fit(self, rows: list[dict[str, Any]]) -> FittedPage:
        """The same rows as dicts of what JSON knows (and Decimals), for a function of the author's that sees them."""
        fitted = self._fit_page(rows)
        error = None
        if fitted is None:
            fitted = []
            for row in rows:
                try:
                    fitted.append(self._exact.row(row, self.schema))
                except Misfit as misfit:
                    error = self._error(row, misfit)
                    break
        return FittedPage(fitted, [] if self._key is None else [row.get(self._key) for row in fitted], error)

    def _fit_page(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
        """The page in C, or None if some row of it needs the exact path."""
        compiled = self._compiled
        counts: dict[str, int] = {}
        try:
            if compiled is None or shape_fast.odd_values(compiled.tree, rows):
                return None
            shaped = compiled.convert(rows)
            if not shape_fast.count_unknown(compiled.tree, rows, counts):
                return None
            fitted: list[dict[str, Any]] = msgspec.to_builtins(shaped, builtin_types=(Decimal,))
        except (TypeError, ValueError):
            return None
        for path, count in counts.items():
            note_unknown(self.unknown, path, count)
        return fitted

    def _halve(self, rows: list[dict[str, Any]], buffer: bytearray, prefix: bytes, suffix: bytes) -> ShapedPage:
        """Some row does not fit the fast path: halve the page until only rows near it take the exact path."""
        if len(rows) <= _FEW:
            return self._one_by_one(rows, buffer, prefix, suffix)
        middle = len(rows) // 2
        first = self.shape(rows[:middle], buffer, prefix, suffix)
        if first.error is not None:
            return first
        second = self.shape(rows[middle:], buffer, prefix, suffix)
        return ShapedPage(first.count + second.count, first.keys + second.keys, second.error)

    def _one_by_one(self, rows: list[dict[str, Any]], buffer: bytearray, prefix: bytes, suffix: bytes) -> ShapedPage:
        keys: list[Any] = []
        for i, row in enumerate(rows):
            try:
                fitted = self._exact.row(row, self.schema)
            except Misfit as misfit:
                return ShapedPage(i, keys, self._error(row, misfit))
            buffer += prefix
            _encoder.encode_into(fitted, buffer, -1)
            buffer += suffix
            if self._key is not None:
                keys.append(fitted.get(self._key))
        return ShapedPage(len(rows), keys)

    def _error(self, row: Mapping[str, Any], misfit: Misfit) -> BadRecordError:
        which = ", ".join(f"{name}={_glimpse(row.get(name))}" for name in self._key_properties)
        which = which or "without key properties"
        if misfit.value is MISSING:
            found = "is missing"
        else:
            found = f"is {describe(misfit.value)}"
        return BadRecordError(
            self.stream,
            f"stream '{self.stream}', row {which}: field '{misfit.path}' {found}; the schema wants {misfit.wants}.\n"
            f"  {_cure(misfit)}",
        )


def _cure(misfit: Misfit) -> str:
    if misfit.value is MISSING:
        return "Give the field in the sync function, or take it out of 'required' in the schema."
    zone = ""
    if "date-time" in misfit.wants and isinstance(misfit.value, str | dt.datetime):
        zone = "A date-time needs its zone: 2024-01-02T03:04:05Z, or datetime(..., tzinfo=UTC). "
    return f"{zone}Mend the value in the sync function, or widen the field's type in the schema."


def _glimpse(value: Any) -> str:
    try:
        return f"{value!r:.40}"
    except ValueError:  # Python writes no integer of more than 4300 digits
        return type(value).__name__


def key_text(value: Any) -> Any:
    """A replication key's value as it stands in the state: text, a date-time in RFC 3339, or a number.

    A Decimal that a JSON float has no room for is rounded down: a bookmark may lie before the last row, never
    after it.
    """
    if isinstance(value, dt.datetime):
        return times.from_datetime(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if value is msgspec.UNSET:
        return None
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return int(value)
        rounded = float(value)
        return rounded if Decimal(repr(rounded)) <= value else math.nextafter(rounded, -math.inf)
    return value
