"""What no schema of a stream may hold: what JSON can't carry, and expressions that nobody can use.

Said while streams are described, with stream and place; later it would break a run, or the one who reads its rows.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from burler.declare.options import is_unicode
from burler.errors import DeclarationError
from burler.schema.ref_places import MAP, SCHEMA, below
from burler.schema.type_names import check_types

logger = logging.getLogger(__name__)


def check_schema(schema: Mapping[str, Any], *, where: str) -> None:
    """Refuse a schema that can't go out or can't be worked with.

    Args:
        schema: as it would go out, without references.
        where: words that the error begins with: "stream 'contacts' (tap_crm.py:14)".

    Raises:
        DeclarationError: a value or a name that JSON can't carry, a type that does not exist, or a regular expression
            in ``patternProperties`` that can't be read.
    """
    text = _encoded(schema, where)
    if b'"pattern' in text:
        _check_expressions(schema, where)
    check_types(schema, where=where)


def _encoded(schema: Mapping[str, Any], where: str) -> bytes:
    """The schema as JSON. One pass each way in C; the walk that finds the place is for those that are wrong."""
    try:
        text = msgspec.json.encode(schema)
        if msgspec.json.decode(text) == schema:
            return text
    except RecursionError:
        raise
    except Exception:  # whatever it is, the walk names it
        text = b'"pattern'
    problem = next(_strange(schema, "its schema"), None)
    if problem is not None:
        raise DeclarationError(f"{where}: {problem}")
    return text


def _strange(value: Any, path: str) -> Iterator[str]:
    """What JSON can't carry, with the path to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                yield f"{path} has the name {key!r:.60}, which is no text. Names of JSON objects are text."
            elif not is_unicode(key):
                yield f"{path} has the name {key!a:.60}, which holds half a character: no message can carry it."
            else:
                yield from _strange(inner, f"{path} / {key:.60}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _strange(inner, f"{path} / {number}")
    elif not _is_json(value):
        yield f"{path} is {value!a:.60}, which JSON can't carry: text, numbers, booleans, null, lists and dicts only."


def _is_json(value: Any) -> bool:
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except Exception:
        return False


def _check_expressions(schema: Mapping[str, Any], where: str) -> None:
    """``patternProperties`` decide which values come out, so burler must read them. ``pattern`` is for those who
    check the rows: it may be written for another language than Python, and is only told."""
    for keyword, expression, path in _expressions(schema, SCHEMA, ()):
        try:
            re.compile(expression)
        except (re.error, OverflowError, RecursionError) as error:
            field = ".".join(path) or "the whole"
            told = f"{where}: schema: {field}: {keyword} {expression!r:.60} is no regular expression: {error}"
            if keyword == "patternProperties":
                raise DeclarationError(told) from None
            logger.warning("%s", told)


def _expressions(node: Any, place: str, path: tuple[str, ...]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    if isinstance(node, list | tuple):
        for item in node:
            yield from _expressions(item, place, path)
    if not isinstance(node, Mapping) or place not in (SCHEMA, MAP):
        return
    if place == SCHEMA:
        if isinstance(node.get("pattern"), str):
            yield "pattern", node["pattern"], path
        if isinstance(node.get("patternProperties"), Mapping):
            yield from (("patternProperties", expression, path) for expression in node["patternProperties"])
    for key, inner in node.items():
        yield from _expressions(inner, below(place, key), (*path, key) if place == MAP else path)
