"""What is verified: something that discovers and syncs, a burler tap in this process or any tap's command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from burler.spec.finding import Findings
from burler.spec.messages import MessageCheck
from burler.verify.options import Options


@dataclass(slots=True)
class RunEnd:
    """How a run ended.

    Attributes:
        ended: see ``burler.verify.result.RunFacts``.
        requests: by stream and endpoint.
        patches: by stream: a schema that would have kept what the stream's own has dropped.
        orders: by stream: where the order of an ``ensure_ordering`` turned.
        unchecked: rules that could not be looked at, with the reason.
        held: streams of which burler itself has held back a bookmark or a closing version, since rows may be missing.
        exclusive: streams that say of themselves that they go on behind their bookmark.
        lookbacks: by stream: how far before its bookmark a run begins on purpose, in seconds or in the key's numbers.
    """

    ended: str
    exit_code: int | None
    requests: Mapping[str, Mapping[str, dict[str, Any]]] = field(default_factory=dict)
    patches: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    orders: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    lookbacks: Mapping[str, float] = field(default_factory=dict)
    exclusive: Collection[str] = ()
    held: Collection[str] = ()

    @property
    def whole(self) -> bool:
        """Whether the tap came to its end by itself, without an error."""
        return self.ended == "succeeded"


class Subject(Protocol):
    """A tap that can be run."""

    @property
    def name(self) -> str:
        """For people; without secrets."""

    @property
    def secrets(self) -> Collection[str]:
        """What must not show anywhere."""

    @property
    def selects_all(self) -> bool:
        """Whether a run without a catalog of the user's takes everything, whatever the tap's own says."""

    def discover(self, findings: Findings, options: Options) -> tuple[Any, dict[str, str]]:
        """(the catalog as plain JSON, or None where there is none; rules that could not be looked at)."""

    def sync(
        self,
        check: MessageCheck,
        findings: Findings,
        options: Options,
        *,
        run: str,
        catalog: Any,
        state: Any,
        stop: Callable[[], bool],
    ) -> RunEnd:
        """Run, and hand what comes out to ``check``; ``stop`` is asked on the way.

        Args:
            run: which run it is, for people.
        """

    def behave(
        self,
        findings: Findings,
        options: Options,
        *,
        catalog: Any,
        state: Any,
        streams: Collection[str],
        first_rows: float | None,
    ) -> dict[str, str]:
        """Look at how the tap behaves as a program; gives rules that could not be looked at, with the reason."""
