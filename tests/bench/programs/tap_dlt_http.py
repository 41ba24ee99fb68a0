"""dlt's side over HTTP: its REST client's pages, extracted and normalized to JSON lines in files.

Run as: tap_dlt_http.py VARIANT WORK ROWS (VARIANT and WORK are not looked at).
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import clock
import http_source
import standard

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
os.environ["NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION"] = "true"  # the others' lines are not compressed, either

import dlt
from dlt.sources.helpers.rest_client import RESTClient
from dlt.sources.helpers.rest_client.paginators import HeaderLinkPaginator
from tap_dlt import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator


def resource(url: str) -> Any:
    """The stream."""
    client = RESTClient(url, paginator=HeaderLinkPaginator())

    @dlt.resource(name=standard.STREAM, primary_key="id", columns=COLUMNS, write_disposition="append")
    def std() -> Iterator[Any]:
        yield from client.paginate("/std")

    return std()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, http_source.serving(int(sys.argv[3])) as url:
        os.environ["DESTINATION__FILESYSTEM__BUCKET_URL"] = f"file://{folder}/out"
        pipeline = dlt.pipeline("std", destination="filesystem", pipelines_dir=folder, dataset_name="std")
        with clock.measured("dlt"):
            pipeline.extract(resource(url), loader_file_format="jsonl")
            pipeline.normalize()
