"""Checks of what a tap makes of what it is given: catalogs both ways, an empty selection, states of all kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from burler.engine.command.catalogs import legacy, names_of, without
from burler.verify.behaviour_fields import check_fields
from burler.verify.behaviour_seen import Seen
from burler.verify.behaviour_states import STATES, as_of
from burler.verify.behaviour_trial import Run, Trial


def check_given(trial: Trial) -> None:
    """P601, P602, P603, P616, P621, P622, P625, B314."""
    codes = ("P601", "P602", "P603", "P616", "P621", "P622", "P625", "B314")
    if not trial.wants_any(*codes):
        return
    if trial.first_rows is None:
        plain = trial.run("run as it is", to_the_end=False)
        if not plain.accepted:
            trial.leave(f"the plain run {trial.failure(plain.ended)}", *codes)
            return
    _check_both(trial)
    _check_properties(trial)
    _check_nothing_selected(trial)
    check_fields(trial)
    _check_nothing_new(trial)
    _check_states(trial)


def _check_both(trial: Trial) -> None:
    if not trial.wants("P601"):
        return
    if not {"--catalog", "--properties"} <= set(trial.flags):
        trial.leave("the tap does not know both --catalog and --properties", "P601")
        return
    given = {"catalog": trial.catalog, "properties": legacy(trial.catalog)}
    run = trial.run("run with --catalog and --properties", given=given, to_the_end=False)
    if not run.accepted:
        trial.add("P601", f"with both --catalog and --properties the tap {trial.failure(run.ended)}.")


def _check_properties(trial: Trial) -> None:
    if not trial.wants("P616"):
        return
    if not {"--catalog", "--properties"} <= set(trial.flags):
        trial.leave("the tap does not know --properties beside --catalog", "P616")
        return
    run = trial.run("run with --properties alone", given={"properties": legacy(trial.catalog)}, to_the_end=False)
    if not run.accepted:
        trial.add("P616", f"with --properties alone the tap {trial.failure(run.ended)}.")
    elif not run.seen.started and trial.first_rows is not None:
        trial.add("P616", "with --properties alone no row comes; with --catalog rows do.")


def _check_nothing_selected(trial: Trial) -> None:
    if not trial.wants_any("P602", "P621"):
        return
    given = trial.given(without(trial.catalog))
    # Without a state: from one there may be nothing new to send, selected or not.
    run = trial.run("run with nothing selected", given=given, to_the_end=False)
    always = names_of(trial.catalog, automatic=True)
    wrong = sorted({*run.seen.rows, *run.seen.activated} - always)
    for stream in wrong:
        what = "a row came" if stream in run.seen.rows else "ACTIVATE_VERSION came, on which a target empties its table"
        trial.add("P602", f"no stream is selected, and {what}.", stream=stream)
    if not wrong and not run.ended.well and not run.ended.stopped:
        trial.add("P602", f"with no stream selected the tap {trial.failure(run.ended)}.")
    if wrong or not run.ended.well:
        trial.leave("the run with nothing selected did not end as it should", "P621")
    elif not trial.state or "--state" not in trial.flags:
        trial.leave("there is no state to be kept", "P621")
    elif trial.wants("P621"):
        run = trial.run("run with nothing selected, from the last STATE", given=given, state=trial.state)
        for stream, how in _lost(trial.state, run.seen):
            trial.add("P621", f"nothing is selected, and the STATE that comes {how}.", stream=stream)


def _check_nothing_new(trial: Trial) -> None:
    if not trial.wants_any("P603", "P622"):
        return
    if not trial.state or "--state" not in trial.flags:
        reason = "no run ended well with a state to go on from" if not trial.state else "the tap does not know --state"
        trial.leave(reason, "P603", "P622")
        return
    run = _go_on(trial, "run from the last STATE", trial.state, "P622")
    if run is not None:
        for stream in sorted(set(trial.streams) - set(run.seen.schemas)):
            trial.add("P622", "it is selected, has nothing new, and no SCHEMA of it comes.", stream=stream)
    just_now = as_of(trial.state, trial.now())
    if trial.wants("P603") and run is not None and just_now != trial.state:
        _go_on(trial, "run from a STATE of just now", just_now)


def _go_on(trial: Trial, what: str, state: Any, *others: str) -> Run | None:
    """A run that should find nothing new; None if it does not come to a good end, of which other rules learn."""
    run = trial.run(what, state=state, deadline_seconds=trial.whole_seconds)
    if run.ended.timed_out:
        trial.leave(f"a {what} takes longer than {trial.whole_seconds:g} s", "P603", *others)
        return None
    if not run.ended.well:
        trial.add("P603", f"{what}: the tap {trial.failure(run.ended)}.", place=what)
        trial.leave(f"the {what} fails", *others)
        return None
    for stream in run.seen.schemaless:
        trial.add("P603", f"{what}: its rows come without a SCHEMA before them.", stream=stream, place=what)
    for stream, how in _lost(state, run.seen):
        trial.add("P603", f"{what}: the STATE that comes {how}.", stream=stream, place=what)
    return run


def _lost(given: Any, seen: Seen) -> Iterator[tuple[str, str]]:
    """Streams whose bookmark was given, and is not in the last STATE of a run, with what became of it. Without a STATE
    what was given stays."""
    if not seen.states:
        return
    before, after = _bookmarks(given), _bookmarks(seen.state)
    for stream, bookmark in before.items():
        if not bookmark:
            continue
        if not after.get(stream):
            yield stream, "has no bookmark of the stream, which was given"
        elif isinstance(bookmark, Mapping) and isinstance(after[stream], Mapping):
            had = {key for key, value in bookmark.items() if value is not None}
            kept = {key for key, value in after[stream].items() if value is not None}
            if had and not had & kept:
                yield stream, f"has lost what the bookmark held: {', '.join(sorted(had))}"


def _bookmarks(state: Any) -> dict[str, Any]:
    """The bookmarks of a state, by stream; taps that know no "bookmarks" hold them at the top."""
    if not isinstance(state, Mapping):
        return {}
    held = state.get("bookmarks")
    if isinstance(held, Mapping):
        return {str(key): value for key, value in held.items()}
    return {str(key): value for key, value in state.items() if key != "currently_syncing"}


def _check_states(trial: Trial) -> None:
    if not trial.wants("B314"):
        return
    if "--state" not in trial.flags:
        trial.leave("the tap does not know --state", "B314")
        return
    for what, state in (*STATES, *trial.earlier_states):
        check_state(trial, state, what)


def check_state(trial: Trial, state: Any, what: str) -> Run:
    """Run with a state, until a row comes; a failure breaks B314.

    Args:
        what: the state, for people: "a state of version 1.2".
    """
    run = trial.run(f"run with {what}", state=state, to_the_end=False)
    if not run.accepted:
        trial.add("B314", f"given {what}, the tap {trial.failure(run.ended)}.", place=what)
    return run
