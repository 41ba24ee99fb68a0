"""The rows of the table about BATCH: rows into files, which messages name."""

from __future__ import annotations

from entries import Bar, Case, MemoryRow, Program, RateRow

FLOOR = Program(
    "floor, files",
    "floor_batch.py",
    "ready dicts into one file on the same disk: orjson and igzip 1; pyarrow's from_pylist by a fixed schema and its "
    "Parquet writer, zstd; Python's csv module; Arrow tables as they are: no selection, check or messages",
)
PLAIN = Program(
    "orjson + igzip",
    "floor_batch.py",
    "orjson and isal's igzip.open, level 1, a write for each row: the loop that people write",
    variant="plain",
)
BURLER = Program(
    "burler, BATCH",
    "tap_burler_batch.py",
    "selection, types and formats checked, unknown fields reported, exact columns, durable files, BATCH and STATE",
)
SDK = Program(
    "singer-sdk, BATCH",
    "tap_sdk_batch.py",
    "rows as they come: no selection, no conversion; gzip 9, or a Parquet schema guessed for each file, snappy",
    environment="singer-sdk",
)
DLT = Program(
    "dlt, files",
    "tap_dlt_batch.py",
    "extract and normalize into packed JSON lines or Parquet: no messages; nested values as text, or as they come in "
    "Arrow tables",
    environment="dlt",
)
PROGRAMS = (FLOOR, PLAIN, BURLER, SDK, DLT)

_JSONL, _PARQUET, _TABLES, _CSV = (Case(BURLER, work) for work in ("jsonl", "parquet", "tables", "csv"))
_SDK_JSONL, _SDK_PARQUET = Case(SDK, "jsonl", 0.2), Case(SDK, "parquet", 0.5)
_DLT_TABLES = Case(DLT, "tables")
_PLAIN = Case(PLAIN, "jsonl")

RATES = (
    RateRow(
        "batch-jsonl",
        "BATCH jsonl.gz, dicts in pages",
        _JSONL,
        Case(FLOOR, "jsonl"),
        (Bar(_SDK_JSONL, 7, "7 x singer-sdk"), Bar(_PLAIN, 0.7, "0.7 x orjson + igzip, row by row")),
        (_PLAIN, _SDK_JSONL, Case(DLT, "jsonl", 0.2)),
        needs="isal",
    ),
    RateRow(
        "batch-parquet",
        "BATCH parquet, schema fixed by the stream",
        _PARQUET,
        Case(FLOOR, "parquet"),
        (Bar(_SDK_PARQUET, 1.2, "1.2 x singer-sdk"), Bar(Case(FLOOR, "parquet"), 0.6, "0.6 x floor")),
        (_SDK_PARQUET, Case(DLT, "parquet", 0.2)),
        needs="pyarrow",
    ),
    RateRow(
        "batch-tables",
        "pyarrow Tables of 10,000 rows yielded, to BATCH parquet",
        _TABLES,
        Case(FLOOR, "tables"),
        (Bar(_DLT_TABLES, 1.5, "1.5 x dlt"),),
        (_DLT_TABLES,),
        needs="pyarrow",
    ),
    RateRow("batch-csv", "BATCH csv.gz, dicts in pages", _CSV, Case(FLOOR, "csv", 0.5), (), needs="isal"),
)

_FEW, _MANY = 10_000, 2_000_000
MEMORY = (
    MemoryRow("memory-batch-jsonl", "BATCH jsonl.gz", _JSONL, _FEW, _MANY, None, needs="isal"),
    MemoryRow("memory-batch-csv", "BATCH csv.gz", _CSV, _FEW, _MANY, None, needs="isal"),
    MemoryRow("memory-batch-parquet", "BATCH parquet (with pyarrow)", _PARQUET, _FEW, _MANY, None, needs="pyarrow"),
    MemoryRow(
        "memory-batch-tables",
        "pyarrow Tables to BATCH parquet (50,000 rows of them are held by the tap)",
        _TABLES,
        10 * _FEW,
        _MANY,
        None,
        needs="pyarrow",
    ),
)
