"""Checks of how a tap ends when it is told to, and when nobody reads any more."""

from __future__ import annotations

import signal

from burler.verify.behaviour_seen import Seen, shown_keys
from burler.verify.behaviour_trial import Run, Trial
from burler.verify.program import Disturbance
from burler.words import counted

_SIGTERM_CODES = ("P606", "P607", "P608", "P619", "P620", "P623", "P624")
_OK = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
_BUFFER_BYTES = 8192
"""So much may stand in a tap's own buffer when a signal comes: what the libraries of most languages hold."""
_NEWS = 3
_FITS = "all that the tap writes fits into a pipe: it may not notice that nobody reads"


def check_ends(trial: Trial) -> None:
    """P605 to P608, P619, P620, P623, P624, P626."""
    if trial.wants_any("P605", "P626"):
        _check_closed(trial)
    if trial.wants_any(*_SIGTERM_CODES):
        _check_sigterm(trial)


def _check_closed(trial: Trial) -> None:
    within = trial.limits.stop_seconds
    seen = Seen()
    disturbance = Disturbance(lambda: seen.lines > 0, "close", within)
    run = trial.run("run whose reader goes away", seen=seen, disturbance=disturbance)
    ended = run.ended
    if b"Traceback (most recent call last):" in ended.stderr and seen.lines:
        said = trial.program.last_words(ended)
        trial.add("P626", f"the reader of its output has gone, and it ends in a traceback, whose last line is: {said}")
    if not seen.lines:
        trial.leave(_nothing_came(run), "P605", "P626")
    elif not ended.disturbed:
        trial.leave(_FITS, "P605", "P626")
    elif ended.timed_out:
        trial.add("P605", f"the reader of its output has gone, and the tap still runs {within:g} s later.")
    elif ended.exit_code == 0:
        whole = trial.whole()
        if whole is None and not trial.is_long:
            trial.leave(f"exit code 0, and {trial.no_whole}", "P605")
        elif whole is not None and whole.seen.bytes <= seen.bytes + ended.pipe_bytes + _BUFFER_BYTES:
            trial.leave(_FITS, "P605", "P626")
        else:
            trial.add("P605", "the reader of its output has gone, and the tap ends with exit code 0.")


def _check_sigterm(trial: Trial) -> None:
    within = trial.limits.stop_seconds
    seen = Seen(keys=True)

    def now() -> bool:
        if seen.started:
            seen.mark()
        return seen.started

    run = trial.run("run with SIGTERM", seen=seen, disturbance=Disturbance(now, "signal", within))
    ended = run.ended
    if not seen.started:
        trial.leave(_nothing_came(run), *_SIGTERM_CODES)
        return
    if not ended.disturbed:
        trial.leave("the run was over before SIGTERM could be sent", *_SIGTERM_CODES)
        return
    if ended.timed_out:
        trial.add("P606", f"it still runs {within:g} s after SIGTERM.")
        trial.leave("it does not end at SIGTERM", *_SIGTERM_CODES)
        return
    failing = trial.findings.seen("P609")  # then it may be about to end by itself
    if ended.sigterm == "ignored" and not failing and not _may_be_over(trial, run):
        trial.add("P606", "SIGTERM is switched off: the tap runs on as if nothing had come.")
    if ended.exit_code not in _OK and failing:
        trial.leave("the tap fails without a signal, too", "P620")
    elif ended.exit_code not in _OK:
        said = trial.program.last_words(ended)
        trial.add("P620", f"after SIGTERM it ends with exit code {ended.exit_code}; it said last: {said}")
    _check_last_line(trial, run)
    if ended.exit_code >= 0:
        _check_rows(trial, run)
    else:
        trial.leave("SIGTERM kills the tap at once: it writes nothing more", "P608", "P623", "P624")


def _may_be_over(trial: Trial, run: Run) -> bool:
    """Whether all of the source may have been read, and written into the pipe, when SIGTERM came: a tap that has
    nothing more to do may well switch signals off for its last moments."""
    whole = trial.whole()
    return whole is not None and whole.seen.bytes <= run.ended.pipe_bytes + _BUFFER_BYTES


