"""What is measured: the programs, and the rows of the table with their bars. A new row is one more entry here.

A *case* is a program doing a piece of work on some rows. Cases are measured once a round however many rows of the
table name them, so that each ratio is of figures from the same rounds.
"""

from __future__ import annotations

import batch_cases
import lake_cases
from entries import Bar as Bar
from entries import Case as Case
from entries import MemoryRow as MemoryRow
from entries import Program as Program
from entries import RateRow as RateRow
from entries import StartRow as StartRow

ROWS = 200_000

FLOOR = Program("floor", "floor.py", "orjson of ready dicts in an envelope: no schema, selection, check or STATE")
BURLER = Program("burler", "tap_burler.py", "selection, types and formats checked, unknown fields reported, STATE")
SDK = Program(
    "singer-sdk",
    "tap_sdk.py",
    "selection, conversion by type, unknown fields reported; values that don't fit the schema pass",
    environment="singer-sdk",
)
SDK_MSGSPEC = Program(
    "singer-sdk, msgspec writer",
    "tap_sdk.py",
    "the same, with its optional writer",
    variant="msgspec",
    environment="singer-sdk",
)
AIRBYTE = Program(
    "airbyte-cdk, no shaping",
    "tap_airbyte.py",
    "AirbyteMessage lines; records as they are, no schema applied (its default)",
    variant="plain",
    environment="airbyte-cdk",
)
AIRBYTE_SHAPING = Program(
    "airbyte-cdk, shaping",
    "tap_airbyte.py",
    "AirbyteMessage lines, with its type transformer",
    variant="shaping",
    environment="airbyte-cdk",
)
SINGER = Program(
    "singer-python", "tap_singer.py", "Transformer, then write_record, in a loop", environment="singer-python"
)
DLT = Program(
    "dlt",
    "tap_dlt.py",
    "extract and normalize into JSON lines in files: no messages, no pipe; the nearest it has",
    environment="dlt",
)
HTTP_BURLER = Program("burler over HTTP", "tap_burler_http.py", "`burler.http.Client.pages`; the rest as above")
HTTP_FLOOR = Program("floor over HTTP", "http_floor.py", "requests, orjson.loads, and the floor's loop")
HTTP_AIRBYTE = Program(
    "airbyte-cdk, declarative",
    "tap_airbyte_http.py",
    "a manifest with a requester, a paginator and a record selector; no schema applied (its default)",
    environment="airbyte-cdk",
)
HTTP_DLT = Program(
    "dlt, REST client", "tap_dlt_http.py", "pages of its REST client; the rest as above", environment="dlt"
)
PROGRAMS = (
    *(FLOOR, BURLER, SDK, SDK_MSGSPEC, AIRBYTE, AIRBYTE_SHAPING, SINGER, DLT),
    *(HTTP_BURLER, HTTP_FLOOR, HTTP_AIRBYTE, HTTP_DLT),
    *batch_cases.PROGRAMS,
    *lake_cases.PROGRAMS,
)

_PAGES, _ROWS, _KEYED = Case(BURLER, "pages"), Case(BURLER, "rows"), Case(BURLER, "keyed")
_FLOOR = Case(FLOOR, "pages")
_SDK = Case(SDK, "rows", 0.2)
_PEERS = (
    _SDK,
    Case(SDK_MSGSPEC, "rows", 0.2),
    Case(AIRBYTE, "rows", 0.4),
    Case(AIRBYTE_SHAPING, "rows", 0.1),
    Case(SINGER, "rows", 0.1),
    Case(DLT, "pages", 0.2),
)
_KEYED_PEERS = (
    Case(SDK, "keyed", 0.2),
    Case(SDK_MSGSPEC, "keyed", 0.2),
    Case(AIRBYTE, "keyed", 0.4),
    Case(AIRBYTE_SHAPING, "keyed", 0.1),
    Case(SINGER, "keyed", 0.1),
)
_HTTP_AIRBYTE = Case(HTTP_AIRBYTE, "pages", 0.4)
_BYTES, _ARROW = Case(FLOOR, "bytes"), Case(FLOOR, "arrow", 0.5)

