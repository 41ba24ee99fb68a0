"""Names of files as people may see them."""

from __future__ import annotations

import re

from burler.config.secrets import mask
from burler.config.watched import clean

# A path that is a web address, also one below another store ("zip://*.csv::http://..."), and one within a sentence.
_ADDRESS = re.compile(r"(?:[\w+.-]+(?:://[^\s?]*?)?::)*https?://", re.IGNORECASE)
_QUERY = re.compile(r"(https?://[^\s'\"<>?]*)\?[^\s'\"<>]*", re.IGNORECASE)


def is_web(path: str) -> bool:
    """Whether a path is a web address, or something in or below one."""
    return _ADDRESS.match(path) is not None


def shown(text: str) -> str:
    """A path, URL or sentence as people may see it: without passwords, without the queries of web addresses, which may
    be signed, and in letters that can be written."""
    if is_web(text) and " " not in text.partition("?")[0]:
        text = text.partition("?")[0] + ("?..." if "?" in text else "")
    return printable(clean(str(mask(_QUERY.sub(r"\1?...", text)))))


def printable(text: str) -> str:
    """A name in letters that can be written: bytes of it that are no UTF-8 as ``\\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def without_query(name: str) -> str:
    """The end of a web address without what stands behind ``?``, which may be a signature."""
    return name.partition("?")[0]
