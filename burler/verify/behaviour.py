"""How a tap behaves as a program: each check is a short run of its own, ended as soon as it is decided.

What a run must show is in ``burler.spec.rules_program``. The parts: ``behaviour_discovery`` (the catalog),
``behaviour_given`` (catalogs and states), ``behaviour_config`` (config errors), ``behaviour_ends`` (signals, and a
reader that goes away).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from burler.spec.finding import Findings
from burler.verify.behaviour_config import check_config
from burler.verify.behaviour_discovery import Discovered, check_discovery
from burler.verify.behaviour_ends import check_ends
from burler.verify.behaviour_given import check_given, check_state
from burler.verify.behaviour_states import STATES
from burler.verify.behaviour_trial import Trial
from burler.verify.options import Options
from burler.verify.program import Ended, Program

__all__ = ["STATES", "Discovered", "Trial", "check_behaviour", "check_discovery", "check_state", "ended_badly"]

_WHOLE_SECONDS = 600.0


def check_behaviour(
    program: Program,
    findings: Findings,
    options: Options,
    *,
    catalog: Any,
    state: Any,
    streams: Collection[str],
    first_rows: float | None,
    flags: Collection[str],
) -> dict[str, str]:
    """Look at what the rules of behaviour say, but for those on discovery.

    Args:
        catalog: what the normal run was given.
        state: the last one of a whole run, or None.
        streams: the names on the messages of the selected streams.
        first_rows: how long it took in the normal run until a row came; None: none did.
        flags: those that the tap knows.

    Returns:
        The rules that could not be looked at, with the reason.
    """
    trial = Trial(
        program=program,
        catalog=catalog,
        flags=flags,
        findings=findings,
        limits=options.limits,
        state=state,
        streams=streams,
        wants=options.wants,
        progress=options.progress,
        first_rows=first_rows,
        deadline_seconds=max(60.0, 5 * (first_rows or 0.0)),
        whole_seconds=min(_WHOLE_SECONDS, options.max_seconds or _WHOLE_SECONDS),
        earlier_states=options.earlier_states,
    )
    for check in (check_given, check_config, check_ends):
        check(trial)
    return {code: reason for code, reason in trial.unchecked.items() if not findings.seen(code)}


def ended_badly(findings: Findings, ended: Ended, run: str, program: Program) -> bool:
    """Report a run that failed as P609; whether it did. One that was ended by us says nothing.

    Args:
        run: which one, for people: "sync".
    """
    if ended.exit_code == 0 or ended.stopped or ended.timed_out:
        return False
    said = program.last_words(ended)
    findings.add("P609", f"{run} ended with exit code {ended.exit_code}; it said last: {said}", place=run)
    return True
