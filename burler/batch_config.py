"""``batch_config``: how rows go into files, where those lie, and when one ends (the BATCH proposal).

The shape is the one that operators know from other taps: ``encoding``, ``storage``, ``batch_size``. The rest are
additions. What the author of a tap writes plays no part: any tap can send BATCH messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from burler.errors import ConfigError

FORMATS = ("jsonl", "csv", "parquet", "arrow")
DIALECTS = ("both", "sip", "meltano")
PACKINGS = ("none", "gzip", "zstd")
CODECS = {"parquet": ("none", "snappy", "gzip", "zstd", "lz4", "brotli"), "arrow": ("none", "zstd", "lz4")}
"""Compressions inside of a file: the formats' own."""
CSV_DEFAULTS: Mapping[str, Any] = {"delimiter": ",", "quote_char": '"', "header": True, "null": "", "line_end": "\n"}
"""How CSV files stand where nothing else is said: those that burler writes, and those that messages name."""
_FORMAT_OPTIONS: Mapping[str, Mapping[str, Any]] = {"csv": CSV_DEFAULTS}
_COMPRESSION_OPTIONS = ("level",)
_MOST = 10**15
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


_DEFAULT = BatchConfig()


def read_batch_config(value: Any) -> BatchConfig:
    """A ``batch_config`` as it stands in a config: an object, or its JSON text.

    Raises:
        ConfigError: every key that is unknown, and every value that can't be.
    """
    value = _object(value, "batch_config")
    reading = _Reading()
    reading.unknown(value, "batch_config", BatchConfig.__dataclass_fields__.keys() - {"encoding_given"})
    encoding = reading.encoding(value.get("encoding"))
    storage = reading.storage(value.get("storage"))
    made = BatchConfig(
        encoding=encoding,
        storage=storage,
        batch_size=reading.count(value, "batch_size", _DEFAULT.batch_size),
        batch_bytes=reading.count(value, "batch_bytes", _DEFAULT.batch_bytes),
        batch_age_seconds=reading.seconds(value, "batch_age_seconds", _DEFAULT.batch_age_seconds),
        dialect=reading.word(value, "dialect", DIALECTS, "both", "batch_config."),
        presign_seconds=reading.count(value, "presign_seconds", None),
        activate_version=reading.truth(value, "activate_version"),
        encoding_given=value.get("encoding") is not None,
    )
    if made.presign_seconds is not None and made.dialect != "sip":
        reading.problems.append(
            "batch_config.presign_seconds needs batch_config.dialect 'sip': targets of the others can't read signed "
            "URLs"
        )
    defaults = {**_FORMAT_OPTIONS.get(encoding.format, {}), "line_end": encoding.format_options.get("line_end")}
    if made.dialect == "meltano" and encoding.format == "csv" and dict(encoding.format_options) != defaults:
        reading.problems.append(
            "batch_config.dialect 'meltano' can't say how csv is written: leave encoding.format_options out, or take "
            "'both' or 'sip'"
        )
    if reading.problems:
        raise ConfigError("\n  ".join(reading.problems))
    return made


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ConfigError(f"{name} must be a JSON object, not the text {value!r:.60}") from None
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name} must be an object, not {type(value).__name__}")
    return value


class _Reading:
    """Reads the parts, and gathers what is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def unknown(self, given: Mapping[str, Any], name: str, known: Any) -> None:
        for key in given:
            if key not in known:
                self.problems.append(f"{name}.{key} is unknown. Known: {', '.join(sorted(known)) or 'none'}")

    def word(self, given: Mapping[str, Any], key: str, known: tuple[str, ...], default: str, name: str) -> str:
        said = given.get(key)
        if said is None:
            return default
        if not isinstance(said, str) or said.lower() not in known:
            self.problems.append(f"{name}{key} must be one of {', '.join(known)}, not {said!r:.60}")
            return default
        return said.lower()

    def count(self, given: Mapping[str, Any], key: str, default: Any) -> Any:
        said = given.get(key)
        if said is None:
            return default
        if isinstance(said, bool) or not isinstance(said, int) or not 0 < said <= _MOST:
            self.problems.append(f"batch_config.{key} must be a whole number above 0, not {said!r:.60}")
            return default
        return said

    def truth(self, given: Mapping[str, Any], key: str) -> bool | None:
        said = given.get(key)
        if said is None or isinstance(said, bool):
            return said
        self.problems.append(f"batch_config.{key} must be true, false or null, not {said!r:.60}")
        return None

    def seconds(self, given: Mapping[str, Any], key: str, default: float) -> float:
        said = given.get(key)
        if said is None:
            return default
        if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said <= 1e9:
            self.problems.append(f"batch_config.{key} must be seconds above 0, not {said!r:.60}")
            return default
        return float(said)

    def part(self, value: Any, name: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        try:
            return _object(value, name)
        except ConfigError as error:
            self.problems.append(str(error))
            return {}

    def encoding(self, value: Any) -> Encoding:
        name = "batch_config.encoding"
        given = self.part(value, name)
        self.unknown(given, name, Encoding.__dataclass_fields__)
        form = self.word(given, "format", FORMATS, "jsonl", f"{name}.")
        default = "zstd" if form == "parquet" else "none"
        packed = self.word(given, "compression", CODECS.get(form, PACKINGS), default, f"{name}.")
        options = self.part(given.get("format_options"), f"{name}.format_options")
        self.unknown(options, f"{name}.format_options", _FORMAT_OPTIONS.get(form, {}))
        level = self.part(given.get("compression_options"), f"{name}.compression_options")
        self.unknown(level, f"{name}.compression_options", _COMPRESSION_OPTIONS)
        self._levels(level, f"{name}.compression_options")
        self._csv(options, f"{name}.format_options")
        whole = {**_FORMAT_OPTIONS.get(form, {}), **{key: said for key, said in options.items() if said is not None}}
        return Encoding(form, None if packed == "none" else packed, whole, dict(level))

    def _levels(self, given: Mapping[str, Any], name: str) -> None:
        level = given.get("level")
        if level is not None and (isinstance(level, bool) or not isinstance(level, int)):
            self.problems.append(f"{name}.level must be a whole number, not {level!r:.60}")

    def _csv(self, given: Mapping[str, Any], name: str) -> None:
        for key, said in given.items():
            wanted = bool if key == "header" else str
            if said is not None and not isinstance(said, wanted):
                what = "true or false" if wanted is bool else "text"
                self.problems.append(f"{name}.{key} must be {what}, not {said!r:.60}")

    def storage(self, value: Any) -> BatchStorage:
        name = "batch_config.storage"
        given = self.part(value, name)
        self.unknown(given, name, BatchStorage.__dataclass_fields__)
        options = dict(self.part(given.get("options"), f"{name}.options"))
        return BatchStorage(self.text(given, "root", DEFAULT_ROOT), self.text(given, "prefix", ""), options)

    def text(self, given: Mapping[str, Any], key: str, default: str) -> str:
        said = given.get(key)
        if said is None:
            return default
        if isinstance(said, str) and (said or not default):
            return said
        fact = "is empty: give a folder or a URL" if said == "" else f"must be text, not {said!r:.60}"
        self.problems.append(f"batch_config.storage.{key} {fact}")
        return default
