"""What a stream's schema asks of a file with columns, whatever its format: which must be there, which may hold no
null."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burler.errors import BatchError
from burler.formats import FormatError
from burler.records.columns.nodes import SchemaNode

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


class Demands:
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
