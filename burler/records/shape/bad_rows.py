"""Rows that do not fit: the rules for them, the error for one, and the account of those that were let go."""

from __future__ import annotations

import dataclasses
import datetime as dt
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from burler import times
from burler.errors import BadRecordError
from burler.log_settings import describe, log_settings
from burler.records.shape.constraints import constrained
from burler.records.shape.values import MISSING, Misfit, not_finite
from burler.words import counted


@dataclass(frozen=True, slots=True)
class Rules:
    """How strict shaping is.

    Attributes:
        on_bad_record: ``"error"`` ends the stream, ``"skip"`` leaves the row out, ``"null"`` its field (or the
            nearest one around it that may be null).
        max_bad_records: so many rows may be skipped or have fields set to null; one more ends the stream.
        on_nan: NaN and infinities have no form in JSON: ``"error"`` makes them bad values, ``"null"`` null.
        check_constraints: hold values against what the schema says beside their types (see ``constraints``).
    """

    on_bad_record: str = "error"
    max_bad_records: int = 100
    on_nan: str = "error"
    check_constraints: bool = True

    @property
    def strictly(self) -> Rules:
        """The same where nothing is let go."""
        return self if self.on_bad_record == "error" else dataclasses.replace(self, on_bad_record="error")

    def hold(self, schema: Mapping[str, Any]) -> bool:
        """Whether a node says more than types, and values are held against it."""
        return self.check_constraints and constrained(schema)


DEFAULT_RULES = Rules()


logger = logging.getLogger(__name__)

_MOST_SHOWN = 5
_FORMS = {"date-time": "2026-03-01T10:00:00+01:00, with a T and a zone", "date": "2026-03-01"}
_TIME = re.compile(r"\((date-time|date)\)$")


class Known(Protocol):
    """Rows that did not fit before."""

    def knows(self, row: Mapping[str, Any]) -> bool:
        """Note a row that does not fit; whether it is one of them."""