RATES = (
    RateRow(
        "pages",
        "RECORD to a pipe, full shaping, dicts in pages",
        _PAGES,
        _FLOOR,
        (Bar(_FLOOR, 0.55, "0.55 x floor"), Bar(_SDK, 20, "20 x singer-sdk")),
        _PEERS,
    ),
    RateRow("rows", "the same, one dict yielded at a time", _ROWS, _FLOOR, (Bar(_FLOOR, 0.5, "0.50 x floor"),), _PEERS),
    RateRow(
        "keyed",
        "the same, with replication key and `every_n(1000)`",
        _KEYED,
        _FLOOR,
        (Bar(_ROWS, 0.9, "0.9 x the row above"),),
        _KEYED_PEERS,
    ),
    RateRow(
        "tail",
        "single rows of a tail function, the same key and strategy",
        Case(BURLER, "tail"),
        _FLOOR,
        (Bar(_KEYED, 0.5, "0.5 x a sync function's"),),
    ),
    RateRow(
        "patterns",
        "dicts in pages, with a `pattern` for four of the texts",
        Case(BURLER, "patterns"),
        _FLOOR,
        (),
    ),
    RateRow(
        "bytes",
        "JSON arrays of 1,000 rows yielded as bytes",
        Case(BURLER, "bytes"),
        _BYTES,
        (Bar(_BYTES, 2.5, "2.5 x json.loads + orjson.dumps"),),
    ),
    RateRow(
        "arrow",
        "pyarrow Tables of 10,000 rows yielded",
        Case(BURLER, "arrow"),
        _ARROW,
        (Bar(_ARROW, 3.0, "3 x to_pylist + orjson.dumps"),),
        needs="pyarrow",
    ),
    RateRow(
        "http",
        "whole HTTP read from a local server, pages of 1,000",
        Case(HTTP_BURLER, "pages"),
        Case(HTTP_FLOOR, "pages"),
        (Bar(_HTTP_AIRBYTE, 8, "8 x airbyte-cdk declarative"),),
        (_HTTP_AIRBYTE, Case(HTTP_DLT, "pages", 0.2)),
    ),
    *batch_cases.RATES,
    *lake_cases.RATES,
)

_SMALL, _MANY = 10_000, 2_000_000
MEMORY = (
    MemoryRow("memory-pages", "dicts in pages", _PAGES, _SMALL, _MANY, 60),
    MemoryRow(
        "memory-rows",
        "one dict at a time",
        _ROWS,
        _SMALL,
        _MANY,
        60,
        ((Case(SDK, "rows"), 200_000), (Case(DLT, "pages"), 200_000)),
    ),
    MemoryRow("memory-keyed", "the same, `every_n(1000)`", _KEYED, _SMALL, _MANY, 60),
    MemoryRow("memory-bytes", "bytes pages (20 of them are held by the tap)", Case(BURLER, "bytes"), _SMALL, _MANY, 60),
    MemoryRow(
        "memory-arrow",
        "pyarrow Tables (importing pyarrow is most of it)",
        Case(BURLER, "arrow"),
        10 * _SMALL,
        _MANY,
        None,
        needs="pyarrow",
    ),
    MemoryRow(
        "memory-big",
        "rows of 1 MB, one at a time",
        Case(BURLER, "big"),
        200,
        2_000,
        60,
        ((Case(SDK, "big"), 1_000), (Case(DLT, "big"), 1_000)),
    ),
    *batch_cases.MEMORY,
    *lake_cases.MEMORY,
)

STARTS = (
    StartRow("import", "`import burler`, over the bare interpreter", "import burler", 0.08, less="bare interpreter"),
    StartRow("help", "`burler --help`", "burler --help", 0.15),
    StartRow("empty", "`run` of an empty stream", "run of an empty stream", 0.35),
    StartRow(
        "discover",
        "discover of 200 streams x 50 fields, over singer-sdk",
        "discover 200 x 50, burler",
        0.5,
        over="discover 200 x 50, singer-sdk",
    ),
)
NAMES = tuple(row.name for row in (*RATES, *MEMORY, *STARTS))
