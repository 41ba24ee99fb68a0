"""What nodes can't tell of a value, asked of the library ``jsonschema``: branches, references, patterns of names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from burler.records.shape.constraints import quick_length
from burler.regex import keywords
from burler.schema_tree import expressions

_DEFINITIONS = ("definitions", "$defs")
_LATE = frozenset(
    {"dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems", "minContains"}
    | {"maxContains"}
)
"""Words that drafts before 2019 do not know."""
_KNOWN = _LATE | {"if", "contains", "propertyNames"}
"""Words that old versions of the library pass over, or all of its classes but the newest."""


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
    if "unevaluatedProperties" in _words(whole, _LATE) and not all(map(_is_quick, expressions(whole))):
        return _nothing  # the library would run these with Python's engine
    kind = _newest(schema, root)
    if not {"not", "oneOf"}.isdisjoint(schema) and any(word not in kind.VALIDATORS for word in _words(whole, _KNOWN)):
        return _nothing  # a word that the library passes over would make a branch fit that does not
    validator = _exact(kind)(whole)
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


@functools.cache
def _exact(kind: Any) -> Any:
    """A class of the library that divides numbers exactly, runs no regular expression without a bound, and knows
    ``const`` and bounds that are numbers, which draft 4 does not."""
    from jsonschema import ValidationError, validators

    def multiple_of(_validator: Any, step: Any, value: Any, _schema: Any) -> Iterator[Any]:
        if isinstance(value, int | float) and not isinstance(value, bool) and not _is_multiple(value, step):
            yield ValidationError(f"not a multiple of {step}")

    def const(_validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
        if isinstance(value, bool) is not isinstance(wanted, bool) or value != wanted:
            yield ValidationError("another value")

    def above(_validator: Any, bound: Any, value: Any, _schema: Any) -> Iterator[Any]:
        if not isinstance(bound, bool) and isinstance(value, int | float) and value <= bound:
            yield ValidationError("too small")

    def below(_validator: Any, bound: Any, value: Any, _schema: Any) -> Iterator[Any]:
        if not isinstance(bound, bool) and isinstance(value, int | float) and value >= bound:
            yield ValidationError("too great")

    ours = {"multipleOf": multiple_of, "const": const, "exclusiveMinimum": above, "exclusiveMaximum": below}
    ours |= keywords()
    return validators.extend(kind, ours)  # type: ignore[no-untyped-call]


def _is_multiple(value: float, step: Any) -> bool:
    try:
        return Decimal(repr(value)) % Decimal(repr(step)) == 0
    except ArithmeticError:  # infinite, or of more digits than can be divided
        return True


def _words(schema: Any, known: frozenset[str]) -> Iterator[str]:
    """Those words of a schema, at any depth."""
    if isinstance(schema, Mapping):
        yield from known.intersection(schema)
        for value in schema.values():
            yield from _words(value, known)
    elif isinstance(schema, list):
        for value in schema:
            yield from _words(value, known)


def _is_quick(found: tuple[str, str, str]) -> bool:
    return found[0] == "pattern" or quick_length(found[1]) > 0


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
