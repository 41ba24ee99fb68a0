"""Files with columns are held against the stream's schema, whichever way their rows are read."""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from piped import batch, config, converted, expanded, lines_of, state, written

from burler.batch import read
from burler.errors import BatchError
from burler.singer.messages import Schema

TEXT = {"type": ["null", "string"]}
MOMENT = {"type": ["null", "string"], "format": "date-time"}
NUMBER = {"type": ["null", "number"]}


def schema_of(*required: str, **properties: Any) -> dict[str, Any]:
    """A schema."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def put(folder: Path, table: Any, form: str = "parquet") -> dict[str, Any]:
    """The BATCH message of a file that another program has written."""
    path = folder / f"a.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as out:
            out.write_table(table)
    else:
        path.write_bytes(table)
    return batch(f"file://{path}", format={"name": form})


def ways(message: Any, schema: Any, warnings: list[str]) -> list[Callable[[], Any]]:
    """How rows are read: as lines, and as columns."""
    reading = read(message, schema, warn=warnings.append)
    return [reading.rows, reading.arrow]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_are_those_of_the_schema(tmp_path: Path, form: str) -> None:
    schema = schema_of(id={"type": "integer"}, at=MOMENT)
    right = pa.ipc.open_file(io.BytesIO(written("arrow", schema, '{"id":1}'))).schema
    table = pa.table({"at": ["2024-01-02T03:04:05Z"], "id": [1.0]})
    (found,) = read(put(tmp_path, table, form), schema).arrow()
    assert found.schema.equals(right)
    assert found.to_pylist() == [{"id": 1, "at": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)}]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_numbers_that_json_does_not_know_are_refused(tmp_path: Path, form: str, number: float, kind: Any) -> None:
    message = put(tmp_path, pa.table({"n": pa.array([1.0, number], kind)}), form)
    for rows in ways(message, schema_of(n=NUMBER), []):
        with pytest.raises(BatchError, match=r"batch file 'file://.*': .*'n'.* is no number of JSON"):
            list(rows())


def test_such_numbers_within_lists_and_objects_are_refused(tmp_path: Path) -> None:
    inner = schema_of(x=NUMBER)
    cases: list[tuple[dict[str, Any], pa.DataType, Any]] = [
        ({"type": "array", "items": NUMBER}, pa.list_(pa.float64()), [[1.0], [2.0, float("nan")]]),
        (inner, pa.struct([("x", pa.float64())]), [{"x": 1.0}, {"x": float("inf")}]),
        ({"type": "array", "items": inner}, pa.list_(pa.struct([("x", pa.float64())])), [[{"x": float("nan")}]]),
        ({"type": "object", "additionalProperties": NUMBER}, pa.map_(pa.string(), pa.float64()), [[("a", -1e999)]]),
    ]
    for node, kind, values in cases:
        schema = schema_of(n=node)
        message = put(tmp_path, pa.table({"n": pa.array(values, kind)}))
        for rows in ways(message, schema, []):
            with pytest.raises(BatchError, match="is no number of JSON"):
                list(rows())


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow"])
def test_convert_takes_nothing_that_a_reader_of_its_files_would_refuse(tmp_path: Path, form: str) -> None:
    schema = {"type": "SCHEMA", "stream": "users", "schema": schema_of(n=NUMBER), "key_properties": []}
    message = put(tmp_path, pa.table({"n": [float("nan")]}))
    out = converted(config(tmp_path / "out", form), schema, message, state(1))
    assert "line 2: stream 'users': batch file 'file://" in str(out.error)
    assert not out.of("BATCH") and not out.of("STATE")


def test_times_that_columns_cut_are_told(tmp_path: Path) -> None:
    moment = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC"))
    message, warnings = put(tmp_path, pa.table({"at": moment})), list[str]()
    (row,) = read(message, schema_of(at=MOMENT), warn=warnings.append).rows()
    assert row["at"].endswith(".123456789Z") and warnings == []
    list(read(message, schema_of(at=MOMENT), warn=warnings.append).arrow())
    assert warnings == ["stream 'users': field 'at': 1 time cut to microseconds, all that the column holds"]


def test_columns_that_the_schema_does_not_know_are_left_out_and_told(tmp_path: Path) -> None:
    message = put(tmp_path, pa.table({"id": pa.array([7], pa.int8()), "secret": ["x"]}))
    for number in (0, 1):
        warnings: list[str] = []
        (found,) = ways(message, schema_of(id={"type": "integer"}), warnings)[number]()
        assert (found if number == 0 else found.to_pylist()[0]) == {"id": 7}
        assert warnings == ["stream 'users': columns that the schema does not know are left out: 'secret'"]


FILES = {
    "parquet": lambda columns: pa.table(columns),
    "arrow": lambda columns: pa.table(columns),
    "csv": lambda columns: (
        ",".join(columns)
        + "\n"
        + "".join(
            ",".join("" if v is None else str(v) for v in row) + "\n" for row in zip(*columns.values(), strict=True)
        )
    ).encode(),
}


@pytest.mark.parametrize("form", FILES)
def test_a_column_that_every_row_must_have_is_missed(tmp_path: Path, form: str) -> None:
    message = put(tmp_path, FILES[form]({"id": [1], "Name": [5]}), form)
    properties = {"id": {"type": "integer"}, "name": TEXT}
    for schema in (schema_of("name", **properties), Schema("users", schema_of(**properties), ("name",))):
        for rows in ways(message, schema, []):
            with pytest.raises(BatchError, match=r"it has no column 'name', which every row must have \(it has 'Name'"):
                list(rows())


@pytest.mark.parametrize("form", FILES)
def test_a_column_that_rows_may_lack_is_null_and_told(tmp_path: Path, form: str) -> None:
    message = put(tmp_path, FILES[form]({"id": [1], "V": [5]}), form)
    for number in (0, 1):
        warnings: list[str] = []
        (found,) = ways(message, schema_of("id", id={"type": "integer"}, v=TEXT), warnings)[number]()
        assert (found if number == 0 else found.to_pylist()[0]) == {"id": 1, "v": None}
        told = [warning for warning in warnings if "not there" in warning]
        assert told == [
            "stream 'users': columns of the schema that are not there are null in every row: 'v' "
            "(it has 'V': capitals make another name)"
        ]


@pytest.mark.parametrize("form", FILES)
def test_null_where_every_row_has_a_value_is_refused_with_its_row(tmp_path: Path, form: str) -> None:
    message = put(tmp_path, FILES[form]({"id": [1, 2, None], "v": ["a", None, "c"]}), form)
    row = 4 if form == "csv" else 3  # its header counts
    properties = {"id": {"type": "integer"}, "v": {"type": "string"}}
    for rows in ways(message, schema_of("id", **properties), []):
        with pytest.raises(BatchError, match=f"row {row}: field 'id' is null, and by the schema every row has a value"):
            list(rows())
    may = {**properties, "id": {"type": ["null", "integer"]}}
    assert [row["id"] for row in read(message, schema_of("id", **may)).rows()] == [1, 2, None]


@pytest.mark.parametrize("processes", [1, 2])
def test_expand_knows_the_key(tmp_path: Path, processes: int) -> None:
    properties = schema_of(id={"type": ["null", "integer"]}, v=TEXT)
    schema = {"type": "SCHEMA", "stream": "users", "schema": properties, "key_properties": ["id"]}
    message = put(tmp_path, pa.table({"ID": [1], "v": ["x"]}))
    out = expanded(schema, message, state(1), processes=processes)
    assert "line 2: stream 'users': batch file 'file://" in str(out.error)
    assert "it has no column 'id', which every row must have (it has 'ID'" in str(out.error)
    assert not out.of("RECORD") and not out.of("STATE")


def test_row_numbers_count_through_all_parts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [*range(20_000), None]}), path, row_group_size=7000)
    message = batch(f"file://{path}", format={"name": "parquet"})
    reading = read(message, schema_of("id", id={"type": "integer"}))
    with pytest.raises(BatchError, match="row 20,001: field 'id' is null"):
        list(reading.rows())


def test_decimals_of_a_foreign_file_are_exact_in_columns(tmp_path: Path) -> None:
    """pyarrow's own cast to more digits behind the point wraps around in silence."""
    table = pa.table({"n": pa.array([Decimal("7.47")], pa.decimal128(29, 2))})
    schema = schema_of(n={"type": "string", "format": "singer.decimal", "precision": 38, "scale": 37})
    (found,) = read(put(tmp_path, table), schema).arrow()
    assert found.column(0).to_pylist() == [Decimal("7.47")]


