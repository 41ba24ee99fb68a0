"""dlt's side of rows in files: extracted and normalized to packed JSON lines or Parquet.

Run as: tap_dlt_batch.py VARIANT jsonl|parquet|tables ROWS (VARIANT is not looked at); ``tables`` yields pyarrow Tables.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import clock
import filing
import standard

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"

import dlt

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK, COUNT = sys.argv[2], int(sys.argv[3])
COLUMNS: dict[str, Any] = {
    "id": {"data_type": "bigint"},
    "f1": {"data_type": "double"},
    "f2": {"data_type": "double"},
    "ok": {"data_type": "bool"},
    "ts": {"data_type": "timestamp"},
    "nested": {"data_type": "json"},
    "arr": {"data_type": "json"},
    **{name: {"data_type": "text"} for name in ("a", "b", "c", "email", "long")},
}
PREPARED = standard.tables(COUNT) if WORK == "tables" else None


@dlt.resource(
    name=standard.STREAM,
    primary_key="id",
    columns=None if WORK == "tables" else COLUMNS,  # tables say what their columns are
    write_disposition="append",
)
def std() -> Iterator[Any]:
    """The rows."""
    yield from PREPARED if PREPARED is not None else standard.pages(COUNT)


if __name__ == "__main__":
    with filing.folder() as folder:
        os.environ["DESTINATION__FILESYSTEM__BUCKET_URL"] = f"file://{folder}/out"
        pipeline = dlt.pipeline("std", destination="filesystem", pipelines_dir=str(folder), dataset_name="std")
        with clock.measured("dlt"):
            pipeline.extract(std(), loader_file_format="jsonl" if WORK == "jsonl" else "parquet")
            pipeline.normalize()
