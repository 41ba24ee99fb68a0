"""What was found: a breach of a rule, gathered so that a million rows with one fault are one finding."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.spec.rule import Rule, Severity

PLACES = 3
"""So many places of a finding are kept; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that was broken, of one stream and field.

    Attributes:
        code: the rule's.
        message: the fact, in one sentence, with values that show it (never secrets).
        stream: the stream, or None where it is about the whole.
        path: the field, as ``address.city`` (``[]`` for the items of an array), or None.
        run: which run of the tap it was in: "discovery", "sync", "resumed from STATE 2 of 3", ...; "" where there is
            but one.
        places: where, the first three: "line 12".
        count: how often.
        data: what goes with it: a schema patch under "patch", ...; plain JSON values.
    """

    code: str
    message: str
    severity: Severity = "error"
    stream: str | None = None
    path: str | None = None
    run: str = ""
    places: tuple[str, ...] = ()
    count: int = 1
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """What stays the same from one verification to the next: rule, stream and field."""
        return "|".join((self.code, self.stream or "", self.path or ""))

    def to_json(self) -> dict[str, Any]:
        """The finding as plain JSON values."""
        out = dataclasses.asdict(self)
        out["places"] = list(self.places)
        out["fingerprint"] = self.fingerprint
        return out


class Findings:
    """Gathers findings. Those of one rule, stream and field are one, with a count.

    Args:
        rules: those that are known; a finding of another one is a mistake of ours.
        run: see ``Finding.run``.
    """

    def __init__(self, rules: Mapping[str, Rule], *, run: str = "") -> None:
        self.run = run
        self._rules = rules
        self._found: dict[tuple[str, str | None, str | None], Finding] = {}

    def add(
        self,
        code: str,
        message: str,
        *,
        stream: str | None = None,
        path: str | None = None,
        place: str | None = None,
        count: int = 1,
        data: Mapping[str, Any] | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report something. The first message of a rule, stream and field stays; later ones are counted.

        Args:
            severity: another one than the rule's.
        """
        key = (code, stream, path)
        before = self._found.get(key)
        if before is None:
            at = () if place is None else (place,)
            severity = severity or self._rules[code].severity
            self._found[key] = Finding(code, message, severity, stream, path, self.run, at, count, dict(data or {}))
            return
        places = before.places
        if place is not None and self.run and self.run != before.run and not place.startswith(self.run):
            place = f"{self.run}, {place}"
        if place is not None and len(places) < PLACES and place not in places:
            places = (*places, place)
        self._found[key] = dataclasses.replace(before, places=places, count=before.count + count)

    def withdraw(self, codes: Collection[str], stream: str) -> None:
        """Take back what was said of a stream: it follows from something that is told."""
        self._found = {key: one for key, one in self._found.items() if key[0] not in codes or key[1] != stream}

    def __repr__(self) -> str:
        return f"Findings({list(self._found.values())!r})"

    def seen(self, code: str, stream: str | None = None, path: str | None = None) -> bool:
        """Whether this was reported before."""
        return (code, stream, path) in self._found

    def take(self, others: Iterable[Finding]) -> None:
        """Take in what was found elsewhere, in another run perhaps."""
        for one in others:
            key = (one.code, one.stream, one.path)
            before = self._found.get(key)
            if before is None:
                self._found[key] = one
            else:
                self._found[key] = dataclasses.replace(before, count=before.count + one.count)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)
