"""A site on disk, and a reader of its pages."""

from __future__ import annotations

import html.parser
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from site_demo import NOW

from burler.lake import FileStats, Store
from support.cli import Ended, burler
from support.internals import hashing


class _Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        if found.get("id"):
            self.ids.append(found["id"] or "")
        self.links += [found[key] or "" for key in ("href", "src") if key in found]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@dataclass
class Site:
    """A site on disk, and what its pages say."""

    out: Path
    done: Ended
    _read: dict[str, _Reader] = field(default_factory=dict)

    @property
    def problems(self) -> list[tuple[str, str]]:
        """(stream or file, what is wrong with it), as the command has said; its exit code agrees."""
        found = [tuple(line.split(": ", 1)) for line in self.done.lines("WARNING")]
        assert self.done.code == bool(found), self.done.stderr
        return found  # type: ignore[return-value]

    def counted(self, what: str) -> int:
        """How many taps, streams, or files the command has told of."""
        found = re.search(rf"([\d,]+) {what}s?\b", self.done.text)
        assert found is not None, self.done.text
        return int(found[1].replace(",", ""))

    def pages(self) -> list[str]:
        return sorted(path.relative_to(self.out).as_posix() for path in self.out.rglob("*.html"))

    def source(self, page: str = "index.html") -> str:
        return (self.out / page).read_text(encoding="utf-8")

    def read(self, page: str) -> _Reader:
        if page not in self._read:
            self._read[page] = reader = _Reader()
            reader.feed(self.source(page))
        return self._read[page]

    def text(self, page: str = "index.html") -> str:
        """What a page says, spaces made one."""
        return " ".join(" ".join(self.read(page).texts).split())

    def index(self) -> dict[str, Any]:
        text = (self.out / "assets" / "search-index.js").read_text(encoding="ascii")
        return json.loads(text.removeprefix("window.BURLER_LAKE = ").removesuffix(";\n"))

    def page_of(self, stream: str) -> str:
        """The page of the one stream that is called so."""
        index = self.index()
        tap, _, page, _ = next(entry for entry in index["streams"] if entry[1] == stream)
        return f"taps/{index['taps'][tap][1]}/{page}.html"

    def broken_links(self) -> list[str]:
        """Every href and src that leads nowhere inside the site; links to the web are not followed."""
        return [
            f"{page}: {link}"
            for page in self.pages()
            for link in self.read(page).links
            if urlsplit(link).scheme not in ("http", "https", "data") and not self.leads(page, link)
        ]

    def leads(self, page: str, link: str) -> bool:
        """Whether a link of a page leads to a file of the site, and to a place that is there."""
        path, _, place = link.partition("#")
        target = ((self.out / page).parent / unquote(path)).resolve() if path else self.out / page
        if not target.is_file() or not target.is_relative_to(self.out.resolve()):
            return False
        return not place or unquote(place) in self.read(target.relative_to(self.out.resolve()).as_posix()).ids


def make_site(store: Store, out: Path, *, samples: int = 0, title: str | None = None) -> Site:
    """The site that ``burler lake docs`` makes of a lake, at the demo's time. A folder is given as ``./lake``."""
    folder = Path(store.url) if "://" not in store.url else None
    options = ["--samples", str(samples), *(["--title", title] if title is not None else [])]
    url, cwd = (f"./{folder.name}", folder.parent) if folder else (store.url, None)
    done = burler("lake", "docs", url, out, *options, cwd=cwd, SOURCE_DATE_EPOCH=str(int(NOW.timestamp())))
    assert done.code in (0, 1), done.stderr
    return Site(out, done)


def describe(lake: Path, stream: str, versions: list[dict[str, Any]], files: list[FileStats], *, tap: str) -> None:
    """A stream by its manifest alone: schemas, and the statistics of its files, which need not be there."""
    lines = [
        json.dumps({"key_properties": [], "schema": schema, "stream": stream, "type": "SCHEMA"}, sort_keys=True)
        for schema in versions
    ]
    hashes = [hashing.schema_hash(line.encode()) for line in lines]
    stats = {}
    for number, one in enumerate(files):
        times = (re.sub(r"[-:]|\.\d+", "", text) for text in (one.first, one.last))
        digest = hashes[number * len(hashes) // len(files)]
        stats[f"{digest}/{stream}-{'-'.join(times)}-{number + 2}.singer.gz"] = one.to_wire()
    document = {
        "format": 1,
        "tap_id": tap,
        "stream": stream,
        "generation": "g",
        "sequence": len(files),
        "versions": {digest: f"v{number}" for number, digest in enumerate(hashes, 1)},
        "schemas": {digest: {"line": line} for digest, line in zip(hashes, lines, strict=True)},
        "files": list(stats),
        "file_stats": stats,
    }
    folder = lake / "raw" / tap / stream
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(document))
