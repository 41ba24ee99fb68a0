"""Changing single keys in the text of a JSON file; all else stays as it is written there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from burler.config.loading import parse_object
from burler.config.secrets import Path

GONE = object()
"""In place of a value: the key is taken out."""

_BOM = b"\xef\xbb\xbf"
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def edit_json(content: bytes, changes: Mapping[Path, Any], *, what: str) -> bytes:
    """The content of a file with some keys set, or taken out.

    Order, numbers as they are spelled, indentation and line ends of all other keys stay. ``what`` names the file.

    Raises:
        ConfigError: the content is no JSON object.
    """
    parse_object(content, what=what)
    mark = _BOM if content.startswith(_BOM) else b""
    text = content[len(mark) :]
    body = text.strip(b" \t\r\n")
    start = text.index(body)
    made = _edit(body, dict(changes), _indent(body), 0, b"\r\n" if b"\r\n" in body else b"\n")
    return mark + text[:start] + made + text[start + len(body) :]


def _indent(body: bytes) -> str:
    found = re.search(rb'\n([ \t]+)"', body)
    return found[1].decode() if found else "  "


def _edit(body: bytes, changes: dict[Path, Any], indent: str, depth: int, line_end: bytes) -> bytes:
    one_line = b"\n" not in body and not (body == b"{}" and depth == 0)
    keys: dict[str, bytes] = {}
    if body.startswith(b"{"):
        keys = {key: bytes(raw) for key, raw in _OBJECT.decode(body).items()}
    inner: dict[str, dict[Path, Any]] = {}
    for path, value in changes.items():
        if len(path) > 1:
            inner.setdefault(path[0], {})[path[1:]] = value
        elif value is GONE:
            keys.pop(path[0], None)
        else:
            keys[path[0]] = _dump(value, None if one_line else indent, depth + 1, line_end)
    for key, below in inner.items():
        if key in keys or any(value is not GONE for value in below.values()):
            fresh = b"{}" if one_line else b"{\n}"
            keys[key] = _edit(keys.get(key, fresh), below, indent, depth + 1, line_end)
    return _render(keys, one_line, b'":' in body and b'": ' not in body, indent, depth, line_end)


def _render(keys: dict[str, bytes], one_line: bool, tight: bool, indent: str, depth: int, line_end: bytes) -> bytes:
    if not keys:
        return b"{}"
    colon = b":" if tight else b": "
    pairs = [_dump(key, None, 0, line_end) + colon + raw for key, raw in keys.items()]
    if one_line:
        return b"{" + (b"," if tight else b", ").join(pairs) + b"}"
    inside = line_end + indent.encode() * (depth + 1)
    return b"{" + inside + (b"," + inside).join(pairs) + line_end + indent.encode() * depth + b"}"


def _dump(value: Any, indent: str | None, depth: int, line_end: bytes) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        made = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair: only an escape can hold it
        made = json.dumps(value, indent=indent).encode()
    return made.replace(b"\n", line_end + (indent or "").encode() * depth)
