"""What a stream's schema asks of a file with columns, whatever its format: which must be there, which may hold no
null, of which types they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burler.errors import BatchError, DataError
from burler.formats import FormatError
from burler.records.columns.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    INT64_DIGITS,
    STRING,
    TIMESTAMP,
    DecimalOf,
    FieldType,
    ListOf,
    MapOf,
    Scalar,
    SchemaNode,
    StructOf,
    fields_of,
    record_type,
)

if TYPE_CHECKING:
    import pyarrow as pa

Report = Callable[[str], object]
"""Takes a sentence: columns that the schema does not know and that are left out, and columns that are not there."""

_SHOWN = 5
_DELIMITERS = ",;\t|"


def check_names(names: Sequence[str], fields: Collection[str], delimiter: str = "", *, every: bool = True) -> None:
    """Refuse a file with two columns of one name, whose columns were not told apart, or that are all another stream's.

    Args:
        fields: of the stream; none: nobody knows them.
        delimiter: of CSV.
        every: whether the names that the stream does not have are looked at, too.

    Raises:
        FormatError: so; of the kinds ``names`` (of CSV), ``strange`` (of others), ``delimiter``.
    """
    kind = "names" if delimiter else "strange"
    twice = next((name for i, name in enumerate(names) if name in names[:i] and (every or name in fields)), None)
    if twice is not None:
        raise FormatError(f"two columns are named {twice[:60]!r}, and a row has one field of a name", kind=kind)
    if set(fields) & set(names):
        return
    other = next((mark for mark in _DELIMITERS if len(names) == 1 and delimiter and mark in names[0]), None)
    if other is not None:
        fact = f"it has one column, named {names[0][:60]!r}: its delimiter is {other!r}, not {delimiter!r}"
        raise FormatError(fact, kind="delimiter")
    if fields:
        raise FormatError(f"none of its columns is a field of the stream ({listed(list(fields))})", kind=kind)


class FileCheck:
    """Of one schema.

    Attributes:
        filled: the fields that no row may be without, and whose type has no null.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        node = SchemaNode(schema)
        self._declared, self._required = node.properties, node.required
        self.filled = tuple(
            name for name, below in self._declared.items() if name in self._required and "null" not in below.names
        )

    def fit(self, names: Sequence[str], known: Collection[str], report: Report, delimiter: str = "") -> None:
        """Hold the names of a file's columns against the schema's: ``check_names`` and ``check_columns``.

        Args:
            known: the fields that have a column; others of the file are left out, and said.
        """
        check_names(names, known, delimiter, every=False)
        self.check_columns(names, report)
        if strange := [name for name in dict.fromkeys(names) if name not in known]:
            report(f"columns that the schema does not know are left out: {listed(strange)}")

    def check_columns(self, found: Collection[str], report: Report) -> None:
        """Hold the names of a file's columns against the schema's.

        Args:
            report: takes a sentence on those that every row may be without.

        Raises:
            BatchError: one is missing that every row must have.
        """
        there = set(found)
        missing = [name for name in self._declared if name not in there]
        if not missing:
            return
        needed = next((name for name in missing if name in self._required), None)
        if needed is not None:
            raise BatchError(f"it has no column '{needed:.60}', which every row must have{_alike(needed, found)}")
        alike = next((text for name in missing if (text := _alike(name, found))), "")
        report(f"columns of the schema that are not there are null in every row: {listed(missing)}{alike}")

    def check_below(self, columns: pa.Schema, report: Report) -> None:
        """Hold the fields of a file's structs, at any depth, against the schema's objects, as ``check_columns`` does it
        with columns.

        Raises:
            BatchError: a field is missing that every object must have.
        """
        missing: list[str] = []
        for field in columns:
            below = self._declared.get(field.name)
            for path, is_needed in _lacking(field.type, below, field.name) if below is not None else ():
                if is_needed:
                    raise BatchError(f"it has no field '{path:.120}', which every object there must have")
                missing.append(path)
        if missing:
            report(f"fields of the schema that are not there are null in every row: {listed(missing)}")

    def check_nulls(self, name: str, cells: Any, before: int) -> None:
        """Hold a part of a column against ``filled``.

        Args:
            before: how many rows of the file are before it.

        Raises:
            BatchError: a null where every row has a value; names the row.
        """
        if name in self.filled and cells.null_count:
            row = before + cells.is_null().index(True).as_py() + 1
            raise BatchError(f"row {row:,}: field '{name:.60}' is null, and by the schema every row has a value there")


