"""JSON as strictly as YAML is read: a key that stands twice in one object is an error, not the last one's word."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from burler.errors import DeclarationError

_BOM = b"\xef\xbb\xbf"
_BYTE = re.compile(r"\(byte (\d+)\)$")


def load_json(content: bytes, *, named: str) -> Any:
    """The value of a JSON text in UTF-8, with or without a byte order mark.

    Raises:
        DeclarationError: it is no JSON (the line is named), holds a key twice, or is nested too deep.
    """
    body = content.removeprefix(_BOM)
    try:
        text = body.decode()
        value = msgspec.json.decode(body)  # the values, and stricter than Python's: no NaN, no half surrogate pairs
        _keys.decode(text)
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{named} is not JSON: it is not UTF-8 (byte {error.start}).") from None
    except _Twice as twice:
        raise DeclarationError(f"{named} is not JSON of one meaning: {twice}{_line_of(twice.key, text)}.") from None
    except msgspec.DecodeError as error:
        raise DeclarationError(f"{named} is not JSON: {_fact(str(error), body)}.") from None
    except RecursionError:
        raise DeclarationError(f"{named} is nested too deep to be a schema.") from None
    return value


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        shown = key if key.isprintable() and len(key) <= 80 else ascii(key)[1:80]
        super().__init__(f"the key '{shown}' is there twice in one object")
        self.key = key


def _check_pairs(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)


_keys = json.JSONDecoder(object_pairs_hook=_check_pairs, parse_int=float)  # sees every key; msgspec has the values


def _line_of(key: str, text: str) -> str:
    """Where the second one stands, if the key stands nowhere else and so it can be told."""
    found = [match.start() for match in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)]
    return f" (line {text.count(chr(10), 0, found[1]) + 1})" if len(found) == 2 else ""


def _fact(problem: str, body: bytes) -> str:
    byte = _BYTE.search(problem)
    line = body.count(b"\n", 0, int(byte[1]) if byte else len(body.rstrip())) + 1
    return f"line {line}: {problem.removeprefix('JSON is malformed: ')}"
