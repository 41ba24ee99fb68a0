"""``burler state show | set | reset | accept``: the state of a tap, in a lake or in a file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from burler.cli import completing, process
from burler.cli.common import lake_options, open_lake
from burler.cli.helping import Command, Group, argument, option
from burler.errors import StateError, StorageError, UsageError
from burler.suggest import near_or_all

Function = TypeVar("Function", bound=Callable[..., Any])
Change = Callable[[dict[str, Any]], Mapping[str, Any]]

logger = logging.getLogger(__name__)
_FILES = (".json", ".jsonl")


@click.group(cls=Group)
def state() -> None:
    """The state of a tap: where its next run begins. A lake keeps it beside the data; else it is a file.

    \b
    burler state show ./lake
    burler state reset ./lake orders
    burler state show ./lake --tap-id tap-any > state.json
    """


def _place(command: Function) -> Function:
    """Decorator: WHERE and the options that say which state. The command gets ``where``: a file, or a lake's state."""

    def opened(where: str, tap_id: str | None, lake_options: str | None, **rest: Any) -> Any:
        path = Path(where)
        if where.startswith("lake:") and not path.exists():
            raise UsageError(f"{where}: name the lake by its folder or URL, without 'lake:': {where[5:]}")
        if path.is_file() or (not path.is_dir() and "://" not in where and where.endswith(_FILES)):
            if tap_id is not None or lake_options is not None:
                raise UsageError(f"{where} is a file: --tap-id and --lake-options are for a lake.")
            return command(where=path, **rest)
        from burler.lake.care.taps import state_of

        return command(where=state_of(open_lake(where, lake_options, must_exist=True), tap_id), **rest)

    opened.__doc__, opened.__name__ = command.__doc__, command.__name__
    decorated: Any = lake_options(opened)
    about = "The tap, where the lake has several."
    decorated = option("--tap-id", metavar="ID", shell_complete=completing.taps_of_lake, help=about)(decorated)
    return cast(Function, decorated)


def _entry(command: Function) -> Function:
    """Decorator: the arguments STREAM and PARTITION."""
    decorated: Any = argument("partition", metavar="[PARTITION]", required=False)(command)
    decorated = argument("stream", metavar="[STREAM]", required=False)(decorated)
    return cast(Function, argument("where", metavar="WHERE")(decorated))


@state.command("show", cls=Command)
@_entry
@_place
def show(where: Any, stream: str | None, partition: str | None) -> int:
    """Print a state, or its entry of a stream or of one of its partitions, as JSON.

    WHERE is a lake's folder or URL, or a state file. PARTITION is the JSON object that the state names it by. Where
    there is no state yet, {} is printed.

    \b
    burler state show ./lake
    burler state show ./lake orders '{"region":"eu"}'
    burler state show ./lake --tap-id tap-any > state.json

    Exit codes: 0 printed, 2 there is no such tap, file or entry.
    """
    value = _read(where)
    if value is None:
        logger.warning("%s: there is no state yet: a run begins anew", _name(where))
    holder, key = _find(value or {}, stream, partition, must_exist=True)
    process.print_json(holder if key is None else holder[key])
    return 0


@state.command("set", cls=Command)
@_entry
@_place
def set_(where: Any, stream: str | None, partition: str | None) -> int:
    """Put what stdin holds in the place of a state, or of its entry of a stream or of one of its partitions.

    WHERE is a lake's folder or URL, or a state file, which then holds this state alone.

    \b
    burler state set ./lake < state.json
    echo '{"updated_at": "2024-01-01T00:00:00Z"}' | burler state set ./lake orders

    Exit codes: 0 done, 2 it is no state, 3 a run holds it.
    """
    import msgspec

    from burler.singer.state import is_state, parse_state

    process.tell_terminal("the state")
    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    if not data.strip():
        raise StateError("stdin is empty. To forget a state: burler state reset.")
    if stream is None:
        value = parse_state(data, source="stdin")

        def whole(there: dict[str, Any]) -> dict[str, Any]:
            if value and is_state(there) and not is_state(value):
                raise StateError(
                    "stdin holds neither 'bookmarks' nor 'currently_syncing', as the state there does. "
                    "The entry of a stream goes with its name: burler state set WHERE STREAM"
                )
            return value

        _change(where, whole)
        return 0
    try:
        entry = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateError(f"stdin is not JSON ({error}).") from None
    if not isinstance(entry, dict):
        raise StateError("stdin must hold a JSON object: the entry, as 'burler state show' prints it.")

    others: list[str] = []

    def put(there: dict[str, Any]) -> dict[str, Any]:
        others[:] = [] if stream in _object(there, "bookmarks") else sorted(there["bookmarks"])
        holder, key = _find(there, stream, partition, must_exist=False)
        holder[key] = entry
        return there

    _change(where, put)
    if others:
        logger.warning("the state had no stream '%s'; it has now.%s", stream, near_or_all(stream, others, "It had"))
    return 0


