"""Parts of a page that needs nothing else: text of others made harmless, tables, figures, the page around them.

All that comes from outside (names, errors, bookmarks) goes through ``shown``; a policy in the page lets no script run
but its own, should that ever fail.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable
from typing import Any

NAME = 120
"""Characters of a name, a place or a bookmark in a cell."""

_TIME = re.compile(r"(?<=^\d{4}-\d\d-\d\d)T")
_JOINT = re.compile(r"([_.-])(?=\w)")
# Control characters, and those that turn the direction of the text after them.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def shown(text: Any, most: int = NAME) -> str:
    """A text for the page: cut, escaped, and what is not printed spelled out."""
    value = str(text)
    value = value if len(value) <= most else value[:most] + " ..."
    value = value.encode("utf-8", "backslashreplace").decode()
    return html.escape(_HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value))


def one_line(text: Any, most: int = NAME) -> str:
    """As :func:`shown`, without line ends."""
    return shown(text, most).replace("\n", "\\n").replace("\t", "\\t")


def document(title: str, body: str, *, style: str, script: str) -> str:
    """A page; ``title`` and ``body`` are HTML."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{style}</style></head>\n"
        f"<body><main>\n{body}</main>\n<script>{script}</script></body></html>\n"
    )


def tile(label: str, count: int, *, bad: bool = False) -> str:
    """A number of the summary."""
    return f'<div class="tile{" bad" if bad else ""}"><b>{count:,}</b> {label}</div>'


def table(headers: Iterable[tuple[str, str]], rows: Iterable[str]) -> str:
    """A table that the page's script sorts; headers are (label, "text" or "number")."""
    head = "".join(f'<th class="{kind}" data-kind="{kind}">{label}</th>' for label, kind in headers)
    body = "\n".join(rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>\n"


def cell(content: str, kind: str, value: float | None = None) -> str:
    """A cell; ``value`` is what it is sorted by, if that is a number."""
    data = "" if value is None else f' data-value="{value}"'
    return f'<td class="{kind}"{data}>{content}</td>'


def bookmark_cell(value: Any) -> str:
    """A bookmark in a cell; a date-time goes to two lines where there is no room for it."""
    text = "" if value is None else one_line(value).replace(".000000Z", "Z")
    return cell(_TIME.sub("<wbr>T", text), "mono" if len(text) < 36 else "text mono")


def name_text(name: str) -> str:
    """A name on one line, which may end where its words do."""
    return _JOINT.sub(r"\1<wbr>", one_line(name))


def place_cell(place: str | None) -> str:
    """File and line of code; the last part stays whole."""
    before, slash, last = one_line(place or "").rpartition("/")
    return cell(f'{before}{slash}<span class="short">{last}</span>', "text mono")


def figure(caption: str, svg: str) -> str:
    """A plot with what it shows; nothing without one."""
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>" if svg else ""
