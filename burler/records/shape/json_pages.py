"""Pages of bytes: JSON that is decoded into a stream's own type, never into dicts.

A page that does not go this way (an unknown field, a value that does not fit, broken JSON) gives None: the caller
reads its rows as dicts, and they take the usual path, which says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burler.pages import JsonPage, form_of
from burler.records.shape.compile import Compiled, Learned, compile_schema, learn
from burler.records.shape.rules import Rules

_MOST_TYPES = 64  # paths to rows that are remembered, for sources that make them up


class JsonDecoder:
    """Decodes pages of one stream.

    Args:
        schema: in the form of ``shape.form``.
    """

    def __init__(self, schema: Mapping[str, Any], rules: Rules) -> None:
        self._schema = schema
        self._rules = rules
        self._learned = Learned()
        self._decoders: dict[tuple[str, ...] | str, Callable[[Any], Any]] = {}
        self.compiled = compile_schema(schema, rules, self._learned, raw=True)

    def decode(self, page: JsonPage) -> list[Any] | None:
        """The page as structs of ``compiled``; leaves are not looked at yet. None: read it as dicts."""
        while self.compiled is not None:
            try:
                return self._rows(page, self.compiled)
            except msgspec.ValidationError as error:
                told = _from_the_row_on(error, page)
                if not learn(told, self.compiled, self._learned, raw=True):
                    return None
                self.compiled = compile_schema(self._schema, self._rules, self._learned, raw=True)
                self._decoders.clear()
            except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError):
                return None
        return None

    def _rows(self, page: JsonPage, compiled: Compiled) -> list[Any]:
        form = form_of(page)
        path = page.records_path or ()
        way = path if form == "document" else form
        decode = self._decoders.get(way)
        if decode is None:
            if len(self._decoders) >= _MOST_TYPES:
                self._decoders.clear()
            decode = self._decoders[way] = _decoder(way, compiled)
        rows = decode(page.data)
        if form == "document":
            for _ in path:
                rows = rows.f0
        return rows or []


def _decoder(way: tuple[str, ...] | str, compiled: Compiled) -> Callable[[Any], Any]:
    if way == "lines":
        return msgspec.json.Decoder(compiled.row_type).decode_lines
    if way == "array":
        return msgspec.json.Decoder(compiled.page_type).decode
    kind: Any = compiled.page_type | None
    for name in reversed(way):  # what stands beside the path is passed over
        kind = msgspec.defstruct("Document", [("f0", kind)], rename={"f0": name})
    return msgspec.json.Decoder(kind).decode


def _from_the_row_on(error: msgspec.ValidationError, page: JsonPage) -> msgspec.ValidationError:
    """The error with its place counted from the row, as it is for rows that are converted."""
    path = "".join(f".{name}" for name in page.records_path or ())
    return msgspec.ValidationError(re.sub(r" - at `\$" + re.escape(path), " - at `$", str(error), count=1))
