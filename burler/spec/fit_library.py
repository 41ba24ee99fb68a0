"""What nodes can't tell of a value, asked of the library ``jsonschema``: branches, references, patterns of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

_DEFINITIONS = ("definitions", "$defs")
_LATE = frozenset(
    {"dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems", "minContains"}
    | {"maxContains"}
)
"""Words that drafts before 2019 do not know."""


def judge_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Callable[[Any], str | None]:
    """What the library says of a value: None, or the word of the schema that it does not fit.

    A schema that can't be held fits all (area C tells of it): one that is none, or one that refers to something else
    than the definitions of ``root``, which the library would go and fetch.
    """
    whole = {**schema, **{word: root[word] for word in _DEFINITIONS if word in root}}
    try:
        if not all(map(_is_near, _references(whole))):
            return _nothing
    except RecursionError:
        return _nothing
    validator = _newest(schema, root)(whole)
    broken = False

    def judge(value: Any) -> str | None:
        nonlocal broken
        if broken:
            return None
        try:
            error = next(iter(validator.iter_errors(value)), None)
        except Exception:  # whatever the library makes of a schema that is none; it would make it of each value
            broken = True
            return None
        return None if error is None else str(error.validator)

    return judge


def _newest(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """The library's class for a schema. Version 2.6, which singer-python asks for, ends at draft 4."""
    import jsonschema

    newest = any(word in str(root.get("$schema", "")) for word in ("2019", "2020")) or not _LATE.isdisjoint(schema)
    names = (["Draft202012Validator"] if newest else []) + ["Draft7Validator", "Draft4Validator"]
    return next(kind for kind in (getattr(jsonschema, name, None) for name in names) if kind is not None)


def _nothing(_value: Any) -> str | None:
    return None


def _is_near(reference: Any) -> bool:
    return isinstance(reference, str) and reference.startswith(tuple(f"#/{word}/" for word in _DEFINITIONS))


def _references(schema: Any) -> Iterator[Any]:
    if isinstance(schema, Mapping):
        for word in ("$ref", "$id", "id", "$dynamicRef", "$recursiveRef"):
            given = schema.get(word)
            if isinstance(given, str):
                yield given
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)
