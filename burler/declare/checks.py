"""What does not fit together in a tap's declarations, in words: the gaps that ``seal()`` reports.

What one option or function needs beside it, and which belong to the stream that others hang on, stands in its row of
``OPTIONS`` or ``HOOKS``; here is what follows from that, and all that no row can say.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from burler.declare.hooks import HOOKS, Row
from burler.declare.options import OPTIONS
from burler.declare.spec import FIRST_KEY, StreamSpec, UserFunction
from burler.declare.strategies import EndOfSync
from burler.singer.metadata import FULL_TABLE, INCREMENTAL, LOG_BASED
from burler.singer.select import like
from burler.suggest import did_you_mean

Specs = Mapping[str, StreamSpec]
MOST_LEVELS = 50  # each level of substreams is one more generator inside the other
_MAY_ADD = {"$ref", "allOf", "anyOf", "oneOf"}  # fields that stand elsewhere in a schema; the plan knows them
_ROWS: dict[str, Row] = {row.part: row for row in (*HOOKS.values(), *OPTIONS.values())}
_SILENT = {field.name: field.default for field in fields(StreamSpec)}
_APART = (
    ("parent", "emitted_by", "rows come by one way"),
    ("resumable_by", "partitions", "a position is one for the whole table"),
    ("source_state", "partitions", "it is for one resource; per partition: client.conditional(path, source=...)"),
    ("tail", "partitions", "one call gives the rows of the whole stream, and may go through the partitions by itself"),
    ("wake", "tail", "what goes on by itself is never polled"),
)
"""Parts that exclude each other, and why."""


def gaps(spec: StreamSpec, specs: Specs, parts: Mapping[str, Any], *, discovers: bool) -> list[str]:
    """What is wrong with one stream, seen from the whole; each gap with place and cure.

    Args:
        parts: what was said of the stream, by the fields of its spec; those of retries stand here singly.
        discovers: the tap has a discover function, which may give schemas.
    """
    found = [*_of_init(spec), *_of_leaders(spec, specs), *_of_line(spec, specs), *_of_parameters(spec, specs)]
    found += [*_of_rows(spec, specs, parts), *_of_method(spec, specs, parts)]
    if not discovers and parts.keys() & {"sync", "tail", "emitted_by"}:  # else its name is likely misspelt
        found = [*_of_schema(spec, specs), *found]
    return [f"stream '{spec.tap_stream_id}' ({spec.place}): {text}" for text in found]


def _of_schema(spec: StreamSpec, specs: Specs) -> Iterator[str]:
    name = spec.tap_stream_id
    if spec.is_pattern and spec.schema_fn is None:
        yield f"nothing says which streams there are. Add @tap.discover or @tap.schema({name!r})."
    elif spec.schema is None and spec.schema_fn is None:
        # A tail function whose name is misspelt makes a stream of its own.
        others = (one for one, other in specs.items() if other is not spec and other.sync and other.tail is None)
        hint = did_you_mean(name, others) if spec.sync is None and spec.tail is not None else ""
        yield f"has no schema.{hint} Add tap.schema({name!r}, burler.json_file(...))."


def _of_init(spec: StreamSpec) -> Iterator[str]:
    """Instances are made without arguments; said before anything runs, rather than when the stream's turn comes."""
    gives = spec.sync or spec.tail
    if gives is None or gives.owner is None:
        return
    try:
        inspect.signature(gives.owner).bind()
    except TypeError as error:
        yield (
            f"class {gives.owner.__name__} can't be made: {error}. Its __init__ takes no arguments; methods ask for "
            "client and config by name."
        )
    except ValueError:
        pass  # made in C


def _of_leaders(spec: StreamSpec, specs: Specs) -> Iterator[str]:
    """The stream that another one hangs on must be declared itself, and have rows: which streams a pattern stands
    for is known only once discovery ran."""
    if spec.is_pattern and _above(spec):
        yield "a name with '*' can't be emitted by or hang on another stream; name each stream."
    for what, other in (("emitted_by", spec.emitted_by), ("parent", spec.parent)):
        source = specs.get(other or "")
        gives = source is not None and (_gives(source) or (what == "parent" and source.emitted_by))
        if other is None or (gives and "*" not in other):
            continue
        patterns = [one.tap_stream_id for one in specs.values() if one.is_pattern and like(other, one.tap_stream_id)]
        if patterns or "*" in other:
            yield (
                f"{what} '{other}' is declared by the pattern '{[*patterns, other][0]}' alone. A stream hangs on one "
                f"that is declared by its name, too: @tap.sync({other.replace('*', 'users')!r})."
            )
        else:
            known = [key for key, one in specs.items() if _gives(one) and one is not spec and not one.is_pattern]
            yield (
                f"{what} '{other}' has no sync function.{did_you_mean(other, known)} "
                f"Streams that have: {', '.join(known) or 'none'}."
            )


