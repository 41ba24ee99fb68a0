"""From a lake to a site in a folder: one stream after the other, so that a big lake needs little memory.

All new pages are made beside the old ones, then take their places, then old ones go. A file in the folder says which
files are burler's. What is not is never touched, and a folder without that file must be empty.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from burler.errors import StorageError, UsageError
from burler.lake import catalogue, layout
from burler.lake.care.taps import notes_of
from burler.lake.lake import Lake
from burler.lake.site.facts import (
    Entry,
    Problem,
    Problems,
    StreamFacts,
    StreamLine,
    Tally,
    TapFacts,
    Version,
    read_stream,
    stream_of_catalogue,
)
from burler.lake.site.pages import STATIC, Index, Pages, page_name, plots_of, series_of
from burler.localfile import FileLock, remove_leftovers, replace_file
from burler.storage.base import Store
from burler.words import some

MOST_VERSIONS = 50
"""Versions that get a page of their own, and whose changes are told; the newest ones."""
MARKER = ".burler-lake-site.json"
_NEW = ".burler-lake-site-new-"
_PATH = re.compile(r"(?:[a-z0-9_-]+/)*[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\Z")


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
    with SiteFolder.at(out) as folder:
        site = _Site(Lake(store), url, folder, pages, samples, on_progress, Problems(store))
        taps = [site.write_tap(tap) for tap in site.taps()]
        site.write_front(taps)
        files = folder.publish()
    problems = tuple(site.problems.found)
    return Built(out / "index.html", len(taps), sum(len(tap.streams) for tap in taps), files, problems)


@dataclass(slots=True)
class _Site:
    """A site on its way into its folder."""

    _lake: Lake
    _url: str
    _folder: SiteFolder
    _pages: Pages
    _samples: int
    _on_progress: Callable[[str], object] | None
    problems: Problems
    _index: Index = field(default_factory=Index)

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
            yield TapFacts(name, folder, page_name(name), notes_of(name, notes.get(name)))

    def write_tap(self, tap: TapFacts) -> TapFacts:
        """All pages of a tap; the tap with its streams."""
        self._index.add_tap(tap.tap_id, tap.page, tap.notes.description or "")
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
            command=shlex.join(["burler", "lake", "read", self._url, "--tap", tap.tap_id, "--stream", facts.stream]),
        )
        for version in shown:
            self._write_version(tap, facts, version, page)
        view = facts.view
        tap.streams.append(
            StreamLine(
                stream=facts.stream,
                page=page,
                description=view.description if view else "",
                tally=replace(facts.tally, spans={}),
                fields=len(view.fields) if view else 0,
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


# ---- the folder ------------------------------------------------------------------------------------------------------


class SiteFolder:
    """Pages on their way into a folder; nothing of it is seen before ``publish``."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._staged: dict[str, None] = {}
        self._new = out / f"{_NEW}{secrets.token_hex(6)}"

    @classmethod
    @contextlib.contextmanager
    def at(cls, out: Path) -> Iterator[SiteFolder]:
        """A folder to make a site in: a new one, an empty one, or one that holds a site of burler's.

        Raises:
            UsageError: it is no folder, holds something else, or another process writes a site there.
            StorageError: it can't be made or written.
        """
        try:
            names = sorted(item.name for item in out.iterdir())
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise UsageError(f"{out} can't be used: {error.strerror}. Give lake docs a folder for the site.") from None
        if MARKER in names:
            _listed(out)
        elif names:
            held = some(names, 3)
            raise UsageError(
                f"{out} holds things that are no site of burler's ({held}). Give a new or an empty folder."
            )
        folder = cls(out)
        with folder._told(""):
            out.mkdir(parents=True, exist_ok=True)
            lock = FileLock(out, needed=False)
        if not lock.taken:
            raise UsageError(f"{out}: another lake docs is writing there. Wait for it, or give another folder.")
        with lock:
            try:
                with folder._told(MARKER):  # what a killed run has left goes
                    remove_leftovers(out / MARKER)
                    for item in out.glob(f"{_NEW}*"):
                        shutil.rmtree(item)
                    if MARKER not in names:
                        folder._mark({})
                    folder._new.mkdir()
                yield folder
            finally:
                shutil.rmtree(folder._new, ignore_errors=True)

    def write(self, path: str, content: bytes) -> None:
        """Make a page. ``path`` is relative, of small letters, digits, ``_``, ``-`` and single dots.

        Raises:
            StorageError: the disk is full, or the like.
        """
        if not _PATH.match(path) or path in self._staged:
            raise AssertionError(f"{path!r} is no path for a page, or was written before")
        target = self._new / path
        with self._told(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        self._staged[path] = None

    def publish(self) -> int:
        """Put all pages in their places and remove those of the last time that are no more; how many files there are.

        Raises:
            UsageError: a file that is not burler's stands where a page belongs. Nothing is changed then.
            StorageError: the disk is full, or the like.
        """
        old = _listed(self._out)
        for path in self._staged:
            self._check_place(path, ours=path in old)
        with self._told(MARKER):
            self._mark({**dict.fromkeys(old), **self._staged})  # killed from here on: the next time knows them all
        # The front page comes last: what it links to is there by then.
        for path in sorted(self._staged, key=lambda path: (path == "index.html", path)):
            with self._told(path):
                target = self._out / path
                target.parent.mkdir(parents=True, exist_ok=True)
                (self._new / path).replace(target)
        for path in old:
            if path not in self._staged:
                self._remove(path)
        with self._told(MARKER):
            self._mark(self._staged)
        return len(self._staged)

    def _check_place(self, path: str, *, ours: bool) -> None:
        here = self._out
        for part in path.split("/"):
            here = here / part
            is_page = here == self._out / path
            if here.is_symlink() or (here.exists() and not (ours if is_page else here.is_dir())):
                raise UsageError(
                    f"{here} is not burler's, and a page belongs there. Move it away, or give lake docs another folder."
                )
            if is_page and here.is_dir():
                raise UsageError(f"{here} is a folder, and a page belongs there. Move it away.")

    def _remove(self, path: str) -> None:
        """An old page, and the folders that are empty after it. A link on the way is not followed."""
        parents = list((self._out / path).parents)[: path.count("/")]
        if any(parent.is_symlink() for parent in parents):
            return
        with contextlib.suppress(OSError):
            (self._out / path).unlink()
            for parent in parents:
                parent.rmdir()

    def _mark(self, files: Iterable[str]) -> None:
        text = json.dumps({"format": 1, "made by": "burler lake docs", "files": sorted(files)}, indent=1) + "\n"
        replace_file(self._out / MARKER, text.encode())

    @contextlib.contextmanager
    def _told(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self._out / path} can't be written: {error.strerror}.") from None


def _listed(out: Path) -> dict[str, None]:
    """The files that are ours, by the folder's own list; nothing outside of it, whatever the list says."""
    try:
        document = json.loads((out / MARKER).read_text(encoding="utf-8"))
        files = document["files"]
        if document["format"] != 1 or not all(isinstance(path, str) and _PATH.match(path) for path in files):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            f"{out / MARKER} is not as burler writes it: nobody knows which files are the site's. "
            "Remove the site's files, or give lake docs another folder."
        ) from None
    return dict.fromkeys(files)
