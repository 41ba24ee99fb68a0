"""A catalog in which everything is selected that can be, or all but some streams."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any


def select_all(catalog: Any) -> Any:
    """A copy of a catalog with all streams and fields selected, in the ways that taps read; fields whose inclusion is
    ``unsupported`` stay out. What is no catalog comes back as it is."""
    if not isinstance(catalog, dict) or not isinstance(catalog.get("streams"), list):
        return catalog
    out = copy.deepcopy(catalog)
    for stream in out["streams"]:
        if isinstance(stream, dict):
            _select(stream)
    return out


def without(catalog: Any, streams: Collection[str]) -> Any:
    """A copy of a catalog with some streams deselected; they may be named as in messages or as in states."""
    if not isinstance(catalog, dict) or not isinstance(catalog.get("streams"), list):
        return catalog
    out = copy.deepcopy(catalog)
    for stream in out["streams"]:
        if isinstance(stream, dict) and not {stream.get("stream"), stream.get("tap_stream_id")}.isdisjoint(streams):
            for entry in stream.get("metadata") or ():
                if isinstance(entry, dict) and entry.get("breadcrumb") in ([], ()):
                    entry["metadata"] = {**(entry.get("metadata") or {}), "selected": False}
            if isinstance(stream.get("schema"), dict):
                stream["schema"]["selected"] = False
    return out


def _select(stream: dict[str, Any]) -> None:
    entries = stream.get("metadata")
    if not isinstance(entries, list):
        entries = stream["metadata"] = []
    root = False
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("metadata"), dict):
            continue
        is_root = entry.get("breadcrumb") in ([], ())
        root |= is_root
        if is_root or entry["metadata"].get("inclusion") != "unsupported":
            entry["metadata"]["selected"] = True
    if not root:
        entries.append({"breadcrumb": [], "metadata": {"selected": True}})
    if isinstance(stream.get("schema"), dict):
        stream["schema"]["selected"] = True  # taps from before metadata look here