def _of_line(spec: StreamSpec, specs: Specs) -> Iterator[str]:
    """A substream, and those above it."""
    if not spec.parent:
        return
    line = line_of(spec, specs)
    names = [one.tap_stream_id for one in line]
    after = _above(line[-1])
    if after in names:
        shown = " -> ".join([*names, after] if len(names) < 10 else [*names[:8], "...", after])
        yield f"its parents go round in a circle: {shown}. One of them must stand alone."
    elif len(line) == MOST_LEVELS + 1:  # those below it would say the same once more
        yield (
            f"is on level {len(line)} of the line that begins at '{names[-1]}'; {MOST_LEVELS} are the most. Let one "
            "function give the rows of several levels (emitted_by)."
        )
    if spec.order == "asc" or not isinstance(spec.strategy, EndOfSync):
        yield (
            "STATE follows the parent's strategy, and rows don't rise from parent to parent. Leave out "
            "bookmark_strategy and order here; set them on the first stream of the line."
        )


def _of_parameters(spec: StreamSpec, specs: Specs) -> Iterator[str]:
    """Parameters that nothing is given for in this stream."""
    name = spec.tap_stream_id
    for hook in ("sync", "bookmark", "post_transform"):
        function: UserFunction | None = getattr(spec, hook)
        for asked in function.names if function is not None else ():
            fact = ""
            if asked == "parent" and not spec.parent:
                fact = f"it has none. Say of which stream: @tap.sync({name!r}, parent=...)."
            elif asked == "partition" and not (first := line_of(spec, specs)[-1]).partitions:
                fact = f"there are no partitions. Add @tap.partitions({first.tap_stream_id!r})."
            elif asked == "children" and not any(one.parent == name for one in specs.values()):
                cure = f"Leave out the parameter, or declare one: @tap.sync('notes', parent={name!r})."
                fact = f"it has no substreams. {cure}"
            if function is not None and fact:
                place = "" if function.place == spec.place else f" ({function.place})"
                yield f"its {hook} function{place} asks for '{asked}', but {fact}"


def _of_rows(spec: StreamSpec, specs: Specs, parts: Mapping[str, Any]) -> Iterator[str]:
    """What follows from the rows of what was said: what belongs to another stream, is lacking, or does not go
    together."""
    name = spec.tap_stream_id
    said = [_ROWS[part] for part in parts if part in _ROWS and parts[part] not in (None, _SILENT.get(part))]
    theirs = [row for row in said if row.of_leader is True or (row.of_leader and spec.emitted_by)]
    if theirs and _above(spec):
        leader = spec.emitted_by or line_of(spec, specs)[-1].tap_stream_id
        yield (
            f"has {_listed(theirs, spec)}, but its rows come in the run of '{leader}'. Set it on that stream, or leave "
            "it out."
        )
    lacking = {
        "bookmark": "keeps no bookmark: it has neither a replication_key nor a bookmark function. Add a "
        "replication_key",
        "partitions": f"no partitions. Add @tap.partitions({name!r}) (for several streams at a time: the setting "
        "'workers')",
        "tail": f"no tail function. Add @tap.tail({name!r})",
        "sync": f"no sync function, whose rows stream.catch_up() gives. Add @tap.sync({name!r})",
        "parent": "no parent. Say of which stream: parent=...",
        "replication_key": "no replication_key. Add one",
        "retry_sync_on": "nothing says on which error it is begun anew. Add retry_sync_on=TimeoutError (an exception "
        "class, or several)",
    }
    if spec.replication_key or spec.bookmark:
        lacking["bookmark"] = "keeps no bookmark: it is FULL_TABLE. Replicate it as INCREMENTAL"
    there = {need for need in lacking if need != "bookmark" and parts.get(need) is not None}
    if spec.bookmark_key is not None or spec.is_pattern:  # discovery may give keys
        there.add("bookmark")
    lacks: dict[str, list[Row]] = {}
    for row in said:
        if missing := [need for need in row.needs if need not in there]:
            lacks.setdefault(missing[0], []).append(row)
    yield from (f"has {_listed(rows, spec)}, but {lacking[need]}, or leave it out." for need, rows in lacks.items())
    for one, other, why in _APART:
        if _ROWS[one] in said and _ROWS[other] in said:
            yield f"has both {_listed([_ROWS[one], _ROWS[other]], spec)}: {why}. Keep one of the two."


