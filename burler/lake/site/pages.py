"""HTML, through templates that escape whatever they are given; names of pages, and of places in them, made of a few
safe characters whatever the lake calls things.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from burler.extras import require
from burler.lake.site.fields import counts, quoted
from burler.words import counted, cut, size

STATIC = Path(__file__).with_name("static")
_TEMPLATES = Path(__file__).with_name("templates")
# Control characters, and those that turn the direction of the text after them.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_AGES = ((365.25 * 86400, "year"), (30.44 * 86400, "month"), (86400.0, "day"), (3600.0, "hour"), (60.0, "minute"))


class Pages:
    """Templates, made ready once. ``everywhere``: what each page may show (title, time)."""

    def __init__(self, **everywhere: Any) -> None:
        """Raises: MissingExtra: Jinja2 is not there."""
        self._environment = _environment()
        self._everywhere = everywhere

    def page(self, template: str, *, depth: int, **facts: Any) -> bytes:
        """One page. ``depth``: folders between it and the front page."""
        text: str = self._environment.get_template(template).render(self._everywhere, up="../" * depth, **facts)
        return text.encode("utf-8", "backslashreplace")


@functools.cache
def _environment() -> Any:
    jinja2 = require("jinja2", extra="docs-site", needed_for="burler lake docs")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        count="{:,}".format,
        size=size,
        clock=lambda moment: f"{moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ', 'minutes')} UTC",
        machine=lambda moment: f"{moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat('T', 'seconds')}Z",
        age=jinja2.pass_context(lambda context, moment: _age(moment, context["now"])),
        cut=cut,
        anchor=anchor,
        counts=counts,
        quoted=quoted,
        web=_web_address,
    )
    return environment


def _visible(value: Any) -> Any:
    """Text from the lake with what is not printed spelled out; what templates made themselves stays."""
    if type(value) is not str:
        return value
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def _age(moment: dt.datetime, now: dt.datetime) -> str:
    """``5 minutes ago``, ``2 days ago``; what lies ahead of the clock by more than a minute is said to."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 60:
        return "just now"
    length, unit = next((length, unit) for length, unit in _AGES if abs(seconds) >= length)
    return f"{counted(int(abs(seconds) // length), unit)} {'ago' if seconds > 0 else 'in the future'}"


def _web_address(text: Any) -> str:
    """The text if it is an http or https address, else nothing: no other scheme becomes a link."""
    if not isinstance(text, str) or re.search(r"[\x00-\x20\x7f]", text):
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc else ""


_MOST = 60
_PAGE = re.compile(r"[^a-z0-9_-]+")
_ANCHOR = re.compile(r"[^A-Za-z0-9_.-]+")
# Device names of Windows; the page that every folder has; what we make of names that are not safe.
_TAKEN = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|index|(?:.*-)?[0-9a-f]{12})\Z")


def page_name(name: str) -> str:
    """A file name without ending: ``[a-z0-9_-]`` alone, at most 73 characters, never two names alike.

    A name that is not so itself is made so, and gets a part of its SHA-256; nothing else of the lake has a say in it,
    so that a page keeps its address. Two names that differ only in case get two pages everywhere.
    """
    return _safe(name.lower(), name, _PAGE)


def anchor(path: str) -> str:
    """The ``id`` of a field's row: ``f-address.city``."""
    return "f-" + _safe(path, path, _ANCHOR)


def _safe(wanted: str, name: str, unsafe: re.Pattern[str]) -> str:
    text = unsafe.sub("-", wanted)[:_MOST].strip("-")
    if text == name and not _TAKEN.match(text):
        return text
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text}-{digest}" if text else digest
