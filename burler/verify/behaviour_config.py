"""Checks of what a tap says and does when its config is missing or empty."""

from __future__ import annotations

import tempfile
from pathlib import Path

from burler.engine.command.tap_command import PREFIX
from burler.verify.behaviour_trial import Run, Trial
from burler.verify.program import Program
from burler.words import counted

TRACES = (b"Traceback (most recent call last):", b"\ngoroutine 1 [", b"Exception in thread ", b"thread 'main' panicked")
_FAST_SECONDS = 30.0


def check_config(trial: Trial) -> None:
    """P604, P610, P612."""
    codes = ("P604", "P610", "P612")
    if not trial.wants_any(*codes):
        return
    if not trial.program.has_config:
        trial.leave("the command names no --config", *codes)
        return
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=trial.program.folder) as folder:
        empty = Path(folder) / "config.json"
        empty.write_text("{}\n")
        without = _try(trial, "run without --config", trial.program.with_config(None))
        if without is not None:
            _check_refusal(trial, without)
        with_empty = _try(trial, "run with an empty config", trial.program.with_config(empty))
    if without is None and with_empty is None:
        trial.leave("the tap runs without a config", *codes)
    elif without is None:
        trial.leave("the tap runs without --config", "P604")


def _try(trial: Trial, what: str, program: Program) -> Run | None:
    """A run with a config that should be refused; None if it is none: rows come."""
    seconds = min(_FAST_SECONDS, trial.deadline_seconds)
    run = trial.run(what, program=program, to_the_end=False, deadline_seconds=seconds)
    if run.seen.started:
        return None
    if run.ended.well and trial.first_rows is None:
        return None  # nothing comes with a config either
    if run.ended.well:
        said = trial.program.last_words(run.ended)
        trial.add("P610", f"{what}: no row comes, and the exit code is 0; it said last: {said}", place=what)
    if any(trace in b"\n" + run.ended.stderr for trace in TRACES):
        said = trial.program.last_words(run.ended)
        trial.add("P612", f"{what}: it ends in a traceback, whose last line is: {said}", place=what)
    return run


def _check_refusal(trial: Trial, run: Run) -> None:
    ended = run.ended
    if ended.timed_out:
        trial.add("P604", f"without --config the tap still runs after {ended.seconds:.0f} s.")
    elif not ended.stderr.strip():
        trial.add("P604", f"without --config the tap ends with exit code {ended.exit_code} and says nothing on stderr.")
    elif run.seen.bytes:
        trial.add(
            "P604", f"without --config the tap writes {counted(run.seen.bytes, 'byte')} to stdout before it fails."
        )
