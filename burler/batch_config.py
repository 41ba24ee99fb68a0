"""``batch_config``: how rows go into files, where those lie, and when one ends (the BATCH proposal).

The shape is the one that operators know from other taps: ``encoding``, ``storage``, ``batch_size``. The rest are
additions. What the author of a tap writes plays no part: any tap can send BATCH messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.errors import ConfigError
from burler.numbers import is_count, is_measure

FORMATS = ("jsonl", "csv", "parquet", "arrow")
DIALECTS = ("both", "sip", "meltano")
PACKINGS = ("none", "gzip", "zstd")
CODECS = {"parquet": ("none", "snappy", "gzip", "zstd", "lz4", "brotli"), "arrow": ("none", "zstd", "lz4")}
"""Compressions inside of a file: the formats' own."""
CSV_DEFAULTS: Mapping[str, Any] = {"delimiter": ",", "quote_char": '"', "header": True, "null": "", "line_end": "\n"}
"""How CSV files stand where nothing else is said: those that burler writes, and those that messages name."""
DEFAULT_ROOT = "batches"
"""A folder of the directory that the run was started in."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How rows stand in a file.

    ``compression``: None, or a name of ``PACKINGS`` (of the file as a whole) or, for formats of ``CODECS``, of the
    format's own.
    """

    format: str = "jsonl"
    compression: str | None = None
    format_options: Mapping[str, Any] = field(default_factory=dict)
    compression_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def codec(self) -> str | None:
        """The compression inside of the file, for formats that have one."""
        return self.compression if self.format in CODECS else None

    @property
    def packing(self) -> str | None:
        """The compression of the file as a whole."""
        return None if self.format in CODECS else self.compression

    @property
    def is_columnar(self) -> bool:
        """Whether files are made of columns, and so can take Arrow pages as they are."""
        return self.format in CODECS


@dataclass(frozen=True, slots=True)
class BatchStorage:
    """Where files lie. ``root``: a folder or a URL. ``prefix`` stands before each file's name. ``options`` go to the
    library that reaches the store, and may be secret."""

    root: str = DEFAULT_ROOT
    prefix: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """A whole ``batch_config``.

    ``batch_size``: rows in a file, at the most; ``batch_bytes``: bytes, before compression; ``batch_age_seconds``:
    since its first row. ``presign_seconds``: URLs in messages are signed, and good for so long.
    ``activate_version``: whether ACTIVATE_VERSION goes out for batched streams; None: in dialect "sip" alone, since
    targets of the others do not read the version of batched rows, and would drop them all. ``encoding_given``: whether
    somebody has said how files are to be (else exports of a source go as they are, whatever they are).
    """

    encoding: Encoding = Encoding()
    storage: BatchStorage = BatchStorage()
    batch_size: int = 100_000
    batch_bytes: int = 128 * 1024 * 1024
    batch_age_seconds: float = 60.0
    dialect: str = "both"
    presign_seconds: int | None = None
    activate_version: bool | None = None
    encoding_given: bool = False

    @property
    def activates(self) -> bool:
        """Whether ACTIVATE_VERSION of batched streams goes out."""
        return self.dialect == "sip" if self.activate_version is None else self.activate_version


# ---- reading -------------------------------------------------------------------------------------------------

_Rule = tuple[Callable[[Any], Any], str]
"""What makes a value of what is given (None: it can't be), and what it must be."""


def _object(said: Any) -> dict[str, Any] | None:
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except ValueError:
            return None
    return dict(said) if isinstance(said, Mapping) else None


def _word(*known: str) -> _Rule:
    def of(said: Any) -> str | None:
        return said.lower() if isinstance(said, str) and said.lower() in known else None

    return of, f"be one of {', '.join(known)}"


def _if(fits: Callable[[Any], bool], what: str) -> _Rule:
    return (lambda said: said if fits(said) else None), what