def test_an_empty_file_has_no_rows() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), out)
    schema = schema_of("id", id={"type": "integer"})
    assert lines_of(out.getvalue(), "parquet", schema) == b""


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_are_counted_too(tmp_path: Path, form: str) -> None:
    message = put(tmp_path, pa.table({"id": [1, 2]}), form)
    size = (tmp_path / f"a.{form}").stat().st_size
    schema = schema_of(id={"type": "integer"})
    assert (
        sum(part.num_rows for part in read({**message, "file_stats": [{"records": 2, "bytes": size}]}, schema).arrow())
        == 2
    )
    for rows in ways({**message, "file_stats": [{"records": 3, "bytes": size}]}, schema, []):
        with pytest.raises(BatchError, match="it has 2 rows where the message says 3"):
            list(rows())


def nested(*required: str) -> tuple[dict[str, Any], pa.DataType, list[Any]]:
    """A schema of objects within objects and lists, a file's type that lacks some of their fields, and values."""
    inner = schema_of(*required, sku=TEXT, price=NUMBER)
    owner = {"type": ["null", "object"], "properties": {"name": TEXT, "items": {"type": "array", "items": inner}}}
    kind = pa.struct([("items", pa.list_(pa.struct([("sku", pa.string())])))])
    return schema_of(id={"type": "integer"}, owner=owner), kind, [{"items": [{"sku": "a"}]}]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_fields_that_objects_of_a_file_lack_are_null_and_told(tmp_path: Path, form: str) -> None:
    schema, kind, values = nested()
    message = put(tmp_path, pa.table({"id": [1], "owner": pa.array(values, kind)}), form)
    for number in (0, 1):
        warnings: list[str] = []
        (found,) = ways(message, schema, warnings)[number]()
        row = found if number == 0 else found.to_pylist()[0]
        assert row["owner"] == {"name": None, "items": [{"sku": "a", "price": None}]}
        told = "stream 'users': fields of the schema that are not there are null in every row: "
        assert warnings == [told + "'owner.name', 'owner.items.[].price'"]


