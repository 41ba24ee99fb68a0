"""What all checks of behaviour share: the tap, its runs, and where findings and reasons go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.engine.command.catalogs import legacy
from burler.spec.finding import Findings
from burler.spec.limits import Limits
from burler.verify.behaviour_seen import MOST_KEYS, Seen
from burler.verify.program import Disturbance, Ended, Program, never


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is over: how it ended, and what came."""

    ended: Ended
    seen: Seen

    @property
    def accepted(self) -> bool:
        """Whether the tap took what it was given: rows came, or it ended well."""
        return self.seen.started or self.ended.well


@dataclass(slots=True)
class Trial:
    """A tap under trial.

    Attributes:
        catalog: what the normal run was given. flags: those that the tap knows.
        state: the last one of a whole run, or None.
        deadline_seconds: so long each run may take. whole_seconds: the same of runs that must reach their end.
        earlier_states: those of earlier versions, each with a name.
        unchecked: rules that could not be looked at, with the reason.
    """

    program: Program
    catalog: Any
    flags: Collection[str]
    findings: Findings
    limits: Limits
    state: Any
    streams: Collection[str]
    wants: Callable[[str], bool]
    progress: Callable[[str], None]
    first_rows: float | None
    deadline_seconds: float = 120.0
    whole_seconds: float = 600.0
    earlier_states: tuple[tuple[str, Any], ...] = ()
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    unchecked: dict[str, str] = field(default_factory=dict)
    _whole: Run | None = None

    def wants_any(self, *codes: str) -> bool:
        """Whether one of these rules is asked for."""
        return any(self.wants(code) for code in codes)

    def add(
        self, code: str, message: str, *, stream: str | None = None, path: str | None = None, place: str | None = None
    ) -> None:
        """Report something, if its rule is asked for."""
        if self.wants(code):
            self.findings.add(code, self.program.clean(message), stream=stream, path=path, place=place)

    def leave(self, reason: str, *codes: str) -> None:
        """Note why rules could not be looked at. What was found before counts, and the first reason stays."""
        for code in codes:
            if self.wants(code) and not self.findings.seen(code):
                self.unchecked.setdefault(code, reason)

    def given(self, catalog: Any = None) -> dict[str, Any]:
        """A catalog (the normal one unless given) by the flag that the tap knows."""
        catalog = self.catalog if catalog is None else catalog
        return {"catalog": catalog} if "--catalog" in self.flags else {"properties": legacy(catalog)}

    def run(
        self,
        what: str,
        *,
        program: Program | None = None,
        given: Mapping[str, Any] | None = None,
        state: Any = None,
        to_the_end: bool = True,
        stop: Callable[[], bool] = never,
        keys: bool = False,
        deadline_seconds: float | None = None,
        disturbance: Disturbance | None = None,
        seen: Seen | None = None,
    ) -> Run:
        """One run.

        Args:
            what: for people: "run with SIGTERM".
            given: the catalog's flags; None: as in the normal run.
            to_the_end: False: it is ended once a row has come. stop: it is ended once this says yes.
        """
        self.progress(what)
        came = Seen(keys=keys) if seen is None else seen
        ended = (program or self.program).run(
            **(self.given() if given is None else given),
            state=state,
            take=came.take,
            stop=lambda: stop() or (not to_the_end and came.started),
            deadline_seconds=self.deadline_seconds if deadline_seconds is None else deadline_seconds,
            disturbance=disturbance,
        )
        came.end()
        self.judge(ended, what)
        return Run(ended, came)

    def judge(self, ended: Ended, what: str) -> None:
        """What holds of every run, whatever it was for."""
        for key in ended.told:
            named = f"'{key}'" if key else "a secret key"
            self.add("P613", f"the value of {named} of the config stands on stderr.", place=what)
        if ended.left:
            names = ", ".join(ended.left[:5])
            self.add(
                "P618", f"of the tap's processes {len(ended.left)} live on after it has ended: {names}.", place=what
            )

    def whole(self) -> Run | None:
        """An undisturbed run with the keys of its rows, once; None if it did not end well in its time."""
        if self._whole is None:
            self._whole = self.run("whole run to compare with", keys=True, deadline_seconds=self.whole_seconds)
        return self._whole if self._whole.ended.well else None

    @property
    def is_long(self) -> bool:
        """Whether a whole run was tried, and had not ended in its time."""
        return self._whole is not None and self._whole.ended.timed_out

    @property
    def no_whole(self) -> str:
        """Why there is no whole run to compare with."""
        return f"a whole run takes longer than {self.whole_seconds:g} s" if self.is_long else "a whole run ends badly"

    def failure(self, ended: Ended) -> str:
        """How a run failed, for messages."""
        if ended.timed_out:
            return f"had not ended after {ended.seconds:.0f} s"
        said = self.program.last_words(ended)
        return f"ended with exit code {ended.exit_code}; it said last: {said}"

    def too_many_keys(self) -> str:
        """Why nothing is said of a large source."""
        return f"the source has more than {MOST_KEYS:,} rows with keys"