def _nothing_came(run: Run) -> str:
    if run.ended.timed_out:
        return f"no row came within {run.ended.seconds:.0f} s"
    return "no row came" if run.ended.well else "the run failed before a row came"


def _check_last_line(trial: Trial, run: Run) -> None:
    torn = run.seen.torn
    if torn is None:
        return
    text = f"{counted(len(torn), 'byte')} of a line came after the last whole one, and its rest never does"
    if run.ended.exit_code < 0:
        trial.add("P619", f"SIGTERM kills the tap in the middle of a line: {text}.")
    else:
        trial.add("P607", f"after SIGTERM the tap ends with exit code {run.ended.exit_code}, and {text}.")


def _check_rows(trial: Trial, run: Run) -> None:
    """The tap has ended by itself: is what it said last true?"""
    codes = ("P606", "P608", "P623", "P624")
    whole = trial.whole()
    if whole is None:
        trial.leave(trial.no_whole, "P608", "P623", "P624")
        return
    short = {name: rows for name, rows in whole.seen.rows.items() if run.seen.rows.get(name, 0) < rows}
    if not short:
        _check_went_on(trial, run, whole)
        trial.leave("the whole source came although SIGTERM came after its first row: too small to tell", *codes)
        return
    if run.ended.exit_code == 0 and run.seen.rows_after_state:
        rows = run.seen.rows_after_state
        trial.add("P623", f"after SIGTERM the exit code is 0, and no STATE covers the last {counted(rows, 'row')}.")
    for name, rows in short.items():
        if run.seen.activated.get(name):
            came = run.seen.rows[name]
            trial.add("P624", f"told to stop after {came} of {rows} rows, it activates their version.", stream=name)
    if trial.wants("P608"):
        _check_resumed(trial, run, whole)


def _check_went_on(trial: Trial, run: Run, whole: Run) -> None:
    """All rows came: did the tap go on with its work, or had it just that in its buffer?"""
    news = run.seen.news_after(run.ended.pipe_bytes + _BUFFER_BYTES)
    if len(news) >= _NEWS:
        begun = [what for what in dict.fromkeys(news) if what != "STATE"]
        shown = f", among them those of {', '.join(begun[:3])}" if begun else ""
        rows = sum(whole.seen.rows.values())
        trial.add(
            "P606",
            f"told to stop after its first row, the tap goes on to its end: all {rows} rows came{shown}, and "
            f"{counted(news.count('STATE'), 'new STATE')}.",
        )


def _check_resumed(trial: Trial, run: Run, whole: Run) -> None:
    """What came, and what a run from the last STATE brings, must be all."""
    if whole.seen.keys is None:
        trial.leave(trial.too_many_keys(), "P608")
        return
    if not whole.seen.keys or whole.seen.batches:
        trial.leave("rows go into files" if whole.seen.batches else "no stream has a key to compare rows by", "P608")
        return
    if "--state" not in trial.flags:
        trial.leave("the tap does not know --state", "P608")
        return
    resumed = trial.run(
        "run from the STATE after SIGTERM", state=run.seen.state, keys=True, deadline_seconds=trial.whole_seconds
    )
    if not resumed.ended.well:
        if resumed.ended.timed_out:
            trial.leave(f"the run from its STATE takes longer than {trial.whole_seconds:g} s", "P608")
        else:
            trial.add("P608", f"run from the STATE that SIGTERM left, the tap {trial.failure(resumed.ended)}.")
        return
    if run.seen.keys is None or resumed.seen.keys is None:
        trial.leave(trial.too_many_keys(), "P608")
        return
    missing = whole.seen.keys - run.seen.keys - resumed.seen.keys
    if missing:
        trial.add(
            "P608",
            f"{counted(len(missing), 'row')} of a whole run came neither before SIGTERM nor in the run from the STATE "
            f"that it left: {shown_keys(missing, whole.seen.schemas)}.",
        )
