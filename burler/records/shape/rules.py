"""What shaping does where a row does not fit: the rules of one stream."""

from __future__ import annotations

from dataclasses import dataclass

from burler.schema.overlay import CONSTRAINTS as CONSTRAINTS


@dataclass(frozen=True, slots=True)
class Rules:
    """How strict shaping is.

    Attributes:
        on_bad_record: ``"error"`` ends the stream, ``"skip"`` leaves the row out, ``"null"`` its field (or the
            nearest one around it that may be null).
        max_bad_records: so many rows may be skipped or have fields set to null; one more ends the stream.
        on_nan: NaN and infinities have no form in JSON: ``"error"`` makes them bad values, ``"null"`` null.
        check_constraints: hold values against what the schema says beside their types (``CONSTRAINTS``).
    """

    on_bad_record: str = "error"
    max_bad_records: int = 100
    on_nan: str = "error"
    check_constraints: bool = True


DEFAULT_RULES = Rules()
