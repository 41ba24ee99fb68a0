"""dlt's side: the rows extracted and normalized to JSON lines in files, the nearest that dlt has to RECORD messages.

Run as: tap_dlt.py VARIANT WORK ROWS (VARIANT is not looked at). Nothing is loaded into a destination, and nothing is
written to stdout.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import clock
import standard

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
os.environ["NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION"] = "true"  # the others' lines are not compressed, either

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


@dlt.resource(name=standard.STREAM, primary_key="id", columns=COLUMNS, write_disposition="append")
def std() -> Iterator[Any]:
    """The rows, in pages where they are small."""
    yield from standard.big_rows(COUNT) if WORK == "big" else standard.pages(COUNT)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DESTINATION__FILESYSTEM__BUCKET_URL"] = f"file://{folder}/out"
        pipeline = dlt.pipeline("std", destination="filesystem", pipelines_dir=folder, dataset_name="std")
        with clock.measured("dlt"):
            pipeline.extract(std(), loader_file_format="jsonl")
            pipeline.normalize()
