"""A verification as others would be, for tests of its reports."""

from __future__ import annotations

import inspect
from typing import Any
from unittest import mock

from burler.spec import Finding
from burler.verify import RunFacts, StreamFacts, Verification, verify_messages
from support.cli import burler

FORMS = ("text", "json", "junit", "sarif", "html")

HOSTILE = (
    "]]></failure>\x1b[31m\x00\ud800<&>\u202e\n|x",
    "</script><img src=x onerror=document.body.dataset.pwned=1>",
    '"\' onmouseover="document.body.dataset.pwned=1',
    "</title></style></svg></pre><b>out",
    "--><!--",
    "x" * 50_000,
)
HOSTILE_IDS = ["control", "script", "attribute", "end-tags", "comment", "long"]


def contacts(name: str = "contacts") -> StreamFacts:
    """A stream that has all that there is to tell."""
    facts = StreamFacts(name, "INCREMENTAL", ["id"], "updated_at", rows=1200, states=3, seconds=2.0)
    facts.bookmark = {"from": None, "to": "2024-05-01T00:00:00Z", "advanced_seconds": 86400.0, "ratio": 43200.0}
    facts.series = [[0.5, 0, None], [1.0, 400, "2024-04-30 12:00:00"], [2.5, 1200, "2024-05-01T00:00:00Z"]]
    facts.order = {
        "key": "updated_at",
        "direction": "none",
        "flips": 1,
        "first_flips": [{"place": "line 700", "before": "2024-04-30", "value": "2024-04-29"}],
        "map": [[1, 600, "asc"], [601, 1200, "desc"]],
    }
    facts.fields = {
        "id": {"declared": ["integer"], "seen": ["integer"], "nulls": 0, "rows": 1200},
        "score": {"declared": ["null", "integer"], "seen": ["integer", "number"], "nulls": 0, "rows": 1200},
        "price": {"declared": ["number"], "seen": ["integer"], "nulls": 0, "rows": 1200},
        "note": {"declared": ["string"], "seen": [], "nulls": 0, "rows": 0},
        "stars": {"declared": None, "seen": [], "nulls": 0, "rows": 9},
    }
    facts.patch = {"properties": {"stars": {"type": ["null", "integer"]}}}
    asked = {"requests": 12, "seconds": 1.5, "statuses": {"200": 11, "429": 1}, "repeated": 1, "no_timeout": 0}
    facts.requests = {"GET /contacts": asked, "GET /tags": {**asked, "requests": 3}}
    return facts


def verification(**more: Any) -> Verification:
    """Two streams, three findings, three rules that were not looked at."""
    given: dict[str, Any] = {
        "subject": "tap_crm.py",
        "started": "2024-05-01T00:00:00.000000Z",
        "seconds": 3.25,
        "findings": [
            Finding(
                "B302", "a STATE comes too early", "error", "contacts", "updated_at", "sync", ("line 4", "line 9"), 12
            ),
            Finding("C113", "the stream has no keys", "warning", "audits"),
            Finding("R503", "a field never came", "info", "audits", "note"),
        ],
        "runs": [
            RunFacts("sync", "succeeded", 0, 2.5, 1300, {"contacts": contacts(), "audits": StreamFacts("audits")})
        ],
        "checked": ["B302", "B303", "C113", "P601", "R503"],
        "unchecked": {"P606": "no rows came", "H701": "behind a proxy", "P607": "no rows came"},
    }
    return Verification(**{**given, **more})


def hostile(text: str) -> Verification:
    """One whose every name, value and message is the same text."""
    stream = contacts(text)
    stream.key_properties, stream.replication_key = [text], text
    stream.bookmark = {"from": text, "to": text, "ratio": None}
    stream.series = [[0.0, 0, text], [1.0, 5, text]]
    stream.order = {"key": text, "direction": "none", "flips": 1, "map": [[1, 5, text]]}
    stream.order["first_flips"] = [{"place": text, "before": text, "value": text}]
    stream.fields = {text: {"declared": [text], "seen": [text], "nulls": 0, "rows": 5}}
    stream.patch = {"properties": {text: {"type": [text]}}}
    stream.requests = {f"GET {text}": {"requests": 1, "seconds": 0.1, "statuses": {text: 1}}}
    found = Finding("M205", text, "error", text, text, text, (text,), data={text: text})
    return verification(
        subject=text,
        findings=[found],
        runs=[RunFacts(text, text, 0, 1.0, 5, {text: stream})],
        unchecked={"P606": text},
        gone=[text],
    )


def report(shown: Verification, form: str, *more: str) -> bytes:
    """``burler verify - --format FORM``, where that is what the messages have given."""
    home = inspect.getmodule(verify_messages)
    with mock.patch.object(home, "verify_messages", lambda *_given, **_options: shown):
        return burler("verify", "-", "--format", form, *more).stdout
