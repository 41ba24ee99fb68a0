"""A verification as SARIF 2.1.0, as code scanning shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from burler.spec.explain import explain
from burler.spec.finding import Finding
from burler.spec.rule import Rule
from burler.verify.result import Verification

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_LINE = re.compile(r"line (\d+)")
_STDIN = "stdin"
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(verification: Verification, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """The document as plain JSON values.

    Places are lines of the messages where stdin was looked at; else the tap itself, which is all that a reviewer can
    open, at its first line: code scanning does not show what has no line.
    """
    from burler import __version__

    used = [code for code in rules if code in {*verification.checked, *(one.code for one in verification.findings)}]
    place = {code: number for number, code in enumerate(used)}
    uri = _uri(verification.subject)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "burler verify",
                        "version": __version__,
                        "rules": [_rule(rules[code]) for code in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "startTimeUtc": verification.started,
                        "toolExecutionNotifications": [
                            {
                                "level": "note",
                                "message": {"text": f"not looked at: {reason}"},
                                "associatedRule": {"id": code},
                            }
                            for code, reason in verification.unchecked.items()
                        ],
                    }
                ],
                "results": [_result(one, place[one.code], uri) for one in verification.findings],
            }
        ],
    }


def _uri(subject: str) -> str:
    """Where a result is shown: the tap's file where the subject names one; its name otherwise, of a command without
    what it was given."""
    if subject == "-":
        return _STDIN
    words = [word for word in subject.split() if not Path(word).is_absolute()]  # of a command: 'python tap.py ...'
    path = next((Path(text) for text in (subject, subject.partition(":")[0], *words) if _exists(text)), None)
    if path is None:
        return quote(next(iter(subject.split()), "tap").encode("utf-8", "replace"))
    path = path / "__init__.py" if path.is_dir() else path
    return path.as_uri() if path.is_absolute() else quote(path.as_posix().encode("utf-8", "replace"))


def _exists(path: str) -> bool:
    try:
        return bool(path) and Path(path).exists()
    except (OSError, ValueError):  # too long for a name, or with a NUL
        return False


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(part.title() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}".strip() or rule.title},
        "help": {"text": explain(rule), "markdown": f"**{rule.title}** {rule.why}\n\n{rule.mend}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.area]},
    }


def _result(one: Finding, rule: int, uri: str) -> dict[str, Any]:
    line = next((int(found[1]) for place in one.places if (found := _LINE.fullmatch(place))), None)
    start = line if line is not None and uri == _STDIN else 1
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": max(start, 1)}}
    }
    name = ".".join(part for part in (one.stream, one.path) if part)
    if name:
        location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "member"}]
    where = ", ".join(filter(None, (one.run, *one.places)))
    return {
        "ruleId": one.code,
        "ruleIndex": rule,
        "level": _LEVELS[one.severity],
        "message": {"text": f"{f'{name}: ' if name else ''}{one.message}{f' [{where}]' if where else ''}"},
        "locations": [location],
        "occurrenceCount": one.count,
        "partialFingerprints": {"burlerFinding/v1": one.fingerprint},
    }
