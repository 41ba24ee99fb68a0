"""burler: Flask-style Singer taps, a raw lake, and Spark behind them."""

from typing import TYPE_CHECKING

from burler import hangups as hangups  # first: a SIGHUP may come at any moment
from burler.context import StreamRun
from burler.declare.classes import Stream
from burler.declare.spec import Children
from burler.declare.strategies import EndOfSync, EveryN, EverySeconds, Manual, OnPage, Since, Strategy
from burler.declare.tap import Tap, tap
from burler.errors import BurlerError
from burler.extras import lazy_names
from burler.schema.sources import generated, json_file
from burler.singer.metadata import FULL_TABLE, INCREMENTAL, LOG_BASED

if TYPE_CHECKING:
    from burler import batch as batch
    from burler import config as config
    from burler import errors as errors
    from burler import files as files
    from burler import graphql as graphql
    from burler import http as http
    from burler import lake as lake
    from burler import patterns as patterns
    from burler import schema as schema
    from burler import singer as singer
    from burler import soap as soap
    from burler import spec as spec
    from burler import sql as sql
    from burler import verify as verify
    from burler.batch.source_files import batch_files
    from burler.pages import JsonPage, json_page
    from burler.schema.openapi_source import openapi
    from burler.schema.samples import inferred
    from burler.schema.typed_source import typed
    from burler.soap.wsdl import wsdl

__version__ = "0.1.0"

__all__ = [
    "FULL_TABLE",
    "INCREMENTAL",
    "LOG_BASED",
    "BurlerError",
    "Children",
    "EndOfSync",
    "EveryN",
    "EverySeconds",
    "JsonPage",
    "Manual",
    "OnPage",
    "Since",
    "Strategy",
    "Stream",
    "StreamRun",
    "Tap",
    "batch_files",
    "generated",
    "inferred",
    "json_file",
    "json_page",
    "openapi",
    "tap",
    "typed",
    "wsdl",
]

# ``import burler`` is enough for ``burler.http.Client``: these packages are imported when they are first asked for.
if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "JsonPage": "pages",
            "batch_files": "batch.source_files",
            "inferred": "schema.samples",
            "json_page": "pages",
            "openapi": "schema.openapi_source",
            "typed": "schema.typed_source",
            "wsdl": "soap.wsdl",
        },
        packages=("batch", "files", "graphql", "http", "lake", "patterns", "soap", "spec", "sql", "verify"),
        others=("config", "errors", "schema", "singer", "spark", "testing"),
    )
