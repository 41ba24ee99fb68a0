"""Any tap's command, to be verified."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from burler.engine.command.catalogs import legacy, names_of
from burler.engine.command.tap_process import flags_of
from burler.spec.finding import Findings
from burler.spec.messages import MessageCheck
from burler.spec.table import RULES
from burler.verify.behaviour import check_behaviour, check_discovery, ended_badly
from burler.verify.options import Options
from burler.verify.program import Ended, Program
from burler.verify.subject import RunEnd

_UNSEEN = {
    code: "requests of another program are not seen: needs a tap made with burler, as APP"
    for code in RULES
    if code[0] == "H"
}


class ProgramSubject:
    """A command, run as a process."""

    selects_all = False

    def __init__(self, program: Program) -> None:
        self._program = program
        self._flags: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """See ``Subject``."""
        return self._program.shown

    @property
    def secrets(self) -> Collection[str]:
        """See ``Subject``."""
        return self._program.secrets

    def _known_flags(self) -> frozenset[str]:
        if self._flags is None:
            self._flags = flags_of(self._program)
        return self._flags

    def discover(self, findings: Findings, options: Options) -> tuple[Any, dict[str, str]]:
        """See ``Subject``."""
        found = check_discovery(
            self._program, findings, flags=self._known_flags(), wants=options.wants, progress=options.progress
        )
        return found.catalog, found.unchecked

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
        """See ``Subject``."""
        given: dict[str, Any] = {"state": state, "stop": stop, "deadline_seconds": options.max_seconds}
        ended = self._given(catalog, check, findings, given)
        ended_badly(findings, ended, run, self._program)
        stopped = ended.stopped or ended.timed_out
        how = "stopped" if stopped else "succeeded" if ended.exit_code == 0 else "failed"
        return RunEnd(how, ended.exit_code, unchecked=_UNSEEN)

    def _given(self, catalog: Any, check: MessageCheck, findings: Findings, more: Mapping[str, Any]) -> Ended:
        """A run with a catalog, by the flag that the tap goes by: old ones take ``--catalog`` and look at nothing but
        ``--properties``."""
        flags, program = self._known_flags(), self._program
        if "--catalog" not in flags:
            return program.run(take=check.feed, properties=legacy(catalog), **more)
        ended = program.run(take=check.feed, catalog=catalog, **more)
        silent = ended.well and not check.lines
        if not silent or "--properties" not in flags or not names_of(catalog):
            return ended
        ended = program.run(take=check.feed, properties=legacy(catalog), **more)
        if check.lines:
            self._flags = flags - {"--catalog"}
            findings.add(
                "P627", "with --catalog the tap writes nothing and ends with exit code 0; with --properties it works"
            )
        return ended

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
        """See ``Subject``."""
        return check_behaviour(
            self._program,
            findings,
            options,
            catalog=catalog,
            state=state,
            streams=streams,
            first_rows=first_rows,
            flags=self._known_flags(),
        )
