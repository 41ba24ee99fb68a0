"""The columns of one stream of a tap, fixed before its first row: what Spark plans with, and every batch is held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from burler.errors import BurlerError, CatalogError
from burler.records.columns import types
from burler.records.columns.types import JSON, StructOf
from burler.spark.types import arrow_schema, record_type, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Declared:
    """What discovery says of a stream; travels to the executors.

    Attributes:
        stream: its ``tap_stream_id``. names: under which its messages come.
        schema: the JSON Schema of the fields that are wanted, without references.
        keys: its key properties. replication_key: the field that its bookmark follows, if any.
        known: dotted paths of all fields, wanted or not.
        wanted: the columns of the DataFrame, in order; None: all. So a table whose definition is older than the
            stream's newest field goes on.
    """

    stream: str
    names: frozenset[str]
    schema: dict[str, Any]
    keys: tuple[str, ...] = ()
    replication_key: str | None = None
    known: frozenset[str] = frozenset()
    wanted: tuple[str, ...] | None = None

    @cached_property
    def record(self) -> StructOf:
        """The columns of the schema by the names of the fields: those that its table would have.

        Raises:
            CatalogError: the schema has no form in columns.
        """
        try:
            return record_type(self.schema, stream=self.stream)
        except BurlerError as error:
            raise CatalogError(f"{error}. Correct the tap's schema, or give a catalog (option 'catalog')") from None

    @cached_property
    def is_plain(self) -> bool:
        """Whether batch files have these very columns. They differ where a value may be anything: a batch file then
        holds JSON of text, too, and a table holds the text itself."""
        return types.record_type(self.schema, stream=self.stream, open_as=JSON) == self.record

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """What the fields are called in Spark, which ignores case: the second of two that differ in case alone gets
        ``_2``."""
        fields = [name for name, _ in self.record.fields]
        taken = {name.lower() for name in fields}
        seen: set[str] = set()
        made = []
        for name in fields:
            column, number = name, 2
            if name.lower() in seen:
                while f"{name}_{number}".lower() in taken:
                    number += 1
                column = f"{name}_{number}"
            seen.add(column.lower())
            taken.add(column.lower())
            made.append(column)
        return tuple(made)

    @cached_property
    def columns(self) -> StructOf:
        """The DataFrame's columns."""
        kinds = dict(zip(self.column_names, (kind for _, kind in self.record.fields), strict=True))
        names = self.column_names if self.wanted is None else self.wanted
        return StructOf(tuple((name, kinds[name]) for name in names))

    def spark(self) -> StructType:
        """The columns as Spark's types."""
        return spark_schema(self.columns)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The same for Arrow: the one schema object of every batch."""
        return arrow_schema(self.columns)

    @cached_property
    def _places(self) -> list[int]:
        return [self.column_names.index(name) for name, _ in self.columns.fields]

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch in the columns of ``record`` as one of the DataFrame's."""
        import pyarrow as pa

        return pa.RecordBatch.from_arrays([batch.column(place) for place in self._places], schema=self.arrow)

    def as_asked(self, schema: StructType) -> Declared:
        """The same, with the columns that a DataFrame has been planned with: of these, in any order.

        Raises:
            CatalogError: a column that the stream does not have, or has with another type.
        """
        here = {field.name.lower(): field for field in self.spark()}
        names = []
        for field in schema:
            mine = here.get(field.name.lower())
            if mine is None:
                raise CatalogError(
                    f"stream '{self.stream}': has no field for the column '{field.name}' that was asked for. "
                    f"Its columns: {', '.join(column.name for column in self.spark())}."
                )
            if _plain(mine.dataType) != _plain(field.dataType):
                raise CatalogError(
                    f"stream '{self.stream}': column '{field.name}' was asked for as "
                    f"{field.dataType.simpleString()}, and the stream has it as {mine.dataType.simpleString()}. "
                    "Leave the schema out, or take that type and cast it."
                )
            names.append(mine.name)
        if tuple(names) == tuple(here[name].name for name in here) and self.wanted is None:
            return self
        return replace(self, wanted=tuple(names))

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made of it at need."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _plain(kind: Any) -> str:
    """A type's text, whatever may be null in it."""
    text = str(kind.jsonValue()) if not hasattr(kind, "json") else kind.json()
    return text.replace('"nullable":false', '"nullable":true').replace('"containsNull":false', '"containsNull":true')


def unknown_fields(declared: Declared, schema: Mapping[str, Any]) -> list[str]:
    """The fields that a SCHEMA message has and discovery had not."""
    properties = schema.get("properties")
    names: Sequence[Any] = list(properties) if isinstance(properties, Mapping) else []
    return [str(name) for name in names if str(name) not in declared.known]


def layout_of(declared: Declared) -> Any:
    """What makes a stream's columns of lines of JSON."""
    from burler.records.columns.from_json import ColumnarLayout

    return ColumnarLayout(declared.record, declared.stream)
