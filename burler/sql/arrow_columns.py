"""ADBC's columns as the Arrow path takes them fast, nothing lost (docs/pages.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burler.sql.postgres_select import Result

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_DIGITS = 38
# As PostgreSQL sends them, and as ADBC counts them from 1970: past the end of its integers.
_INFINITE_DAYS = {2**31 - 1: "infinity", -(2**31): "-infinity", -2147472692: "infinity", -2147472691: "-infinity"}
_INFINITE_TIMES = {
    **{2**63 - 1: "infinity", -(2**63): "-infinity"},
    **{-9222425352054775809: "infinity", -9222425352054775808: "-infinity"},
}
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
"""As PostgreSQL writes them."""


def settled(batch: pa.RecordBatch, results: Sequence[Result]) -> pa.RecordBatch | list[dict[str, Any]]:
    """A batch with numbers as decimals and times in UTC.

    Times that JSON has no form for (``infinity``) become text, so that an error shows what the source has; a batch with
    a numeric that is none (``NaN``) becomes rows, where it is what floats call so.
    """
    import pyarrow as pa

    columns = [_settled(batch.column(i), result) for i, result in enumerate(results)]
    made = pa.RecordBatch.from_arrays(columns, names=[result.name for result in results])
    numbers = [one for one, column in zip(results, columns, strict=True) if one.kind == "numeric" and _odd(column)]
    lists = [one for one in results if one.is_list]
    beside = zip(lists, batch.columns[len(results) :], strict=True)
    others = [(one, texts) for one, texts in beside if texts.null_count < len(texts)]
    if not numbers and not others:
        return made
    from burler.pipeline.yielded import rows_of

    rows = rows_of(made)
    for one, texts in others:
        for row, text in zip(rows, texts.to_pylist(), strict=True):
            row[one.name] = row[one.name] if text is None else json.loads(text)
    return _with_floats(rows, [*numbers, *(one for one, _texts in others)])


def json_rows(page: bytes, results: Sequence[Result]) -> bytes | list[dict[str, Any]]:
    """A JSON page as it is; as rows where a number may be none: PostgreSQL writes ``"NaN"`` as text then."""
    if b'"NaN"' not in page and b'Infinity"' not in page:
        return page
    numbers = [one for one in results if one.kind.lstrip("_") in ("numeric", "float4", "float8")]
    if not numbers:
        return page
    from burler.pages import as_page
    from burler.pipeline.yielded import rows_of

    return _with_floats(rows_of(as_page(page)), numbers)


def _with_floats(rows: list[dict[str, Any]], numbers: Sequence[Result]) -> list[dict[str, Any]]:
    for row in rows:
        for one in numbers:
            row[one.name] = _as_float(row[one.name])
    return rows


def _as_float(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_float(one) for one in value]
    return float(value) if value in _NO_NUMBERS else value


def _settled(column: Any, result: Result) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if result.kind == "numeric":
        return _number(column, result.modifier)
    if result.is_json:
        from burler.records.arrow.to_rows import JSON_TEXT

        texts = pc.utf8_trim_whitespace(column) if result.kind == "json" else column
        return pa.ExtensionArray.from_storage(JSON_TEXT, texts)
    if pa.types.is_timestamp(column.type):
        zoned = column.view(pa.timestamp("us", "UTC"))
        return _with_words(zoned, column.view(pa.int64()), _INFINITE_TIMES, _moment)
    if pa.types.is_date(column.type):
        return _with_words(column, column.view(pa.int32()), _INFINITE_DAYS, _day)
    return column


def _number(texts: Any, modifier: int) -> Any:
    """Texts of a numeric as decimals of its digits; where it has no fixed digits, or there is a NaN, as text."""
    import pyarrow as pa

    if modifier < 0:
        return texts
    precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    if not 0 <= scale <= precision <= _MOST_DIGITS:  # a scale below 0 is one beyond a thousand here
        return texts
    try:
        return texts.cast(pa.decimal128(precision, scale))
    except pa.ArrowInvalid:
        return texts


def _odd(column: Any) -> bool:
    """Whether texts of a numeric hold one that is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from burler.records.arrow.json_text import one_text

    if not pa.types.is_string(column.type):
        return False
    return bool(pc.any(pc.is_in(column, pa.concat_arrays([one_text(text) for text in _NO_NUMBERS]))).as_py())


def _with_words(column: Any, counts: Any, words: dict[int, str], text: Any) -> Any:
    """The column; as texts, if one of its values is no moment of any calendar."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bounds = pc.min_max(counts).as_py()
    if bounds["min"] not in words and bounds["max"] not in words:
        return column
    shown = [
        None if count is None else words[count] if count in words else text(column[i : i + 1])
        for i, count in enumerate(counts.to_pylist())
    ]
    return pa.array(shown, pa.string())


def _moment(one: Any) -> str:
    import pyarrow as pa

    return f"{one.view(pa.timestamp('us')).cast(pa.string())[0].as_py().replace(' ', 'T')}Z"


def _day(one: Any) -> str:
    import pyarrow as pa

    return str(one.cast(pa.string())[0].as_py())


def json_page(texts: Any) -> bytes:
    """A JSON array of the rows that a column of JSON texts holds."""
    from burler.records.arrow.json_text import bytes_of, join

    data = bytes(bytes_of(join([texts, ","], len(texts))))
    return b"[" + data[:-1] + b"]"
