"""What a stream promises: what never gets lost, what may come twice, when STATE moves, and what a failure leaves.

It is said from the spec alone, and holds whatever the author's function does: what that asks the source for, and where
it begins, can't be known here, so much of it is "may".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from burler.cli.delivery_tail import in_tail_runs, pushes_alone, state_while_tailing, told
from burler.declare.spec import StreamSpec
from burler.declare.strategies import EndOfSync, EveryN, EverySeconds, Manual, OnPage
from burler.singer.metadata import FULL_TABLE


def delivery(spec: StreamSpec, specs: Mapping[str, StreamSpec] | None = None) -> list[str]:
    """The *Delivery* section of a stream, a sentence or two an item: nothing lost, what comes twice, STATE; then, where
    there is more to say, what a part that fails leaves, how a tail run goes on, and what the source is told.

    Args:
        specs: all streams of the tap; a stream whose rows another one brings then says how that one saves STATE.
    """
    specs = specs or {}
    source = _source(spec, specs)
    twice = _FOUND + _again(spec, specs) if spec.is_pattern else _twice(spec, source, specs)
    said = [_lost(spec, source), twice, _state(spec, source)]
    return [*said, *_failing(spec, source, specs), *in_tail_runs(spec, source), *told(spec)]


_FOUND = (
    "It stands for every stream that discovery finds and nothing else declares: keys and replication method come from "
    "there, or are chosen in the catalog, and say what comes again."
)


def _source(spec: StreamSpec, specs: Mapping[str, StreamSpec]) -> StreamSpec:
    """The stream in whose run this one's rows come: itself, or the first of its line."""
    seen = {spec.tap_stream_id}
    while (above := spec.parent or spec.emitted_by) in specs and above not in seen and above is not None:
        seen.add(above)
        spec = specs[above]
    return spec


# ---- nothing lost ------------------------------------------------------------------------------------


def _lost(spec: StreamSpec, source: StreamSpec) -> str:
    said = "Every row that the function yields arrives at least once"
    if isinstance(source.strategy, Manual) and (source.bookmark_key or source.resumable_by or source.is_pattern):
        said += ", as long as its author saves no bookmark ahead of it: the author vouches for where it stands"
    else:
        said += ": STATE never says more than what is out"
    said += _bad_rows(spec, source)
    if spec.post_transform is not None:
        said += ". Rows for which the stream's post_transform gives None are left out"
    if spec.replication_key and spec.replication_method != FULL_TABLE:
        said += _unseen(spec)
    if spec.parent and source.replication_method != FULL_TABLE:
        said += f". A row that comes or changes where its row of `{spec.parent}` does not may not be seen"
        if spec.rollup:
            said += f", unless `{source.tap_stream_id}` is read again far enough back (rollup)"
    if spec.resumable_by and not spec.is_pattern:
        said += (
            f". What the source changes at or below the `{spec.resumable_by}` at which an interrupted table stands is "
            "seen with the next whole table only"
        )
    return said + "."


def _bad_rows(spec: StreamSpec, source: StreamSpec) -> str:
    """What becomes of a row that does not fit, unless the operator's setting says otherwise."""
    if spec.on_bad_record == "skip":
        return ". A row that does not fit its schema is left out, and told of"
    if spec.on_bad_record == "null":
        return (
            ". A value that does not fit its schema becomes null, and is told of; where it may not be null, its row "
            f"ends {_part(spec, source)} with an error"
        )
    return f", and a row that does not fit its schema ends {_part(spec, source)} with an error"


def _part(spec: StreamSpec, source: StreamSpec) -> str:
    if spec.parent:
        return "this stream"
    return "its partition" if source.partitions is not None else "the stream"


def _unseen(spec: StreamSpec) -> str:
    key = spec.replication_key
    below = f"with a `{key}` below the bookmark"
    if spec.lookback is not None:
        below = f"with a `{key}` more than {_distance(spec.lookback)} below the bookmark"
    elif spec.resume == "exclusive":
        below = f"with a `{key}` at or below the bookmark"
    said = f". A row that the source adds or changes {below}, or deletes, may not be seen"
    return said + ": that depends on what the function asks the source for"


