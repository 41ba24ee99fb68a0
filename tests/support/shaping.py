"""Rows through a stream's shaping, both ways: ``fast``, as in every run, and ``slow``, row by row through the plain
reference, which says the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from support.internals import bookmark, shape


@dataclass
class Outcome:
    """What a stream's pages gave: records in a form that compares exactly, the replication key's values as they go into
    a state, the error, what was dropped and let go."""

    records: list[Any]
    keys: list[Any]
    error: str | None
    unknown: dict[str, int]
    skipped: int
    nulled: int


RULES = ("on_bad_record", "max_bad_records", "on_nan", "check_constraints")


def fast(schema, pages, **options):
    """The outcome of pages through one shaper, which learns from each, and their lines.

    Options are ``key``, ``key_properties``, ``deselected`` and ``RULES``.
    """
    return _shaped(schema, pages, slowly=False, **options)


def slow(schema, pages, **options):
    """The outcome of the same rows by the reference alone."""
    return _shaped(schema, pages, slowly=True, **options)[0]


def _shaped(schema, pages, *, slowly, **options):
    rules = shape.Rules(**{name: options.pop(name) for name in RULES if name in options})
    shaper = shape.Shaper("s", schema, rules=rules, **options)
    if slowly:
        shaper.fast.compiled = None
    lines, keys, error = [], [], None
    for rows in pages:
        buffer = bytearray(b"kept")
        page = shaper.shape(rows, shape.Output(buffer, b"<", b">\n"))
        assert buffer.startswith(b"kept")
        texts = bytes(buffer[4:]).decode().split("\n")
        assert texts.pop() == "" and len(texts) == page.count
        assert all(text[0] == "<" and text[-1] == ">" for text in texts)
        lines += [text[1:-1] for text in texts]
        keys += page.keys
        assert page.taken == len(rows) or page.error is not None
        if page.error is not None:
            error = str(page.error)
            break
    texts = [str(bookmark.key_text(value)) for value in keys]
    records = [exactly(json.loads(line, parse_float=Decimal, parse_constant=no_constant)) for line in lines]
    bad = shaper.bad
    return Outcome(
        records,
        [str(bookmark.key_text(value)) for value in keys],
        error,
        dropped_by(shaper),
        bad.skipped,
        bad.nulled,
    ), lines


def dropped_by(shaper):
    """In how many objects each field was that the schema does not know, by its dotted path: ``a.b[].c``."""
    found = {}
    for field in shaper.unknown.fields:
        name = dotted(field.path)
        found[name] = found.get(name, 0) + field.count
    return {**found, "(further fields)": shaper.unknown.further} if shaper.unknown.further else found


def dotted(path):
    return "".join("[]" if part is None else f".{part}" for part in path).removeprefix(".")


def no_constant(text):
    raise AssertionError(f"{text} is no JSON")


def exactly(value):
    """A JSON value that compares exactly: 1 is not true, -0.0 is not 0, 1.10 is not 1.1."""
    if isinstance(value, dict):
        return ("object", {name: exactly(part) for name, part in value.items()})
    if isinstance(value, list):
        return ("array", [exactly(part) for part in value])
    if value is None or isinstance(value, bool):
        return ("literal", value)
    if isinstance(value, str):
        return ("text", value)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return ("number", number.as_tuple())
