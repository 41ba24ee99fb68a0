"""The rules as tests: one for each rule and stream, for pytest (``burler.testing``, ``burler.pytest_plugin``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from burler.declare.tap import Tap
from burler.spec.choice import Choice, check_choice
from burler.spec.limits import Limits
from burler.spec.table import RULES
from burler.verify.options import Options
from burler.verify.result import Verification
from burler.verify.subject_app import AppSubject
from burler.verify.verifying import verify

WHOLE = "tap"
"""Stands for the stream where a rule is about the tap as a whole."""


def verification_of(
    tap: Tap,
    config: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    *,
    select: Iterable[str] = ("ALL",),
    ignore: Iterable[str] = (),
    per_stream_ignores: Mapping[str, Iterable[str]] | None = None,
    limits: Limits | None = None,
    catalog: Any = None,
    state: Mapping[str, Any] | None = None,
    max_records: int | None = None,
    max_seconds: float | None = None,
    resume: bool = True,
) -> Verification:
    """Verify a tap that is an object in this process; see ``burler.testing.verify_tap``."""
    per_stream = {stream: tuple(codes) for stream, codes in (per_stream_ignores or {}).items()}
    choice = Choice(tuple(select), tuple(ignore), per_stream)
    check_choice(choice, RULES)
    options = Options(
        choice=choice,
        limits=limits or Limits(),
        max_records=max_records,
        max_seconds=max_seconds,
        resume=resume,
        behaviour=True,
        catalog=catalog,
        state=None if state is None else dict(state),
    )
    given: Callable[[], Mapping[str, Any]] = config if callable(config) else lambda: dict(config or {})
    return verify(AppSubject(tap, given), options)


@dataclass(frozen=True, slots=True)
class Case:
    """One test: a rule, and the stream it is looked at of."""

    code: str
    stream: str

    @property
    def name(self) -> str:
        """As it is shown: ``B302-state-ahead-contacts``."""
        return f"{self.code}-{RULES[self.code].name}-{self.stream}"


def cases_of(streams: Iterable[str], choice: Choice, *, behaviour: bool) -> list[Case]:
    """The tests of a tap with these streams. Rules of behaviour, and what is found of no stream, are the tap's as a
    whole, whichever stream they name."""
    found: list[Case] = []
    for code, rule in RULES.items():
        if not choice.wants(rule):
            continue
        if code[0] == "P":
            if behaviour or code == "P609":  # that a run fails shows without behaviour, too
                found.append(Case(code, WHOLE))
            continue
        found += [Case(code, stream) for stream in streams if choice.wants(rule, stream)]
        found.append(Case(code, WHOLE))
    return found


def outcome_of(case: Case, verification: Verification, streams: Iterable[str]) -> tuple[str, str]:
    """("passed", "failed" or "skipped", what to say). Warnings fail as well: a test that may be wrong is left out by
    ``ignore``; infos do not."""
    known = set(streams)
    broken = [
        one
        for one in verification.findings
        if one.code == case.code
        and one.severity != "info"
        and (one.stream == case.stream or (case.stream == WHOLE and (one.stream not in known or case.code[0] == "P")))
    ]
    if broken:
        lines = [f"{one.code} {RULES[one.code].name}: {one.message}{_where(one)}" for one in broken]
        return "failed", "\n".join([*lines, f"What it is about: burler verify --explain {case.code}"])
    if case.code in verification.unchecked:
        return "skipped", verification.unchecked[case.code]
    return "passed", ""


def _where(one: Any) -> str:
    places = ", ".join(one.places)
    run = f"{one.run}, " if one.run else ""
    stream = f"stream '{one.stream}', " if one.stream else ""
    shown = f"{stream}{run}{places}".rstrip(", ")
    return f" ({shown})" if shown else ""
