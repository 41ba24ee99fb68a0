"""JSON lines to record batches: each row is cut into its fields, then it goes column by column. Exact, or an error.

Two cuts. The quick one lets the decoder read the values of the plain types; it is taken as long as every value of a
block has the type that its column says. Else the fields are cut out as source texts, and each column decides for itself
what it makes of them: a column at a time where that is surely exact, else value by value.

``burler.records.columns.converters.converter`` says what each value becomes. The quick ways here answer only where
they give the same; whatever they are not sure of goes through the converter, that column alone.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from burler.errors import BatchError
from burler.formats.jsonl import line_cuts
from burler.log_settings import log_settings, near, value
from burler.records.arrow.json_text import Unsure, read_days, read_moments
from burler.records.columns.converters import ColumnMisfit, Convert, Path, Report, converter, row_type
from burler.records.columns.from_rows import Kinds, Make, StructFields, Values, json_texts, lists, maps, plain, structs
from burler.records.columns.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    JSON,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    StructOf,
    arrow_schema,
    arrow_type,
    record_type,
)
from burler.records.tries import Tries
from burler.surrogates import half_pair
from burler.words import counted

Raws = list[Any]
"""The source texts of a column's values (``msgspec.Raw``), one a row; ``null`` where there is none."""
Rows = list[Any]

UNCERTAIN = (Unsure, msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError, pa.ArrowException)
"""What a quick way raises where it can't tell."""

_BLOCK_BYTES = 256 * 1024  # of lines that are taken at once: their parts stay in the processor's cache
_SHOWN = 80  # characters of a value in an error
_NULL = msgspec.Raw(b"null")
_PLAIN: dict[FieldType, Any] = {  # what the decoder reads
    BIGINT: int | None,
    DOUBLE: float | None,
    BOOLEAN: bool | None,
    STRING: str | None,
}
_ARRAY: Any = list  # types of these are made at run time
_OBJECT: Any = dict
_texts = msgspec.json.Decoder(list[str | None])
_encode = msgspec.json.encode


