"""A verification as SARIF 2.1.0: its parts are those of the standard, and code scanning shows its results."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from report_sample import HOSTILE, HOSTILE_IDS, hostile, report, verification

# The standard's objects as far as they are written: each property with its kind, those with "!" must be there.
OBJECTS = {
    "log": {"$schema": str, "version!": "2.1.0", "runs!": ["run"]},
    "run": {"tool!": "tool", "columnKind": "unicodeCodePoints", "invocations": ["invocation"], "results": ["result"]},
    "tool": {"driver!": "component"},
    "component": {"name!": str, "version": str, "rules": ["rule"]},
    "rule": {
        "id!": str,
        "name": str,
        "shortDescription": "text",
        "fullDescription": "text",
        "help": "text",
        "defaultConfiguration": "configuration",
        "properties": dict,
    },
    "text": {"text!": str, "markdown": str},
    "configuration": {"level": {"none", "note", "warning", "error"}},
    "invocation": {"executionSuccessful!": bool, "startTimeUtc": str, "toolExecutionNotifications": ["notification"]},
    "notification": {"message!": "text", "level": {"note", "warning", "error"}, "associatedRule": "reference"},
    "reference": {"id": str},
    "result": {
        "ruleId": str,
        "ruleIndex": int,
        "level": {"note", "warning", "error"},
        "message!": "text",
        "locations": ["location"],
        "occurrenceCount": int,
        "partialFingerprints": dict,
    },
    "location": {"physicalLocation": "physical", "logicalLocations": ["logical"]},
    "physical": {"artifactLocation": "artifact", "region": "region"},
    "artifact": {"uri": str},
    "region": {"startLine": int},
    "logical": {"fullyQualifiedName": str, "kind": str},
}


def check(value: object, kind: object) -> None:
    """A value is what the standard has there."""
    if isinstance(kind, type):
        assert isinstance(value, kind), (value, kind)
    elif isinstance(kind, list):
        assert isinstance(value, list)
        for one in value:
            check(one, kind[0])
    elif isinstance(kind, set):
        assert value in kind
    elif kind not in OBJECTS:
        assert value == kind
    else:
        properties = {name.rstrip("!"): of for name, of in OBJECTS[kind].items()}
        assert isinstance(value, dict) and value.keys() <= properties.keys(), (kind, value)
        assert {name.rstrip("!") for name in OBJECTS[kind] if name.endswith("!")} <= value.keys()
        for name, one in value.items():
            check(one, properties[name])


def sarif(verification):
    return json.loads(report(verification, "sarif"))


def test_results_name_their_rules_and_places():
    document = sarif(verification())
    check(document, "log")
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[one["ruleIndex"]]["id"] for one in run["results"]] == ["B302", "C113", "R503"]
    assert [one["level"] for one in run["results"]] == ["error", "warning", "note"]
    first = run["results"][0]
    assert first["occurrenceCount"] == 12
    assert first["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "contacts.updated_at", "kind": "member"}
    ]
    assert first["partialFingerprints"] == {"burlerFinding/v1": "B302|contacts|updated_at"}
    told = {
        one["associatedRule"]["id"]: one["message"]["text"]
        for one in run["invocations"][0]["toolExecutionNotifications"]
    }
    assert told["H701"] == "not looked at: behind a proxy"


def place(subject: str) -> tuple[str, int]:
    """Where the first result of a verification is shown."""
    physical = sarif(verification(subject=subject))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_lines_of_messages_are_shown_and_others_are_not(tmp_path, monkeypatch):
    """Lines of a run's messages are no lines of the tap's file: its first one stands for it."""
    monkeypatch.chdir(tmp_path)
    for name in ("tap_crm.py", "tap shop/__init__.py"):
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    assert place("-") == ("stdin", 4)
    assert place("tap_crm.py") == place("tap_crm.py:tap") == ("tap_crm.py", 1)
    assert place("tap shop") == place("tap shop:tap") == ("tap%20shop/__init__.py", 1)
    assert place("tap-gitlab --config config.json") == ("tap-gitlab", 1)
    assert place("python tap_crm.py --config config.json") == ("tap_crm.py", 1)
    assert place("/usr/bin/env python tap_crm.py") == ("tap_crm.py", 1)
    assert place(str(tmp_path / "tap_crm.py")) == ((tmp_path / "tap_crm.py").as_uri(), 1)


@pytest.mark.parametrize("text", HOSTILE, ids=HOSTILE_IDS)
def test_any_text_stays_a_value(text):
    document = sarif(hostile(text))
    check(document, "log")
    uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii() and " " not in uri and not urlsplit(uri).netloc
