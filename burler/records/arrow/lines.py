"""Arrow pages to RECORD lines: no Python per row where the columns' types fit the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from burler.records.arrow.kernels import Parts, bytes_of, join
from burler.records.arrow.plan import Fields, NeedsRows, fields_of
from burler.records.shape import constraints
from burler.records.shape.exact import Exact
from burler.records.shape.rules import DEFAULT_RULES, Rules
from burler.records.shape.unknown import Unknown

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_decode_floats = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class ArrowLines:
    """The lines of a page: ``data`` is the memory that Arrow built them in, not copied. ``keys`` are the replication
    key's values in the order of the rows (date-times as text), if one was asked for."""

    data: memoryview
    count: int
    keys: list[Any]


class ArrowShaper:
    """Makes RECORD lines of one stream's Arrow pages, by the rules of the dict path.

    A property keeps its place in the schema; what a schema with ``additionalProperties`` lets in comes behind. Columns
    that the schema does not know are dropped and noted in ``exact.unknown`` with the rows in which they are not
    null: an Arrow page has every column in every row, so a null says nothing (where a page or a column goes value
    by value, the nulls count as well, since a dict has the name).

    Args:
        form: the stream's schema as ``shape.form`` makes it.
        exact: fits the values of columns whose type alone does not say that they fit.
        key: the replication key.
        required: columns that must be there beside those the form requires.
        rules: those of ``exact``.
    """

    def __init__(
        self,
        form: Mapping[str, Any],
        exact: Exact,
        *,
        key: str | None = None,
        required: Iterable[str] = (),
        rules: Rules = DEFAULT_RULES,
    ) -> None:
        self._form = with_needed(form, required)
        self._exact = exact
        self._key = key
        self._checks = rules.check_constraints
        self._schema: pa.Schema | None = None
        self._fields: Fields | None = None

    def lines(self, batch: pa.RecordBatch, prefix: bytes, suffix: bytes) -> ArrowLines | None:
        """One line for each row, between ``prefix`` and ``suffix``.

        None where the rows must go as dicts: one of them does not fit, or the schema can't be followed a column at a
        time. Then nothing is noted of unknown fields either.
        """
        fields = self._fields_for(batch.schema)
        if not batch.num_rows:
            return ArrowLines(memoryview(b""), 0, [])
        if fields is None:
            return None
        held = self._exact.unknown
        self._exact.unknown = Unknown(held)
        texts: dict[int, Parts] = {}
        try:
            record = fields.parts(batch.column, self._exact, texts)
        except NeedsRows:
            return None
        finally:
            noted, self._exact.unknown = self._exact.unknown, held
        made = join([prefix.decode(), *record, suffix.decode()], batch.num_rows)
        held.merge(noted)
        return ArrowLines(bytes_of(made), batch.num_rows, self._keys(batch, texts))

    def _keys(self, batch: pa.RecordBatch, texts: Mapping[int, Parts]) -> list[Any]:
        """The replication key's values, read back from what was written."""
        if self._key is None:
            return []
        place = batch.schema.get_field_index(self._key)
        if place not in texts:
            return [None] * batch.num_rows
        return key_values(texts[place], batch.schema.field(place).type, batch.num_rows)

    def _fields_for(self, schema: pa.Schema) -> Fields | None:
        """The plan for pages of a schema, made anew when it changes."""
        if self._schema is None or not self._schema.equals(schema):
            self._fields = self._made(schema)
            self._schema = schema
        return self._fields

    def _made(self, schema: pa.Schema) -> Fields | None:
        return page_fields(schema, self._form, checks=self._checks)


def page_fields(schema: pa.Schema, form: Mapping[str, Any], *, checks: bool) -> Fields | None:
    """How the columns of a page stand in the rows of a form; None if the rows must go as dicts."""
    if "anyOf" in form or "oneOf" in form or (checks and constraints.constrained(form)):
        return None
    return fields_of(list(schema), form, (), checks=checks)


def with_needed(form: Mapping[str, Any], required: Iterable[str]) -> Mapping[str, Any]:
    """A form whose rows must have further columns."""
    needed = list(dict.fromkeys([*(form.get("required") or ()), *required]))
    return {**form, "required": needed} if needed else form


def key_values(text: Parts, kind: pa.DataType, count: int) -> list[Any]:
    """The values of a column of an Arrow type, read back from its text of ``count`` rows."""
    lines = bytes_of(join([*text, ","], count))
    decode = _decode_floats if pa.types.is_floating(kind) else _decode
    values: list[Any] = decode(b"[" + bytes(lines[:-1]) + b"]")
    return values