class ColumnarLayout:
    """What makes a stream's columns of lines of JSON.

    Args:
        record: the columns' types.
        cure: what else to do about a value that its column can't hold; ends the error's sentence.
        within: the key of a line's object that holds the row; None: the line is the row.
        skips: fields without a column are passed over, and not counted.

    Attributes:
        arrow_schema: of every batch.
        report: fields without a column, and times that were cut, since ``remarks`` was asked last.
    """

    def __init__(
        self, record: StructOf, stream: str, cure: str = "", *, within: str | None = None, skips: bool = False
    ) -> None:
        self.record, self.stream = record, stream
        self.arrow_schema = arrow_schema(record)
        self.report = Report()
        self._cure = cure
        self._split = Splitter(record, within=within, skips=skips)
        self._row_of = _rows_within(msgspec.Raw, within)

    def batches(self, lines: bytes | bytearray | memoryview, count: int) -> list[pa.RecordBatch]:
        """``count`` rows, one a line, as columns: all of them, or an error.

        Raises:
            BatchError: a value that its column can't hold, a line that is no object, not so many rows.
        """
        found = Report()
        made = [self._batch(block, found) for block in line_cuts(lines, _BLOCK_BYTES)]
        rows = sum(batch.num_rows for batch in made)
        if rows != count:
            raise BatchError(f"stream '{self.stream}': {counted(rows, 'row')} came where {count:,} were announced")
        self.report.add(found)
        return made

    def batch(self, lines: bytes | bytearray | memoryview, count: int) -> pa.RecordBatch:
        """The same as one batch.

        Raises:
            BatchError: see ``batches``.
        """
        table = pa.Table.from_batches(self.batches(lines, count), self.arrow_schema).combine_chunks()
        return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=self.arrow_schema)

    def _batch(self, lines: bytes, report: Report) -> pa.RecordBatch:
        try:
            return pa.RecordBatch.from_arrays(self._split.arrays(lines, report), schema=self.arrow_schema)
        except (ColumnMisfit, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._first_misfit(lines) from None

    def remarks(self) -> list[str]:
        """One sentence for each thing that was left out or cut, since it was asked last."""
        report, self.report = self.report, Report()
        return report.remarks(self._cure)

    def _first_misfit(self, lines: bytes) -> BatchError:
        """What is wrong, in the order of rows: they are looked at one by one."""
        convert, unused = converter(self.record, ()), Report()
        for line in filter(None, lines.split(b"\n")):
            try:
                rows = self._row_of(line)
                convert(bytes(rows[0]) if rows else line, unused)
            except ColumnMisfit as misfit:
                if not misfit.path:
                    return self._no_row(line)
                start = f"stream '{self.stream}': field '{'.'.join(misfit.path)}': "
                return BatchError(
                    f"{start}{value(misfit.text[:_SHOWN])} can't be held exactly; the schema wants {misfit.wanted}.\n"
                    f"Correct the schema or the value in the tap{self._cure}"
                )
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return self._no_row(line)
        return self._no_row(lines)

    def _no_row(self, line: bytes) -> BatchError:
        path = half_pair(line)
        start = f"stream '{self.stream}': "
        if path is None:
            return BatchError(f"{start}a row that is no object of valid JSON{near(line, _SHOWN)}")
        # Names that the schema does not have are the row's own.
        shown = path if log_settings.values else path[:1] if self.record.get(path[0]) is not None else ()
        field = f"field '{'.'.join(shown)}': " if shown else ""
        return BatchError(
            f"{start}{field}half of a surrogate pair, which is no text that a column can hold{near(line, _SHOWN)}.\n"
            f"Correct the value in the tap{self._cure}"
        )


def layout_of(schema: Mapping[str, Any], stream: str, cure: str = "") -> ColumnarLayout:
    """What makes the columns that a stream's batch files have.

    Raises:
        DataError: the schema has no form in columns.
    """
    return ColumnarLayout(record_type(schema, stream=stream, open_as=JSON), stream, cure)


_READ_TIMES: dict[FieldType, Callable[[Any], Any]] = {TIMESTAMP: read_moments, DATE: read_days}


# ---- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Column:
    """How the source texts of one field become an array.

    Attributes:
        form: what the decoder is to read of a value; ``msgspec.Raw``: its source text.
        make: makes the array of values that were read.
        exact: makes a value that the column takes of a source text.
    """

    kind: pa.DataType
    form: Any
    make: Make
    exact: Convert
    decode: Callable[[bytes], list[Any]]


class Splitter:
    """Objects of known fields, made into columns. What comes twice counts as it came last, as everywhere in burler;
    fields that nobody declares are dropped and counted.

    Args:
        kind: the fields.
        within, skips: see ``ColumnarLayout``.
    """

    def __init__(self, kind: StructOf, *, within: str | None = None, skips: bool = False) -> None:
        self._kind, self._skips = kind, skips
        self._found = Report()
        plans = {name: self._plan(inner, (name,)) for name, inner in kind.fields}
        self._fields = StructFields({name: make for name, (_, make) in plans.items()}, list(arrow_schema(kind)))
        typed = row_type(plans, (form for form, _ in plans.values()), _NULL, closed=not skips)
        self._typed = None if typed is None else _rows_within(typed, within)
        self._texts = _rows_within(dict[str, msgspec.Raw], within)
        self._tries = Tries()

    def arrays(self, lines: bytes, report: Report) -> list[Any]:
        """The columns of objects, one a line.

        Raises:
            ColumnMisfit: a value that its column can't hold. msgspec.DecodeError: a line that is no object.
        """
        made = None
        if self._typed is not None and self._tries:
            self._found = Report()
            with contextlib.suppress(*UNCERTAIN):
                made = self._fields.arrays(self._typed(lines))
            self._tries.ended(well=made is not None)
        if made is None:
            self._found = Report()
            made = self._cut(self._texts(lines), self._columns, (), self._skips)
        report.add(self._found)
        return made

    def _cut(self, rows: Rows, columns: Mapping[str, _Column], path: Path, skips: bool = False) -> list[Any]:
        """The columns of objects whose fields are source texts."""
        strange = set().union(*rows) - columns.keys()
        if strange and not skips:
            names = chain.from_iterable(rows)
            self._found.dropped.update(".".join((*path, name)) for name in names if name in strange)
        return [self._of_texts(column, [row.get(name, _NULL) for row in rows]) for name, column in columns.items()]

    def _of_texts(self, column: _Column, raws: Raws) -> Any:
        """The array of a column's source texts."""
        report, self._found = self._found, Report()
        try:
            values = raws if column.form is msgspec.Raw else column.decode(_joined(raws))
            array = column.make(values, set(map(type, values)))
        except UNCERTAIN:  # each value by itself, and what was counted is counted again
            self._found = Report()
            array = self._one_by_one(raws, column.exact, column.kind)
        report.add(self._found)
        self._found = report
        return array

    def _one_by_one(self, raws: Raws, exact: Convert, kind: pa.DataType) -> Any:
        texts = map(bytes, raws)
        return pa.array([None if text == b"null" else exact(text, self._found) for text in texts], kind)

    # ---- plans -------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _columns(self) -> dict[str, _Column]:
        return self._columns_of(self._kind, ())

    def _columns_of(self, kind: StructOf, path: Path) -> dict[str, _Column]:
        found = {}
        for name, inner in kind.fields:
            form, make = self._plan(inner, (*path, name), whole=False)
            decode = msgspec.json.Decoder(_ARRAY[form]).decode
            found[name] = _Column(arrow_type(inner), form, make, converter(inner, (*path, name)), decode)
        return found

    def _plan(self, kind: FieldType, path: Path, *, whole: bool = True) -> tuple[Any, Make]:
        """What the decoder is to read of values of a type, and what makes the arrays of them.

        Args:
            whole: objects are read with all that is in them; else they are cut into source texts, by which each of
                their columns decides for itself.
        """
        made = arrow_type(kind)
        match kind:
            case StructOf(fields):
                below = {name: self._plan(inner, (*path, name)) for name, inner in fields} if whole else {}
                struct = row_type(below, (form for form, _ in below.values()), _NULL) if whole else None
                if struct is None:
                    return dict[str, msgspec.Raw] | None, self._objects(kind, path)
                makes = {name: make for name, (_, make) in below.items()}
                return struct | None, structs(StructFields(makes, list(made)), made, struct())
            case ListOf(item):
                form, make = self._plan(item, (*path, "[]"), whole=whole)
                return _ARRAY[form] | None, lists(make, made)
            case MapOf(value):
                form, make = self._plan(value, (*path, "{}"), whole=whole)
                return _OBJECT[str, form] | None, maps(make, made)
            case Scalar() if kind in _READ_TIMES:
                return str | None, self._times(_READ_TIMES[kind], converter(kind, path), made)
            case Scalar() if kind in _PLAIN:
                return _PLAIN[kind], plain(made)
        if kind == JSON:
            return msgspec.Raw, json_texts(made)
        quick = _decimals(kind) if isinstance(kind, DecimalOf) else None
        return msgspec.Raw, self._source_texts(quick, converter(kind, path), made)

    def _objects(self, kind: StructOf, path: Path) -> Make:
        columns, fields = self._columns_of(kind, path), list(arrow_type(kind))

        def make(values: Values, kinds: Kinds) -> Any:
            mask = pa.array([value is None for value in values]) if type(None) in kinds else None
            arrays = self._cut([value or {} for value in values], columns, path)
            return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

        return make

    def _times(self, read: Callable[[Any], Any], exact: Convert, kind: pa.DataType) -> Make:
        def make(values: Values, kinds: Kinds) -> Any:
            try:
                return read(pa.array(values, pa.string()))
            except (Unsure, pa.ArrowInvalid):
                found = self._found
                return pa.array([None if text is None else exact(_encode(text), found) for text in values], kind)

        return make

    def _source_texts(self, quick: Callable[[Raws], Any] | None, exact: Convert, kind: pa.DataType) -> Make:
        def make(values: Values, kinds: Kinds) -> Any:
            if quick is not None:
                with contextlib.suppress(*UNCERTAIN):
                    return quick(values)
            return self._one_by_one(values, exact, kind)

        return make


def _rows_within(form: Any, key: str | None) -> Callable[[bytes], Rows]:
    """What reads lines of rows: objects that hold them under a key, or the rows themselves."""
    if key is None:
        return msgspec.json.Decoder(form).decode_lines
    line: Any = msgspec.defstruct("Line", [("row", form)], rename={"row": key}, gc=False)
    decode = msgspec.json.Decoder(line).decode_lines
    return lambda data: [one.row for one in decode(data)]


def _joined(raws: Raws) -> bytes:
    """The values as one JSON array."""
    return b"[" + b",".join(raws) + b"]"


def _decimals(kind: DecimalOf) -> Callable[[Raws], Any]:
    made = arrow_type(kind)

    def make(raws: Raws) -> Any:
        text = _joined(raws)
        given: Sequence[Any]
        if b'"' in text:
            given = _texts.decode(text)
        else:
            given = text[1:-1].decode("ascii").split(",")
            if len(given) != len(raws):
                raise Unsure
            if "null" in given:
                given = [None if value == "null" else value for value in given]
        array = pa.array(given, pa.string())
        # Arrow's cast wraps around in silence where a value has too many digits, of its own or before the point once
        # it has the column's scale; an exponent hides how many there are.
        lengths = pc.binary_length(array)
        points = pc.find_substring(array, ".")
        before = pc.if_else(pc.less(points, 0), lengths, points)
        if _most(lengths) > DIGITS or _most(before) + kind.scale > DIGITS or b"e" in text or b"E" in text:
            raise Unsure
        return array.cast(made)

    return make


def _most(counts: Any) -> int:
    return pc.max(counts).as_py() or 0
