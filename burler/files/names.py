"""What a file's name says of it: how it is packed, and what is in it."""

from __future__ import annotations

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


def shown(text: str) -> str:
    """A path, URL or sentence as people may see it: without passwords, and without the query of a web address, which
    may be signed."""
    address = text.startswith(("http://", "https://"))
    return clean(str(mask(text.partition("?")[0] + "?..." if address and "?" in text else text)))


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