def listed(names: Sequence[str]) -> str:
    """Some names."""
    return ", ".join(f"'{name:.60}'" for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _lacking(kind: pa.DataType, node: SchemaNode, path: str) -> Iterator[tuple[str, bool]]:
    """The fields below a column that the schema declares and the file does not have, and whether objects must have
    them."""
    import pyarrow as pa

    from burler.records.arrow.walk import is_list

    if pa.types.is_map(kind):
        yield from _lacking(kind.item_type, node.values, f"{path}.{{}}")
    elif is_list(kind):
        yield from _lacking(kind.value_type, node.items, f"{path}.[]")
    elif pa.types.is_struct(kind):
        found = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
        for name, below in node.properties.items():
            if name in found:
                yield from _lacking(found[name], below, f"{path}.{name}")
            else:
                yield f"{path}.{name}", name in node.required


def _alike(name: str, found: Collection[str]) -> str:
    """Oracle and Snowflake write capitals."""
    other = next((one for one in found if one.lower() == name.lower()), None)
    return "" if other is None else f" (it has '{other:.60}': capitals make another name)"


# ---- types -----------------------------------------------------------------------------------------------------------


def mismatch(found: pa.Schema, schema: Mapping[str, Any], stream: str) -> str | None:
    """What of a file's types is not what the stream's schema asks for; None if all is. Not the same types: types whose
    every value a column of ours holds exactly, so that whoever reads the file gets what the schema promises.

    Args:
        found: with the names of the schema's properties, in any order.
    """
    try:
        record = record_type(schema, stream=stream)
    except DataError as error:
        return str(error)
    fields = fields_of(schema)
    return _first(
        _mismatch(found.field(name).type, kind, fields[name], f"column '{name}'") for name, kind in record.fields
    )


def _mismatch(found: Any, wanted: FieldType, node: SchemaNode, path: str) -> str | None:
    from pyarrow import types as of

    match wanted:
        case StructOf(fields):
            if not of.is_struct(found):
                return _differs(path, found, "a struct")
            names = {field.name: field.type for field in found}
            if names.keys() != dict(fields).keys():
                ours = ", ".join(sorted(name for name, _ in fields))
                return f"{path} has the fields {', '.join(sorted(names))}, and the schema {ours}"
            return _first(
                _mismatch(names[name], kind, node.properties[name], f"{path}, field '{name}'") for name, kind in fields
            )
        case ListOf(item):
            if of.is_list(found) or of.is_large_list(found) or of.is_fixed_size_list(found):
                return _mismatch(found.value_type, item, node.items, f"{path}, its items")
            return _differs(path, found, "a list")
        case MapOf(value):
            if of.is_map(found) and _holds(found.key_type, STRING):
                return _mismatch(found.item_type, value, node.values, f"{path}, its values")
            return _differs(path, found, "a map with keys of text")
        case Scalar("string") if node.names - {"null"} != {"string"}:
            return (
                f"{path} holds {found}, and the schema lets it hold anything: nobody knows whether that is plain text "
                "or JSON's text"
            )
        case DecimalOf(scale):
            return None if _holds(found, wanted) else _differs(path, found, f"decimal({DIGITS}, {scale})")
        case Scalar(name):
            return None if _holds(found, wanted) else _differs(path, found, _ASKED[name])


_ASKED = {
    "bigint": "integers of at most 64 bits",
    "double": "double",
    "boolean": "bool",
    "string": "text",
    "timestamp": "timestamps in UTC of at most microseconds",
    "date": "dates",
    "binary": "bytes",
    "null": "nothing but null",
}
_TESTS: dict[FieldType, tuple[str, ...]] = {
    BOOLEAN: ("is_boolean",),
    STRING: ("is_string", "is_large_string", "is_string_view"),
    DATE: ("is_date32",),
}


def _differs(path: str, found: Any, wanted: str) -> str:
    return f"{path} is {found}, where the schema asks for {wanted}"


def _holds(found: Any, wanted: Scalar | DecimalOf) -> Any:
    """Whether a column of ours holds each value of another one as it is."""
    from pyarrow import types as of

    from burler.records.arrow.walk import is_binary

    while of.is_dictionary(found):
        found = found.value_type
    if of.is_null(found):
        return True
    signed_bits = 0 if not of.is_integer(found) else found.bit_width + of.is_unsigned_integer(found)
    if isinstance(wanted, DecimalOf):
        if signed_bits:
            return wanted.has_room(INT64_DIGITS if signed_bits <= 64 else INT64_DIGITS + 1)
        return (
            of.is_decimal(found) and 0 <= found.scale <= wanted.scale and wanted.has_room(found.precision - found.scale)
        )
    if wanted == BIGINT:
        return 0 < signed_bits <= 64
    if wanted == DOUBLE:
        return of.is_floating(found) or (of.is_integer(found) and found.bit_width < 64)
    if wanted == BINARY:
        return is_binary(found)
    if wanted == TIMESTAMP:
        return of.is_timestamp(found) and found.unit in ("s", "ms", "us") and found.tz in ("UTC", "Etc/UTC", "+00:00")
    return any(getattr(of, test)(found) for test in _TESTS.get(wanted, ()) if hasattr(of, test))


def _first(found: Iterable[str | None]) -> str | None:
    return next((one for one in found if one), None)
