"""What a stream promises in a tail run, and to a source that is told what is out (tail-mode proposal)."""

from __future__ import annotations

from collections.abc import Iterator

from burler.declare.spec import StreamSpec
from burler.declare.strategies import Manual
from burler.singer.metadata import FULL_TABLE

_IN_TIME = "STATE comes at the latest `state_message_min_interval_ms` after the first row that none covers"


def pushes_alone(source: StreamSpec) -> bool:
    """Whether a stream has a tail function and no sync function: there are tail runs of it only."""
    return source.tail is not None and source.sync is None


def in_tail_runs(spec: StreamSpec, source: StreamSpec) -> Iterator[str]:
    """What is different in tail runs: of a stream that has a run of its own; the others follow it.

    Args:
        source: the stream in whose run the rows come.
    """
    if source is not spec:
        again = source.bookmark_key is not None and source.resume == "inclusive" and source.tail is None
        if again and not spec.key_properties:
            yield (
                "In a tail run (`--tail`) its rows below the row at the bookmark come again with each poll: without "
                "keys nobody can tell whether two equal rows are one."
            )
        return
    if spec.tail is None:
        still = ", even where the bookmark stands still" if spec.bookmark_key is not None or spec.is_pattern else ""
        yield f"In a tail run (`--tail`) {_polled(spec)}. {_IN_TIME}{still}."
        return
    yield _hand_over(spec)
    if spec.sync is not None:
        yield f"While its tail function goes on, {state_while_tailing(spec)}."


def state_while_tailing(source: StreamSpec) -> str:
    """When STATE comes while a tail function goes on, and what it holds."""
    said = f"{_IN_TIME}, also while the function waits for the source; "
    if source.bookmark_key is None and not source.is_pattern:
        return f"{said}it holds what the function keeps in `stream.state`, as it stood when the rows before it were out"
    if isinstance(source.strategy, Manual):
        return f"{said}the bookmark is what the function saves"
    if source.order == "asc":
        return f"{said}the bookmark is the greatest value out, since rows rise by it (checked)"
    return (
        f"{said}the bookmark moves only when the function comes to its end, since its rows are not said to rise "
        "(`order`); before that, `stream.state` alone is saved"
    )


def _polled(spec: StreamSpec) -> str:
    """How a stream without a tail function goes on."""
    full = spec.replication_method == FULL_TABLE
    if spec.is_pattern and not spec.method_said:
        return f"each stream {_again(spec)}; one that is a FULL_TABLE {_read_anew(spec)}"
    return f"it {_read_anew(spec)}" if full else f"it {_again(spec)}"


def _again(spec: StreamSpec) -> str:
    own = spec.new_record_polling_interval_ms
    interval = "`new_record_polling_interval_ms`" if own is None else f"{own:,} ms (the catalog may say otherwise)"
    begin = "from the bookmark at which the one before ended"
    if spec.bookmark_key is None and not spec.is_pattern:
        begin = "with the `stream.state` that the one before has left"
    said = f"is polled again {interval} after each poll, {begin}"
    if spec.wake is not None:
        said += ", and at once where its wake function says so; a call that gets lost costs time, and no row"
    compared = bool(spec.key_properties) or spec.bookmark is None  # what `engine/run/job` knows rows by
    if spec.bookmark_key is not None and spec.resume == "inclusive" and compared:
        said += "; a row that is read once more and is the same as in the poll before does not go out again"
    return said


def _read_anew(spec: StreamSpec) -> str:
    age = spec.max_full_table_age_seconds
    woken = "" if spec.wake is None else "; and at once where its wake function says so"
    if age is not None:
        return f"is read whole, and again {age:,g} seconds after that began (the catalog may say otherwise){woken}"
    return (
        "is read whole once, and again only when that is older than `max_full_table_age_seconds`, if it is set" + woken
    )


def _hand_over(spec: StreamSpec) -> str:
    """How rows come that a source pushes, and what may get lost or come twice between two calls."""
    if spec.sync is None:
        begin = (
            "It comes in tail runs (`--tail`) only; plain runs leave it out, with a warning. Each time that its "
            "function ends or fails, it is called again"
        )
    elif spec.overlap:
        return (
            "In a tail run (`--tail`) its tail function is called first, and brings the rows of its sync function "
            "once it has subscribed; each time that it ends or fails, the same again. So nothing gets lost in between, "
            "if it calls `stream.catch_up()` after it has subscribed, and rows that come both ways come twice."
        )
    else:
        begin = (
            "In a tail run (`--tail`) its sync function brings what is there, then its tail function goes on where "
            "that has ended; each time that it ends or fails, the same again"
        )
    where = "`stream.state`" if spec.bookmark_key is None else "the bookmark and `stream.state`"
    return (
        f"{begin}, with {where} of what is out; after a kill, of the last STATE. What the source gives once more from "
        "there comes twice; what it no longer has by then is lost."
    )


def told(spec: StreamSpec) -> Iterator[str]:
    """What a source is told, and what that proves."""
    if spec.acknowledge is not None:
        yield (
            "The source is told how far it may forget once a STATE that moved the stream has left the tap. That proves "
            "that the line is written (with a lake: that the data is committed), not that a target has stored it. "
            "With `acknowledge_state_file` it is told what that file confirms, and no more."
        )
