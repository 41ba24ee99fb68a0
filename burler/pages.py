"""Pages that are no rows of Python: JSON in bytes, and Arrow. What they are, and their rows if rows are wanted."""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from burler.log_settings import near
from burler.paths import path_of

_BOM = b"\xef\xbb\xbf"
_ROWS_A_BATCH = 10_000
_MOST_DIGITS = 4300
_LONG_LINE_BYTES = 16 * 1024
_JOINED_BYTES = 1024 * 1024
_GLIMPSE = 60
_ORIGIN = b"burler.origin"
_UNCHANGING = frozenset((str, int, float, bool, type(None), bytes, Decimal, dt.datetime, dt.date, UUID))

# A number of too large an exponent is an ArithmeticError of Decimal.
BROKEN = (msgspec.DecodeError, UnicodeError, RecursionError, ArithmeticError)

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_line_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


class Origin(NamedTuple):
    """Where the rows of a page are from: a file, as people may see it, of which so many rows are before them."""

    file: str
    before: int = 0

    def of(self, rows: Sequence[Any], row: Any) -> str:
        """Where one of the rows is from; of a row that is none of them, since it was changed, the file alone."""
        number = next((number for number, one in enumerate(rows, self.before + 1) if one is row), None)
        return f"file '{self.file}'" + ("" if number is None else f", row {number:,}")


@dataclass(frozen=True, slots=True)
class JsonPage:
    """The bytes of a JSON array of rows, of JSON lines, or of a document that holds the rows somewhere.

    ``records_path`` leads from the document to its rows; None stands for what the stream says. ``origin``: the file
    that the rows are of, if they are of one.
    """

    data: bytes
    records_path: tuple[str, ...] | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)


class PageError(Exception):
    """A page that can't be read. ``rows`` are those before the place where it breaks."""

    def __init__(self, fact: str, rows: list[dict[str, Any]] | None = None) -> None:
        super().__init__(fact)
        self.rows = rows or []


