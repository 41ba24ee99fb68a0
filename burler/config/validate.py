"""A config against a JSON Schema, with the package jsonschema: any of its versions from 2.6 on.

Old versions know draft 4 only. What later drafts add and a config is likely to use is given to them here; a keyword
that stays unknown is an error of the declaration, never passed over.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from burler import times
from burler.config.problems import Problems
from burler.config.schemas import Schema
from burler.config.sentences import say
from burler.errors import DeclarationError
from burler.regex import compile_pattern, keywords
from burler.schema_tree import changed, expressions, walk

logger = logging.getLogger(__name__)

_NEWEST = ("Draft202012Validator", "Draft7Validator", "Draft4Validator")
_BEYOND = ("unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains", "$dynamicRef", "$recursiveRef")


def compile_schema(schema: Schema, *, place: str) -> Any:
    """A validator of jsonschema for a schema that :func:`schemas.check_shape` has passed.

    Raises:
        DeclarationError: it is no valid JSON Schema, or uses what the installed jsonschema does not know.
    """
    jsonschema = _imported()
    newest = next(getattr(jsonschema, name) for name in _NEWEST if hasattr(jsonschema, name))
    old = newest is jsonschema.Draft4Validator
    plain: dict[str, Any] = {key: value for key, value in _listed(schema).items() if key not in ("$id", "id")}
    if old:
        _refuse_unknown(plain, place)
        plain = _for_draft_4(plain)
    chosen = newest if old else jsonschema.validators.validator_for(plain, default=newest)
    candidates = [chosen] if "$schema" in plain and not old else [chosen, jsonschema.Draft4Validator]
    errors = []
    for kind in candidates:
        error = _fault(_with_later_keywords(kind) if old else kind, plain, old)
        if error is None:
            _tell_gaps(plain, place)
            return _build(jsonschema, kind, plain, old)
        errors.append(error)
    raise DeclarationError(f"{place}: config_spec is no valid JSON Schema: {errors[0]}.")


def _imported() -> Any:
    """The package jsonschema. Versions before 3 import requests with it, for references over the web, which no config
    waits for; that takes twice as long as all the rest of it, and they do without where there is none."""
    wanted = "requests" in sys.modules
    finder = _Without("requests")
    if not wanted:
        sys.meta_path.insert(0, finder)
    try:
        import jsonschema
    finally:
        if not wanted:
            sys.meta_path.remove(finder)
    return jsonschema


class _Without:
    """Lets this thread not find a package."""

    def __init__(self, package: str) -> None:
        self._package, self._thread = package, threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """See ``importlib.abc.MetaPathFinder``: None, so that others look."""
        if name == self._package and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not imported here", name=name)


def _listed(node: Any) -> Any:
    """Tuples as lists, any mapping as a dict: jsonschema knows these only."""
    if isinstance(node, Mapping):
        return {key: _listed(value) for key, value in node.items()}
    return [_listed(value) for value in node] if isinstance(node, list | tuple) else node


def _fault(kind: Any, schema: Schema, old: bool) -> str | None:
    meta = dict(kind.META_SCHEMA)
    if old:  # numbers are what later drafts take here
        known = dict(meta["properties"])
        for key in ("exclusiveMinimum", "exclusiveMaximum"):
            known[key] = {"type": ["boolean", "number"]}
        meta |= {"properties": known, "dependencies": {}}
    for error in kind(meta).iter_errors(schema):
        at = "/".join(map(str, error.absolute_path))
        return f"at '#/{at}': '{error.validator}' is broken" if error.validator else f"at '#/{at}'"
    for _keyword, pattern, _field in expressions(schema):
        try:
            compile_pattern(pattern)
        except re.error:
            return f"pattern {pattern!r} is no regular expression"
    return None


def _all_parts(schema: Schema) -> Iterator[tuple[tuple[str, ...], Schema]]:
    return ((way, part) for way, part in walk(schema) if isinstance(part, Mapping))


def _tell_gaps(schema: Schema, place: str) -> None:
    """What is not checked, since it could take for ever; what the library would run all the same is refused."""
    is_counted = any("unevaluatedProperties" in part for _way, part in _all_parts(schema))
    for way, part in _all_parts(schema):
        names = list(part.get("patternProperties", ()))
        for pattern in (part.get("pattern", ""), *names):
            at = f"{place}: config_spec, at '#/{'/'.join(way)}': pattern {pattern!r:.60}"
            compiled = compile_pattern(pattern)
            if is_counted and pattern in names and not compiled.is_quick:
                raise DeclarationError(
                    f"{at} could take hours, and 'unevaluatedProperties' needs it. Write it without repeats in repeats."
                )
            if compiled.gap is not None:
                logger.warning("%s: %s", at, compiled.gap)


def _refuse_unknown(schema: Schema, place: str) -> None:
    for way, part in _all_parts(schema):
        found = [key for key in _BEYOND if key in part]
        if found:
            raise DeclarationError(
                f"{place}: config_spec, at '#/{'/'.join(way)}': the installed jsonschema does not know "
                f"'{found[0]}'. Do without it, or: pip install 'jsonschema>=4'"
            )


def _for_draft_4(part: Any) -> Any:
    """The same schema for a validator of draft 4: no true and false as schemas, nothing beside ``$ref``."""
    if isinstance(part, bool):
        return {} if part else {"not": {}}
    if not isinstance(part, Mapping):
        return part

    def change(way: tuple[str, ...], inner: Any) -> Any:
        plain = way in (("additionalProperties",), ("additionalItems",)) and isinstance(inner, bool)
        return inner if plain else _for_draft_4(inner)

    out = changed(part, change)
    if "$ref" in out and len(out) > 1:
        out["allOf"] = [{"$ref": out.pop("$ref")}, *out.get("allOf", [])]
    return out


def _build(jsonschema: Any, kind: Any, schema: Schema, old: bool) -> Any:
    formats = jsonschema.FormatChecker(())
    formats.checks("date-time", ())(_is_moment)
    formats.checks("date", ())(_is_date)
    ours = {"multipleOf": _multiple_of, **keywords()}
    made = _with_later_keywords(kind) if old else jsonschema.validators.extend(kind, ours)
    return made(schema, format_checker=formats)


def validate(validator: Any, config: dict[str, Any], problems: Problems, *, place: str) -> None:
    """Gather every problem that the validator finds.

    Raises:
        DeclarationError: the schema refers to itself without end.
    """
    try:
        errors = sorted(validator.iter_errors(config), key=lambda error: [str(step) for step in error.absolute_path])
    except RecursionError:
        raise DeclarationError(f"{place}: config_spec refers to itself without end; see its '$ref's.") from None
    for error in errors:
        say(error, problems)


def _is_moment(value: Any) -> bool:
    return not isinstance(value, str) or times.strict(value) is not None


def _is_date(value: Any) -> bool:
    return not isinstance(value, str) or times.is_date(value)


# ---- keywords of later drafts, for a validator of draft 4 ---------------------------------------------------


def _with_later_keywords(kind: Any) -> Any:
    import jsonschema

    extend: Any = jsonschema.validators.extend
    return extend(
        kind,
        {
            **keywords(),
            "multipleOf": _multiple_of,
            "const": _const,
            "exclusiveMinimum": _exclusive_minimum,
            "exclusiveMaximum": _exclusive_maximum,
            "contains": _contains,
            "propertyNames": _property_names,
            "if": _if,
            "dependentRequired": _dependent_required,
            "dependentSchemas": _dependent_schemas,
            "prefixItems": _prefix_items,
            "items": _items,
        },
    )


def _error(message: str) -> Any:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _multiple_of(_validator: Any, step: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if _is_number(value) and _exact(value) % _exact(step):
        yield _error("multipleOf")


def _exact(number: Any) -> Fraction:
    """As it is written: 0.3 is three times 0.1, though not in binary."""
    return Fraction(number) if isinstance(number, int) else Fraction(str(number))


def _const(_validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if value != wanted or isinstance(value, bool) != isinstance(wanted, bool):
        yield _error("const")


def _exclusive_minimum(_validator: Any, limit: Any, value: Any, _schema: Any) -> Iterator[Any]:
    # true belongs to draft 4, where 'minimum' looks at it.
    if not isinstance(limit, bool) and _is_number(value) and value <= limit:
        yield _error("exclusiveMinimum")


def _exclusive_maximum(_validator: Any, limit: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if not isinstance(limit, bool) and _is_number(value) and value >= limit:
        yield _error("exclusiveMaximum")


def _contains(validator: Any, part: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(value, list) and not any(validator.is_valid(item, part) for item in value):
        yield _error("contains")


def _property_names(validator: Any, part: Any, value: Any, _schema: Any) -> Iterator[Any]:
    for name in value if isinstance(value, dict) else ():
        yield from validator.descend(name, part)


def _if(validator: Any, part: Any, value: Any, schema: Any) -> Iterator[Any]:
    branch = schema.get("then" if validator.is_valid(value, part) else "else")
    if branch is not None:
        yield from validator.descend(value, branch)


def _dependent_required(_validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
    for key, others in wanted.items() if isinstance(value, dict) else ():
        if key in value and any(other not in value for other in others):
            yield _error("dependentRequired")


def _dependent_schemas(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
    for key, part in wanted.items() if isinstance(value, dict) else ():
        if key in value:
            yield from validator.descend(value, part)


def _prefix_items(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Any]:
    for i, (item, part) in enumerate(zip(value if isinstance(value, list) else (), wanted, strict=False)):
        yield from validator.descend(item, part, path=i)


def _items(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, list):
        return
    first = len(schema.get("prefixItems", ()))
    for i, item in enumerate(value[first:], first):
        part = wanted if isinstance(wanted, dict) else wanted[i] if i < len(wanted) else {}
        yield from validator.descend(item, part, path=i)
