"""Arrow pages give what their rows would give as dicts: any Arrow type, any schema, any slice."""

from __future__ import annotations

import json
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import burler
from support.taps import command, exact

pytest.importorskip("pyarrow")
sys.path.append(str(Path(__file__).resolve().parent))
import pyarrow as pa
from arrow_pages import pages

SLOW = settings(suppress_health_check=list(HealthCheck))


def with_a_bad_row(batch, schema):
    """The page with one row more, which does not fit: with it the page goes row by row."""
    columns = [pa.concat_arrays([column, pa.nulls(1, column.type)]) for column in batch.columns]
    columns.append(pa.array(["1"] * batch.num_rows + ["x"]))
    longer = pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, "bad row"])
    return longer, {**schema, "properties": {**schema["properties"], "bad row": {"type": "integer"}}}


def plain(value):
    """Numbers by value; true is not 1."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name != "bad row"}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else ("JSON", value)


@SLOW
@given(page=pages(), on_nan=st.sampled_from(["error", "null"]))
def test_a_page_gives_what_its_rows_give(page, on_nan):
    batch, schema = page
    try:
        longer, wider = with_a_bad_row(batch, schema)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        assume(False)
    tap = burler.tap("tap-x")
    tap.sync("columns", schema=schema, on_bad_record="skip")(lambda: batch)
    tap.sync("rows", schema=wider, on_bad_record="skip")(lambda: longer)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"on_nan": on_nan, "max_bad_records": 100}))
        done = command(tap, "run", "--config", config, BURLER_LOG_LEVEL="ERROR")
    found = {"columns": [], "rows": []}
    for line in done.text.split("\n"):
        if line.startswith('{"type":"RECORD"'):
            message = exact(line)
            found[message["stream"]].append(plain(message["record"]))
    assert found["columns"] == found["rows"]
    assert done.code == 0 or schema.get("properties") == {}, done.stderr
