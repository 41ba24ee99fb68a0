"""Checks of whether fields that nobody selected stay at home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burler.engine.command.catalogs import fewer_fields
from burler.verify.behaviour_seen import Seen
from burler.verify.behaviour_trial import Trial


def check_fields(trial: Trial) -> None:
    """P625."""
    if not trial.wants("P625"):
        return
    catalog, off = fewer_fields(trial.catalog)
    off = {stream: fields for stream, fields in off.items() if stream in trial.streams or not trial.streams}
    if not off:
        trial.leave("no field of a selected stream can be deselected", "P625")
        return
    waits = set(off)
    came: dict[str, dict[str, None]] = {}

    def look(stream: str, row: Any) -> None:
        waits.discard(stream)
        if isinstance(row, Mapping):
            found = [name for name in off.get(stream, ()) if row.get(name) is not None]
            came.setdefault(stream, {}).update(dict.fromkeys(found))

    run = trial.run(
        "run with fewer fields",
        given=trial.given(catalog),
        seen=Seen(look=look),
        stop=lambda: not waits,
        deadline_seconds=trial.whole_seconds,
    )
    for stream, fields in came.items():
        for name in fields:
            trial.add("P625", f"the field '{name}' comes though it is deselected.", stream=stream, path=name)
    if not came and not run.ended.well and not run.ended.stopped:
        if run.ended.timed_out:
            trial.leave(f"no row came within {run.ended.seconds:.0f} s", "P625")
        else:
            trial.add("P625", f"with fields deselected the tap {trial.failure(run.ended)}.")
    elif not came:
        trial.leave("no row came", "P625")
