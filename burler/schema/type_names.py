"""Types and formats that JSON Schema does not have: ``"type": "int"``, ``"format": "datetime"``.

A type of such a name fits no value, so that every row of the stream fails; a format of such a name is passed over, so
that a date-time is taken for plain text. Both are slips of the pen that show late if nobody looks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from burler.errors import DeclarationError
from burler.schema_tree import HOLDS, MAP, SCHEMA, TYPES, field_path, walk
from burler.suggest import nearest

logger = logging.getLogger(__name__)

_MEANT = {
    **dict.fromkeys(("int", "long", "bigint", "smallint", "int32", "int64"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "numeric", "real"), "number"),
    **dict.fromkeys(("str", "text", "varchar", "char", "uuid"), "string"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("dict", "map", "mapping", "record", "struct", "json"), "object"),
    **dict.fromkeys(("list", "tuple", "set", "sequence"), "array"),
    **dict.fromkeys(("none", "nil", "nonetype", "undefined"), "null"),
}
_TIMES = ("datetime", "timestamp", "timestamptz", "isodatetime", "datetimetz", "iso8601", "rfc3339")
_FORMATS = {**dict.fromkeys(_TIMES, "date-time"), "date": "date", "isodate": "date", "singerdecimal": "singer.decimal"}
_RIGHT = frozenset(_FORMATS.values())
_MOST_NAMED = 5
_BELOW = frozenset(key for key, place in HOLDS.items() if place in (SCHEMA, MAP))

# One pass in C finds what may be wrong, in the schema as one line of JSON. A field called "type" looks so, too: then
# a short walk says whether it is one; only for what is wrong comes the walk that knows every place by its path.
_NAME = "|".join(TYPES)
_SUSPECT = re.compile(
    (
        rf'"type":(?!\{{|"(?:{_NAME})"|\["(?:{_NAME})"(?:,"(?:{_NAME})")*\])'
        r'|"format":"(?!date-time"|date"|singer\.decimal")(?i:date|time.?stamp|iso|rfc.?3339|singer)'
    ).encode()
)
_encoder = msgspec.json.Encoder(enc_hook=lambda value: None)


def check_types(schema: Mapping[str, Any], *, where: str) -> None:
    """Refuse types that do not exist; warn once of formats that look like one that burler reads.

    Args:
        schema: without references. What stands in ``enum``, ``const``, ``default`` and ``examples`` is no schema, nor
            is a property called "type".
        where: words that the error begins with: "stream 'contacts' (tap_crm.py:14)".

    Raises:
        DeclarationError: names the fields by their dotted paths ("address.city", "tags[]"), and what was meant.
    """
    if not _is_suspect(schema):
        return
    wrong: list[tuple[str, str]] = []
    formats: list[str] = []
    for way, node in walk(schema):
        if not isinstance(node, Mapping):
            continue
        path = field_path(way)
        if "type" in node:
            problem = _problem(node["type"])
            if problem:
                wrong.append((path, problem))
        format_ = _meant_format(node)
        if format_:
            formats.append(f"{_field(path)}: {node['format']!r} (did you mean {format_!r}?)")
    if wrong:
        path, problem = wrong[0]
        more = f"\n  Wrong as well: {_some([_field(path) for path, _ in wrong[1:]])}." if len(wrong) > 1 else ""
        raise DeclarationError(f"{where}: schema: {_field(path)}: {problem}{more}")
    if formats:
        logger.warning(
            "%s: schema: formats that nobody knows are passed over, so that the field is plain text: %s.",
            where,
            _some(formats),
        )


def _is_suspect(schema: Any) -> bool:
    try:
        text = _encoder.encode(schema)
    except Exception:  # a value that has no JSON form, in an enum of a schema in code
        return True
    return _SUSPECT.search(text) is not None or (b'"type":{' in text and _has_object_type(schema, SCHEMA))


def _has_object_type(node: Any, place: str) -> bool:
    """Whether a "type" is an object somewhere; one among ``properties`` is a field of that name, and usual."""
    if isinstance(node, list | tuple):
        return any(_has_object_type(item, place) for item in node)
    if not isinstance(node, dict):
        return isinstance(node, Mapping)  # let the exact walk say
    if place == SCHEMA:
        if node.get("type").__class__ is dict:
            return True
        return any(_has_object_type(node[key], HOLDS[key]) for key in node if key in _BELOW)
    for value in node.values():
        if value.__class__ is not dict or not _BELOW.isdisjoint(value):
            if _has_object_type(value, SCHEMA):
                return True
        elif value.get("type").__class__ is dict:
            return True
    return False


def _problem(given: Any) -> str | None:
    """What is wrong with a type; None if nothing is."""
    if isinstance(given, str):
        return None if given in TYPES else f"there is no type {given!r:.60}. {_cure(given)}"
    if not isinstance(given, list | tuple):
        return f'"type" is {_shown(given)}. It is one of {", ".join(TYPES)}, or a list of them.'
    if not given:
        return 'the list of types is empty, which no value fits. Leave out "type" if it may be anything.'
    for name in given:
        if not isinstance(name, str):
            return f'a type in the list is {_shown(name)}. Each is one of {", ".join(TYPES)}; use "anyOf" for schemas.'
        if name not in TYPES:
            return f"there is no type {name!r:.60}. {_cure(name)}"
    return None


def _cure(name: str) -> str:
    lower = name.lower().strip()
    plain = re.sub(r"[^a-z0-9]", "", lower)
    if plain in _FORMATS or plain == "time":
        return f'Did you mean \'string\', with "format": "{_FORMATS.get(plain, plain)}"?'
    if plain == "any":
        return 'Leave out "type" if the value may be anything.'
    meant = _MEANT.get(plain) or nearest(lower, [*TYPES, *_MEANT])
    meant = _MEANT.get(meant or "", meant)
    return f"Did you mean '{meant}'?" if meant else f"Known: {', '.join(TYPES)}."


def _shown(value: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = ((bool, "true or false"), (type(None), "null"), (Mapping, "an object"))
    return next((words for kind, words in kinds if isinstance(value, kind)), f"{value!r:.60}, which is no text")


def _meant_format(node: Mapping[str, Any]) -> str | None:
    """The format that a format of text is likely to be meant for."""
    given = node.get("format")
    if not isinstance(given, str) or given in _RIGHT:
        return None
    kinds = node.get("type", "string")
    if "string" not in (kinds if type(kinds) is list else [kinds]):
        return None
    return _FORMATS.get(re.sub(r"[^a-z0-9]", "", given.lower()))


def _field(path: str) -> str:
    return f"field '{path}'" if path else "the top"


def _some(texts: list[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
