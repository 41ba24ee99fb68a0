"""Whatever an author gives as a schema, as one of two things: a mapping, or a source with ``load``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from burler.errors import DeclarationError


class Source(Protocol):
    """Something that has a schema: a file, a sample, an OpenAPI document, a typed class."""

    def load(self, *, where: str, config: Mapping[str, Any]) -> Any:
        """The schema, without references. ``where`` begins every error.

        Raises:
            DeclarationError: it can't be read, or is none.
        """


SchemaLike = Mapping[str, Any] | Source | type
"""A dict, a source such as ``burler.json_file(...)``, or a typed class (dataclass, TypedDict, pydantic model, ...)."""


def as_source(value: Any, *, where: str) -> Mapping[str, Any] | Source:
    """A schema in one of the forms above.

    Raises:
        DeclarationError: none of them.
    """
    if isinstance(value, type):
        from burler.schema.typed_source import is_typed, typed

        if is_typed(value):
            return typed(value)
    elif isinstance(value, Mapping):
        return value
    elif hasattr(value, "load"):
        source: Source = value
        return source
    cure = f"; write burler.json_file({value!r})" if isinstance(value, str) else ""
    raise DeclarationError(
        f"{where}: a schema is a dict, burler.json_file(...), a typed class or a function, "
        f"not {type(value).__name__}{cure}."
    )
