"""What a tap's command says of itself: its catalog, and the flags that it knows."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from burler.engine.command.tap_command import TapCommand
from burler.engine.command.tap_process import CATALOG, CONFIG, PROPERTIES, STATE, TapProcess
from burler.errors import CatalogError

DISCOVER = "--discover"
FLAGS = (CONFIG, DISCOVER, CATALOG, PROPERTIES, STATE)
HELP_SECONDS = 60.0
"""A program that does not know ``--help`` may begin to work; it is ended then."""
MOST_HELP, MOST_CATALOG = 1 << 20, 1 << 28
_SHOWN = 120


def flags_of(command: TapCommand, *, deadline_seconds: float | None = HELP_SECONDS) -> frozenset[str]:
    """Which of Singer's flags a command knows, as its ``--help`` names them.

    Where that fails or names none, all but ``--properties`` are assumed: taps of today know them. One of
    ``--catalog`` and ``--properties`` is always among them.
    """
    until = None if deadline_seconds is None else time.monotonic() + deadline_seconds
    with TapProcess(command, (*command.words, "--help")) as tap:
        text = tap.output(deadline_seconds, MOST_HELP)
        in_time = tap.wait(until)
        text += b"\n" + tap.stderr
    found = {flag for flag in FLAGS if re.search(rb"(?<![\w-])" + flag.encode() + rb"(?![\w-])", text)}
    if not in_time or not found:
        found = set(FLAGS) - {PROPERTIES}
    if not found & {CATALOG, PROPERTIES}:
        found.add(CATALOG)
    if command.discover_words is not None:
        found.add(DISCOVER)
    return frozenset(found)


def discover(command: TapCommand, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The catalog that discovery prints.

    Raises:
        CatalogError: the tap failed, or printed no catalog.
    """
    with TapProcess(command, command.discovering, files={CONFIG: config}) as tap:
        text = tap.output(most=MOST_CATALOG)
        if tap.end():
            raise CatalogError(f"discovery: {tap.failure()}. Run it by itself, with {DISCOVER}, to see more")
    found, noise = split_catalog(text)
    if found is None:
        shown = command.clean(noise[:_SHOWN].replace("\n", " ")) or "nothing"
        raise CatalogError(
            f"command '{command.name}': {DISCOVER} printed no catalog but: {shown}. Give a catalog where the tap can't "
            "discover"
        )
    return found


def split_catalog(text: bytes) -> tuple[dict[str, Any] | None, str]:
    """The catalog in what discovery has printed, and what else stood there; None if there is no catalog."""
    shown = text.decode("utf-8", "replace").removeprefix("\ufeff")
    decoder = json.JSONDecoder()
    at = shown.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(shown, at)
        except (ValueError, RecursionError):
            value, end = None, at + 1
        if isinstance(value, dict) and isinstance(value.get("streams"), list):
            return value, (shown[:at].strip() + "\n" + shown[end:].strip()).strip()
        at = shown.find("{", end if value is not None else _next_line(shown, at))
    return None, shown.strip()


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
