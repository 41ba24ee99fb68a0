"""A baseline: findings of an old tap that are known, so that only what is new counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.config.secrets import masked
from burler.errors import StorageError, UsageError
from burler.localfile import replace_file
from burler.spec.finding import Finding

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known.

    Attributes:
        entries: by fingerprint: the code, stream, path and message of when it was written.
    """

    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def split(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
        """(those that are new, those that are known)."""
        new: list[Finding] = []
        known: list[Finding] = []
        for one in findings:
            (known if one.fingerprint in self.entries else new).append(one)
        return new, known

    def gone(self, findings: Iterable[Finding]) -> list[str]:
        """Fingerprints of what is known and no longer occurs, so that the baseline can shrink."""
        there = {one.fingerprint for one in findings}
        return sorted(set(self.entries) - there)


def read_baseline(path: Path) -> Baseline:
    """A baseline from its file.

    Raises:
        UsageError: there is none, or it is no baseline.
    """
    cure = "Write one: burler verify ... --write-baseline FILE"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"baseline {path} can't be read: {error.strerror}. {cure}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"baseline {path} is no JSON. {cure}") from None
    entries = said.get("findings") if isinstance(said, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise UsageError(f"baseline {path} is no baseline of burler verify. {cure}")
    if said.get("format") != _FORMAT:
        raise UsageError(f"baseline {path} has the format {said.get('format')!r}; this burler reads {_FORMAT}. {cure}")
    return Baseline(entries)


def write_baseline(path: Path, findings: Iterable[Finding]) -> None:
    """Replace a baseline by what was found now: sorted, a line for each part, so that a change is a small diff.

    Raises:
        StorageError: it can't be written.
    """
    entries = {
        one.fingerprint: {"code": one.code, "stream": one.stream, "path": one.path, "message": masked(one.message)}
        for one in findings
    }
    text = json.dumps({"format": _FORMAT, "findings": entries}, indent=2, sort_keys=True, ensure_ascii=False)
    try:
        replace_file(path, text.encode(errors="replace") + b"\n")
    except OSError as error:
        raise StorageError(f"baseline {path} can't be written: {error.strerror}.") from None
