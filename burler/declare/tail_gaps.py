"""What does not fit together in what is declared for tail runs: tail and wake functions, and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burler.declare.checks import line_of
from burler.declare.spec import StreamSpec, UserFunction
from burler.singer.metadata import FULL_TABLE, LOG_BASED

_OF_POLLS = ("new_record_polling_interval_ms", "max_full_table_age_seconds")


def check_tail(spec: StreamSpec, specs: Mapping[str, StreamSpec], parts: Mapping[str, Any], gaps: list[str]) -> None:
    """Add what is wrong with one stream in tail runs, seen from the whole; each gap with place and cure.

    Args:
        parts: what was said of the stream, by name.
    """
    where = f"stream '{spec.tap_stream_id}' ({spec.place})"

    def add(text: str) -> None:
        gaps.append(f"{where}: {text}")

    has_sync = parts.get("sync") is not None  # also one that is named by text, and can't be found
    if spec.tail is not None:
        _check_tail_function(spec, add)
        if not has_sync:
            _check_alone(spec, spec.tail, add)
    elif spec.overlap:
        add("has overlap, but no tail function. Add one, or leave overlap out.")
    if spec.wake is not None:
        _check_wake(spec, specs, add)
    said = [option for option in _OF_POLLS if parts.get(option) is not None]
    if said and (spec.parent or spec.emitted_by):
        first = line_of(spec, specs)[-1].tap_stream_id
        add(
            f"has {' and '.join(said)}, but its rows come in the run of '{first}', and that is what is polled. Set it "
            "on that stream."
        )


def _check_alone(spec: StreamSpec, tail: UserFunction, add: Callable[[str], None]) -> None:
    """A tail function without a sync function beside it."""
    name = spec.tap_stream_id
    if spec.overlap:
        add(
            f"overlap=True ({tail.place}) is for a tail function that calls stream.catch_up(), the rows of the sync "
            f"function, and it has none. Add @tap.sync({name!r}), or leave overlap out."
        )
    if spec.replication_method == FULL_TABLE:  # it was said, else it would be LOG_BASED
        add(
            f"is {FULL_TABLE}, and has a tail function alone ({tail.place}), which never gives the whole table. "
            f"Add @tap.sync({name!r}), or leave out replication_method (it is {LOG_BASED} then)."
        )


def _check_tail_function(spec: StreamSpec, add: Callable[[str], None]) -> None:
    assert spec.tail is not None
    has = f"has a tail function ({spec.tail.place}), "
    if spec.partitions is not None:
        add(
            f"{has}and a partitions function ({spec.partitions.place}); one call gives the rows of the whole stream. "
            "Leave out one of the two, or let the tail function go through the partitions by itself."
        )
    if spec.parent:
        add(
            f"{has}but it is a substream: its rows come for each row of '{spec.parent}'. Set the tail function on the "
            "first stream of the line, or declare this one without a parent."
        )
    elif spec.emitted_by:
        add(
            f"{has}but its rows come from the function of '{spec.emitted_by}'. Set the tail function there: "
            f"@tap.tail({spec.emitted_by!r}); it may yield ({spec.tap_stream_id!r}, rows)."
        )


def _check_wake(spec: StreamSpec, specs: Mapping[str, StreamSpec], add: Callable[[str], None]) -> None:
    assert spec.wake is not None
    has = f"has a wake function ({spec.wake.place}), "
    giver = spec.parent or spec.emitted_by
    if giver:
        first = line_of(spec, specs)[-1].tap_stream_id
        add(f"{has}but is polled in the run of '{first}'. Set the wake function there: @tap.wake({first!r}).")
    elif spec.tail is not None:
        add(
            f"{has}and a tail function ({spec.tail.place}), which is never polled while it goes on. Keep one of the "
            "two."
        )
