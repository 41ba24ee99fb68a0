"""Rows as dicts are what Python's json makes of them, with exact Decimals."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from burler.lake import read
from burler.singer.messages import Records, record_prefix_suffix

VALUES = {
    "numbers": "[1, -0, 0.1, -0.0, 1E5, 1e400, 0.1e-400, 2.50, 3.141592653589793238462643383279]",
    "big numbers": "[123456789012345678901234567890, -18446744073709551617, 18446744073709551615]",
    "text": r'"\u00e9 é \ud83d\ude00 \" \\ \n \u0000"',
    "half of a pair": r'["\ud800", 0.10]',
    "a key twice": '{"a": 1, "a": 0.20}',
    "nested": '{"a": [{"b": [null, true, false, {"c": 1.0}]}], "": {}}',
    "deep": "[" * 400 + "1.50" + "]" * 400,
}


def test_rows_are_what_python_s_json_makes_of_them(lake: Any) -> None:
    for at, value in enumerate(VALUES.values()):
        lake.tap_id = f"tap-{at}"
        texts = ['{"id":1,"v":2.0}', f'{{"id":2,"v":{value}}}', '{"id":3}']
        fill(lake, texts)
        found = list(read(lake.store, lake.tap_id).rows())
        wanted = [json.loads(text, parse_float=Decimal) for text in texts]
        assert found == wanted
        assert repr(found) == repr(wanted)  # of the same types, too, and digit for digit


def fill(lake: Any, texts: list[str]) -> None:
    """A file with these rows."""
    with lake.writer() as writer:
        writer.schema(lake.schema())
        prefix, suffix = record_prefix_suffix("users", lake.clock.moment, None)
        lines = b"".join(prefix + text.encode() + suffix for text in texts)
        writer.records(Records("users", lines, len(texts), lake.clock.moment))