def _distance(lookback: float | timedelta) -> str:
    if not isinstance(lookback, timedelta):
        return f"{lookback:,g} seconds, days or units" if lookback < 10**6 else f"{lookback} seconds, days or units"
    days, seconds = lookback.days, lookback.seconds + lookback.microseconds / 10**6
    words = [f"{days:,} days" if days > 1 else "1 day"] if days else []
    words += [f"{seconds:,g} seconds" if seconds != 1 else "1 second"] if seconds else []
    return " and ".join(words)


# ---- what comes twice --------------------------------------------------------------------------------


def _twice(spec: StreamSpec, source: StreamSpec, specs: Mapping[str, StreamSpec]) -> str:
    keys = ", ".join(f"`{key}`" for key in spec.key_properties)
    told = f"a target tells them by {keys}" if keys else "it has no key, so a target can't tell them from new ones"
    if spec.replication_method == FULL_TABLE:
        return _whole(spec, told) + _again(spec, specs)
    said = "After a stop, an error or a kill, rows since the last STATE may come again"
    if spec.bookmark_key or source.bookmark_key:
        said += _at_the_bookmark(spec, source)
    said += "".join(f"; {part}" for part in _further_back(source, specs))
    return f"{said}; {told}.{_again(spec, specs)}"


def _whole(spec: StreamSpec, told: str) -> str:
    said = f"All rows come in every run; {told}"
    if spec.resumable_by:
        field = "first field of its key" if spec.is_pattern else f"`{spec.resumable_by}`"
        said += (
            f". A table that was interrupted goes on in the next run at the greatest {field} that is out, whose rows "
            "may come again"
        )
    if spec.versions is False:
        return f"{said}, and rows that are gone from the source stay in the target."
    under = ", the same one while a table goes on" if spec.resumable_by else ""
    return (
        f"{said}. Rows carry a `version`{under}, and ACTIVATE_VERSION at the end of a whole run tells the target to "
        "drop those that are gone; after a run that was stopped, or in which anything failed, it does not come. A run "
        "without a state says it before the first row, too."
    )


def _at_the_bookmark(spec: StreamSpec, source: StreamSpec) -> str:
    if source.resume == "exclusive":
        return "; a run resumes behind the bookmark, so after a whole run none does"
    key = source.replication_key or spec.replication_key
    equal = f"whose `{key}` equals the bookmark" if key else "at the bookmark"
    beside = (spec.parent or spec.emitted_by) and source is not spec
    who = f"the rows of those of `{source.tap_stream_id}`" if beside else "rows"
    return (
        f"; and with each run {who} {equal} may come again, since a run resumes at the bookmark, not behind it, unless "
        "the function goes by a position of its own in `stream.state`"
    )


def _further_back(source: StreamSpec, specs: Mapping[str, StreamSpec]) -> Iterator[str]:
    """Why a run may begin further back than where the last one got to."""
    if source.bookmark_key is None:
        return
    if source.lookback is not None:
        yield f"so do those of the last {_distance(source.lookback)} before it (lookback), in each run"
    if source.signpost:
        yield "so do those that lie behind the time at which the last sync began (signpost)"
    rolled = [name for name, one in specs.items() if one.rollup and _source(one, specs) is source]
    if rolled:
        names = ", ".join(f"`{name}`" for name in rolled)
        yield f"a run begins where {names} stands, if that is further back (rollup)"


def _again(spec: StreamSpec, specs: Mapping[str, StreamSpec]) -> str:
    """What retries bring once more: of the function that gives its rows, and of those above it."""
    line, names = [spec], {spec.tap_stream_id}
    while (above := specs.get(line[-1].parent or line[-1].emitted_by or "")) and above.tap_stream_id not in names:
        line.append(above)
        names.add(above.tap_stream_id)
    said = ""
    for one in line:
        retry = one.retry
        if retry is None or retry.most == 0:
            continue
        what = "it" if one is spec else f"`{one.tap_stream_id}`"
        if one.parent:
            what = f"the call for a row of `{one.parent}`"
        elif one.partitions is not None:
            what = "the partition"
        times = "once" if retry.most == 1 else f"up to {retry.most:,} times"
        said += f" After {' or '.join(error.__name__ for error in retry.on)} {what} is begun anew, {times}:"
        said += " rows of a try that failed have gone out, and come again."
    return said


# ---- STATE -------------------------------------------------------------------------------------------


def _state(spec: StreamSpec, source: StreamSpec) -> str:
    begin = "" if source is spec else f"Its rows come in the run of `{source.tap_stream_id}`, and STATE moves with it. "
    if pushes_alone(source):
        return f"{begin}{state_while_tailing(source)}."
    return f"{begin}{_often(source)}; {_moves(spec, source)}."


