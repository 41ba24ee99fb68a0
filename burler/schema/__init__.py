"""JSON Schema for streams: where a schema comes from, references, inference. Usable without the framework."""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.schema.infer import Inference, Inferred, infer_schema, inferred
    from burler.schema.openapi_source import OpenApi, openapi
    from burler.schema.refs import resolve_refs
    from burler.schema.sources import Generated, JsonFile, SchemaSource, generated, json_file
    from burler.schema.typed_source import Typed, is_typed, typed

__all__ = [
    "Generated",
    "Inference",
    "Inferred",
    "JsonFile",
    "OpenApi",
    "SchemaSource",
    "Typed",
    "generated",
    "infer_schema",
    "inferred",
    "is_typed",
    "json_file",
    "openapi",
    "resolve_refs",
    "typed",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Generated": "sources",
        "Inference": "infer",
        "Inferred": "infer",
        "JsonFile": "sources",
        "OpenApi": "openapi_source",
        "SchemaSource": "sources",
        "Typed": "typed_source",
        "generated": "sources",
        "infer_schema": "infer",
        "inferred": "infer",
        "is_typed": "typed_source",
        "json_file": "sources",
        "openapi": "openapi_source",
        "resolve_refs": "refs",
        "typed": "typed_source",
    },
)
