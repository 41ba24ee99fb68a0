"""JSON lines to Arrow arrays: each row is cut into its fields, then it goes column by column.

Two cuts. The quick one lets the decoder read the values of the plain types; it is taken as long as every value of a
block has the type that its column says. Else the fields are cut out as source texts, and each column decides for itself
what it makes of them (``columnar_values``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from burler.batch.columnar_typed import typed_column, typed_form
from burler.batch.columnar_values import NULL, column, uncertain
from burler.columns.kinds import StructOf
from burler.columns.values import Path, Report

_MOST_MISSES = 8  # blocks in a row for which the quick cut was in vain: then it is given up

Rows = Sequence[Any]


class Splitter:
    """Objects of known fields, made into columns. What comes twice counts as it came last, as everywhere in burler;
    fields that nobody declares are dropped and counted.

    Args:
        kind: the fields.
        path: where the objects stand.
    """

    def __init__(self, kind: StructOf, path: Path) -> None:
        self._path = path
        self._known = {name: f"f{i}" for i, (name, _) in enumerate(kind.fields)}
        self._takes = [attrgetter(attribute) for attribute in self._known.values()]
        self._columns = [column(inner, (*path, name)) for name, inner in kind.fields]
        self._typed_columns = [
            typed_column(inner, (*path, name), make)
            for (name, inner), make in zip(kind.fields, self._columns, strict=True)
        ]
        self._typed = _row(self._known, [typed_form(inner) for _, inner in kind.fields], closed=True)
        self._texts = _row(self._known, [msgspec.Raw] * len(self._known), closed=True)
        self._open: Any = _row(
            dict(zip(self._known.values(), self._known.values(), strict=True)), [msgspec.Raw] * len(self._known)
        )
        self._decoders: dict[Any, tuple[Any, Any]] = {
            form: (msgspec.json.Decoder(form).decode_lines, _list_decoder(form).decode)
            for form in (self._typed, self._texts, dict[str, msgspec.Raw])
            if form is not None
        }
        self._misses = 0

    def arrays(self, data: bytes, report: Report, *, lines: bool) -> tuple[list[Any], list[bool] | None]:
        """The columns of the objects in ``data``, and which of the objects are null (None: none is).

        Args:
            lines: one object a line; else they are the items of a JSON array.

        Raises:
            Misfit: a value that its column can't hold. msgspec.DecodeError: a line that is no object.
        """
        if self._typed is not None and self._misses < _MOST_MISSES:
            found = Report(Counter(), Counter())
            try:
                rows, absent = self._decoded(self._typed, data, lines, self._typed)
                made = [
                    make(list(map(take, rows)), found)
                    for take, make in zip(self._takes, self._typed_columns, strict=True)
                ]
            except uncertain():
                self._misses += 1
            else:
                self._misses = 0
                report.add(found)
                return made, absent
        rows, absent = self._cut(data, lines, report)
        return [
            make(list(map(take, rows)), report) for take, make in zip(self._takes, self._columns, strict=True)
        ], absent

    def _cut(self, data: bytes, lines: bool, report: Report) -> tuple[Rows, list[bool] | None]:
        """The objects with their fields as source texts."""
        if self._texts is not None:
            try:
                return self._decoded(self._texts, data, lines, self._texts)
            except msgspec.ValidationError:  # a field that is not known, or no object at all
                pass
        return self._decoded(dict[str, msgspec.Raw], data, lines, self._open, lambda row: self._known_of(row, report))

    def _decoded(
        self, form: Any, data: bytes, lines: bool, empty: Any, made: Callable[[Any], Any] | None = None
    ) -> tuple[Rows, list[bool] | None]:
        of_lines, of_values = self._decoders[form]
        rows: Rows = of_lines(data) if lines else of_values(data)
        absent = None
        if not lines and None in rows:
            absent = [row is None for row in rows]
            nothing = empty()
            return [nothing if row is None else made(row) if made else row for row in rows], absent
        return (list(map(made, rows)) if made else rows), absent

    def _known_of(self, row: dict[str, Any], report: Report) -> Any:
        known, made = self._known, self._open()
        for name, raw in row.items():
            attribute = known.get(name)
            if attribute is None:
                report.dropped[".".join((*self._path, name))] += 1
            else:
                setattr(made, attribute, raw)
        return made


def _list_decoder(form: Any) -> Any:
    return msgspec.json.Decoder(list[form | None])


def _row(known: dict[str, str], forms: Sequence[Any], *, closed: bool = False) -> Any:
    """A struct of these fields, by name; None where a name can't be one's (control characters, ...)."""
    try:
        return msgspec.defstruct(
            "Row",
            [
                (attribute, form, NULL if form is msgspec.Raw else None)
                for attribute, form in zip(known.values(), forms, strict=True)
            ],
            rename={attribute: name for name, attribute in known.items()},
            forbid_unknown_fields=closed,
            gc=False,
        )
    except ValueError:
        return None
