"""From a lake to the pages of a site: one stream after the other, so that a big lake needs little memory."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from burler import times
from burler.errors import LakeError, StorageError, UsageError
from burler.lake import catalogue, layout
from burler.lake.lake import Lake
from burler.lake.site.facts import (
    Entry,
    Problem,
    Status,
    StreamFacts,
    StreamLine,
    TapFacts,
    Version,
    plain,
    read_stream,
    stream_of_catalogue,
)
from burler.lake.site.output import SiteFolder, site_folder
from burler.lake.site.render import STATIC, Pages
from burler.lake.site.tally import Plot, Series, Tally, bytes_plot, files_plot, rows_plot, series_of
from burler.lake.site.words import Unlike, anchor, cut, page_name
from burler.storage.base import Store

MOST_FIELDS = 300_000
_SHORT = 90


class Index:
    """Taps, streams and fields. A field's name and description stand there once, with all streams that have them."""

    def __init__(self) -> None:
        self._taps: list[tuple[str, str, str]] = []
        self._streams: list[tuple[int, str, str, str]] = []
        self._fields: dict[tuple[str, str], list[int]] = {}
        self._count = 0
        self.left_out = 0

    def add_tap(self, tap_id: str, page: str, description: str) -> None:
        """``page`` is the tap's folder."""
        self._taps.append((tap_id, page, cut(description, _SHORT)))

    def add_stream(self, facts: StreamFacts, page: str) -> None:
        """A stream of the tap that was added last. ``page`` is its file's name, without ending."""
        view = facts.view
        number = len(self._streams)
        description = view.fields.description if view else ""
        self._streams.append((len(self._taps) - 1, facts.stream, page, cut(description, _SHORT)))
        for one in view.fields.fields if view else ():
            if self._count == MOST_FIELDS:
                self.left_out += 1
                continue
            self._count += 1
            self._fields.setdefault((one.path, cut(one.description, _SHORT)), []).append(number)

    def script(self) -> bytes:
        """``window.BURLER_LAKE = {...};`` in ASCII."""
        document = {
            "taps": self._taps,
            "streams": self._streams,
            "fields": [
                [path, streams, description, "" if anchor(path) == f"f-{path}" else anchor(path)]
                for (path, description), streams in sorted(self._fields.items())
            ],
            "leftOut": self.left_out,
        }
        return f"window.BURLER_LAKE = {_dumps(document)};\n".encode("ascii")


def _dumps(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True)


_NOTES = ("owner", "description", "documentation")
MOST_VERSIONS = 50
"""Versions that get a page of their own, and whose changes are told; the newest ones."""


@dataclass(frozen=True, slots=True)
class Built:
    """What was made: the front page, and how many taps, streams and files there are."""

    index: Path
    taps: int
    streams: int
    files: int
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Site:
    store: Store
    url: str
    folder: SiteFolder
    pages: Pages
    samples: int
    on_progress: Callable[[str], object] | None
    index: Index = field(default_factory=Index)
    problems: list[Problem] = field(default_factory=list)


def build_site(
    store: Store,
    out: Path,
    *,
    url: str,
    now: dt.datetime,
    title: str | None = None,
    samples: int = 0,
    on_progress: Callable[[str], object] | None = None,
) -> Built:
    """Make a site about the lake in the folder ``out``.

    Args:
        url: the lake as its user calls it; it stands on the pages, in commands to copy.
        now: the time that ages count from; all else on the pages comes from the lake.
        samples: so many records of each stream are shown; they may hold personal data.
        on_progress: gets the name of each stream (``tap/stream``) as its page is begun.

    What can't be read is said on the pages and in ``problems``; the rest is there all the same.

    Raises:
        UsageError: ``out`` holds something else, or lies among the lake's data.
        StorageError: ``out`` can't be written, or the lake can't be listed.
        MissingExtra: Jinja2 is not there.
    """
    _keep_apart(store, out)
    heading = title or url.rstrip("/").rpartition("/")[2] or "lake"
    pages = Pages(lake_title=heading, now=now.astimezone(dt.UTC), lake_url=url, with_samples=samples)
    with site_folder(out) as folder:
        site = _Site(store, url, folder, pages, samples, on_progress)
        taps = [_write_tap(site, tap) for tap in _taps(site)]
        _write_front(site, taps)
        files = folder.publish()
    return Built(out / "index.html", len(taps), sum(len(tap.streams) for tap in taps), files, tuple(site.problems))


