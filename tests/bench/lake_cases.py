"""The rows of the table about the lake: records into its files, and out of them again."""

from __future__ import annotations

from batch_cases import FLOOR as FILES
from batch_cases import PLAIN
from entries import Bar, Case, MemoryRow, Program, RateRow

_GIVEN = "tap_burler_given.py"  # makes the lake that is read
BURLER = Program(
    "burler, lake",
    "tap_burler_lake.py",
    "selection, types and formats checked, unknown fields reported; RECORD lines with their time, the `clean` mark, "
    "durable files, locks, manifest, catalogue and STATE",
)
READING = Program(
    "burler, reading a lake",
    "tap_burler_lake_read.py",
    "the manifest's files in replay order; line 1 of each against its folder's hash, every line of the right stream, "
    "as many rows as the manifest says; SCHEMA and STATE; numbers exact, Arrow columns by the schema",
    given=_GIVEN,
)
READ_FLOOR = Program(
    "floor, a lake's files",
    "floor_lake_read.py",
    "isal unpacks all files of the folder: into the pipe; counting line ends; orjson.loads line by line; into "
    "`pyarrow.json`, told the columns: nothing is compared with anything",
    given=_GIVEN,
)
ZCAT = Program("zcat", "floor_lake_read.py", "`gzip -dc` of all files of the folder", variant="zcat", given=_GIVEN)
PLAIN_ROWS = Program(
    "gzip + orjson",
    "floor_lake_read.py",
    "Python's gzip.open and orjson.loads, line by line: the loop that people write; numbers are floats",
    variant="plain",
    given=_GIVEN,
)
EXACT_ROWS = Program(
    "gzip + json, Decimals",
    "floor_lake_read.py",
    "the same with json.loads(line, parse_float=Decimal): numbers as they stand in the file",
    variant="exact",
    given=_GIVEN,
)
SDK = Program(
    "singer-sdk, reading files",
    "tap_sdk_lake_read.py",
    "a tap whose stream is that loop, with json.loads; the rest as above",
    environment="singer-sdk",
    given=_GIVEN,
)
SDK_MSGSPEC = Program(
    "singer-sdk, reading files, msgspec writer",
    "tap_sdk_lake_read.py",
    "the same tap, with its optional writer",
    variant="msgspec",
    environment="singer-sdk",
    given=_GIVEN,
)
DLT = Program(
    "dlt, reading files",
    "tap_dlt_lake_read.py",
    "its filesystem source and `read_jsonl`, iterated; nothing is loaded",
    environment="dlt",
    given=_GIVEN,
)
PROGRAMS = (BURLER, READING, READ_FLOOR, ZCAT, PLAIN_ROWS, EXACT_ROWS, SDK, SDK_MSGSPEC, DLT)

_WRITE, _PLAIN = Case(BURLER, "lake"), Case(PLAIN, "jsonl")
_READ = Case(READING, "readlines")
_ZCAT = Case(ZCAT, "readlines")
_ARROW_FLOOR = Case(READ_FLOOR, "readarrow")
_EXACT = Case(EXACT_ROWS, "readrows", 0.5)

RATES = (
    RateRow(
        "lake-write",
        "lake `.singer.gz`, dicts in pages",
        _WRITE,
        Case(FILES, "jsonl"),
        (Bar(_PLAIN, 0.7, "0.7 x orjson + igzip, row by row"),),
        (_PLAIN,),
        needs="isal",
    ),
    RateRow(
        "lake-read",
        "`lake read` to a pipe",
        _READ,
        Case(READ_FLOOR, "readlines"),
        (Bar(_ZCAT, 1.0, "1 x zcat"),),
        (_ZCAT, Case(SDK, "readlines", 0.2), Case(SDK_MSGSPEC, "readlines", 0.2)),
        needs="isal",
    ),
    RateRow(
        "lake-pages",
        "a lake as pages of lines",
        Case(READING, "readpages"),
        Case(READ_FLOOR, "readpages"),
        (),
        needs="isal",
    ),
    RateRow(
        "lake-arrow",
        "a lake as Arrow",
        Case(READING, "readarrow"),
        _ARROW_FLOOR,
        (Bar(_ARROW_FLOOR, 0.7, "0.7 x pyarrow.json"),),
        needs="pyarrow",
    ),
    RateRow(
        "lake-rows",
        "a lake as dicts, numbers exact",
        Case(READING, "readrows", 0.5),
        Case(READ_FLOOR, "readrows", 0.5),
        (Bar(_EXACT, 1.0, "1 x gzip + json, Decimals"),),
        (Case(PLAIN_ROWS, "readrows", 0.5), _EXACT, Case(DLT, "readrows", 0.5)),
        needs="isal",
    ),
)
MEMORY = (
    MemoryRow("memory-lake", "lake `.singer.gz`", _WRITE, 10_000, 2_000_000, None, needs="isal"),
    MemoryRow("memory-lake-read", "`lake read`", _READ, 10_000, 2_000_000, None, needs="isal"),
)
