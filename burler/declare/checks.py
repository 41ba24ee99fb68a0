"""What does not fit together in a tap's declarations, in words: the gaps that ``seal()`` reports."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from burler.declare.spec import StreamSpec, UserFunction
from burler.declare.strategies import EndOfSync
from burler.singer.metadata import INCREMENTAL
from burler.singer.select import like
from burler.suggest import did_you_mean

_HOOKS = ("bookmark", "post_transform", "acknowledge")
_FUNCTIONS = ("sync", "tail", "wake", "partitions", "schema_fn", "metadata", *_HOOKS)
MOST_LEVELS = 50  # each level of substreams is one more generator inside the other


def check_spec(spec: StreamSpec, specs: Mapping[str, StreamSpec], gaps: list[str], *, needs_schema: bool) -> None:
    """Add what is wrong with one stream, seen from the whole.

    ``needs_schema``: False where discovery may give it, and where nobody syncs the stream, which is said already (its
    name is likely misspelt, and a hint to give it a schema would lead astray).
    """
    name = spec.tap_stream_id
    where = f"stream '{name}' ({spec.place})"
    if spec.is_pattern and spec.schema_fn is None and needs_schema:
        gaps.append(f"{where}: nothing says which streams there are. Add @tap.discover or @tap.schema({name!r}).")
    elif spec.schema is None and spec.schema_fn is None and needs_schema:
        gaps.append(f"{where}: has no schema.{_misspelt(spec, specs)} Add tap.schema({name!r}, burler.json_file(...)).")
    if spec.replication_method == INCREMENTAL and spec.bookmark_key is None and not _beside(spec):
        gaps.append(f"{where}: INCREMENTAL needs a replication_key (or a @tap.bookmark function).")
    gives = spec.sync or spec.tail
    if gives is not None and gives.owner is not None:
        _check_init(name, gives.owner, spec.place, gaps)
    if spec.is_pattern and _beside(spec):
        gaps.append(f"{where}: a name with '*' can't be emitted by or hang on another stream; name each stream.")
    for what, other in (("emitted_by", spec.emitted_by), ("parent", spec.parent)):
        if other:
            _check_above(spec, what, other, specs, gaps, where)
    if spec.parent:
        _check_child(spec, specs, gaps, where)
    elif spec.sync is not None and "parent" in spec.sync.names:
        gaps.append(
            f"{where}: its sync function asks for 'parent', but it has none. "
            f"Say of which stream: @tap.sync({name!r}, parent=...)."
        )


def _check_above(
    spec: StreamSpec, what: str, other: str, specs: Mapping[str, StreamSpec], gaps: list[str], where: str
) -> None:
    """The stream that another one hangs on must be declared itself, and have rows: which streams a pattern stands
    for is known only once discovery ran."""
    source = specs.get(other)
    if "*" in other:
        gaps.append(
            f"{where}: {what} '{other}' is a pattern, and a stream hangs on one stream alone. "
            "Declare that one by its name, @tap.sync('public.users'), and name it here."
        )
    elif source is None or (not _gives(source) and (what == "emitted_by" or not source.emitted_by)):
        pattern = next((one for one in specs.values() if one.is_pattern and like(other, one.tap_stream_id)), None)
        if pattern is not None:
            gaps.append(
                f"{where}: {what} '{other}' is declared by the pattern '{pattern.tap_stream_id}' alone, and whether "
                f"discovery finds it is not known yet. Declare it by its name, too: @tap.sync({other!r})."
            )
            return
        known = [key for key, one in specs.items() if _gives(one) and key != spec.tap_stream_id and not one.is_pattern]
        gaps.append(
            f"{where}: {what} '{other}' has no sync function.{did_you_mean(other, known)} "
            f"Streams that have: {', '.join(known) or 'none'}."
        )


def _misspelt(spec: StreamSpec, specs: Mapping[str, StreamSpec]) -> str:
    """A hint for a tail function whose name may be that of another stream, and would make a stream of its own."""
    others = (name for name, one in specs.items() if one is not spec and one.sync is not None and one.tail is None)
    return did_you_mean(spec.tap_stream_id, others) if spec.sync is None and spec.tail is not None else ""


def _gives(spec: StreamSpec) -> bool:
    """Whether a function of its own gives its rows."""
    return spec.sync is not None or spec.tail is not None


def _check_child(spec: StreamSpec, specs: Mapping[str, StreamSpec], gaps: list[str], where: str) -> None:
    if spec.emitted_by:
        gaps.append(f"{where}: has both parent and emitted_by; keep one of the two.")
    line = line_of(spec, specs)
    names = [one.tap_stream_id for one in line]
    after = _above(line[-1])
    if after in names:
        shown = " -> ".join([*names, after] if len(names) < 10 else [*names[:8], "...", after])
        gaps.append(f"{where}: its parents go round in a circle: {shown}. One of them must stand alone.")
    elif len(line) == MOST_LEVELS + 1:  # those below it would say the same once more
        gaps.append(
            f"{where}: is on level {len(line)} of the line that begins at '{names[-1]}'; {MOST_LEVELS} are the most. "
            "Let one function give the rows of several levels (emitted_by)."
        )
    if spec.order == "asc" or not isinstance(spec.strategy, EndOfSync):
        gaps.append(
            f"{where}: STATE follows the parent's strategy, and rows don't rise from parent to parent. "
            "Leave out bookmark_strategy and order here; set them on the first stream of the line."
        )


def _check_init(stream: str, cls: type, place: str, gaps: list[str]) -> None:
    """Instances are made without arguments; said before anything runs, rather than when the stream's turn comes."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in loose]
    if needed:
        gaps.append(
            f"stream '{stream}': class {cls.__name__} can't be made ({place}): its __init__ asks for '{needed[0]}'. "
            "It takes no arguments; methods ask for client and config by name."
        )


