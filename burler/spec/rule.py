"""What a rule is: its code, how bad a breach is, and what its page in the docs says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

AREAS = {
    "C": "catalog",
    "M": "messages",
    "B": "bookmarks and state",
    "O": "order",
    "R": "removed paths",
    "P": "behaviour",
    "H": "requests",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: a letter of ``AREAS`` and three digits. It never changes its meaning, and is never given again.
        name: the same for people, in words with hyphens.
        severity: "error" (data are lost, wrong, or refused by targets), "warning" (they may be, or a run costs more
            than it should), "info" (worth a look).
        title: one sentence, which says what is wrong in a tap that breaks it.
        what: what is looked at, and when it is reported.
        why: what it does to whom.
        mend: the cure.
        breaks: the smallest example that breaks it. Of area C: a catalog as JSON; of M, B, O, R: messages, a line each,
            where a line ``# resumed from STATE 1`` begins the messages of a run that was given the first STATE of those
            above, ``# config {...}`` and ``# catalog {...}`` are the tap's config and catalog, and what stands between
            ``# 100 times, $N = 1, 2, ...`` and ``# end`` comes as often; of P and H, and where messages can't show it:
            a piece of Python.
        keeps: the same, mended. Tests run those of catalogs, messages and requests; for what only a process shows they
            have taps of their own.
    """

    code: str
    name: str
    severity: Severity
    title: str
    what: str
    why: str
    mend: str
    breaks: str
    keeps: str

    @property
    def area(self) -> str:
        """Which part of a tap it is about."""
        return AREAS[self.code[0]]