def json_page(data: bytes | bytearray | memoryview, records_path: str | Sequence[str] = ()) -> JsonPage:
    """A page of JSON for a sync function to yield, as the source sent it: ``yield burler.json_page(response.content,
    records_path="result.items")``.

    Args:
        data: a JSON array of rows, JSON lines, or a document, in UTF-8.
        records_path: names that lead to the rows of a document, with dots between them or as a list (a name may hold a
            dot). It comes before the stream's own ``records_path``.

    Raises:
        TypeError: data that is no bytes. ValueError: a path that is none.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"json_page takes bytes as the source sent them, not {type(data).__name__}")
    return JsonPage(_clean(data), path_of(records_path))


def copied(value: Any) -> Any:
    """A copy of a row, or of what else JSON holds, that nobody else changes; quicker than ``copy.deepcopy``."""
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is dict:
        made = value.copy()
        for key, inner in value.items():
            if type(inner) not in _UNCHANGING:
                made[key] = copied(inner)
        return made
    if kind is list:
        return [inner if type(inner) in _UNCHANGING else copied(inner) for inner in value]
    return copy.deepcopy(value)


def _clean(data: bytes | bytearray | memoryview) -> bytes:
    data = bytes(data)
    return data[len(_BOM) :] if data.startswith(_BOM) else data


def is_arrow(item: Any) -> bool:
    """Whether something is a RecordBatch or a Table of pyarrow, which is not imported for that."""
    pyarrow = sys.modules.get("pyarrow")
    # Without its names it is being imported this very moment, by another thread: no page of it can exist yet.
    batch, table = getattr(pyarrow, "RecordBatch", None), getattr(pyarrow, "Table", None)
    return batch is not None and table is not None and isinstance(item, batch | table)


_RESPONSE = "yield its .content (JSON as the source sent it), or client.pages(...), which follows the pages as well."
_MISUSED = {
    "pyarrow": "yield Arrow tables or batches (Table.from_arrays, Table.from_struct_array), or its to_pylist().",
    "pandas": "yield pyarrow.Table.from_pandas(frame, preserve_index=False): Arrow tables need no detour.",
    "polars": "yield frame.to_arrow(): Arrow tables need no detour.",
    "requests": _RESPONSE,
    "httpx": _RESPONSE,
}


def misused(item: Any) -> str | None:
    """What to yield in place of an array, a scalar or a data frame, some of which look like rows; None for others."""
    cure = _MISUSED.get(type(item).__module__.partition(".")[0])
    return None if cure is None or is_arrow(item) or type(item).__name__ == "RecordBatchReader" else cure


def as_page(item: Any) -> Any:
    """A page as it is worked with, or None for anything that is none."""
    if isinstance(item, bytes | bytearray | memoryview):
        return JsonPage(_clean(item))
    return item if isinstance(item, JsonPage) or is_arrow(item) or is_passed(item) else None


def from_file(page: Any, origin: Origin) -> Any:
    """A page of JSON, or a batch of Arrow, that says which file it is of: that one as long as it has as many rows."""
    if isinstance(page, JsonPage):
        return replace(page, origin=origin)
    said = f"{origin.before} {page.num_rows} {origin.file}".encode()
    return page.replace_schema_metadata({**(page.schema.metadata or {}), _ORIGIN: said})


def origin_of(page: Any) -> Origin | None:
    """The file that the rows of a page are of, if they are of one."""
    if isinstance(page, JsonPage):
        return page.origin
    before, _, rest = (page.schema.metadata or {}).get(_ORIGIN, b"").decode().partition(" ")
    count, _, file = rest.partition(" ")
    return Origin(file, int(before)) if count == str(page.num_rows) else None


def sliced(page: Any, most_rows: int) -> Iterator[Any]:
    """A batch of Arrow in parts, which share its memory."""
    origin = origin_of(page)
    for first in range(0, page.num_rows, most_rows):
        part = page.slice(first, most_rows)
        yield part if origin is None else from_file(part, Origin(origin.file, origin.before + first))


def is_files(item: Any) -> bool:
    """Whether something is what ``burler.batch_files`` gives."""
    return getattr(item, "is_batch_files", False) is True


def is_passed(item: Any) -> bool:
    """Whether something stands for files that go on as they are."""
    return getattr(item, "is_passed", False) is True


def size_bytes(page: Any) -> int:
    """How much memory a page takes."""
    if is_passed(page):
        return 0
    size: int = len(page.data) if isinstance(page, JsonPage) else page.nbytes
    return size


def batches(page: Any) -> list[Any] | None:
    """Arrow's table, or a big batch, in batches of some thousand rows, which share its memory; None if it is small."""
    if isinstance(page, JsonPage) or is_passed(page):
        return None
    if hasattr(page, "to_batches"):
        # A table of several pages says the origin of the first one alone.
        whole = page.replace_schema_metadata(None).to_batches(max_chunksize=_ROWS_A_BATCH)
        return [batch for batch in whole if batch.num_rows]
    if page.num_rows <= _ROWS_A_BATCH:
        return None
    return list(sliced(page, _ROWS_A_BATCH))


def joined(parts: list[Any], records_path: tuple[str, ...]) -> list[Any]:
    """The parts of a stream, with single JSON lines that follow each other put together."""
    if records_path or len(parts) < 2:
        return parts
    out: list[Any] = []
    lines: list[bytes] = []
    size = 0
    for part in parts:
        line = _single_line(part)
        if line is None or size > _JOINED_BYTES:
            _close(lines, out)
            size = 0
        if line is None:
            out.append(part)
        else:
            lines.append(line)
            size += len(line)
    _close(lines, out)
    return out


def is_line(data: bytes) -> bool:
    """Whether bytes look like one JSON line, of which many may be gathered."""
    return len(data) < _LONG_LINE_BYTES and data[:1] == b"{" and b"\n" not in data[:-1]


def _single_line(part: Any) -> bytes | None:
    if not isinstance(part, JsonPage) or part.records_path or part.origin is not None:
        return None
    line = part.data.strip()
    return line if line[:1] == b"{" and line[-1:] == b"}" and b"\n" not in line else None


def _close(lines: list[bytes], out: list[Any]) -> None:
    if lines:
        out.append(JsonPage(b"\n".join(lines), ()))
        lines.clear()


def _dotted(page: JsonPage) -> str:
    return ".".join(page.records_path or ())