def _keep_apart(store: Store, out: Path) -> None:
    raw = store.locate(layout.ROOT)
    if not raw.startswith("/"):
        return
    if out.resolve().is_relative_to(Path(raw).resolve()):
        raise UsageError(f"{out} lies among the data of the lake. Give lake docs a folder outside of {raw}.")


def _taps(site: _Site) -> Iterator[TapFacts]:
    """Taps that have a folder, and those that ``singerlake.json`` names, by name."""
    notes = {tap_id: note for tap_id, note in _lake_notes(site).items() if _is_name(tap_id)}
    known = {layout.component(tap_id): tap_id for tap_id in notes}
    folders = {folder: known.get(folder) for folder in site.store.folders(layout.ROOT)}
    named = {layout.tap_folder(tap_id): tap_id for tap_id in notes}
    for folder, tap_id in folders.items():
        named[f"{layout.ROOT}/{folder}"] = tap_id or _whole_name(site, folder) or folder
    names, pages = Unlike(), Unlike()
    for folder, tap_id in sorted(named.items()):
        name = names.one(tap_id, folder.rpartition("/")[2])
        yield _tap(name, folder, pages.one(page_name(name), page_name(folder)), notes.get(tap_id))


def _whole_name(site: _Site, folder: str) -> str | None:
    try:
        return Lake(site.store).tap_of(folder)
    except (StorageError, UsageError) as error:  # a name that was cut, and a manifest that can't be read
        site.problems.append(Problem(folder, plain(site.store, error)))
        return None


def _lake_notes(site: _Site) -> Mapping[str, Any]:
    try:
        document = catalogue.read_singerlake(site.store)
    except (LakeError, StorageError) as error:
        site.problems.append(Problem("the lake", plain(site.store, error)))
        return {}
    taps = (document or {}).get("taps")
    return taps if isinstance(taps, dict) else {}


def _is_name(tap_id: str) -> bool:
    try:
        return bool(layout.component(tap_id))
    except UsageError:
        return False


def _name(entry: Entry) -> str:
    """The stream of a catalogue's entry, as the lake's folders are called."""
    name = entry.get("tap_stream_id") or entry.get("stream")
    return name if isinstance(name, str) and _is_name(name) else ""


def _tap(tap_id: str, folder: str, page: str, notes: Any) -> TapFacts:
    notes = notes if isinstance(notes, dict) else {}
    owner, description, documentation = (str(notes.get(key) or "") for key in _NOTES)
    return TapFacts(tap_id, folder, page, owner, description, documentation, _status(notes.get("status")))


def _status(value: Any) -> Status | None:
    if isinstance(value, str) and value:
        return Status(state=value)
    if not isinstance(value, dict) or not value.get("state"):
        return None
    return Status(
        state=str(value["state"]),
        writer=str(value.get("writer-id") or ""),
        started=times.lenient_moment(value.get("started")),
        ended=times.lenient_moment(value.get("ended")),
        link=str(value.get("link") or ""),
    )


def _write_tap(site: _Site, tap: TapFacts) -> TapFacts:
    """All pages of a tap; the tap with its streams."""
    entries = _catalogue(site, tap)
    site.index.add_tap(tap.tap_id, tap.page, tap.description)
    pages = Unlike()
    for facts in _streams(site, tap, entries):
        if site.on_progress is not None:
            site.on_progress(f"{tap.tap_id}/{facts.stream}")
        _write_stream(site, tap, facts, pages.one(page_name(facts.stream), page_name(facts.folder)))
    site.problems += tap.problems
    series = series_of(tap.tally)
    content = site.pages.page("tap.html", depth=2, tap=tap, plots=_plots(series, tap.tally), series=series)
    site.folder.write(f"taps/{tap.page}/index.html", content)
    return tap


