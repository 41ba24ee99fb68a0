"""What names, first bytes and media types say of a file: its format, and how it is compressed."""

from __future__ import annotations

COMPRESSIONS = {
    "gz": "gzip", "gzip": "gzip", "bz2": "bz2", "bzip2": "bz2", "xz": "xz", "zst": "zstd", "zstd": "zstd", "zip": "zip",
}  # fmt: skip
"""How people and file names call what burler calls ``gzip``, ``bz2``, ``xz``, ``zstd``, and ``zip``."""

FORMATS = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv",
    "jsonl": "jsonl", "ndjson": "jsonl", "jsonlines": "jsonl", "json-lines": "jsonl", "json": "json", "geojson": "json",
    "parquet": "parquet", "parq": "parquet", "pq": "parquet",
    "arrow": "arrow", "arrows": "arrow", "feather": "arrow", "ipc": "arrow", "arrow_ipc": "arrow",
}  # fmt: skip
"""The same of formats: ``csv``, ``tsv``, ``jsonl`` (an object a line), ``json`` (a document), ``parquet``, ``arrow``
(a file or a stream)."""

_MEDIA_TYPES = {
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
    "application/jsonlines": "jsonl",
    "application/json": "json",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
}
_ENDINGS = {"gzip": ".gz", "zstd": ".zst", "bz2": ".bz2", "xz": ".xz"}
_BEGINNINGS = {
    "gzip": (b"\x1f\x8b",),
    # A frame with data, or one to be skipped.
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes((number, 0x2A, 0x4D, 0x18)) for number in range(0x50, 0x60))),
    "bz2": (b"BZh",),
    "xz": (b"\xfd7zXZ\x00",),
    "zip": (b"PK\x03\x04",),
    "parquet": (b"PAR1",),
    "arrow": (b"ARROW1",),
}
_SHOWN = {"zip": "a zip file", "parquet": "Parquet", "arrow": "Arrow"}
HEAD_BYTES = 8
"""So many first bytes say what a file is."""


def split_name(name: str) -> tuple[str, str | None]:
    """A file's name without the ending of its compression, and the compression: ``("a.csv", "gzip")``."""
    stem, dot, ending = name.rpartition(".")
    compression = COMPRESSIONS.get(ending.lower()) if dot else None
    return (stem, compression) if compression else (name, None)


def format_of(name: str) -> str | None:
    """What a file holds by its name; None if the name does not say."""
    _, dot, ending = split_name(name)[0].rpartition(".")
    return FORMATS.get(ending.lower()) if dot else None


def format_of_media_type(value: str) -> str | None:
    """What a reply holds by its ``Content-Type``; None if that does not say."""
    return _MEDIA_TYPES.get(value.partition(";")[0].strip().lower())


def ending(format: str, compression: str | None) -> str:
    """How the name of a file ends: ``jsonl.gz``."""
    return format + _ENDINGS.get(compression or "", "")


def kind_of(head: bytes) -> str | None:
    """The compression or format of a file that begins so; None if its first bytes do not say."""
    return next((kind for kind, marks in _BEGINNINGS.items() if head.startswith(marks)), None)


def may_become(head: bytes, kind: str) -> bool:
    """Whether so few bytes may be the beginning of a file of that kind."""
    return any(mark.startswith(head) for mark in _BEGINNINGS[kind])


def shown_kind(kind: str) -> str:
    """A kind of file in a sentence: "it is Parquet"."""
    return _SHOWN.get(kind, kind)
