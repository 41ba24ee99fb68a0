"""A site on disk, and a reader of its pages."""

from __future__ import annotations

import html.parser
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from site_demo import NOW

from burler.lake import Store
from support.internals import lake_site


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
    built: lake_site.Built | None = None
    _read: dict[str, _Reader] = field(default_factory=dict)

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


def make_site(store: Store, out: Path, **options: Any) -> Site:
    """The site of a lake, at the demo's time."""
    return Site(out, lake_site.build_site(store, out, **{"url": "./lake", "now": NOW, **options}))
