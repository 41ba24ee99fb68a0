"""Some records of a stream, as they stand in the lake: to be shown only where somebody asked for them."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from burler.errors import LakeError
from burler.lake.datafile import read_lines
from burler.lake.site.facts import Sample
from burler.lake.site.words import cut
from burler.lake.snapshot import DataFile
from burler.storage.base import Store
from burler.surrogates import decode_veiled, unveil

_MOST_FIELDS = 100
_MOST_CHARACTERS = 300


class _Record(msgspec.Struct, gc=False):
    type: str
    record: dict[str, msgspec.Raw] | None = None
    time_extracted: str | None = None


_decode = msgspec.json.Decoder(_Record).decode


def newest_samples(store: Store, files: Sequence[DataFile], most: int) -> tuple[tuple[Sample, ...], str]:
    """The first records of the newest file that has any, and that file's path. ``files`` are in replay order.

    Raises:
        LakeError: the file is missing, torn, or holds a line that is no message.
    """
    for file in reversed(files):
        if file.stats is not None and not file.stats.records:
            continue
        found: list[Sample] = []
        with contextlib.closing(read_lines(store, file.path)) as lines:
            for line in lines:
                if (sample := _sample(line, file.path)) is not None:
                    found.append(sample)
                if len(found) == most:
                    break
        if found:
            return tuple(found), file.path
    return (), ""


def _sample(line: bytes, path: str) -> Sample | None:
    try:
        message, _ = decode_veiled(_decode, line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LakeError(f"{path}: a line is no message: {error}. Look at the file with: zcat FILE | head") from None
    if message.type != "RECORD" or message.record is None:
        return None
    some = itertools.islice(message.record.items(), _MOST_FIELDS)
    values = tuple((unveil(name.encode()).decode(), value_text(unveil(bytes(value)))) for name, value in some)
    return Sample(values, max(0, len(message.record) - _MOST_FIELDS), message.time_extracted or "")


def value_text(raw: bytes) -> str:
    """A value as JSON, as exact as it stands there, cut where it is long; text outside of ASCII is readable."""
    text = raw.decode("utf-8", "backslashreplace")
    if len(text) > 20 * _MOST_CHARACTERS or "\\u" not in text:
        return cut(text, _MOST_CHARACTERS)
    with contextlib.suppress(ValueError, RecursionError):
        value: Any = json.loads(text)
        if isinstance(value, str):  # numbers keep their digits: only text is written anew
            return cut(json.dumps(value, ensure_ascii=False), _MOST_CHARACTERS)
    return cut(text, _MOST_CHARACTERS)