class BadRows:
    """Counts what was skipped or set to null in one stream; the first few are told at once.

    Attributes:
        known: the rows that did not fit in the round of a tail before: they neither count nor are they told again.
        where: says where a row is from: a file, and which row in it; None where nobody knows.
    """

    def __init__(self, stream: str, key_properties: tuple[str, ...], rules: Rules) -> None:
        self._stream = stream
        self._keys = key_properties
        self._rules = rules
        self.known: Known | None = None
        self.where: Callable[[Mapping[str, Any]], str] | None = None
        self.skipped = 0
        self.nulled = 0
        self._before = 0  # in earlier rounds of a tail
        self.fields: dict[str, int] = {}

    def error(self, row: Mapping[str, Any], misfit: Misfit) -> BadRecordError:
        """The error for a row."""
        return BadRecordError(self._stream, f"{self._sentence(row, misfit)}.\n  {self._help(row, misfit)}")

    def _help(self, row: Mapping[str, Any], misfit: Misfit) -> str:
        if misfit.value is MISSING and misfit.path in self._keys:
            fields = ", ".join(f"'{name!s:.40}'" for name in list(row)[:10]) or "none"
            return (
                f"It is a key property, so every row needs it. The row's fields: {fields}. If the rows are inside of "
                "one, say where: records_path, for bytes of JSON."
            )
        shows = "" if misfit.value is MISSING or log_settings.values else " --log-values shows the value."
        if self._rules.on_bad_record == "null" and misfit.value is not MISSING:
            fact = "on_bad_record 'null' can't help: neither it nor anything around it may be null."
            return f"{fact} {self._cure(misfit)}{shows}"
        return f"{self._cure(misfit)}{shows}"

    def _cure(self, misfit: Misfit) -> str:
        if misfit.value is None and misfit.path in self._keys:
            return (
                "It is a key property, and rows without a key can't be told from each other. Take key_properties that "
                "every row has (() if there are none), or leave such rows out (on_bad_record 'skip')."
            )
        return _cure(misfit)

    def begin_round(self) -> None:
        """What ``max_bad_records`` allows is of one round."""
        self._before = self.skipped + self.nulled

    def skip(self, row: Mapping[str, Any], misfit: Misfit) -> None:
        """Note a row that is left out.

        Raises:
            BadRecordError: it is one more than the rules allow.
        """
        if self.known is None or not self.known.knows(row):
            self._note(row, [misfit], "left out")
            self.skipped += 1

    def null(self, row: Mapping[str, Any], misfits: list[Misfit]) -> None:
        """Note fields of a row that were set to null.

        Raises:
            BadRecordError: the row is one more than the rules allow.
        """
        if self.known is None or not self.known.knows(row):
            self._note(row, misfits, "set to null")
            self.nulled += 1

    def _note(self, row: Mapping[str, Any], misfits: list[Misfit], done: str) -> None:
        count = self.skipped + self.nulled - self._before
        if count >= self._rules.max_bad_records:
            raise BadRecordError(
                self._stream,
                f"{self._sentence(row, misfits[0])}.\n  {counted(count, 'row')} did not fit before it, as many as "
                f"'max_bad_records' allows. {self._cure(misfits[0])}",
            )
        for misfit in misfits:
            where = re.sub(r"\[\d+\]", "[]", misfit.path)
            where = where if where in self.fields or len(self.fields) < 100 else "(further fields)"
            self.fields[where] = self.fields.get(where, 0) + 1
        if count < _MOST_SHOWN:
            logger.warning("%s; %s (on_bad_record)", self._sentence(row, misfits[0]), done)

    def _sentence(self, row: Mapping[str, Any], misfit: Misfit) -> str:
        which = ", ".join(f"{name}={_glimpse(row.get(name))}" for name in self._keys) or "without key properties"
        found = "is missing" if misfit.value is MISSING else f"is {describe(misfit.value)}"
        form = _FORMS.get(_time_of(misfit) or "")
        if form is not None and found == "is a string":
            found = f"is text that is no {_time_of(misfit)}"
        wants = f"{misfit.wants}, such as {form}" if form is not None else misfit.wants
        which += f" ({self.where(row)})" if self.where is not None else ""
        return f"stream '{self._stream}', row {which}: field '{misfit.path}' {found}; the schema wants {wants}"


def _time_of(misfit: Misfit) -> str | None:
    """ "date-time" or "date", where the schema wants one, and the value is text."""
    found = _TIME.search(misfit.wants) if isinstance(misfit.value, str) else None
    return found[1] if found is not None else None


def _cure(misfit: Misfit) -> str:
    value, wants = misfit.value, misfit.wants
    if value is MISSING:
        return "Give the field in the sync function, or take it out of 'required' in the schema."
    if wants.startswith("a value that keeps"):
        return (
            "Mend the value in the sync function, or the schema; check_constraints=False on the stream, or "
            "'check_constraints': false in the config, holds types only."
        )
    if not_finite(value):
        return "JSON has no form for it; the setting 'on_nan': 'null' makes it null where the field may be null."
    hint = _time_hint(value) if "date-time" in wants else ""
    if _time_of(misfit) is not None or (hint and isinstance(value, dt.datetime)):
        return f"{hint}Mend the value in the sync function."  # text is no cure: as a bookmark it has another order
    return f"{hint}Mend the value in the sync function, or widen the field's type in the schema."


def _time_hint(value: Any) -> str:
    """What is wrong with something that should be a date-time."""
    form = "2024-01-02T03:04:05Z, or datetime(..., tzinfo=UTC). "
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return f"A date-time needs its zone: {form}"
    if not isinstance(value, str):
        return ""
    if times.lenient_moment(value) is None:
        return "For no value, give None. "
    if len(value) <= len("2024-01-02"):
        return "That is a date: the schema may say format 'date', or the value a time and a zone. "
    return f"A date-time needs its zone: {form}" if times.is_naive(value) else f"RFC 3339 spells it {form}"


def _glimpse(value: Any) -> str:
    try:
        return f"{value!r:.40}"
    except ValueError:  # Python writes no integer of more than 4300 digits
        return type(value).__name__
