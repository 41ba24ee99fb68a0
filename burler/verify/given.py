"""Verifying what is given, without running a tap: the messages of a run, or a catalog."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from burler.config.secrets import hide
from burler.spec.catalog import check_catalog
from burler.spec.declared import declared_of
from burler.spec.finding import Findings
from burler.spec.messages import MessageCheck
from burler.spec.table import RULES
from burler.verify.facts import facts_of
from burler.verify.options import Options
from burler.verify.outcome import result
from burler.verify.result import Verification
from burler.verify.unlooked import unlooked

if TYPE_CHECKING:
    from burler.verify.baseline import Baseline


def verify_messages(
    blocks: Iterable[bytes],
    *,
    subject: str,
    options: Options,
    secrets: Iterable[str] = (),
    baseline: Baseline | None = None,
    stopped: Callable[[], bool] = lambda: False,
    batch_options: Any = None,
) -> Verification:
    """Verify the messages of a run that somebody else runs, as they come.

    Args:
        stopped: asked at the end: whether the reading was ended before the input was.
    """
    began, started = time.monotonic(), dt.datetime.now(dt.UTC)
    secrets = tuple(secrets)
    for secret in secrets:
        hide(secret)
    findings = Findings(RULES)
    declared = None
    if options.catalog is not None:
        check_catalog(options.catalog, findings=findings)
        declared = declared_of(options.catalog)
    check = MessageCheck(
        findings,
        limits=options.limits,
        given=options.state,
        declared=declared,
        secrets=secrets,
        batch_options=batch_options,
        batch_allow=options.allow,
        guesses_given=True,
    )
    for block in blocks:
        check.feed(block)
        if _enough(check, options):
            break
    whole = not stopped() and not _enough(check, options)
    check.finish(whole=whole)
    ended = "" if whole else "stopped"
    run = facts_of(check, "input", ended=ended, exit_code=None, seconds=time.monotonic() - began)
    found = result(
        subject,
        findings,
        options,
        runs=[run],
        unchecked=_unchecked(check, whole=whole, has_secrets=bool(secrets), has_catalog=declared is not None),
        started=started,
        seconds=time.monotonic() - began,
        baseline=baseline,
        areas="CMBORPH" if declared is not None else "MBORPH",
    )
    check.close()
    return found


def _unchecked(check: MessageCheck, *, whole: bool, has_secrets: bool, has_catalog: bool) -> dict[str, str]:
    """What could not be looked at, and why."""
    left = {code: "needs a tap that can be run: burler verify APP, or --exec" for code in RULES if _needs_tap(code)}
    left.update(unlooked(check, stopped=not whole))
    if not has_secrets:
        left["M215"] = "needs a config with secrets: --config FILE"
    if not has_catalog:
        left.update(dict.fromkeys(("M223", "M224"), "need the catalog of the run: --catalog FILE"))
    return left


def _enough(check: MessageCheck, options: Options) -> bool:
    return options.max_records is not None and check.rows >= options.max_records


def _needs_tap(code: str) -> bool:
    return code[0] in "PH" or code in ("B311", "B312", "B313", "B314", "B325", "B326", "O401", "R502")


def verify_catalog(catalog: Any, *, subject: str, options: Options, baseline: Baseline | None = None) -> Verification:
    """Verify a catalog alone."""
    began, started = time.monotonic(), dt.datetime.now(dt.UTC)
    findings = Findings(RULES)
    check_catalog(catalog, findings=findings, run="")
    seconds = time.monotonic() - began
    return result(
        subject,
        findings,
        options,
        runs=[],
        unchecked={},
        started=started,
        seconds=seconds,
        baseline=baseline,
        areas="C",
    )
