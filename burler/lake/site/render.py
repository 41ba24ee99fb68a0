"""Facts into HTML, through templates that escape whatever they are given."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from burler.extras import require
from burler.lake.site import words
from burler.lake.site.fields import counts, quoted

STATIC = Path(__file__).with_name("static")
_TEMPLATES = Path(__file__).with_name("templates")
# Control characters, and those that turn the direction of the text after them.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


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
        count=words.count,
        size=words.size,
        clock=words.clock,
        machine=words.machine,
        age=jinja2.pass_context(lambda context, moment: words.age(moment, context["now"])),
        cut=words.cut,
        anchor=words.anchor,
        counts=counts,
        quoted=quoted,
        web=web_address,
    )
    return environment


def _visible(value: Any) -> Any:
    """Text from the lake with what is not printed spelled out; what templates made themselves stays."""
    if type(value) is not str:
        return value
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def web_address(text: Any) -> str:
    """The text if it is an http or https address, else nothing: no other scheme becomes a link."""
    if not isinstance(text, str) or re.search(r"[\x00-\x20\x7f]", text):
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc else ""
