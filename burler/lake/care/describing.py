"""``burler lake describe``: what people say of a tap in ``singerlake.json`` (Singerlake Pt2, 2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from burler.errors import UsageError
from burler.lake import catalogue, layout
from burler.lake.care.listing import text_of
from burler.lake.lake import not_there
from burler.storage.base import Store


@dataclass(frozen=True, slots=True)
class TapNotes:
    """What a lake says of a tap. None where it says nothing.

    ``state``, ``started``, ``ended`` and ``writer_id`` are of its last run, kept up by the writer; ``link`` leads to
    the job's log.
    """

    tap_id: str
    owner: str | None = None
    description: str | None = None
    documentation: str | None = None
    state: str | None = None
    started: str | None = None
    ended: str | None = None
    writer_id: str | None = None
    link: str | None = None


def describe(
    store: Store,
    tap_id: str,
    *,
    owner: str | None = None,
    description: str | None = None,
    documentation: str | None = None,
    status_link: str | None = None,
) -> TapNotes:
    """Change what a lake says of a tap, by compare-and-swap; what it says now.

    Args:
        owner, description, documentation: new texts; None leaves them as they are, an empty one removes them.
        status_link: where the log of the tap's job is.

    Raises:
        UsageError: an address that is none; the lake has no such tap (names those it has). LakeError:
            ``singerlake.json`` is broken.
    """
    for name, url in (("--documentation", documentation), ("--status-link", status_link)):
        _refuse_no_url(name, url)
    _refuse_unknown(store, tap_id)
    wanted = {"owner": owner, "description": description, "documentation": documentation}
    new = {key: value or None for key, value in wanted.items() if value is not None}
    if new or status_link is not None:
        catalogue.note_tap(store, tap_id, new, link=status_link)
    lake = catalogue.read_singerlake(store)
    return notes_of(tap_id, catalogue.taps_of(lake).get(tap_id))


def notes_of(tap_id: str, notes: Any) -> TapNotes:
    """A tap's entry in ``singerlake.json`` as a dataclass. A status that is plain text is its state."""
    notes = notes if isinstance(notes, dict) else {}
    status = notes.get("status")
    status = status if isinstance(status, dict) else {"state": status}
    return TapNotes(
        tap_id=tap_id,
        owner=text_of(notes, "owner"),
        description=text_of(notes, "description"),
        documentation=text_of(notes, "documentation"),
        state=text_of(status, "state"),
        started=text_of(status, "started"),
        ended=text_of(status, "ended"),
        writer_id=text_of(status, "writer-id"),
        link=text_of(status, "link"),
    )


def _refuse_no_url(name: str, url: str | None) -> None:
    """Pages show these as links."""
    if url and not re.fullmatch(r"https?://[^\s/]\S*", url):
        raise UsageError(f"{name} {url!r} is no address of a page. Write it whole, as https://wiki.example.com/crm.")


def _refuse_unknown(store: Store, tap_id: str) -> None:
    known = catalogue.taps_of(catalogue.read_singerlake(store))
    folders = store.folders(layout.ROOT)
    if tap_id in known or (tap_id and layout.component(tap_id) in folders):
        return
    raise UsageError(
        not_there(store.url, "tap", tap_id, {*known, *(layout.name_of(folder) or folder for folder in folders)})
    )