def test_fields_that_values_of_a_map_lack_are_told(tmp_path: Path) -> None:
    schema = schema_of(prices={"type": "object", "additionalProperties": schema_of(low=NUMBER, high=NUMBER)})
    kind = pa.map_(pa.string(), pa.struct([("low", pa.float64())]))
    message, warnings = put(tmp_path, pa.table({"prices": pa.array([[("a", {"low": 1.0})]], kind)})), list[str]()
    assert list(read(message, schema, warn=warnings.append).rows())
    assert ["'prices.{}.high'" in warning for warning in warnings] == [True]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_field_that_every_object_must_have_is_missed(tmp_path: Path, form: str) -> None:
    schema, kind, values = nested("price")
    message = put(tmp_path, pa.table({"id": [1], "owner": pa.array(values, kind)}), form)
    for rows in ways(message, schema, []):
        with pytest.raises(
            BatchError, match=r"it has no field 'owner.items.\[\].price', which every object there must have"
        ):
            list(rows())


@pytest.mark.parametrize("function", ["expand", "convert"])
@pytest.mark.parametrize(
    ("node", "cell", "fact"),
    [
        ({"type": "integer"}, "abc", "its value is no integer"),
        ({"type": "integer"}, "1.5", "its value is no integer"),
        ({"type": "string", "format": "date"}, "soon", r"its value is no date \(YYYY-MM-DD\)"),
        (MOMENT, "yesterday", "its value is no date-time in years 1 to 9999"),
    ],
)
def test_a_cell_of_csv_that_is_none_of_its_field_ends_it(
    tmp_path: Path, function: str, node: Any, cell: str, fact: str
) -> None:
    schema = {"type": "SCHEMA", "stream": "users", "schema": schema_of(v=node), "key_properties": []}
    message = put(tmp_path, f"v\n{cell}\n".encode(), "csv")
    given = (schema, message, state(1))
    out = expanded(*given) if function == "expand" else converted(config(tmp_path / "out"), *given)
    said = rf"line 2: stream 'users': batch file 'file://.*a.csv': row 2: field 'v': {fact}. Correct the file, or the "
    assert re.match(said, str(out.error)), out.error
    assert out.of("SCHEMA") and not out.of("RECORD") and not out.of("BATCH") and not out.of("STATE")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_value_of_columns_that_is_none_of_its_field_is_named_with_its_row(tmp_path: Path, form: str) -> None:
    table = pa.table({"id": [*map(float, range(9000)), 1.5], "v": ["x"] * 9001})
    message = put(tmp_path, table, form)
    for rows in ways(message, schema_of(id={"type": "integer"}, v=TEXT), []):
        with pytest.raises(BatchError, match=r"row 9,001: field 'id': a value can't be held") as caught:
            list(rows())
        assert str(caught.value).endswith("Correct the file, or the schema of its stream.")
        assert "batch_config" not in str(caught.value) and "\n" not in str(caught.value)