@state.command("reset", cls=Command)
@_entry
@_place
def reset(where: Any, stream: str | None, partition: str | None) -> int:
    """Forget a state, or its entry of a stream or of one of its partitions: the next run begins there anew.

    WHERE is a lake's folder or URL, or a state file. For one run, and with substreams: burler run --full-refresh.

    \b
    burler state reset ./lake
    burler state reset ./lake orders '{"region":"eu"}'

    Exit codes: 0 done, 2 there is no such entry, 3 a run holds it.
    """
    from burler.singer.state import PARTITIONS

    def forget(there: dict[str, Any]) -> dict[str, Any]:
        holder, key = _find(there, stream, partition, must_exist=True)
        if key is None:
            return {}
        del holder[key]
        if partition is not None and not holder:
            del there["bookmarks"][stream][PARTITIONS]
        return there

    _change(where, forget)
    return 0


@state.command("accept", cls=Command)
@argument("where", metavar="LAKE")
@_place
def accept(where: Any) -> int:
    """Let the next run go on from the state of a lake although its config is another one.

    A run whose config differs from that of the last one (another account, another server) ends with exit code 2. If it
    is the same source all the same, say so once.

    \b
    burler state accept ./lake --tap-id tap-crm

    Exit codes: 0 done, 2 there is no state, 3 a run holds it.
    """
    from burler.lake.care.taps import accept_config

    if isinstance(where, Path):
        raise UsageError(f"{where} is a file: a config is held against the state of a lake alone.")
    if not accept_config(where):
        raise UsageError(f"{_name(where)}: there is no state yet: a run takes any config.")
    return 0


# ---- files and lakes alike ------------------------------------------------------------------------------------------


def _name(where: Any) -> str:
    return str(where) if isinstance(where, Path) else str(where.place)


def _read(where: Any) -> dict[str, Any] | None:
    from burler.singer.state import parse_state

    if not isinstance(where, Path):
        stored = where.read()
        return None if stored is None else cast("dict[str, Any]", stored.value)
    try:
        return parse_state(where.read_bytes(), source=f"state file {where}")
    except OSError as error:
        raise StateError(f"state file {where} can't be read: {error.strerror}.") from None


def _change(where: Any, change: Change) -> None:
    """Change the value of a state.

    Raises:
        LockLost: a run writes this tap of the lake. StateError: what is there is none.
        StorageError: it can't be written.
    """
    if not isinstance(where, Path):
        from burler.lake.care.taps import set_state

        set_state(where, change)
        return
    from burler.lake import layout
    from burler.localfile import replace_file
    from burler.singer.messages import encode

    if where.name in (layout.STATE, layout.PREVIOUS_STATE) and (lake := _lake_of(where)) is not None:
        raise UsageError(
            f"{where} belongs to a lake. Nothing was changed. Say {lake} and --tap-id {where.parent.name}."
        )

    value = change((_read(where) or {}) if where.exists() else {})
    try:
        replace_file(where, encode(value) + b"\n")
    except OSError as error:
        raise StorageError(f"{where} can't be written: {error.strerror}.") from None


def _lake_of(state: Path) -> Path | None:
    """The lake whose ``raw/<tap_id>`` folder a file stands in."""
    from burler.lake import layout

    root = state.absolute().parent.parent
    return root.parent if (root.parent / layout.singerlake_path()).exists() else None


def _find(value: dict[str, Any], stream: str | None, partition: str | None, *, must_exist: bool) -> tuple[Any, Any]:
    """Where an entry stands: what holds it, and its key there; the state itself and None where no stream is named.

    Raises:
        UsageError: there is no such entry.
    """
    if stream is None:
        return value, None
    from burler.lake.hashing import canonical_bytes
    from burler.singer.state import PARTITIONS

    bookmarks = _object(value, "bookmarks")
    if must_exist and stream not in bookmarks:
        raise UsageError(f"the state has no stream '{stream}'.{near_or_all(stream, sorted(bookmarks), 'It has')}")
    if partition is None:
        return bookmarks, stream
    parts = _object(_object(bookmarks, stream), PARTITIONS)
    named = _json(partition)
    key = next((one for one in parts if one == partition or _json(one) == named), None)
    if key is None and (must_exist or not isinstance(named, dict)):
        known = near_or_all(partition, sorted(parts), "It has")
        raise UsageError(f"the state of '{stream}' has no partition {partition}.{known}")
    return parts, key if key is not None else canonical_bytes(named).decode()


def _object(holder: dict[str, Any], key: str) -> dict[str, Any]:
    """What stands under a key, made where there is no object."""
    if not isinstance(holder.get(key), dict):
        holder[key] = {}
    return cast("dict[str, Any]", holder[key])


def _json(text: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
