"""Whether records fit their SCHEMA, a page at a time, and what was seen in which field.

The quick look is by columns (``nodes``). Only a column in which something does not fit is gone through value by value,
to say which row it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

from burler.config.secrets import mask
from burler.spec.finding import PLACES
from burler.spec.fit_formats import NAIVE, ODD, SPACED, misfits
from burler.spec.fit_library import judge_of
from burler.spec.nodes import Node, kinds, node_of

Say = Callable[[str, str, str, Sequence[int], int], None]
"""Takes a breach: rule, field, message, places of the first rows in the page, how often it is in the page."""

_NONE = type(None)
_ENOUGH, _MANY = 20, 100
"""So many rows say that a field never comes; so many values, that a kind never does."""
_FURTHER = 200
"""So many fields that no ``properties`` names are told one by one."""
_WORD = 2**63


class Fit:
    """Looks at the records of one SCHEMA."""

    def __init__(self, schema: Mapping[str, Any], say: Say) -> None:
        self.schema = schema
        self.root = node_of(schema)
        self._say = say
        self._judges: dict[int, Callable[[Any], str | None]] = {}
        self._rows: Sequence[dict[str, Any]] = ()
        self._found: dict[tuple[str, str], list[tuple[Sequence[int], str, int]]] = {}

    def page(self, rows: Sequence[dict[str, Any]]) -> None:
        """Look at some records."""
        self._rows = rows
        self._column(self.root, rows)
        if self._found:
            for (code, path), found in self._found.items():
                message = min(found, key=lambda one: one[0][0])[1]
                places = sorted({place for one in found for place in one[0]})[:PLACES]
                self._say(code, path, message, places, sum(one[2] for one in found))
            self._found = {}
        self._rows = ()

    def finish(self, say: Callable[[str, str, str], None], seen_elsewhere: Collection[str] = ()) -> None:
        """The end: fields and kinds that never came go to ``say``, as rule, field, message."""
        rows = self.root.rows
        for node in self.root.walk():
            if not node.path or "*" in node.path or node.path in seen_elsewhere:
                continue
            if not node.rows:
                above = node.above
                if above is None or above.known is None or dict not in above.seen or "[]" in node.path:
                    continue
                objects = above.rows - above.nulls
                if objects >= _ENOUGH:
                    whose = f"{rows} rows" if above is self.root else f"{objects} values of '{above.path}'"
                    say("R503", node.path, f"the SCHEMA has '{node.path}', and none of {whose} had it")
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

    def seen(self) -> set[str]:
        """The fields that came."""
        return {node.path for node in self.root.walk() if node.rows}

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

    def _column(self, node: Node, values: Sequence[Any]) -> None:
        """``values`` came at a node."""
        seen = set(map(type, values))
        node.seen |= seen
        node.rows += len(values)
        if _NONE in seen:
            node.nulls += values.count(None)
        if not seen <= node.takes:
            self._misfits(node, values, seen)
        if node.library is not None:
            self._ask_library(node, values)
        if node.format is not None and str in seen:
            self._formats(node, values if len(seen) == 1 else [one for one in values if type(one) is str])
        if node.constraints is not None and not node.constraints.keep(values, seen):
            self._constraints(node, values)
        if int in seen and float not in node.takes:
            self._size(node, values if len(seen) == 1 else [one for one in values if type(one) is int])
        if dict in seen and (node.known is not None or node.rest is not None or node.required or not node.open):
            self._objects(node, values if len(seen) == 1 else [one for one in values if type(one) is dict])
        if list in seen and node.items is not None:
            below = [item for value in values if type(value) is list for item in value]
            if below:
                self._column(node.items, below)

    def _objects(self, node: Node, objects: Sequence[dict[str, Any]]) -> None:
        came = set().union(*objects)
        known = node.known or {}
        further = came - known.keys()
        if further:
            self._further(node, further, objects)
        for name, child in known.items():
            if name not in came:
                continue
            try:
                column = list(map(itemgetter(name), objects))
            except KeyError:
                column = [one[name] for one in objects if name in one]
            self._column(child, column)
        for name in node.required:
            if name not in came or any(name not in one for one in objects):
                path = _below(node, name)
                words = f"'{path}' is required by the SCHEMA, and is not there"
                self._odd("M205", path, node, objects, partial(_lacks, name), words)

    def _further(self, node: Node, further: Iterable[str], objects: Sequence[dict[str, Any]]) -> None:
        """Fields that no ``properties`` names."""
        told = not node.open or node.names_all
        if node.rest is not None:
            names = frozenset(node.known or {})
            self._column(node.rest, [one[name] for one in objects for name in one if name not in names])
        others: set[str] = set()  # names that are too many to be told one by one: data was taken for names
        for name in sorted(further):
            if name not in node.further and len(node.further) >= _FURTHER:
                others.add(name)
                continue
            node.further[name] = node.further.get(name, 0) + sum(name in one for one in objects)
            self._unnamed(node, name, {name}, objects, told=told)
        if others:
            node.further["*"] = node.further.get("*", 0) + sum(name in others for one in objects for name in one)
            self._unnamed(node, "*", others, objects, told=told)

    def _unnamed(
        self, node: Node, shown: str, names: Collection[str], objects: Sequence[dict[str, Any]], *, told: bool
    ) -> None:
        unnamed = frozenset(name for name in names if not any(fits(name) for fits in node.patterns))
        if node.rest is not None or not told or not unnamed:
            return
        path = _below(node, shown)
        words = "does not name" if node.open else "does not allow"
        message = f"the SCHEMA {words} the field '{path}'; targets drop it or refuse the row"
        self._odd("R501", path, node, objects, lambda one: not unnamed.isdisjoint(one), message)

    def _misfits(self, node: Node, values: Sequence[Any], seen: set[type]) -> None:
        said = kinds(node.takes)
        declared = " or ".join(word for word in said if word != "integer" or "number" not in said)
        path = node.path or "(record)"
        wrong = seen - node.takes
        half = float in wrong and int in node.takes  # 1.0 in an integer field is a fault of its own
        if half:
            self._odd(
                "M218",
                path,
                node,
                values,
                lambda one: type(one) is float and one.is_integer(),
                lambda one: f"'{path}' is an integer, and came as {one!r}",
            )
        self._odd(
            "M205",
            path,
            node,
            values,
            lambda one: type(one) in wrong and not (half and type(one) is float and one.is_integer()),
            lambda one: f"'{path}' came as {kinds([type(one)])[0]} ({_shown(one)}); the SCHEMA says {declared}",
        )

    def _formats(self, node: Node, texts: Sequence[str]) -> None:
        """Texts that are not of the format that the node says."""
        assert node.format is not None
        words = {
            NAIVE: (" is a date-time, and", ", without a zone"),
            SPACED: (" is a date-time, and", ": not all readers take a space for the T"),
            ODD: ("", f", which is no {node.format}"),
        }
        for code, found in misfits(texts, node.format).items():
            is_one, (what, why) = partial(_is_in, found), words[code]
            self._odd(code, node.path, node, texts, is_one, partial(_told, f"'{node.path}'{what} came as ", why))

    def _constraints(self, node: Node, values: Sequence[Any]) -> None:
        assert node.constraints is not None
        fitting = [one for one in values if type(one) in node.takes]
        self._judge(node, fitting, node.constraints.broken, "; the SCHEMA says {}")

    def _ask_library(self, node: Node, values: Sequence[Any]) -> None:
        judge = self._judges.get(id(node))
        if judge is None:
            judge = self._judges[id(node)] = judge_of(node.library or {}, self.schema)
        self._judge(node, values, judge, ", which does not fit '{}' of the SCHEMA")

    def _judge(self, node: Node, values: Sequence[Any], judge: Callable[[Any], str | None], why: str) -> None:
        """Values of which ``judge`` says what is wrong; ``why`` has a place for that."""
        said: dict[int, str] = {}
        for value in values:
            words = judge(value)
            if words is not None:
                said[id(value)] = words
        path = node.path or "(record)"
        self._odd(
            "M205",
            path,
            node,
            values,
            lambda one: id(one) in said,
            lambda one: f"'{path}' came as {_shown(one)}{why.format(said[id(one)])}",
        )

    def _size(self, node: Node, numbers: Sequence[int]) -> None:
        if max(numbers) < _WORD and min(numbers) >= -_WORD:
            return
        path = node.path or "(record)"
        self._odd(
            "M219",
            path,
            node,
            numbers,
            lambda one: type(one) is int and not -_WORD <= one < _WORD,
            lambda one: (
                f"'{path}' came as {_shown(one)}, an integer beyond -2^63 to 2^63-1: many databases and "
                "files of columns can't hold it"
            ),
        )

    def _odd(
        self,
        code: str,
        path: str,
        node: Node,
        values: Sequence[Any],
        is_odd: Callable[[Any], bool],
        words: Callable[[Any], str] | str,
    ) -> None:
        """Note what is odd among the values of a node, with the rows it came in."""
        odd = [one for one in values if is_odd(one)]
        if not odd:
            return
        rows = (place for place, row in enumerate(self._rows) if any(map(is_odd, node.values(row))))
        places = list(islice(rows, PLACES)) or [0]
        said = words if isinstance(words, str) else words(odd[0])
        self._found.setdefault((code, path), []).append((places, said, len(odd)))


def _lacks(name: str, value: Any) -> bool:
    return isinstance(value, dict) and name not in value


def _is_in(texts: Collection[str], value: Any) -> bool:
    return isinstance(value, str) and value in texts


def _told(before: str, behind: str, value: Any) -> str:
    return f"{before}{_shown(value)}{behind}"


def _below(node: Node, name: str) -> str:
    return f"{node.path}.{name}" if node.path else name


def _shown(value: Any) -> str:
    """A value as a message shows it: without what its fields' names say is secret."""
    try:
        text = repr(mask(value))
    except (RecursionError, ValueError):  # nested too deeply; a number of thousands of digits
        return "something that is too deep or too long to be shown"
    return text if len(text) <= 60 else text[:57] + "..."
