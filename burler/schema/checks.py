"""Whether a schema can go out and be worked with: values that JSON can carry, types that exist, regular expressions
that can be run."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from burler.errors import DeclarationError
from burler.regex import compile_pattern
from burler.schema.type_names import check_types
from burler.schema_tree import expressions
from burler.surrogates import is_unicode

logger = logging.getLogger(__name__)


def check_schema(schema: Mapping[str, Any], *, where: str) -> None:
    """Refuse a schema that can't go out or can't be worked with: later it would break a run, or whoever reads its rows.

    Args:
        schema: as it would go out, without references.
        where: words that the error begins with: "stream 'contacts' (tap_crm.py:14)".

    Raises:
        DeclarationError: a value or a name that JSON can't carry, a type that does not exist, or a regular expression
            in ``patternProperties`` that can't be read, or be run without a bound.
    """
    try:  # one pass each way in C; the walk that finds the place is for those that are wrong
        text = msgspec.json.encode(schema)
        is_json = msgspec.json.decode(text) == schema
    except RecursionError:
        raise
    except Exception:  # whatever it is, the walk names it
        text, is_json = b'"pattern', False
    problem = None if is_json else next(_strange(schema, "its schema"), None)
    if problem is not None:
        raise DeclarationError(f"{where}: {problem}")
    if b'"pattern' in text:
        _check_expressions(schema, where)
    check_types(schema, where=where)


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
    for keyword, expression, path in expressions(schema):
        decides = keyword == "patternProperties"
        told = f"{where}: schema: {path or 'the whole'}: {keyword} {expression!r:.60}"
        try:
            compiled = compile_pattern(expression)
        except re.error as error:
            told = f"{told} is no regular expression: {error}"
        else:
            if compiled.gap is None:
                continue
            told = f"{told}: {compiled.gap}"
            decides = decides and not compiled.longest
        if decides:
            raise DeclarationError(told) from None
        logger.warning("%s", told)