def form_of(page: JsonPage) -> str:
    """``"document"`` with a path to the rows, else ``"array"`` or ``"lines"``, by its first letter."""
    if page.records_path:
        return "document"
    return "array" if page.data.lstrip()[:1] == b"[" else "lines"


def json_rows(page: JsonPage) -> list[dict[str, Any]]:
    """The rows of a JSON page as dicts: numbers with a fraction as Decimals, so that nothing is lost.

    Raises:
        PageError: it can't be read; the error holds the rows before the place.
    """
    if form_of(page) == "lines":
        return _lines(page.data)
    if not page.data.strip():
        raise PageError(f"records_path: the page is empty; a document that leads to '{_dotted(page)}' should be there")
    try:
        found = decoded(page.data)
    except BROKEN as error:
        raise PageError(_broken(page.data, error)) from None
    way: list[str] = []
    for name in page.records_path or ():
        if not isinstance(found, dict) or name not in found:
            raise PageError(_no_way(found, name, way))
        found = found[name]
        way.append(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise PageError(f"records_path '{'.'.join(way)}' leads to {_kind(found)}, not to a list of rows")
    if set(map(type, found)) <= {dict}:
        return found
    at = next(i for i, item in enumerate(found) if type(item) is not dict)
    raise PageError(f"item {at} of the page is {_kind(found[at])}, not an object", found[:at])


def decoded(data: bytes) -> Any:
    """A document of JSON. Half of a surrogate pair, which msgspec refuses, comes through, and so do ``NaN`` and
    infinities, which some sources write: whether a row with such a value fits is said for that row alone.

    Raises:
        msgspec.DecodeError, UnicodeError, RecursionError, ArithmeticError: it is broken.
    """
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        try:
            return json.loads(data.decode(), parse_float=Decimal, parse_int=_integer)
        except (ValueError, RecursionError):
            pass
        raise


def _integer(text: str) -> int | Decimal:
    """An integer; of more digits than Python reads as an int, a Decimal, which no integer field takes."""
    return int(text) if len(text) <= _MOST_DIGITS else Decimal(text)


def _decode_line(data: bytes) -> dict[str, Any]:
    found = decoded(data)
    return found if isinstance(found, dict) else _line_decoder.decode(data)


def _lines(data: bytes) -> list[dict[str, Any]]:
    """JSON lines; one object over several lines is one row."""
    try:
        return _line_decoder.decode_lines(data)
    except BROKEN:
        pass
    try:
        return [_decode_line(data)]
    except BROKEN as error:
        whole = error
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(_decode_line(line))
        except BROKEN as error:
            if not rows and number == 1 and len(data.splitlines()) > 1 and data.lstrip()[:2] in (b"{", b"{\n", b"{\r"):
                raise PageError(_broken(data, whole)) from None
            raise PageError(f"line {number}: {_broken(line, error)}", rows) from None
    return rows


def _no_way(found: Any, name: str, way: list[str]) -> str:
    where = f"under '{'.'.join(way)}'" if way else "in the document"
    if not isinstance(found, dict):
        return f"records_path: there is no '{name}' {where}, which is {_kind(found)}"
    keys = ", ".join(f"'{key:.40}'" for key in list(found)[:10]) or "none"
    return f"records_path: there is no '{name}' {where}. Keys there: {keys}"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _broken(data: bytes, error: Exception) -> str:
    """What is wrong with a text, and what it looks like there."""
    fact = str(error)
    found = re.search(r"\(byte (\d+)\)", fact)
    at = int(found[1]) if found else 0
    if isinstance(error, UnicodeDecodeError):
        at = _not_utf8(data)
        fact = f"byte {at} is not UTF-8"
    elif isinstance(error, ArithmeticError):
        fact = "the exponent of a number is too large"
    elif "truncated" in fact:
        at = len(data)
        fact = "it breaks off"
    first = max(0, min(at, len(data)) - _GLIMPSE // 2)
    html = "; it looks like HTML or XML" if data.lstrip()[:1] == b"<" else ""
    return f"not JSON as a page should be: {fact}{near(data[first : first + _GLIMPSE])}{html}"


def _not_utf8(data: bytes) -> int:
    """Where the first byte stands that is no UTF-8: msgspec counts from the text that it stands in."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0
