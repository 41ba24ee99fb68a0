"""BATCH messages as they come over the wire: both dialects, read into one form."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, cast

from burler import times
from burler.batch_config import CODECS, FORMATS
from burler.errors import BatchError
from burler.formats.names import COMPRESSIONS
from burler.formats.names import FORMATS as SPELLED
from burler.singer.messages import Batch

AGAIN = "Run the tap again with the last STATE that its target has stored."
"""A state that the tap itself has kept (``--out-file``) may be past the file that can't be read."""


@cache
def message_schema() -> dict[str, Any]:
    """The JSON Schema of a BATCH message."""
    text = resources.files("burler.batch").joinpath("message.schema.json").read_text(encoding="utf-8")
    return cast(dict[str, Any], json.loads(text))


def batch_of(wire: Mapping[str, Any]) -> Batch:
    """A BATCH message from its plain dict.

    What is absent is as the proposal has it: JSON lines, no compression. Keys that are not known are passed over.

    Raises:
        BatchError: it is no BATCH message, or its two dialects contradict each other.
    """
    stream = wire.get("stream")
    if not isinstance(stream, str) or not stream:
        raise BatchError("a BATCH without 'stream'")
    manifest = wire.get("manifest")
    if not isinstance(manifest, list | tuple) or not all(isinstance(url, str) and url for url in manifest):
        raise BatchError(f"stream '{stream}': the 'manifest' of a BATCH must be a list of URLs")
    form, packing = _encoding(wire, stream)
    options = _options(wire.get("format"), "format", stream)
    if _name(wire.get("format"), "format", stream) == "tsv":
        options = {"delimiter": "\t", **options}
    return Batch(
        stream,
        tuple(manifest),
        form,
        packing,
        options,
        _options(wire.get("compression"), "compression", stream),
        size=_count(wire.get("size"), "size", stream),
        time_extracted=_moment(wire.get("time_extracted"), stream),
        version=_count(wire.get("version"), "version", stream),
        file_stats=_stats(wire.get("file_stats"), len(manifest), stream),
        dialect="both" if "encoding" in wire and "format" in wire else "meltano" if "encoding" in wire else "sip",
    )


def _encoding(wire: Mapping[str, Any], stream: str) -> tuple[str, str | None]:
    """Format and compression, by either dialect; both must say the same."""
    encoding = wire.get("encoding")
    if encoding is not None and not isinstance(encoding, Mapping):
        raise BatchError(f"stream '{stream}': the 'encoding' of a BATCH must be an object")
    said: list[tuple[str, str | None]] = []
    if wire.get("format") is not None or wire.get("compression") is not None or encoding is None:
        said.append(_known(_name(wire.get("format"), "format", stream), _packing(wire, stream), stream))
    if encoding is not None:
        form, packing = encoding.get("format"), encoding.get("compression")
        said.append(
            _known(_text(form, "encoding.format", stream), _text(packing, "encoding.compression", stream), stream)
        )
    if len(set(said)) > 1:
        (form, packing), (other, also) = said
        raise BatchError(
            f"stream '{stream}': a BATCH that contradicts itself: its 'format' and 'compression' say {form}, "
            f"{packing or 'none'}; its 'encoding' says {other}, {also or 'none'}"
        )
    return said[0]


def _known(form: str | None, packing: str | None, stream: str) -> tuple[str, str | None]:
    spelled = SPELLED.get((form or "jsonl").lower())
    name = {"tsv": "csv", "json": "jsonl"}.get(spelled or "", spelled)
    if name is None:
        raise BatchError(f"stream '{stream}': a BATCH of the unknown format '{form:.60}'. Known: {', '.join(FORMATS)}")
    if name in CODECS:
        return name, None  # the files say themselves
    packing_name = COMPRESSIONS.get((packing or "").lower())
    if packing_name not in ("gzip", "zstd") and (packing or "none").lower() != "none":
        raise BatchError(
            f"stream '{stream}': a BATCH of the unknown compression '{packing:.60}'. Known: gzip, zstd, none"
        )
    return name, packing_name


def _packing(wire: Mapping[str, Any], stream: str) -> str | None:
    said = wire.get("compression")
    if isinstance(said, Mapping) and said.get("enabled") is False:
        return None
    return _name(said, "compression", stream)


def _name(said: Any, key: str, stream: str) -> str | None:
    """A format or compression: an object with a name, or (of other writers) the name alone."""
    return _text(said.get("name") if isinstance(said, Mapping) else said, key, stream)


def _text(said: Any, key: str, stream: str) -> str | None:
    if said is None or isinstance(said, str):
        return said
    raise BatchError(f"stream '{stream}': the '{key}' of a BATCH must be text, not {said!r:.60}")


def _options(said: Any, key: str, stream: str) -> dict[str, Any]:
    options = said.get("options") if isinstance(said, Mapping) else None
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise BatchError(f"stream '{stream}': the '{key}.options' of a BATCH must be an object")
    return dict(options)


def _count(said: Any, key: str, stream: str) -> int | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int) or said < 0:
        raise BatchError(f"stream '{stream}': the '{key}' of a BATCH must be a whole number, not {said!r:.60}")
    return said


def _moment(said: Any, stream: str) -> dt.datetime | None:
    if said is None:
        return None
    moment = times.lenient_moment(said)
    if moment is None:
        fact = "must be an RFC 3339 date-time, within the years 1 to 9999 in UTC"
        raise BatchError(f"stream '{stream}': the 'time_extracted' of a BATCH {fact}, not {said!r:.60}")
    return moment


def _stats(said: Any, files: int, stream: str) -> tuple[tuple[int | None, int], ...] | None:
    if said is None:
        return None
    if isinstance(said, list) and len(said) == files and all(isinstance(one, Mapping) for one in said):
        pairs = tuple((one.get("records"), one.get("bytes")) for one in said)
        if all((records is None or isinstance(records, int)) and isinstance(size, int) for records, size in pairs):
            return cast(tuple[tuple[int | None, int], ...], pairs)
    raise BatchError(
        f"stream '{stream}': the 'file_stats' of a BATCH must have the bytes of each file, and its records if known"
    )


def with_keys(schema: Mapping[str, Any], keys: Sequence[str] | None) -> Mapping[str, Any]:
    """A schema whose rows must have the key's fields."""
    given = schema.get("required")
    required = given if isinstance(given, list | tuple) else ()
    more = [key for key in keys or () if key not in required]
    return {**schema, "required": [*required, *more]} if more else schema
