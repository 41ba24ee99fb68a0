"""A verification in the form that was asked for."""

from __future__ import annotations

import json
import math
from typing import Any

from burler.spec.table import RULES
from burler.verify.result import Verification

FORMS = ("text", "json", "junit", "sarif", "html")


def report_bytes(
    verification: Verification, form: str, *, width: int = 120, colour: bool = False, strict: bool = False
) -> bytes:
    """A report, in UTF-8.

    Args:
        form: one of ``FORMS``.
        width, colour: of text.
        strict: warnings fail as well (JUnit).
    """
    if form == "text":
        from burler.verify.report_text import as_text

        return as_text(verification, width=width, colour=colour).encode("utf-8", "replace")
    if form == "junit":
        from burler.verify.report_junit import as_junit

        return as_junit(verification, RULES, strict=strict)
    if form == "html":
        from burler.verify.report_html import as_html

        return as_html(verification, RULES).encode("utf-8", "replace")
    value = verification.to_json()
    if form == "sarif":
        from burler.verify.report_sarif import as_sarif

        value = as_sarif(verification, RULES)
    return _json(value).encode("utf-8", "replace") + b"\n"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:  # a bookmark that is no number: strict readers refuse the words that Python has for it
        return json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
