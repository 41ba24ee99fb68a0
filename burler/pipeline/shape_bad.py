"""Rows that do not fit: the error for one, and the account of those that were let go."""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections.abc import Mapping
from typing import Any

from burler.errors import BadRecordError
from burler.pipeline.pull import describe
from burler.pipeline.rules import Rules
from burler.pipeline.shape_values import MISSING, Misfit

logger = logging.getLogger(__name__)

_MOST_SHOWN = 5


class BadRows:
    """Counts what was skipped or set to null in one stream; the first few are told at once."""

    def __init__(self, stream: str, key_properties: tuple[str, ...], rules: Rules) -> None:
        self._stream = stream
        self._keys = key_properties
        self._rules = rules
        self.skipped = 0
        self.nulled = 0
        self.fields: dict[str, int] = {}

    def error(self, row: Mapping[str, Any], misfit: Misfit) -> BadRecordError:
        """The error for a row."""
        return BadRecordError(self._stream, f"{self._sentence(row, misfit)}.\n  {_cure(misfit)}")

    def skip(self, row: Mapping[str, Any], misfit: Misfit) -> None:
        """Note a row that is left out.

        Raises:
            BadRecordError: it is one more than the rules allow.
        """
        self._note(row, [misfit], "left out")
        self.skipped += 1

    def null(self, row: Mapping[str, Any], misfits: list[Misfit]) -> None:
        """Note fields of a row that were set to null.

        Raises:
            BadRecordError: the row is one more than the rules allow.
        """
        self._note(row, misfits, "set to null")
        self.nulled += 1

    def _note(self, row: Mapping[str, Any], misfits: list[Misfit], done: str) -> None:
        count = self.skipped + self.nulled
        if count >= self._rules.max_bad_records:
            raise BadRecordError(
                self._stream,
                f"{self._sentence(row, misfits[0])}.\n  {count} rows did not fit before it, as many as "
                f"'max_bad_records' allows. {_cure(misfits[0])}",
            )
        for misfit in misfits:
            where = re.sub(r"\[\d+\]", "[]", misfit.path)
            where = where if where in self.fields or len(self.fields) < 100 else "(further fields)"
            self.fields[where] = self.fields.get(where, 0) + 1
        if count < _MOST_SHOWN:
            logger.warning("%s; %s (on_bad_record)", self._sentence(row, misfits[0]), done)

    def report(self) -> None:
        """One warning at the end."""
        if not self.skipped + self.nulled:
            return
        what = (
            f"{self.skipped} rows were left out" if self.skipped else f"fields of {self.nulled} rows were set to null"
        )
        fields = ", ".join(f"{path} ({count})" for path, count in sorted(self.fields.items())[:20])
        logger.warning("stream '%s': %s since they did not fit: %s", self._stream, what, fields)

    def _sentence(self, row: Mapping[str, Any], misfit: Misfit) -> str:
        which = ", ".join(f"{name}={_glimpse(row.get(name))}" for name in self._keys) or "without key properties"
        found = "is missing" if misfit.value is MISSING else f"is {describe(misfit.value)}"
        return f"stream '{self._stream}', row {which}: field '{misfit.path}' {found}; the schema wants {misfit.wants}"


def _cure(misfit: Misfit) -> str:
    if misfit.value is MISSING:
        return "Give the field in the sync function, or take it out of 'required' in the schema."
    zone = ""
    if "date-time" in misfit.wants and isinstance(misfit.value, str | dt.datetime):
        zone = "A date-time needs its zone: 2024-01-02T03:04:05Z, or datetime(..., tzinfo=UTC). "
    if misfit.wants.startswith("a value that keeps"):
        return "Mend the value in the sync function, or the schema; 'check_constraints': false holds types only."
    return f"{zone}Mend the value in the sync function, or widen the field's type in the schema."


def _glimpse(value: Any) -> str:
    try:
        return f"{value!r:.40}"
    except ValueError:  # Python writes no integer of more than 4300 digits
        return type(value).__name__
