"""What a file's name says of it: how it is packed, and what is in it."""

from __future__ import annotations

import re

from burler.config.secrets import mask
from burler.config.watched import clean
from burler.errors import DeclarationError

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet")
"""What files hold. ``jsonl``: an object a line. ``json``: one document, or an array."""

PACKINGS = ("gz", "bz2", "xz", "zst", "zip")

_FORMAT_OF = {
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "jsonlines": "jsonl",
    "json": "json",
    "geojson": "json",
    "parquet": "parquet",
    "parq": "parquet",
    "pq": "parquet",
}
_PACKING_OF = {
    "gz": "gz",
    "gzip": "gz",
    "bz2": "bz2",
    "bzip2": "bz2",
    "xz": "xz",
    "zst": "zst",
    "zstd": "zst",
    "zip": "zip",
}


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


def split_name(name: str) -> tuple[str, str | None]:
    """A file's name without the ending of its packing, and the packing: ``("a.csv", "gz")`` for ``a.csv.gz``."""
    stem, dot, ending = name.rpartition(".")
    packing = _PACKING_OF.get(ending.lower()) if dot else None
    return (stem, packing) if packing else (name, None)


def format_of(name: str) -> str | None:
    """What a file holds by its name (without the ending of a packing); None if the name does not say."""
    _, dot, ending = split_name(name)[0].rpartition(".")
    return _FORMAT_OF.get(ending.lower()) if dot else None


def check_format(given: str | None) -> None:
    """Refuse a format that is none.

    Raises:
        DeclarationError: ``given`` is not in ``FORMATS``.
    """
    if given is not None and given not in FORMATS:
        raise DeclarationError(f"burler.files: format {given!r} is not known. Known: {', '.join(FORMATS)}.")


def check_packing(given: str | None) -> None:
    """Refuse a packing that is none ("none" stands for files that are not packed, whatever their name).

    Raises:
        DeclarationError: ``given`` is not in ``PACKINGS``.
    """
    if given is not None and given not in (*PACKINGS, "none"):
        raise DeclarationError(
            f"burler.files: compression {given!r} is not known. Known: {', '.join(PACKINGS)}, and none."
        )
