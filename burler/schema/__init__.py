"""JSON Schema for streams: where a schema comes from, references, inference. Usable without the framework.

What to open for what:

    sources                           what an author may give; schema files
    documents, documents_yaml         JSON and YAML, from files and by http: limits, broken and hostile input
    refs, targets                     references: replacing them, what they point to
    merge, overlay                    two schemas as one: allOf, keywords beside a reference; the same laid flat
    checks, type_names                what can't go out; types and formats that do not exist
    infer                             a schema from records: what was seen at each place
    samples, infer_read               samples as they lie about; rows and messages in them
    openapi_source, openapi_dialect   a schema from an OpenAPI document; its words as JSON Schema's
    typed_source                      a schema from a Python class
    simplify                          what other tools write, in the form that Singer's targets read

A schema from a WSDL is made in ``burler.soap.wsdl``.
"""

from typing import TYPE_CHECKING

from burler.extras import lazy_names

if TYPE_CHECKING:
    from burler.schema.infer import Inference, infer_schema
    from burler.schema.openapi_source import OpenApi, openapi
    from burler.schema.refs import resolve_refs
    from burler.schema.samples import Inferred, inferred
    from burler.schema.sources import Generated, JsonFile, SchemaLike, Source, generated, json_file
    from burler.schema.type_names import check_types
    from burler.schema.typed_source import Typed, is_typed, typed
    from burler.soap.wsdl import WsdlSource, wsdl

__all__ = [
    "Generated",
    "Inference",
    "Inferred",
    "JsonFile",
    "OpenApi",
    "SchemaLike",
    "Source",
    "Typed",
    "WsdlSource",
    "check_types",
    "generated",
    "infer_schema",
    "inferred",
    "is_typed",
    "json_file",
    "openapi",
    "resolve_refs",
    "typed",
    "wsdl",
]

if not TYPE_CHECKING:  # else a misspelt name would be anything to a type checker
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Generated": "sources",
            "Inference": "infer",
            "Inferred": "samples",
            "JsonFile": "sources",
            "OpenApi": "openapi_source",
            "SchemaLike": "sources",
            "Source": "sources",
            "Typed": "typed_source",
            "check_types": "type_names",
            "generated": "sources",
            "infer_schema": "infer",
            "inferred": "samples",
            "is_typed": "typed_source",
            "json_file": "sources",
            "openapi": "openapi_source",
            "resolve_refs": "refs",
            "typed": "typed_source",
            "WsdlSource": ".soap.wsdl",
            "wsdl": ".soap.wsdl",
        },
    )