def _catalogue(site: _Site, tap: TapFacts) -> dict[str, Entry]:
    """The entries of a tap's catalogue, by the name of the stream; what can't be read is a problem of the tap."""
    try:
        document = catalogue.read_catalogue(site.store, tap.tap_id)
    except (LakeError, StorageError) as error:
        tap.problems.append(Problem(tap.tap_id, plain(site.store, error)))
        return {}
    return {name: entry for entry in (document or {"streams": ()})["streams"] if (name := _name(entry))}


def _streams(site: _Site, tap: TapFacts, entries: Mapping[str, Entry]) -> Iterator[StreamFacts]:
    """Streams that have a folder, by its name, then those that only the catalogue knows."""
    names = Unlike()
    for name in site.store.folders(tap.folder):
        facts = read_stream(site.store, tap.tap_id, f"{tap.folder}/{name}", entries, samples=site.samples)
        if facts is not None:
            yield replace(facts, stream=names.one(facts.stream, name))
    for stream, entry in entries.items():
        if stream not in names:
            yield stream_of_catalogue(tap.tap_id, names.one(stream, stream), entry)


def _write_stream(site: _Site, tap: TapFacts, facts: StreamFacts, page: str) -> None:
    site.index.add_stream(facts, page)
    series = series_of(facts.tally)
    shown = [version for version in facts.versions if version.number > len(facts.versions) - MOST_VERSIONS]
    content = site.pages.page(
        "stream.html",
        depth=2,
        tap=tap,
        facts=facts,
        page=page,
        versions=shown[::-1],
        series=series,
        plots=_plots(series, facts.tally, facts.versions),
        command=_command(site.url, tap.tap_id, facts.stream),
    )
    site.folder.write(f"taps/{tap.page}/{page}.html", content)
    for version in shown:
        _write_version(site, tap, facts, version, page)
    view = facts.view
    tap.streams.append(
        StreamLine(
            tap_id=tap.tap_id,
            stream=facts.stream,
            page=page,
            description=view.fields.description if view else "",
            tally=replace(facts.tally, spans={}),
            fields=len(view.fields.fields) if view else 0,
            versions=len(facts.versions),
            source=facts.source,
            broken=bool(facts.problems),
        )
    )
    tap.tally.merge(facts.tally)
    site.problems += facts.problems


def _write_version(site: _Site, tap: TapFacts, facts: StreamFacts, version: Version, page: str) -> None:
    if version.line:
        site.folder.write(f"taps/{tap.page}/{page}.{version.number}.json", version.line.rstrip(b"\n") + b"\n")
    if version is facts.current or version.view is None:
        return  # its fields stand on the stream's own page
    content = site.pages.page("version.html", depth=2, tap=tap, facts=facts, page=page, version=version)
    site.folder.write(f"taps/{tap.page}/{page}.{version.number}.html", content)


def _write_front(site: _Site, taps: list[TapFacts]) -> None:
    total = Tally()
    for tap in taps:
        total.merge(tap.tally)
    series = series_of(total)
    content = site.pages.page(
        "index.html",
        depth=0,
        taps=taps,
        tally=total,
        problems=site.problems,
        series=series,
        plots=_plots(series, total),
        streams=sum(len(tap.streams) for tap in taps),
        left_out=site.index.left_out,
    )
    site.folder.write("index.html", content)
    site.folder.write("assets/search-index.js", site.index.script())
    for path in sorted(STATIC.iterdir()):
        site.folder.write(f"assets/{path.name}", path.read_bytes())


def _plots(series: Series | None, tally: Tally, versions: tuple[Version, ...] = ()) -> list[Plot]:
    """Rows and bytes over time; files where nobody counted rows."""
    if series is None:
        return []
    marks = []
    for version in versions[1:]:
        if version.tally.first is not None:
            marks.append((series.place(version.tally.first), version.label))
    found = [rows_plot(series, marks), bytes_plot(series, marks)]
    if not tally.complete:
        found.append(files_plot(series, marks))
    return [plot for plot in found if plot is not None]


def _command(url: str, tap_id: str, stream: str) -> str:
    """What to type to read the stream back."""
    return f"burler lake read {shlex.quote(url)} --tap {shlex.quote(tap_id)} --stream {shlex.quote(stream)}"
