"""Whether records fit their SCHEMA, a page at a time, and what was seen in which field.

The quick look is by columns (``nodes``). Only a column in which something does not fit is gone through value by value,
to say which row it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from burler.schema.infer_formats import is_date, is_date_time
from burler.spec.nodes import Node, kinds, node_of

Say = Callable[[str, str, str, int, int], None]
"""Takes a breach: rule, field, message, the row's place in the page, how often it is in the page."""

_NONE = type(None)
_ENOUGH, _MANY = 20, 100
"""So many rows say that a field never comes; so many values, that a kind never does."""
_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
_TIMES = re.compile(
    rf"(?:(?!000[01]|9999){_DAY}[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)(?:\n|\Z))*+",
    re.ASCII,
)
_DAYS = re.compile(rf"(?:(?!0000){_DAY}(?:\n|\Z))*+", re.ASCII)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?", re.ASCII)


class Fit:
    """Looks at the records of one SCHEMA."""

    def __init__(self, schema: Mapping[str, Any], say: Say) -> None:
        self.root = node_of(schema)
        self._say = say
        self._judges: dict[str, Any] = {}

    def page(self, rows: Sequence[dict[str, Any]]) -> None:
        """Look at some records."""
        self._column(self.root, rows, rows)

    def finish(self, say: Callable[[str, str, str], None]) -> None:
        """The end: fields and kinds that never came go to ``say``, as rule, field, message."""
        for node in self.root.walk():
            if not node.path or "*" in node.path:
                continue
            if not node.rows:
                if "." not in node.path and "[]" not in node.path and self.root.rows >= _ENOUGH:
                    say("R503", node.path, f"the SCHEMA has '{node.path}', and none of {self.root.rows} rows had it")
                continue
            never = [kind for kind in kinds(node.takes - node.seen) if kind not in ("null", "integer")]
            came = kinds(node.seen - {_NONE})
            if node.library is None and "type" in node.schema and came and never and node.rows >= _MANY:
                words = " or ".join(never)
                say(
                    "R504",
                    node.path,
                    f"'{node.path}' may be {words}, and was {' or '.join(came)} in all of {node.rows} values",
                )

    def fields(self) -> dict[str, dict[str, Any]]:
        """What was declared and seen, by field: see ``burler.verify.result.StreamFacts.fields``."""
        found: dict[str, dict[str, Any]] = {}
        for node in self.root.walk():
            if node.path:
                declared = kinds(node.takes) if "type" in node.schema else []
                found[node.path] = {
                    "declared": declared,
                    "seen": kinds(node.seen),
                    "nulls": node.nulls,
                    "rows": node.rows,
                }
            for name, count in node.further.items():
                found[_below(node, name)] = {"declared": None, "seen": [], "nulls": 0, "rows": count}
        return found

    def _column(self, node: Node, values: Sequence[Any], rows: Sequence[dict[str, Any]]) -> None:
        """``values`` came at a node; ``rows`` are the records that they are of."""
        seen = set(map(type, values))
        node.seen |= seen
        node.rows += len(values)
        if _NONE in seen:
            node.nulls += sum(value is None for value in values)
        if node.library is not None:
            self._ask_library(node, values, rows)
        elif not seen <= node.takes:
            self._misfits(node, values, seen - node.takes, rows)
        if node.format is not None and str in seen and node.library is None:
            self._formats(node, values if len(seen) == 1 else [one for one in values if type(one) is str], rows)
        if node.constraints is not None and not node.constraints.keep(values, seen):
            self._constraints(node, values, rows)
        if dict in seen and (node.known is not None or node.rest is not None or not node.open):
            self._objects(node, values if len(seen) == 1 else [one for one in values if type(one) is dict], rows)
        if list in seen and node.items is not None:
            below = [item for value in values if type(value) is list for item in value]
            if below:
                self._column(node.items, below, rows)

    def _objects(self, node: Node, objects: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> None:
        came = set().union(*objects)
        known = node.known or {}
        for name in came - known.keys():
            self._further(node, name, objects, rows)
        for name, child in known.items():
            if name not in came:
                continue
            try:
                column = list(map(itemgetter(name), objects))
            except KeyError:
                column = [one[name] for one in objects if name in one]
            self._column(child, column, rows)
        for name in node.required:
            if name not in came or any(name not in one for one in objects):
                self._absent(node, name, objects, rows)

    def _further(
        self, node: Node, name: str, objects: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]
    ) -> None:
        values = [one[name] for one in objects if name in one]
        node.further[name] = node.further.get(name, 0) + len(values)
        path = _below(node, name)
        if node.rest is not None:
            self._column(node.rest, values, rows)
        elif node.library is None and (not node.open or (node.known and "additionalProperties" not in node.schema)):
            words = "does not allow" if not node.open else "does not name"
            where = _row_with(rows, node.path, lambda one: isinstance(one, dict) and name in one)
            self._say(
                "R501",
                path,
                f"the SCHEMA {words} the field '{path}'; targets drop it or refuse the row",
                where,
                len(values),
            )

    def _absent(self, node: Node, name: str, objects: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> None:
        count = sum(name not in one for one in objects)
        path = _below(node, name)
        where = _row_with(rows, node.path, lambda one: isinstance(one, dict) and name not in one)
        self._say("M205", path, f"'{path}' is required by the SCHEMA, and is not there", where, count)

    def _misfits(self, node: Node, values: Sequence[Any], wrong: set[type], rows: Sequence[dict[str, Any]]) -> None:
        said = kinds(node.takes)
        declared = " or ".join(word for word in said if word != "integer" or "number" not in said)
        path = node.path or "(record)"
        whole = [one for one in values if type(one) is float and one.is_integer()] if float in wrong else []
        if whole and int in node.takes:
            where = _row_with(rows, node.path, lambda one: isinstance(one, float) and one.is_integer())
            self._say("M218", path, f"'{path}' is an integer, and came as {whole[0]!r}", where, len(whole))
        for kind in wrong:
            odd: list[Any] = [one for one in values if type(one) is kind]
            if kind is float and int in node.takes:
                odd = [one for one in odd if not one.is_integer()]
            if odd:
                word = kinds([kind])[0]
                where = _row_with(rows, node.path, partial(_is_among, odd))
                self._say(
                    "M205",
                    path,
                    f"'{path}' came as {word} ({_shown(odd[0])}); the SCHEMA says {declared}",
                    where,
                    len(odd),
                )

    def _formats(self, node: Node, texts: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """``date-time`` and ``date``: what targets look at."""
        if node.format == "date-time":
            pattern, fits = _TIMES, is_date_time
        elif node.format == "date":
            pattern, fits = _DAYS, is_date
        else:
            return
        joined = "\n".join(texts)
        if pattern.fullmatch(joined) and joined.count("\n") == len(texts) - 1:
            return
        naive = [text for text in texts if not fits(text)]
        if node.format == "date-time":
            odd = [text for text in naive if not _NAIVE.fullmatch(text)]
            naive = [text for text in naive if _NAIVE.fullmatch(text)]
            if naive:
                where = _row_with(rows, node.path, lambda one: isinstance(one, str) and one == naive[0])
                self._say(
                    "M217",
                    node.path,
                    f"'{node.path}' is a date-time and came without a zone: {_shown(naive[0])}",
                    where,
                    len(naive),
                )
        else:
            odd = naive
        if odd:
            where = _row_with(rows, node.path, lambda one: isinstance(one, str) and one == odd[0])
            self._say(
                "M205", node.path, f"'{node.path}' came as {_shown(odd[0])}, which is no {node.format}", where, len(odd)
            )

    def _constraints(self, node: Node, values: Sequence[Any], rows: Sequence[dict[str, Any]]) -> None:
        assert node.constraints is not None
        count, first, said = 0, None, ""
        for value in values:
            words = node.constraints.broken(value)
            if words is not None:
                count, first, said = count + 1, (value if not count else first), said or words
        if count:
            where = _row_with(rows, node.path, lambda one: one is first or one == first)
            self._say("M205", node.path, f"'{node.path}' came as {_shown(first)}; the SCHEMA says {said}", where, count)

    def _ask_library(self, node: Node, values: Sequence[Any], rows: Sequence[dict[str, Any]]) -> None:
        judge = self._judges.get(node.path)
        if judge is None:
            judge = self._judges[node.path] = _judge(node.library or {}, self.root.schema)
        count, first, said = 0, None, ""
        for value in values:
            words = judge(value)
            if words is not None:
                count, first, said = count + 1, (value if not count else first), said or words
        if count:
            path = node.path or "(record)"
            where = _row_with(rows, node.path, lambda one: one is first or one == first)
            self._say("M205", path, f"'{path}' does not fit the SCHEMA: {said}", where, count)


def _is_among(odd: list[Any], one: Any) -> bool:
    return any(one is other for other in odd)


def _judge(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Callable[[Any], str | None]:
    """What the library says of a value: None, or what does not fit."""
    import jsonschema

    whole = {**schema, **{word: root[word] for word in ("definitions", "$defs") if word in root}}
    newest = any(word in str(root.get("$schema", "")) for word in ("2019", "2020"))
    names = ["Draft202012Validator"] if newest else []  # jsonschema 2.6, which singer-python asks for, ends at draft 4
    kinds_of_it = [getattr(jsonschema, name, None) for name in (*names, "Draft7Validator", "Draft4Validator")]
    validator = next(kind for kind in kinds_of_it if kind is not None)(whole)

    def judge(value: Any) -> str | None:
        try:
            error = next(iter(validator.iter_errors(value)), None)
        except Exception:  # a schema that is none, or a reference that leads nowhere: area C says so
            return None
        return None if error is None else str(error.message)[:200]

    return judge


def _below(node: Node, name: str) -> str:
    return f"{node.path}.{name}" if node.path else name


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _row_with(rows: Sequence[dict[str, Any]], path: str, is_it: Callable[[Any], bool]) -> int:
    """The place in the page of the first row that has such a value at a path; 0 if it is not found again."""
    parts = _parts(path)
    for place, row in enumerate(rows):
        if any(map(is_it, _values(row, parts))):
            return place
    return 0


def _parts(path: str) -> list[str]:
    """``a.b[].c`` as ``["a", "b", "[]", "c"]``. Names with dots in them are not found again: the place is a help."""
    return [part for part in path.replace("[]", ".[]").split(".") if part]


def _values(value: Any, parts: list[str]) -> Iterator[Any]:
    if not parts:
        yield value
    elif parts[0] == "[]":
        for item in value if isinstance(value, list) else ():
            yield from _values(item, parts[1:])
    elif parts[0] == "*":
        for item in value.values() if isinstance(value, dict) else ():
            yield from _values(item, parts[1:])
    elif isinstance(value, dict) and parts[0] in value:
        yield from _values(value[parts[0]], parts[1:])
