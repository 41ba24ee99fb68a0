"""The rules as functions: messages of a run, or of several runs of one tap, in; findings out."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from burler.config.secrets import scrub, secret_values
from burler.spec.choice import Choice
from burler.spec.declared import declared_of
from burler.spec.finding import Finding, Findings
from burler.spec.limits import Limits
from burler.spec.messages import MessageCheck
from burler.spec.resume import compare
from burler.spec.rule import SEVERITIES
from burler.spec.table import RULES

Messages = bytes | str | Iterable[bytes | str | Mapping[str, Any]]


def check_messages(
    messages: Messages,
    *,
    catalog: Any = None,
    state: Any = None,
    config: Mapping[str, Any] | None = None,
    resumed: Mapping[int, Messages] | None = None,
    choice: Choice | None = None,
    limits: Limits | None = None,
    whole: bool = True,
    now: Callable[[], dt.datetime] | None = None,
) -> list[Finding]:
    """Hold a tap's messages against the rules of areas M, B, O and R.

    Args:
        messages: lines of JSON: a whole text, or blocks of it (an open file), or the messages as objects.
        catalog: the catalog that the run was given, as plain JSON.
        state: the state that it was given.
        config: the tap's config: its secrets must not appear.
        resumed: messages of runs that were given STATE n of these (counted from 1), by n.
        choice: which rules count; all by default.
        whole: the run came to its end, so that what is missing at its end is missing.

    Returns:
        the findings that count, the worst first.

    Raises:
        ValueError: ``resumed`` speaks of a STATE that is not there.
    """
    findings = Findings(RULES)
    more: dict[str, Any] = {} if now is None else {"now": now}
    secrets = tuple(sorted(secret_values(config), key=len, reverse=True)) if config is not None else ()
    declared = None if catalog is None else declared_of(catalog)

    checks: list[MessageCheck] = []

    def run(text: Messages, given: Any, *, nothing_new: bool = False) -> MessageCheck:
        check = MessageCheck(
            findings,
            limits=limits,
            given=given,
            declared=declared,
            secrets=secrets,
            log_all=bool(resumed),
            **more,
        )
        checks.append(check)
        for block in [text] if isinstance(text, str | bytes) else text:
            check.feed(_bytes_of(block))
        check.finish(whole=whole, nothing_new=nothing_new)
        return check

    try:
        first = run(messages, state)
        for number, text in (resumed or {}).items():
            kept = next((one for one in first.states.kept if one.number == number), None)
            if kept is None:
                raise ValueError(f"the messages have no STATE {number}")
            findings.run = f"resumed from STATE {number}"
            last = number == first.states.count
            other = run(text, kept.value, nothing_new=last)
            compare(first, kept, other, findings, last=last)
    finally:
        for check in checks:
            check.close()
    return [_without(secrets, one) for one in counted(findings, choice or Choice())]


def _bytes_of(block: bytes | str | Mapping[str, Any]) -> bytes:
    if isinstance(block, Mapping):
        return json.dumps(block).encode() + b"\n"
    return block.encode(errors="surrogatepass") if isinstance(block, str) else block


def _without(secrets: tuple[str, ...], one: Finding) -> Finding:
    """A finding whose message shows no secret."""
    message = scrub(one.message, secrets)
    return one if message == one.message else dataclasses.replace(one, message=message)


def counted(findings: Iterable[Finding], choice: Choice) -> list[Finding]:
    """The findings that a choice wants, the worst first, then by stream and rule."""
    wanted = [one for one in findings if choice.wants(RULES[one.code], one.stream)]
    return sorted(wanted, key=lambda one: (SEVERITIES.index(one.severity), one.stream or "", one.code, one.path or ""))
