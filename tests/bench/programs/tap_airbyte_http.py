"""airbyte-cdk's side over HTTP: a declarative source, as its manifest has it, read through its entrypoint.

Run as: tap_airbyte_http.py VARIANT WORK ROWS (VARIANT and WORK are not looked at).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import clock
import http_source
import standard
from airbyte_cdk.entrypoint import launch
from airbyte_cdk.models import ConfiguredAirbyteCatalogSerializer
from airbyte_cdk.sources.declarative.concurrent_declarative_source import ConcurrentDeclarativeSource


def manifest(url: str) -> dict[str, Any]:
    """The source: one stream, pages by their numbers."""
    paginator = {
        "type": "DefaultPaginator",
        "page_token_option": {"type": "RequestOption", "inject_into": "request_parameter", "field_name": "page"},
        "pagination_strategy": {"type": "PageIncrement", "page_size": standard.PAGE_ROWS, "start_from_page": 0},
    }
    retriever = {
        "type": "SimpleRetriever",
        "requester": {"type": "HttpRequester", "url_base": url, "path": "/std", "http_method": "GET"},
        "record_selector": {"type": "RecordSelector", "extractor": {"type": "DpathExtractor", "field_path": []}},
        "paginator": paginator,
    }
    stream = {
        "type": "DeclarativeStream",
        "name": standard.STREAM,
        "primary_key": ["id"],
        "retriever": retriever,
        "schema_loader": {"type": "InlineSchemaLoader", "schema": standard.SCHEMA},
    }
    return {
        "version": "6.0.0",
        "type": "DeclarativeSource",
        "check": {"type": "CheckStream", "stream_names": [standard.STREAM]},
        "streams": [stream],
        "spec": {"type": "Spec", "connection_specification": {"type": "object", "properties": {}}},
    }


def run(url: str, folder: Path) -> None:
    """The read, as its command line does it."""
    stream = {"name": standard.STREAM, "json_schema": standard.SCHEMA, "supported_sync_modes": ["full_refresh"]}
    entry = {"stream": stream, "sync_mode": "full_refresh", "destination_sync_mode": "append"}
    catalog = {"streams": [entry]}
    (folder / "config.json").write_text("{}")
    (folder / "catalog.json").write_text(json.dumps(catalog))
    arguments = ["read", "--config", str(folder / "config.json"), "--catalog", str(folder / "catalog.json")]
    source = ConcurrentDeclarativeSource(
        catalog=ConfiguredAirbyteCatalogSerializer.load(catalog), config={}, state=[], source_config=manifest(url)
    )
    with clock.measured("airbyte-cdk"):
        launch(source, arguments)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, http_source.serving(int(sys.argv[3])) as url:
        run(url, Path(folder))
