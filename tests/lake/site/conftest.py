"""Sites of small lakes, a reader of their pages, and a headless browser."""

from __future__ import annotations

import datetime as dt
import functools
import sys
from pathlib import Path

import pytest

from burler.lake import LakeWriter, Store, open_store
from burler.singer.messages import Schema
from tests.browsers import chromium

_HERE = str(Path(__file__).parent)
if _HERE not in sys.path:
    sys.path.append(_HERE)

import site_demo  # noqa: E402
from site_demo import NOW  # noqa: E402
from site_reading import Site, make_site  # noqa: E402

# Names that want out of the folder, into the page's code, or to be the same file as another.
HOSTILE = (
    "../../../../tmp/x",
    "..",
    "con",
    "index",
    "%2F%2E%2E",
    "<script>document.body.dataset.pwned=1</script>",
    '"><img src=x onerror=document.body.dataset.pwned=1>',
    "🐟 fish 🐟",
    "x" * 300,
    "\u202eevil\x07",
    "a/b\\c",
    "search-index.js",
)


@pytest.fixture
def site_of(tmp_path):
    """``site_of(store, **options)``: a site in a folder of the test's own."""
    return functools.partial(lambda store, **options: make_site(store, tmp_path / "site", **options))


def fill_hostile(store: Store) -> None:
    """Taps, streams and fields with names out of a bad dream; case twins come from two writers."""
    for tap in (HOSTILE[0], HOSTILE[5], HOSTILE[8]):
        with LakeWriter(store, tap, emit_state=lambda state: None) as writer:
            for stream in HOSTILE:
                fields = {name: {"type": "string", "description": name} for name in (*HOSTILE, "a.b", "")}
                writer.schema(Schema(stream, {"type": "object", "properties": fields}, (HOSTILE[5],)))
                writer.records(site_demo.page(stream, [dict.fromkeys(HOSTILE, HOSTILE[5])], NOW - dt.timedelta(1)))


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Site:
    """The site of the demo lake, with samples."""
    base = tmp_path_factory.mktemp("demo")
    store = site_demo.make(base / "lake")
    return make_site(store, base / "site", samples=2, title="Town library")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Site:
    """The site of a lake full of hostile names, with samples, a broken manifest and a broken catalogue."""
    base = tmp_path_factory.mktemp("hostile")
    store = open_store(str(base / "lake"))
    fill_hostile(store)
    first = next((base / "lake" / "raw").glob("*/*/manifest.json"))
    first.write_text("{<script>document.body.dataset.pwned=1</script>")
    next((base / "lake" / "raw").glob("*/catalogue.json")).write_text("[]")
    return make_site(store, base / "site", samples=3, title="<b>hostile</b> " + HOSTILE[6])


@pytest.fixture(scope="module")
def browser():
    yield from chromium()
