"""Checks of discovery: it works, prints a catalog and nothing else, and says the same each time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from burler.engine.command.tap_process import split_catalog
from burler.spec.finding import Findings
from burler.verify.program import Ended, Program

_CODES = ("P611", "P614", "P615")
_SHOWN = 100
_DIFFERENCES = 3


class Discovered:
    """What discovery gave.

    Attributes:
        catalog: None where there is none. ended: of the first run; None if the tap knows no ``--discover``.
        unchecked: rules that could not be looked at, with the reason.
    """

    def __init__(self) -> None:
        self.catalog: Any = None
        self.ended: Ended | None = None
        self.unchecked: dict[str, str] = {}


def check_discovery(
    program: Program,
    findings: Findings,
    *,
    flags: frozenset[str] | None = None,
    wants: Callable[[str], bool] = lambda code: True,
    progress: Callable[[str], None] = lambda text: None,
    deadline_seconds: float | None = 300.0,
) -> Discovered:
    """Discover, twice where P615 is asked for; P611, P613, P614, P615.

    Args:
        flags: those that the tap knows; None: all.
    """
    found = Discovered()

    def add(code: str, message: str, stream: str | None = None) -> None:
        if wants(code):
            findings.add(code, program.clean(message), stream=stream)

    if flags is not None and "--discover" not in flags:
        found.unchecked = dict.fromkeys(filter(wants, _CODES), "the tap does not know --discover")
        return found
    progress("discovery")
    found.ended, text = program.discover(deadline_seconds)
    for key in found.ended.told:
        add("P613", f"the value of '{key or 'a secret key'}' of the config stands on stderr of discovery.")
    if not found.ended.well:
        how = f"had not ended after {found.ended.seconds:.0f} s" if found.ended.timed_out else "failed"
        said = program.last_words(found.ended)
        add("P614", f"discovery {how} (exit code {found.ended.exit_code}); it said last: {said}")
    found.catalog, noise = split_catalog(text)
    if found.catalog is None:
        if found.ended.well:
            shown = text[:_SHOWN].decode("utf-8", "replace").strip() or "nothing"
            add("P614", f"discovery prints no catalog but: {shown}")
        found.unchecked = dict.fromkeys(filter(wants, ("P611", "P615")), "discovery gives no catalog")
    else:
        if noise:
            add("P611", f"discovery prints more than the catalog on stdout: {noise[:_SHOWN]}")
        if wants("P615"):
            _check_again(program, found, add, progress, deadline_seconds)
    return found


def _check_again(
    program: Program,
    found: Discovered,
    add: Callable[..., None],
    progress: Callable[[str], None],
    deadline_seconds: float | None,
) -> None:
    progress("discovery again")
    ended, text = program.discover(deadline_seconds)
    again, _ = split_catalog(text)
    if again is None:
        how = f"exit code {ended.exit_code}; it said last: {program.last_words(ended)}"
        add("P615", f"the first discovery gives a catalog, the second one none ({how})")
        return
    before, after = _by_stream(found.catalog), _by_stream(again)
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            which = "first" if name in before else "second"
            add("P615", f"of two discoveries in a row only the {which} one has the stream", name)
            continue
        places = list(_differences(before[name], after[name], ""))
        if places:
            more = f" and {len(places) - _DIFFERENCES} more" if len(places) > _DIFFERENCES else ""
            add("P615", f"two discoveries in a row differ at {'; '.join(places[:_DIFFERENCES])}{more}", name)


def _by_stream(catalog: Any) -> dict[str, Any]:
    return {
        str(item.get("tap_stream_id") or item.get("stream") or i) if isinstance(item, dict) else str(i): item
        for i, item in enumerate(catalog["streams"])
    }


def _differences(one: Any, other: Any, place: str) -> Iterator[str]:
    """Where two values differ, apart from the order of what has none: keys, types, metadata entries."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys(), key=str):
            below = f"{place}.{key}" if place else str(key)
            if key not in one or key not in other:
                yield f"{below} (only in the {'first' if key in one else 'second'})"
            else:
                yield from _differences(one[key], other[key], below)
    elif isinstance(one, list) and isinstance(other, list):
        first, second = (sorted(map(_text, value)) for value in (one, other))
        if first != second:
            yield place or "the catalog"
    elif _text(one) != _text(other):
        yield f"{place} ({_text(one):.40} and {_text(other):.40})"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
