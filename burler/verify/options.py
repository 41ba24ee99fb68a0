"""What a verification is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.spec.choice import Choice
from burler.spec.limits import Limits
from burler.spec.table import RULES

if TYPE_CHECKING:
    from burler.batch.allowed import Allowed


def _quiet(_text: str) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a verification is asked for.

    Attributes:
        choice: which rules count.
        limits: the figures they go by.
        max_records: so many rows of all streams together, then the run is ended.
        max_seconds: so long may a run take, then it is ended.
        resume: run again from STATEs of the first run.
        behaviour: look at how the tap behaves as a program; these are a dozen short runs.
        watch_requests: note what a tap in this process asks its source over HTTP.
        catalog: what the runs are given, as plain JSON; None: all that discovery finds, all of it selected.
        state: what the first run is given.
        earlier_states: states of earlier versions, which must be accepted, by a name for people.
        progress: told what is done next.
        allow: what manifests of BATCH messages may name; see ``burler.batch.read``.
    """

    choice: Choice = field(default_factory=Choice)
    limits: Limits = field(default_factory=Limits)
    max_records: int | None = None
    max_seconds: float | None = None
    resume: bool = True
    behaviour: bool = True
    watch_requests: bool = True
    catalog: Any = None
    state: Any = None
    earlier_states: tuple[tuple[str, Any], ...] = ()
    progress: Callable[[str], None] = _quiet
    allow: Allowed | None = None

    def wants(self, code: str) -> bool:
        """Whether a rule is asked for: runs that none asks for are left out."""
        return code in RULES and self.choice.wants(RULES[code])
