"""What a shell offers where somebody presses Tab: files, folders, streams, rules.

Nothing of the user's runs for it: names of streams are read from a catalog file or from the folders of a lake on this
machine, or are those that a tap's own script has declared already.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

Items = list[CompletionItem]
Completer = Callable[[click.Context, click.Parameter, str], Items]

_CATALOG_BYTES = 20_000_000  # more takes too long for a key
_WORD = re.compile(r"[\w.:/@%+,=-]+")


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """The shell's own: files."""
    return [CompletionItem(incomplete, type="file")]


def folders(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """The shell's own: folders."""
    return [CompletionItem(incomplete, type="dir")]


_METAVARS: dict[str, Completer] = {
    "FILE": files,
    "[FILE]...": files,
    "JSON|FILE": files,
    "LAKE": folders,
    "FOLDER": folders,
    "DIR": folders,
    "OUT": folders,
    "ROOT": folders,
    "[APP] LAKE": files,
}


def for_metavar(metavar: str | None) -> Completer | None:
    """What a value of that name is completed with; None: click's own (choices)."""
    return _METAVARS.get(metavar or "")


def app(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """APP: a file or folder, or the command of an installed tap once ``tap-`` is written."""
    if incomplete.startswith("tap-"):
        return tap_scripts(_ctx, _param, incomplete)
    return [CompletionItem(incomplete, type="file")]


def tap_scripts(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """The commands of installed taps, as they are named."""
    from importlib.metadata import entry_points

    names = entry_points(group="console_scripts").names
    return _items(sorted(name for name in names if name.startswith("tap-")), incomplete)


def one_of(*names: str) -> Completer:
    """One of these words; others may be written, too."""
    return lambda _ctx, _param, incomplete: _items(names, incomplete)


def sink(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """The kinds of ``--sink``; their folder is for the user to write."""
    return _items(("stdout", "lake:", "spark:"), incomplete)


def streams_of_catalog(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Names with commas between them: the streams of ``--catalog``, or of the tap whose script it is."""
    known = ctx.obj() if callable(ctx.obj) else _catalog(ctx.params.get("catalog"))
    return _listed(known, incomplete)


def streams_of_lake(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """The streams of the lake that is given before, if it is a folder here."""
    return _listed(_below(ctx, "*/*"), incomplete)


def taps_of_lake(ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """The taps of the lake that is given before, if it is a folder here."""
    return _items(_below(ctx, "*"), incomplete)


def rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> Items:
    """Codes of rules, with commas between them."""
    from burler.spec.table import RULES

    return _listed(RULES, incomplete)


def _items(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete) and _is_one_word(name)]


def _is_one_word(name: str) -> bool:
    """Whether a shell takes a name as it is. Others are not offered: shells put what is offered into the line unquoted,
    and names come from catalogs and lakes of others."""
    return _WORD.fullmatch(name) is not None


def _listed(names: Iterable[str], incomplete: str) -> Items:
    """For the last of some names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{one.value}") for one in _items(names, last)]


def _catalog(path: Any) -> list[str]:
    """The streams that a catalog file names; none where it can't be read."""
    import msgspec

    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        file = Path(path)
        if file.is_file() and file.stat().st_size <= _CATALOG_BYTES:
            return [str(one["tap_stream_id"]) for one in msgspec.json.decode(file.read_bytes())["streams"]]
    return []


def _below(ctx: click.Context, pattern: str) -> Sequence[str]:
    """The names of the folders that fit a pattern below ``raw/`` of the first argument that is a lake on this
    machine."""
    from burler.lake.layout import name_of

    given = [ctx.params.get(one.name or "") for one in ctx.command.params if isinstance(one, click.Argument)]
    # An option that waits for its value keeps click from giving arguments their names.
    for one in (*given, *ctx.args):
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            raw = Path(str(one or "")).expanduser() / "raw"
            if raw.is_dir():
                return sorted({name for found in raw.glob(pattern) if found.is_dir() and (name := name_of(found.name))})
    return []
