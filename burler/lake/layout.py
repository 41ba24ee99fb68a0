"""Where things lie in a lake: pure functions from names to paths and back.

All paths are relative to the lake, with ``/`` between components::

    raw/singerlake.json
    raw/<tap_id>/catalogue.json
    raw/<tap_id>/state.json
    raw/<tap_id>/state.previous.json
    raw/<tap_id>/<stream>/manifest.json
    raw/<tap_id>/<stream>/<schema hash>/<stream>-<first>-<last>[-<n>].singer.gz
    raw/<tap_id>/<stream>/<schema hash>/singerlake.lock
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from urllib.parse import unquote

from burler.errors import UsageError
from burler.lake.hashing import schema_hash

ROOT = "raw"
MAX_COMPONENT_BYTES = 200
_CUT_TO_BYTES = 150
_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
MANIFEST, LOCK = "manifest.json", "singerlake.lock"
STATE, PREVIOUS_STATE = "state.json", "state.previous.json"
_RESERVED = frozenset({"catalogue.json", "catalog.json", MANIFEST, "singerlake.json", LOCK, STATE, PREVIOUS_STATE})
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?\Z", re.IGNORECASE | re.ASCII | re.DOTALL)
_FILE_NAME = re.compile(
    r"(?P<stream>.+)-(?P<first>\d{8}T\d{6}Z)-(?P<last>\d{8}T\d{6}Z)(?:-(?P<n>\d{1,9}))?"
    r"\.singer(?:\.(?P<compression>gz|bz2))?",
    re.ASCII | re.DOTALL,
)


def component(name: str) -> str:
    """A tap id or stream name as one path component: safe on every system, in Hive and in Spark.

    ``[A-Za-z0-9._-]`` stay; every other byte of its UTF-8 form, and a leading ``.`` or ``_`` (Spark
    hides those) or a ``.`` at the end (Windows drops that), becomes ``%XX``. What is longer than 200 bytes is cut to
    150 and gets ``~`` and the base58 hash of the whole. Names that the lake itself uses, and names of Windows' devices
    (``con``, ``aux.txt``), get their first letter escaped.

    Raises:
        UsageError: the name is empty, or is no valid text.
    """
    if not name:
        raise UsageError("a tap id or stream name is empty. Give it a name: it becomes a folder of the lake.")
    try:
        raw = name.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"the name {name!r} holds half of a surrogate pair: no folder can be named so.") from None
    kept = [chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in raw]
    if raw[0] in b"._" or name.lower() in _RESERVED or _DEVICE.match(name):
        kept[0] = f"%{raw[0]:02X}"
    if raw[-1:] == b"." and len(raw) > 1:
        kept[-1] = "%2E"
    text = "".join(kept)
    if len(text) <= MAX_COMPONENT_BYTES:
        return text
    # A cut in the middle of %XX would make a name that can't be read back as an escape.
    head = re.sub(r"%[0-9A-F]?\Z", "", text[:_CUT_TO_BYTES])
    return f"{head}~{schema_hash(text.encode('ascii'))}"


def folder_of(name: str) -> str:
    """The same; empty where no folder can be named so."""
    try:
        return component(name)
    except UsageError:
        return ""


def name_of(folder: str) -> str | None:
    """The name that ``component`` made ``folder`` from; None when it was cut and can't be known."""
    if "~" in folder:
        return None
    try:
        return unquote(folder, errors="strict")
    except UnicodeDecodeError:
        return folder


def tap_folder(tap_id: str) -> str:
    """``raw/<tap_id>``."""
    return f"{ROOT}/{component(tap_id)}"


def stream_folder(tap_id: str, stream: str) -> str:
    """``raw/<tap_id>/<stream>``."""
    return f"{tap_folder(tap_id)}/{component(stream)}"


def manifest_path(tap_id: str, stream: str) -> str:
    """``raw/<tap_id>/<stream>/manifest.json``."""
    return f"{stream_folder(tap_id, stream)}/{MANIFEST}"


def lock_path(tap_id: str, stream: str, digest: str) -> str:
    """``raw/<tap_id>/<stream>/<schema hash>/singerlake.lock``."""
    return f"{stream_folder(tap_id, stream)}/{digest}/{LOCK}"


def catalogue_path(tap_id: str) -> str:
    """``raw/<tap_id>/catalogue.json``."""
    return f"{tap_folder(tap_id)}/catalogue.json"


def state_path(tap_id: str) -> str:
    """``raw/<tap_id>/state.json``."""
    return f"{tap_folder(tap_id)}/{STATE}"


def previous_state_path(tap_id: str) -> str:
    """``raw/<tap_id>/state.previous.json``."""
    return f"{tap_folder(tap_id)}/{PREVIOUS_STATE}"


def singerlake_path() -> str:
    """``raw/singerlake.json``."""
    return f"{ROOT}/singerlake.json"


@dataclass(frozen=True, slots=True)
class FileName:
    """What the name of a data file says.

    ``first`` and ``last`` are floored to seconds: the file covers [first, last + 1 s). ``n`` counts files of
    equal times from 1. ``stream`` is the escaped component. ``compression`` is ``gz``, ``bz2`` or None.
    """

    stream: str
    first: dt.datetime
    last: dt.datetime
    n: int = 1
    compression: str | None = "gz"


def file_name(stream: str, first: dt.datetime, last: dt.datetime, n: int = 1, *, compression: str | None = "gz") -> str:
    """Name of a data file. Times are aware; they are converted to UTC and floored to seconds."""
    number = f"-{n}" if n > 1 else ""
    ending = f".{compression}" if compression else ""
    return f"{component(stream)}-{_stamp(first)}-{_stamp(last)}{number}.singer{ending}"


def parse_file_name(name: str) -> FileName | None:
    """What a file's name says, or None when it is no data file of a lake."""
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        return None
    try:
        first, last = _moment(match["first"]), _moment(match["last"])
    except ValueError:
        return None
    return FileName(match["stream"], first, last, int(match["n"] or 1), match["compression"])


def _stamp(moment: dt.datetime) -> str:
    utc = moment.astimezone(dt.UTC)
    return f"{utc.year:04d}{utc:%m%dT%H%M%S}Z"


def _moment(stamp: str) -> dt.datetime:
    # By hand: strptime takes ten times as long, and files come by the hundred thousand.
    date, clock = (int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8])), stamp[9:15]
    return dt.datetime(*date, int(clock[:2]), int(clock[2:4]), int(clock[4:]), tzinfo=dt.UTC)


SortKey = tuple[str, str, int, str]


def sort_key(path: str) -> SortKey:
    """Replay order of data files: first, last, n; then the path, so that the order is total.

    The times are compared as they are written: they sort as text, and a manifest of 100,000 files is sorted at each
    reading. A name that is none of a data file comes first.
    """
    match = _FILE_NAME.fullmatch(path, path.rfind("/") + 1)
    if match is None:
        return ("", "", 0, path)
    return (match["first"], match["last"], int(match["n"] or 1), path)


def folder_hash(path: str) -> str:
    """The schema hash a data file's path claims: the folder right below the stream's.

    Deeper folders (partitions of other writers) are passed over.
    """
    return path.split("/")[3]