_OBJECT: _Rule = (_object, "be a JSON object")
_COUNT = _if(lambda said: is_count(said, 1) and said <= 10**15, "be a whole number above 0")
_SECONDS = _if(lambda said: is_measure(said) and 0 < said <= 1e9, "be seconds above 0")
_LEVEL = _if(lambda said: is_count(said, -(10**9)), "be a whole number")
_TRUTH = _if(lambda said: isinstance(said, bool), "be true or false")
_TEXT = _if(lambda said: isinstance(said, str), "be text")
_BATCH: Mapping[str, _Rule] = {
    "encoding": _OBJECT,
    "storage": _OBJECT,
    "batch_size": _COUNT,
    "batch_bytes": _COUNT,
    "batch_age_seconds": _SECONDS,
    "dialect": _word(*DIALECTS),
    "presign_seconds": _COUNT,
    "activate_version": _TRUTH,
}
_STORAGE: Mapping[str, _Rule] = {
    "root": _if(lambda said: isinstance(said, str) and said != "", "be a folder or a URL"),
    "prefix": _TEXT,
    "options": _OBJECT,
}
_OF_FORMATS: Mapping[str, Mapping[str, _Rule]] = {
    "csv": {name: _TRUTH if name == "header" else _TEXT for name in CSV_DEFAULTS}
}


def read_batch_config(value: Any) -> BatchConfig:
    """A ``batch_config`` as it stands in a config: an object, or its JSON text.

    Raises:
        ConfigError: every key that is unknown, and every value that can't be.
    """
    whole = _object(value)
    if whole is None:
        raise ConfigError(f"batch_config must be a JSON object, not {type(value).__name__}")
    problems: list[str] = []
    given = _read(whole, "batch_config.", _BATCH, problems)
    made = BatchConfig(
        encoding=_encoding(given.pop("encoding", {}), problems),
        storage=BatchStorage(**_read(given.pop("storage", {}), "batch_config.storage.", _STORAGE, problems)),
        **given,
        encoding_given=whole.get("encoding") is not None,
    )
    if made.presign_seconds is not None and made.dialect != "sip":
        problems.append(
            "batch_config.presign_seconds needs batch_config.dialect 'sip': targets of the others can't read signed "
            "URLs"
        )
    options = made.encoding.format_options
    if made.dialect == "meltano" and options and {**options, "line_end": ""} != {**CSV_DEFAULTS, "line_end": ""}:
        problems.append(
            "batch_config.dialect 'meltano' can't say how csv is written: leave encoding.format_options out, or take "
            "'both' or 'sip'"
        )
    if problems:
        raise ConfigError("\n  ".join(problems))
    return made


def _read(given: Mapping[str, Any], name: str, rules: Mapping[str, _Rule], problems: list[str]) -> dict[str, Any]:
    """The keys of an object that are said, and can be."""
    found = {}
    for key, said in given.items():
        if key not in rules:
            problems.append(f"{name}{key} is unknown. Known: {', '.join(sorted(rules)) or 'none'}")
        elif said is not None:
            make, what = rules[key]
            made = make(said)
            if made is not None:
                found[key] = made
                continue
            shown = type(said).__name__ if make is _object else f"{said!r:.60}"  # an object may hold secrets
            problems.append(f"{name}{key} must {what}, not {shown}")
    return found


def _encoding(given: Mapping[str, Any], problems: list[str]) -> Encoding:
    form = _word(*FORMATS)[0](given.get("format")) or "jsonl"
    rules = {
        "format": _word(*FORMATS),
        "compression": _word(*CODECS.get(form, PACKINGS)),
        "format_options": _OBJECT,
        "compression_options": _OBJECT,
    }
    name = "batch_config.encoding."
    found = _read(given, name, rules, problems)
    packed = found.get("compression", "zstd" if form == "parquet" else "none")
    options = _read(found.get("format_options", {}), f"{name}format_options.", _OF_FORMATS.get(form, {}), problems)
    level = _read(found.get("compression_options", {}), f"{name}compression_options.", {"level": _LEVEL}, problems)
    whole = {**CSV_DEFAULTS, **options} if form == "csv" else {}
    return Encoding(form, None if packed == "none" else packed, whole, level)