def _listed(rows: Iterable[Row], spec: StreamSpec) -> str:
    """Options by their names, functions with their places."""
    shown = []
    for row in rows:
        value = getattr(spec, row.part, None)
        place = value.place if isinstance(value, UserFunction) else None
        shown.append(f"a {row.name} function ({place})" if place else row.called or row.name)
    return " and ".join(shown)


def _of_method(spec: StreamSpec, specs: Specs, parts: Mapping[str, Any]) -> Iterator[str]:
    """What follows from how a stream is replicated."""
    if spec.replication_method == INCREMENTAL and spec.bookmark_key is None and not _above(spec):
        yield "INCREMENTAL needs a replication_key (or a @tap.bookmark function)."
    if spec.replication_method == FULL_TABLE and spec.tail and parts.get("sync") is None:  # it was said: LOG_BASED else
        yield (
            f"is {FULL_TABLE}, and has a tail function alone ({spec.tail.place}), which never gives the whole table. "
            f"Add @tap.sync({spec.tap_stream_id!r}), or leave out replication_method (it is {LOG_BASED} then)."
        )
    field = spec.resumable_by
    if field == FIRST_KEY and not spec.is_pattern:
        yield "resumable_by='*' is for the streams that discovery finds, under a name with '*'. Name the field here."
    elif field and field != FIRST_KEY:
        schema = spec.schema if isinstance(spec.schema, Mapping) else {}
        known = schema.get("properties")
        if spec.replication_method != FULL_TABLE:
            yield (
                f"resumable_by is for FULL_TABLE streams, and it is {spec.replication_method}: it resumes at its "
                "bookmark. Leave out resumable_by."
            )
        elif isinstance(known, Mapping) and field not in known and not _MAY_ADD & set(schema):
            shown = ", ".join(map(str, known)) or "none"
            yield f"resumable_by '{field}' is not in the schema.{did_you_mean(field, known)} Its fields: {shown}."
    first = line_of(spec, specs)[-1] if spec.rollup else spec
    if first is not spec and first.bookmark_key is None and not first.is_pattern:
        yield (
            f"rollup sets back the bookmark of '{first.tap_stream_id}', which keeps none and is read whole each time. "
            "Leave out rollup."
        )


def line_of(spec: StreamSpec, specs: Specs) -> list[StreamSpec]:
    """A stream and those it hangs on, up to the one that stands alone (or to where it turns in a circle)."""
    line, names = [spec], {spec.tap_stream_id}
    while (above := specs.get(_above(line[-1]) or "")) is not None and above.tap_stream_id not in names:
        line.append(above)
        names.add(above.tap_stream_id)
    return line


def _above(spec: StreamSpec) -> str | None:
    return spec.parent or spec.emitted_by


def _gives(spec: StreamSpec) -> bool:
    """Whether a function of its own gives its rows."""
    return spec.sync is not None or spec.tail is not None


def no_sync(name: str, place: str, have: Iterable[str], givers: Iterable[str]) -> str:
    """The gap of a stream that has parts, and nothing that gives its rows.

    Args:
        givers: streams that have a function for that.
    """
    hint = did_you_mean(name, (one for one in givers if "*" not in one)) or f" Decorate one: @tap.sync({name!r})"
    return f"stream '{name}' ({place}): has {', '.join(sorted(set(have))) or 'a name'}, but no sync function.{hint}"


def no_client(specs: Iterable[StreamSpec], discover: UserFunction | None) -> list[str]:
    """The gaps of functions that ask for a client where none is declared."""
    asks = []
    for spec in specs:
        functions = [getattr(spec, hook.part, None) for hook in HOOKS.values()] + [spec.retry and spec.retry.setup]
        places = [one.place for one in functions if isinstance(one, UserFunction) and "client" in one.names]
        asks += [f"stream '{spec.tap_stream_id}' ({place})" for place in places[:1]]
    if discover is not None and "client" in discover.names:
        asks.append(f"the discover function ({discover.place})")
    return [f"{who}: asks for 'client', but no @tap.client is declared." for who in asks]
