"""What a verification comes to: the findings that count, without secrets."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any

from burler import times
from burler.config.secrets import masked
from burler.spec.check import counted
from burler.spec.finding import Finding, Findings
from burler.spec.table import RULES
from burler.verify.options import Options
from burler.verify.result import RunFacts, StreamFacts, Verification

if TYPE_CHECKING:
    from burler.verify.baseline import Baseline


def result(
    subject: str,
    findings: Findings,
    options: Options,
    *,
    runs: list[RunFacts],
    unchecked: dict[str, str],
    started: dt.datetime,
    seconds: float,
    baseline: Baseline | None,
    areas: str,
) -> Verification:
    """What is told in the end: the findings that count, without secrets."""
    everything = [_harmless(one) for one in findings]
    wanted = counted(everything, options.choice)
    new, known = (wanted, []) if baseline is None else baseline.split(wanted)
    asked = [code for code, rule in RULES.items() if code[0] in areas and options.choice.wants(rule)]
    checked = [code for code in asked if code not in unchecked]
    return Verification(
        subject=masked(subject),
        started=times.format_time(started),
        seconds=seconds,
        findings=list(new),
        runs=[_without_secrets(run) for run in runs],
        checked=checked,
        unchecked={code: unchecked[code] for code in asked if code in unchecked},
        baselined=len(known),
        gone=[] if baseline is None else [one for one in baseline.gone(everything) if _code_of(one) in checked],
        ignored=len(everything) - len(wanted),
    )


def _without_secrets(run: RunFacts) -> RunFacts:
    """Facts in which no name of a stream or a field, and no text of a row, is a secret."""
    streams = {}
    for name, facts in run.streams.items():
        shown = masked(name)
        held = {one.name: _clean(getattr(facts, one.name)) for one in dataclasses.fields(facts)}
        streams[shown] = StreamFacts(**{**held, "stream": shown})
    return dataclasses.replace(run, name=masked(run.name), streams=streams)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list) else value


def _code_of(fingerprint: str) -> str:
    return fingerprint.partition("|")[0]


def _harmless(one: Finding) -> Finding:
    stream, path = (None if text is None else masked(text) for text in (one.stream, one.path))
    return dataclasses.replace(one, message=masked(one.message), stream=stream, path=path)
