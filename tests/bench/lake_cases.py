"""The rows of the table about the lake: records into its files, and out of them again."""

from __future__ import annotations

from batch_cases import FLOOR as FILES
from batch_cases import PLAIN
from entries import Bar, Case, MemoryRow, Program, RateRow

BURLER = Program(
    "burler, lake",
    "tap_burler_lake.py",
    "selection, types and formats checked, unknown fields reported; RECORD lines with their time, the `clean` mark, "
    "durable files, locks, manifest, catalogue and STATE",
)
PROGRAMS = (BURLER,)

_WRITE, _PLAIN = Case(BURLER, "lake"), Case(PLAIN, "jsonl")

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
)
MEMORY = (MemoryRow("memory-lake", "lake `.singer.gz`", _WRITE, 10_000, 2_000_000, None, needs="isal"),)
