"""JSON Schema for streams: where a schema comes from, and references resolved. Usable without the framework."""

from burler.schema.refs import resolve_refs
from burler.schema.sources import Generated, JsonFile, SchemaSource, generated, json_file

__all__ = ["Generated", "JsonFile", "SchemaSource", "generated", "json_file", "resolve_refs"]
