"""A whole verification: discovery, a run, runs that are resumed from its STATEs, and how the tap behaves.

discovery -> sync -> resumed from the first, a middle and the last STATE -> behaviour
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from burler.config.secrets import hide
from burler.engine.command.catalogs import select_all, without
from burler.spec.catalog import check_catalog
from burler.spec.declared import declared_of
from burler.spec.finding import Findings
from burler.spec.messages import MessageCheck
from burler.spec.resume import compare, compare_new, compare_stopped
from burler.spec.statelog import KeptState
from burler.spec.states import streams_of, without_streams
from burler.spec.table import RULES
from burler.verify.facts import facts_of
from burler.verify.options import Options
from burler.verify.outcome import result
from burler.verify.result import RunFacts, Verification
from burler.verify.subject import RunEnd, Subject
from burler.verify.unlooked import unlooked

if TYPE_CHECKING:
    from burler.verify.baseline import Baseline

_SYNC = "sync"
_OF_DISCOVERY = ("P611", "P614", "P615")
_OF_RESUMED = ("B311", "B312", "B313", "B325", "B326")


def verify(subject: Subject, options: Options | None = None, *, baseline: Baseline | None = None) -> Verification:
    """Verify a tap.

    Raises:
        UsageError: it can't be run at all: no such command, a wrong config.
    """
    return _Verifying(subject, options or Options()).whole(baseline)


class _Verifying:
    """One verification on its way."""

    def __init__(self, subject: Subject, options: Options) -> None:
        self.subject, self.options = subject, options
        self.findings = Findings(RULES)
        self.unchecked: dict[str, str] = {}
        self._left_by_runs: list[Mapping[str, str]] = []
        self.runs: list[RunFacts] = []
        self.catalog: Any = None
        self.selected: Any = None
        self._began = time.monotonic()
        self._started = dt.datetime.now(dt.UTC)
        for secret in subject.secrets:
            hide(secret)

    def whole(self, baseline: Baseline | None) -> Verification:
        """All of it, in order."""
        self.findings.run = "discovery"
        self.options.progress("discovery")
        self.catalog, left = self.subject.discover(self.findings, self.options)
        self.unchecked.update(left)
        if self.catalog is not None:
            check_catalog(self.catalog, findings=self.findings)
        self.selected = self.options.catalog if self.options.catalog is not None else select_all(self.catalog)
        if any(self.options.wants(code) for code in RULES if code[0] != "C" and code not in _OF_DISCOVERY):
            self._runs()
        return result(
            self.subject.name,
            self.findings,
            self.options,
            runs=self.runs,
            unchecked=self.unchecked,
            started=self._started,
            seconds=time.monotonic() - self._began,
            baseline=baseline,
            areas="CMBORPH",
        )

    def _runs(self) -> None:
        """What needs the tap to run: as far as rules are asked for that need it."""
        first, end = self._sync(_SYNC, self.options.state)
        try:
            self._first_ended(first, end)
            if not self.options.resume:
                self._leave("resumed runs were not asked for", *_OF_RESUMED)
            elif any(map(self.options.wants, (*_OF_RESUMED, "B304", "B316"))):
                self._resumed(first, end)
            if not self.options.behaviour:
                self._leave("behaviour was not asked for", *(code for code in RULES if _is_behaviour(code)))
            elif any(self.options.wants(code) for code in RULES if _is_behaviour(code)):
                self._behave(first, end)
        finally:
            first.close()
        for code, reason in self._left_by_runs[0].items():
            if all(code in left for left in self._left_by_runs):
                self._leave(reason, code)  # no run could look at it

    def _sync(
        self, run: str, state: Any, left_out: Collection[str] = (), *, nothing_new: bool = False
    ) -> tuple[MessageCheck, RunEnd]:
        """One run of the tap, perhaps without some streams."""
        self.options.progress(run)
        findings = self.findings
        findings.run = run
        selected, options = self.selected, self.options
        if left_out:
            selected = without(selected, left_out)
            options = replace(options, catalog=selected)
        given = options.catalog is not None
        declared = declared_of(selected, all_selected=not given and self.subject.selects_all)
        check = MessageCheck(
            findings,
            limits=self.options.limits,
            given=state,
            declared=declared or None,
            secrets=self.subject.secrets,
            batch_allow=self.options.allow,
            log_all=self.options.resume,
        )
        began = time.monotonic()
        most, seconds = self.options.max_records, self.options.max_seconds

        def stop() -> bool:
            enough = most is not None and check.rows >= most
            return enough or (seconds is not None and time.monotonic() - began >= seconds)

        end = self.subject.sync(check, findings, options, run=run, catalog=selected, state=state, stop=stop)
        check.finish(whole=end.whole, nothing_new=nothing_new, held=end.held)
        facts = facts_of(
            check,
            run,
            ended=end.ended,
            exit_code=end.exit_code,
            seconds=time.monotonic() - began,
            requests=end.requests,
        )
        _add_what_was_seen(facts, end)
        self.runs.append(facts)
        self._left_by_runs.append(end.unchecked)
        return check, end

    def _first_ended(self, first: MessageCheck, end: RunEnd) -> None:
        for code, reason in unlooked(first, stopped=end.ended == "stopped").items():
            self.unchecked.setdefault(code, reason)

    def _resumed(self, first: MessageCheck, end: RunEnd) -> None:
        """Runs from the first, a middle and the last STATE."""
        chosen = first.states.chosen()
        if not chosen:
            self._leave("the run wrote no STATE", *_OF_RESUMED)
            return
        if end.ended == "failed":
            self._leave("the first run failed", *_OF_RESUMED)
            return
        for state in chosen:
            self._resume(first, end, state)
        self._selected_later(first, end)

    def _resume(self, first: MessageCheck, end: RunEnd, state: KeptState) -> None:
        last = state.number == first.states.count and end.whole
        name = f"resumed from STATE {state.number} of {first.states.count}"

        def look(resumed: MessageCheck) -> None:
            compare(
                first,
                state,
                resumed,
                self.findings,
                last=last,
                lookbacks=end.lookbacks,
                exclusive=end.exclusive,
                held=end.held,
            )

        def look_at_part(resumed: MessageCheck) -> bool:
            return compare_stopped(first, state, resumed, self.findings, exclusive=end.exclusive)

        self._apart(name, state.value, look, look_at_part, nothing_new=last)

    def _apart(
        self,
        run: str,
        state: Any,
        look: Callable[[MessageCheck], None],
        look_at_part: Callable[[MessageCheck], bool] = lambda _again: False,
        *,
        only: Collection[str] | None = None,
        left_out: Collection[str] = (),
        nothing_new: bool = False,
    ) -> None:
        """A further run; of what is found in it that counts which the runs before have not shown. ``look`` gets what it
        gave, if it came to its end, and ``look_at_part`` if it was stopped before (it gives whether that was enough to
        see rows that are lost); ``only``: the rules that count."""
        seen = {one.fingerprint for one in self.findings}
        before, self.findings = self.findings, Findings(RULES)
        try:
            again, how = self._sync(run, state, left_out, nothing_new=nothing_new)
            if how.whole:
                look(again)
            else:
                codes = ["B311", "B312", "B313", "B326"] if only is None else [code for code in only if code[0] == "B"]
                if how.ended == "stopped" and look_at_part(again):
                    codes = ["B311", "B313"]
                ended = "failed" if how.ended == "failed" else f"was {how.ended}"
                self._leave(f"the run '{run}' {ended}", *codes)
            again.close()
        finally:
            found, self.findings = self.findings, before
        new = (one for one in found if one.fingerprint not in seen)
        self.findings.take(one for one in new if only is None or one.code in only)

    def _selected_later(self, first: MessageCheck, end: RunEnd) -> None:
        """Runs from the last STATE as if some streams had just been selected: half of them, then the others."""
        named = [name for name in streams_of(first.states.last) if name in first.streams and first.streams[name].rows]
        if not end.whole or self.options.state is not None or len(named) < 2 or not self.options.wants("B325"):
            self._leave("needs a whole run without a state, with bookmarks of two streams or more", "B325")
            return
        for chosen in (named[::2], named[1::2]):
            run = f"as if {', '.join(chosen[:3])}{' ...' if len(chosen) > 3 else ''} had just been selected"
            # A stream that begins anew may take its parent's bookmark back with it: no fault of this run.
            self._apart(
                run,
                without_streams(first.states.last, chosen),
                partial(self._compare_new, first, chosen),
                only=("B325", "P609"),
            )

    def _compare_new(self, first: MessageCheck, streams: Collection[str], again: MessageCheck) -> None:
        found = Findings(RULES)
        found.run = self.findings.run
        compare_new(first, again, streams, found)
        lacking = [one.stream for one in found if one.stream is not None]
        if lacking:
            # That state was made here. What a tap writes without these streams may say that they were not asked for.
            certain = self._really_new(first, lacking)
            self.findings.take(one for one in found if one.stream in certain)

    def _really_new(self, first: MessageCheck, streams: list[str]) -> Collection[str]:
        """Which of these do not come whole after a run that did not have them selected."""
        states: list[Any] = []
        lacking: list[Collection[str]] = []
        named = f"{', '.join(streams[:3])}{' ...' if len(streams) > 3 else ''}"

        def look(again: MessageCheck) -> None:
            found = Findings(RULES)
            compare_new(first, again, streams, found)
            lacking.append({one.stream for one in found if one.stream is not None})

        self._apart(f"without {named}", None, lambda run: states.append(run.states.last), only=(), left_out=streams)
        if states and states[0] is not None:
            self._apart(f"once {named} had been selected later", states[0], look, only=())
        return lacking[0] if lacking else streams

    def _behave(self, first: MessageCheck, end: RunEnd) -> None:
        self.findings.run = "behaviour"
        rows = [check.began for check in first.streams.values() if check.began is not None]
        state = first.states.last if end.whole else None
        streams = {name for name, check in first.streams.items() if check.schema is not None}
        first_rows = min(rows) if rows else None
        self.unchecked.update(
            self.subject.behave(
                self.findings,
                self.options,
                catalog=self.selected,
                state=state,
                streams=streams,
                first_rows=first_rows,
            )
        )

    def _leave(self, reason: str, *codes: str) -> None:
        for code in codes:
            self.unchecked.setdefault(code, reason)


def _is_behaviour(code: str) -> bool:
    return (code[0] == "P" and code != "P609") or code == "B314"


def _add_what_was_seen(facts: RunFacts, end: RunEnd) -> None:
    """To the facts of a run: what the tap, in this process, was seen to do beside its messages."""
    for stream, patch in end.patches.items():
        if stream in facts.streams and patch:
            facts.streams[stream].patch = {**facts.streams[stream].patch, **patch}
    for stream, flips in end.orders.items():
        if stream in facts.streams and flips:
            facts.streams[stream].order.setdefault("declared", []).extend(flips)
