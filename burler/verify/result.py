"""What a verification gives: findings, and facts of each run."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.spec.finding import Finding

RATIO_SECONDS = 1.0
"""A shorter run says nothing of how fast a bookmark goes on."""


@dataclass(slots=True)
class StreamFacts:
    """What one stream did in one run; plain JSON values throughout.

    Attributes:
        rows, states: how many RECORDs (and rows of BATCH files), and STATEs that named the stream.
        bytes: of its RECORD lines.
        seconds: from its first row to its last, by ``time_extracted`` where rows have it, else by the clock of who
            listened.
        bookmark: ``{"from": ..., "to": ..., "advanced_seconds": float | None, "ratio": float | None}``: the ratio is
            how many seconds the bookmark went on for each second of the run. {} where there is no bookmark.
        series: ``[[seconds since the run began, rows so far, bookmark as text or None], ...]``, at most 500 points.
        order: ``{"key": "updated_at", "direction": "asc" | "desc" | "none" | "same", "flips": 2, "first_flips":
            [{"place": "line 12", "before": "...", "value": "..."}], "map": [[first row, last row, "asc"], ...]}``; {}
            without a replication key.
        fields: ``{"address.city": {"declared": ["null", "string"], "seen": ["string"], "nulls": 3, "rows": 250}}``.
        patch: a schema to be merged into the stream's own, which would keep and fit all that was seen; {} if none is
            needed.
        requests: ``{"GET /contacts": {"requests": 12, "seconds": 1.5, "statuses": {"200": 12}, "repeated": 0}}``.
    """

    stream: str
    replication_method: str | None = None
    key_properties: list[str] = field(default_factory=list)
    replication_key: str | None = None
    rows: int = 0
    states: int = 0
    bytes: int = 0
    seconds: float = 0.0
    bookmark: dict[str, Any] = field(default_factory=dict)
    series: list[list[Any]] = field(default_factory=list)
    order: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    patch: dict[str, Any] = field(default_factory=dict)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class RunFacts:
    """One run of the tap.

    Attributes:
        name: "sync", "resumed from STATE 2 of 3", ...
        ended: "succeeded", "failed", "stopped" (by --max-records or --max-seconds); "" where unknown.
    """

    name: str
    ended: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    lines: int = 0
    streams: dict[str, StreamFacts] = field(default_factory=dict)


@dataclass(slots=True)
class Verification:
    """The whole.

    Attributes:
        subject: what was verified: an APP, "-", a file, a command (secrets masked).
        started: RFC 3339, UTC.
        findings: those that count, the worst first.
        baselined: how many more the baseline knows; ``gone``: fingerprints of it that no longer occur.
        ignored: how many more were left out by ``ignore``.
        unchecked: rules that could not be looked at, by code, with the reason.
    """

    subject: str
    started: str = ""
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    runs: list[RunFacts] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: dict[str, str] = field(default_factory=dict)
    baselined: int = 0
    gone: list[str] = field(default_factory=list)
    ignored: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """Findings by severity: ``{"error": 2, "warning": 1, "info": 0}``."""
        found = Counter(one.severity for one in self.findings)
        return {severity: found[severity] for severity in ("error", "warning", "info")}

    def exit_code(self, *, strict: bool = False) -> int:
        """0 clean or warnings only, 1 errors; ``strict``: warnings too."""
        counts = self.counts
        return int(counts["error"] > 0 or (strict and counts["warning"] > 0))

    def to_json(self) -> dict[str, Any]:
        """The whole as plain JSON values."""
        return {
            "format_version": 1,
            "subject": self.subject,
            "started": self.started,
            "seconds": round(self.seconds, 6),
            "counts": dict(self.counts),
            "baselined": self.baselined,
            "gone": self.gone,
            "ignored": self.ignored,
            "findings": [one.to_json() for one in self.findings],
            "checked": self.checked,
            "unchecked": self.unchecked,
            "runs": [dataclasses.asdict(run) for run in self.runs],
        }
