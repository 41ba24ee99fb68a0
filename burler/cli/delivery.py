"""What a stream promises: what never gets lost, what may come twice, when STATE moves.

It is said from the spec alone, and holds whatever the author's function does: what that asks the source for, and where
it begins, can't be known here, so much of it is "may".
"""

from __future__ import annotations

from collections.abc import Mapping

from burler.declare.spec import FULL_TABLE, StreamSpec
from burler.declare.strategies import EveryN


def delivery(spec: StreamSpec, specs: Mapping[str, StreamSpec] | None = None) -> list[str]:
    """The *Delivery* section of a stream, a sentence or two an item: nothing lost, what comes twice, STATE.

    Args:
        specs: all streams of the tap; a stream whose rows another one brings then says how that one saves STATE.
    """
    source = _source(spec, specs or {})
    if spec.is_pattern:
        return [_lost(spec, source), _FOUND, _state(spec, source)]
    return [_lost(spec, source), _twice(spec, source), _state(spec, source)]


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


def _lost(spec: StreamSpec, source: StreamSpec) -> str:
    said = "Every row that the function yields arrives at least once: STATE never says more than what is out, and a "
    said += "row that does not fit its schema ends the stream with an error"
    if spec.post_transform is not None:
        said += ". Rows for which the stream's post_transform gives None are left out"
    if spec.replication_key and spec.replication_method != FULL_TABLE:
        key = spec.replication_key
        said += f". A row that the source adds or changes with a `{key}` below the bookmark, or deletes, may not be "
        said += "seen: that depends on what the function asks the source for"
    if spec.parent and source.replication_method != FULL_TABLE:
        said += f". A row that comes or changes where its row of `{spec.parent}` does not may not be seen"
    return said + "."


def _twice(spec: StreamSpec, source: StreamSpec) -> str:
    keys = ", ".join(f"`{key}`" for key in spec.key_properties)
    told = f"a target tells them by {keys}" if keys else "it has no key, so a target can't tell them from new ones"
    above = spec.parent or spec.emitted_by
    if spec.replication_method == FULL_TABLE:
        if spec.versions is False:
            return f"All rows come in every run; {told}, and rows that are gone from the source stay in the target."
        return (
            f"All rows come in every run; {told}. Rows carry a `version`, and ACTIVATE_VERSION at the end of a whole "
            "run tells the target to drop those that are gone; after a run that was stopped it does not come."
        )
    said = "After a stop, an error or a kill, rows since the last STATE may come again"
    if spec.bookmark_key or source.bookmark_key:
        key = source.replication_key or spec.replication_key
        equal = f"whose `{key}` equals the bookmark" if key else "at the bookmark"
        who = "rows" if source is spec else f"the rows of those of `{source.tap_stream_id}`" if above else "rows"
        said += f"; and with each run {who} {equal} may come again, since a run resumes at the bookmark, not behind "
        said += "it, unless the function goes by a position of its own in `stream.state`"
    return f"{said}; {told}."


def _state(spec: StreamSpec, source: StreamSpec) -> str:
    begin = "" if source is spec else f"Its rows come in the run of `{source.tap_stream_id}`, and STATE moves with it. "
    strategy = source.strategy
    if isinstance(strategy, EveryN):
        often = f"STATE comes after every {strategy.count:,} rows at the most often, and at the end"
    elif type(strategy).__name__ == "EndOfSync":
        often = "STATE comes at the end of the stream, and when it is stopped or fails"
    else:
        often = f"STATE comes as {strategy!r} says, and at the end"
    if spec.is_pattern:
        rest = "each stream has a bookmark of its own if it has a replication key"
        if source.order == "asc":
            rest += ": the greatest value out, also when the run is stopped, since rows rise by it (checked)"
    elif source.bookmark_key is None:
        rest = "it holds no bookmark of this stream, only what the function keeps in `stream.state`"
    elif source.order == "asc":
        rest = "the bookmark is the greatest value out, also when the run is stopped, since rows rise by it (checked)"
    else:
        rest = "the bookmark moves when the stream is complete; a run that is stopped before leaves it where it began"
        if isinstance(strategy, EveryN):
            rest += ", and only `stream.state` is saved on the way"
    return f"{begin}{often}; {rest}."
