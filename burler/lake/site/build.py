"""From a lake to the pages of a site: one stream after the other, so that a big lake needs little memory."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from burler.errors import UsageError
from burler.lake import catalogue, layout
from burler.lake.lake import Lake
from burler.lake.site.facts import (
    Entry,
    Problem,
    Problems,
    StreamFacts,
    StreamLine,
    TapFacts,
    Version,
    read_stream,
    stream_of_catalogue,
    tap_of_notes,
)
from burler.lake.site.folder import SiteFolder, site_folder
from burler.lake.site.pages import STATIC, Pages, anchor, page_name
from burler.lake.site.plots import Tally, plots_of, series_of
from burler.storage.base import Store
from burler.words import cut

MOST_FIELDS = 300_000
_SHORT = 90
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
    raw = store.locate(layout.ROOT)
    if raw.startswith("/") and out.resolve().is_relative_to(Path(raw).resolve()):
        raise UsageError(f"{out} lies among the data of the lake. Give lake docs a folder outside of {raw}.")
    heading = title or url.rstrip("/").rpartition("/")[2] or "lake"
    pages = Pages(lake_title=heading, now=now.astimezone(dt.UTC), lake_url=url, with_samples=samples)
    with site_folder(out) as folder:
        site = _Site(Lake(store), url, folder, pages, samples, on_progress)
        taps = [site.write_tap(tap) for tap in site.taps()]
        site.write_front(taps)
        files = folder.publish()
    problems = tuple(site.problems.found)
    return Built(out / "index.html", len(taps), sum(len(tap.streams) for tap in taps), files, problems)


class _Site:
    """A site on its way into its folder."""

    def __init__(
        self,
        lake: Lake,
        url: str,
        folder: SiteFolder,
        pages: Pages,
        samples: int,
        on_progress: Callable[[str], object] | None,
    ) -> None:
        self._lake = lake
        self._url = url
        self._folder = folder
        self._pages = pages
        self._samples = samples
        self._on_progress = on_progress
        self._index = Index()
        self.problems = Problems(lake.store)

    def taps(self) -> Iterator[TapFacts]:
        """Taps that have a folder, and those that ``singerlake.json`` names, by their folders."""
        notes: dict[str, Any] = {}
        with self.problems.at("the lake"):
            notes = self._lake.notes()
        named = {folder: tap_id for tap_id in notes if (folder := layout.folder_of(tap_id))}
        named |= self._lake.taps(asked=list(named.values()))
        taken: set[str] = set()
        for folder, tap_id in sorted(named.items()):
            name = folder if tap_id in taken else tap_id
            taken.add(name)
            yield tap_of_notes(name, folder, page_name(name), notes.get(name))

    def write_tap(self, tap: TapFacts) -> TapFacts:
        """All pages of a tap; the tap with its streams."""
        self._index.add_tap(tap.tap_id, tap.page, tap.description)
        before = len(self.problems.found)
        entries: dict[str, Entry] = {}
        with self.problems.at(tap.tap_id):
            document = catalogue.read_catalogue(self._lake.store, tap.tap_id)
            entries = {name: entry for entry in (document or {"streams": ()})["streams"] if (name := _name(entry))}
        tap.problems += self.problems.found[before:]
        for facts in self._streams(tap, entries):
            self._write_stream(tap, facts)
        self._write(f"taps/{tap.page}/index.html", "tap.html", tap.tally, tap=tap)
        return tap

    def _streams(self, tap: TapFacts, entries: Mapping[str, Entry]) -> Iterator[StreamFacts]:
        """Streams that have a folder, by its name, then those that only the catalogue knows."""
        taken: set[str] = set()
        noted = {layout.component(stream): stream for stream in entries}
        for place in self._lake.of_tap(tap.folder, tap.tap_id):
            folder = place.folder.rpartition("/")[2]
            stream = noted.get(folder, place.stream)
            place = replace(place, stream=folder if stream in taken else stream)
            facts = read_stream(place, entries.get(stream, {}), self.problems, samples=self._samples)
            if facts is not None:
                taken.add(place.stream)
                yield facts
        yield from (stream_of_catalogue(*one) for one in entries.items() if one[0] not in taken)

    def _write_stream(self, tap: TapFacts, facts: StreamFacts) -> None:
        if self._on_progress is not None:
            self._on_progress(f"{tap.tap_id}/{facts.stream}")
        page = page_name(facts.stream)
        self._index.add_stream(facts, page)
        shown = facts.versions[-MOST_VERSIONS:]
        self._write(
            f"taps/{tap.page}/{page}.html",
            "stream.html",
            facts.tally,
            begun=facts.versions[1:],
            tap=tap,
            facts=facts,
            page=page,
            versions=shown[::-1],
            command=_command(self._url, tap.tap_id, facts.stream),
        )
        for version in shown:
            self._write_version(tap, facts, version, page)
        view = facts.view
        tap.streams.append(
            StreamLine(
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

    def _write_version(self, tap: TapFacts, facts: StreamFacts, version: Version, page: str) -> None:
        path = f"taps/{tap.page}/{page}.{version.number}"
        if version.line:
            self._folder.write(f"{path}.json", version.line.rstrip(b"\n") + b"\n")
        if version is not facts.current and version.view is not None:  # else its fields stand on the stream's own page
            content = self._pages.page("version.html", depth=2, tap=tap, facts=facts, page=page, version=version)
            self._folder.write(f"{path}.html", content)

    def write_front(self, taps: list[TapFacts]) -> None:
        """The front page, and what all pages use."""
        total = Tally()
        for tap in taps:
            total.merge(tap.tally)
        self._write(
            "index.html",
            "index.html",
            total,
            taps=taps,
            problems=self.problems.found,
            streams=sum(len(tap.streams) for tap in taps),
            left_out=self._index.left_out,
        )
        self._folder.write("assets/search-index.js", self._index.script())
        for path in sorted(STATIC.iterdir()):
            self._folder.write(f"assets/{path.name}", path.read_bytes())

    def _write(self, path: str, template: str, tally: Tally, begun: tuple[Version, ...] = (), **facts: Any) -> None:
        """A page with plots of what came over time, with marks where these versions began."""
        series = series_of(tally)
        marks = [(first, one.label) for one in begun if (first := one.tally.first) is not None]
        plots = plots_of(series, tally, marks)
        content = self._pages.page(template, depth=path.count("/"), tally=tally, series=series, plots=plots, **facts)
        self._folder.write(path, content)


def _name(entry: Entry) -> str:
    """The stream of a catalogue's entry, as the lake's folders are called."""
    name = entry.get("tap_stream_id") or entry.get("stream")
    return name if isinstance(name, str) and layout.folder_of(name) else ""


def _command(url: str, tap_id: str, stream: str) -> str:
    """What to type to read the stream back."""
    return f"burler lake read {shlex.quote(url)} --tap {shlex.quote(tap_id)} --stream {shlex.quote(stream)}"


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
        return f"window.BURLER_LAKE = {json.dumps(document, separators=(',', ':'))};\n".encode("ascii")
