"""JSON lines to a RecordBatch: each row is cut into its fields' source texts, then it goes column by column."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from burler.batch.columnar_values import NULL, column
from burler.columns.kinds import StructOf
from burler.columns.values import Path, Report


class Splitter:
    """Objects of known fields, cut into columns of source texts. What comes twice counts as it came last, as
    everywhere in burler; fields that nobody declares are dropped and counted.

    Args:
        kind: the fields.
        path: where the objects stand.
    """

    def __init__(self, kind: StructOf, path: Path) -> None:
        self._columns = [column(inner, (*path, name)) for name, inner in kind.fields]
        self._path = path
        self._known = {name: f"f{i}" for i, (name, _) in enumerate(kind.fields)}
        self._row: Any = msgspec.defstruct(
            "Row", [(attribute, msgspec.Raw, NULL) for attribute in self._known.values()], gc=False
        )
        self._none = self._row()
        self._takes = [attrgetter(attribute) for attribute in self._known.values()]
        self._open_lines = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._open_values = msgspec.json.Decoder(list[dict[str, msgspec.Raw] | None])
        closed: Any = _closed(self._known)
        self._lines = closed and msgspec.json.Decoder(closed)
        self._values = closed and msgspec.json.Decoder(list[closed | None])

    def lines(self, data: Any, report: Report) -> list[Any]:
        """Rows, one a line.

        Raises:
            msgspec.DecodeError: a line that is no object.
        """
        try:
            if self._lines is not None:
                return list(self._lines.decode_lines(data))
        except msgspec.ValidationError:  # a field that is not known, or no object at all
            pass
        return [self._known_of(row, report) for row in self._open_lines.decode_lines(data)]

    def values(self, data: bytes, report: Report) -> tuple[list[Any], list[bool] | None]:
        """The objects of a JSON array, and which of them are null (None: none is)."""
        rows = self._decoded(data, report)
        absent = [row is None for row in rows]
        return [self._none if row is None else row for row in rows], absent if True in absent else None

    def _decoded(self, data: bytes, report: Report) -> list[Any]:
        try:
            if self._values is not None:
                return list(self._values.decode(data))
        except msgspec.ValidationError:
            pass
        found = self._open_values.decode(data)
        return [None if row is None else self._known_of(row, report) for row in found]

    def columns(self, rows: Sequence[Any], report: Report) -> list[Any]:
        """The arrays of the objects' fields.

        Raises:
            Misfit: a value that its column can't hold.
        """
        return [make(list(map(take, rows)), report) for take, make in zip(self._takes, self._columns, strict=True)]

    def _known_of(self, row: dict[str, Any], report: Report) -> Any:
        known, made = self._known, self._row()
        for name, raw in row.items():
            attribute = known.get(name)
            if attribute is None:
                report.dropped[".".join((*self._path, name))] += 1
            else:
                setattr(made, attribute, raw)
        return made


def _closed(known: dict[str, str]) -> type | None:
    """A struct of these fields that takes no others; None where a name can't be one's (control characters, ...)."""
    try:
        return msgspec.defstruct(
            "Row",
            [(attribute, msgspec.Raw, NULL) for attribute in known.values()],
            rename={attribute: name for name, attribute in known.items()},
            forbid_unknown_fields=True,
            gc=False,
        )
    except ValueError:
        return None