def _often(source: StreamSpec) -> str:
    strategy = source.strategy
    if isinstance(strategy, EveryN):
        return f"STATE comes after every {strategy.count:,} rows at the most often, and at the end"
    if isinstance(strategy, EverySeconds):
        seconds = "second" if strategy.seconds == 1 else f"{strategy.seconds:,g} seconds"
        return f"STATE comes every {seconds} in which rows come at the most often, and at the end"
    if isinstance(strategy, OnPage):
        return "STATE comes after each page that the function yields at the most often, and at the end"
    if isinstance(strategy, Manual):
        return "STATE comes where the function calls `stream.save_bookmark()`, and at the end"
    if isinstance(strategy, EndOfSync):
        return "STATE comes at the end of the stream, and when it is stopped or fails"
    return f"STATE comes when `{type(strategy).__name__}` says so, and at the end"


def _moves(spec: StreamSpec, source: StreamSpec) -> str:
    """What a STATE holds, and how far it may go."""
    if spec.is_pattern:
        said = "each stream has a bookmark of its own if it has a replication key"
        if source.order == "asc":
            said += f": {_rising(source)}"
    elif source.resumable_by:
        said = (
            f"while a table is interrupted it holds the greatest `{source.resumable_by}` that is out, since rows rise "
            "by it (checked), and nothing of that once the table is whole"
        )
    elif source.bookmark_key is None:
        said = "it holds no bookmark of this stream, only what the function keeps in `stream.state`"
    elif isinstance(source.strategy, Manual):
        said = "the bookmark is what the function saves, and moves nowhere else"
    elif source.order == "asc":
        said = f"the bookmark is {_rising(source)}"
    else:
        whole = "its partition" if source.partitions is not None else "the stream"
        said = f"the bookmark moves when {whole} is complete; a run that is stopped before leaves it where it began"
        if not isinstance(source.strategy, EndOfSync):
            said += ", and only `stream.state` is saved on the way"
    if spec.parent and spec.bookmark_key:
        said += "; its own bookmark moves when all is out"
    if source.signpost and source.bookmark_key:
        said += "; no bookmark passes the time at which the sync began"
    return said + _of_partitions(source)


def _rising(source: StreamSpec) -> str:
    checked = "checked"
    if source.on_unsorted == "end_of_sync":
        checked = "checked; where they don't, it moves at the end only"
    if source.resume == "exclusive":
        return (
            "the greatest value that a greater one has followed, at the end of the stream the greatest one out, since "
            f"rows rise by it ({checked})"
        )
    return f"the greatest value out, also when the run is stopped, since rows rise by it ({checked})"


def _of_partitions(source: StreamSpec) -> str:
    if source.partitions is None:
        return ""
    if source.bookmark_key is None and not source.is_pattern:
        return ", which is each partition's own"
    if source.partition_order == "asc":
        return (
            "; each partition has a bookmark of its own while it is under way, and those that are finished collapse "
            "into the stream's, since partitions rise (checked)"
        )
    return "; each partition has a bookmark and a `stream.state` of its own"


# ---- what a failure leaves ---------------------------------------------------------------------------


def _failing(spec: StreamSpec, source: StreamSpec, specs: Mapping[str, StreamSpec]) -> Iterator[str]:
    if source.partitions is not None:
        said = "A partition that fails stops no other: its bookmark does not pass what is missing"
        if source.bookmark_key is None and not source.is_pattern:
            said = "A partition that fails stops no other"
        said += ", the run ends with exit code 1, and the next one brings the rest of it."
        if source.workers > 1:
            said += (
                f" Up to {source.workers:,} partitions run at a time: their rows mix, those of each one stay in order."
            )
        yield said
    if spec.parent:
        again = (
            "no bookmark of the streams above passes that row, so the next run brings it again, and what came behind"
        )
        if source.bookmark_key is None and not source.resumable_by:
            again = "the next run reads all of it again"
        call = f"A call that fails for a row of `{spec.parent}` stops no other"
        yield f"{call}, and the run ends with exit code 1: {again}."
    below = [name for name, one in specs.items() if one.parent == spec.tap_stream_id]
    if below and source.bookmark_key:
        names = ", ".join(f"`{name}`" for name in below)
        yield f"Its bookmark passes a row once what {names} has for that row is out, too."