def line_of(spec: StreamSpec, specs: Mapping[str, StreamSpec]) -> list[StreamSpec]:
    """A stream and those it hangs on, up to the one that stands alone (or to where it turns in a circle)."""
    line, names = [spec], {spec.tap_stream_id}
    while (above := specs.get(_above(line[-1]) or "")) is not None and above.tap_stream_id not in names:
        line.append(above)
        names.add(above.tap_stream_id)
    return line


def _above(spec: StreamSpec) -> str | None:
    return spec.parent or spec.emitted_by


def _beside(spec: StreamSpec) -> bool:
    return spec.emitted_by is not None or spec.parent is not None


def no_sync(
    name: str, place: str, places: Mapping[tuple[str, str], str], parts: Mapping[str, Mapping[str, Any]]
) -> str:
    """The gap of a stream that has parts, and nothing that gives its rows."""
    shown = {"strategy": "bookmark_strategy", "fixed_metadata": "metadata"}
    have = ", ".join(sorted({shown.get(part, part) for stream, part in places if stream == name})) or "a name"
    gives = [one for one in parts if parts[one].get("sync") or parts[one].get("tail")]
    synced = [one for one in gives if one != name and "*" not in one]
    hint = did_you_mean(name, synced) or f" Decorate one: @tap.sync({name!r})"
    return f"stream '{name}' ({place}): has {have}, but no sync function.{hint}"


def no_client(specs: Iterable[StreamSpec], discover: UserFunction | None) -> list[str]:
    """The gaps of functions that ask for a client where none is declared."""
    gaps = []
    for spec in specs:
        setup = spec.retry.setup if spec.retry is not None else None
        for function in (*(getattr(spec, part) for part in _FUNCTIONS), setup):
            if function is not None and "client" in function.names:
                gaps.append((f"stream '{spec.tap_stream_id}'", function.place))
                break
    if discover is not None and "client" in discover.names:
        gaps.append(("the discover function", discover.place))
    return [f"{who} ({place}): asks for 'client', but no @tap.client is declared." for who, place in gaps]


def no_function(stream: str, function: str, place: str, namespace: Mapping[str, Any]) -> str:
    """The gap of a chain that names a function which its module does not have."""
    functions = [key for key, value in namespace.items() if callable(value) and not key.startswith("_")]
    hint = did_you_mean(function, functions)
    return f"stream '{stream}' ({place}): there is no function '{function}' in this module.{hint}"
