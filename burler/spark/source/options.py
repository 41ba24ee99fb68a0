"""What ``spark.read.format("burler").option(...)`` may say, read into types.

Spark hands options over as text, by names without case. Whatever is wrong with them is one error, before anything
runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burler.config.loading import parse_object, read_config_file
from burler.errors import UsageError
from burler.suggest import did_you_mean

NAMES = (
    "app",
    "exec",
    "stream",
    "config",
    "state",
    "catalog",
    "fields",
    "limit",
    "partitions",
    "pushdown",
    "unknown_fields",
)
STREAM_OPTIONS = frozenset(
    {
        "spool",
        "poll_seconds",
        "land_seconds",
        "keep_hours",
        "bad",
        "new_fields",
        "behind",
        "timestamps",
        "as_text",
        "task_bytes",
        "maxrowspertrigger",
        "maxfilespertrigger",
        "maxbytespertrigger",
    }
)
"""What ``readStream.format("burler")`` knows beside these: the batch side lets them pass."""
_OF_TABLES = frozenset({"owner", "provider", "location", "external", "is_managed_location", "comment", "collation"})
"""What Spark itself adds to the options of a table (``CREATE TABLE ... USING burler``), beside ``option.<name>``."""
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_FOR_USERS = "Options: " + ", ".join(NAMES)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one DataFrame.

    Attributes:
        app: a burler app: ``module:attribute``, a file, an installed tap's command, or a pickled tap (see
            ``reference``). exec: the command of any Singer tap. One of the two is None.
        stream: the stream's ``tap_stream_id`` or name; "" where the tap has a single stream.
        config: where the config comes from: text of JSON, a file's path, or None.
        state, catalog: the JSON objects themselves; None where none is given.
        fields: patterns of the fields that are wanted; none: all.
        limit: rows, at the most. partitions: whether an app's partitions may be extracted side by side.
        pushdown: whether filters are let into the extraction.
        drop_unknown: whether fields may be left out that the tap sends and its discovery did not declare.
    """

    app: str | None = field(repr=False)
    exec: str | None = field(repr=False)
    stream: str
    config: str | None = field(default=None, repr=False)
    state: Mapping[str, Any] | None = field(default=None, repr=False)
    catalog: Mapping[str, Any] | None = field(default=None, repr=False)
    fields: tuple[str, ...] = ()
    limit: int | None = None
    partitions: bool = True
    pushdown: bool = False
    drop_unknown: bool = False

    def config_files(self) -> list[str]:
        """The files that the config is read from."""
        return [] if self.config is None or _is_json(self.config) else [self.config]

    def config_text(self) -> dict[str, Any]:
        """What the option itself says of the config; empty where it names a file.

        Raises:
            ConfigError: it is no JSON object. Its content is never quoted.
        """
        if self.config is None or not _is_json(self.config):
            return {}
        return parse_object(self.config.encode(), what="option 'config'")


def parse(given: Mapping[str, str]) -> Options:
    """The options as types.

    Raises:
        UsageError: an option that there is not, one that is missing, or a value that makes no sense.
        ConfigError: a file or JSON text that can't be read.
    """
    options = {name.lower(): value for name, value in given.items()}
    if not options:
        raise UsageError(
            "format 'burler': Spark gave no options. It forgets those of a table (CREATE TABLE ... USING burler); "
            "make a view: CREATE TEMPORARY VIEW name USING burler OPTIONS (app '...')."
        )
    _refuse_unknown(options)
    app, command = options.get("app"), options.get("exec")
    if (app is None) == (command is None):
        raise UsageError(
            "format 'burler': give one of the options 'app' (a burler app: module:attribute, a file) and 'exec' "
            '(the command of any Singer tap, such as "tap-gitlab").'
        )
    return Options(
        app=app,
        exec=command,
        stream=options.get("stream", "").strip(),
        config=options.get("config") or None,
        state=_object(options.get("state"), "state"),
        catalog=_object(options.get("catalog"), "catalog"),
        fields=tuple(name for name in (part.strip() for part in options.get("fields", "").split(",")) if name),
        limit=_limit(options.get("limit")),
        partitions=_bool(options.get("partitions", "true"), "partitions"),
        pushdown=_bool(options.get("pushdown", "false"), "pushdown"),
        drop_unknown=_one_of(options.get("unknown_fields", "error"), "unknown_fields", ("error", "drop")) == "drop",
    )


def _refuse_unknown(options: Mapping[str, str]) -> None:
    known = {*NAMES, *STREAM_OPTIONS}
    for name in options:
        if name in known or name in _OF_TABLES or name.startswith("option."):
            continue
        if name == "path":
            raise UsageError(
                "format 'burler': load() takes no path. Name the app by option 'app', or a command by 'exec'."
            )
        raise UsageError(f"format 'burler': there is no option '{name}'.{did_you_mean(name, known)} {_FOR_USERS}.")


def _is_json(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def _object(text: str | None, name: str) -> dict[str, Any] | None:
    """A JSON object given as text or as a file's path."""
    if text is None or not text.strip():
        return None
    if _is_json(text):
        return parse_object(text.encode(), what=f"option '{name}'")
    path = Path(text)
    if not os.path.lexists(path):
        raise UsageError(
            f"format 'burler': option '{name}': there is no file {path} on the machine where the driver runs. "
            "Give its path, or the JSON itself."
        )
    return _read(path, name)


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        return read_config_file(path)
    except UsageError as error:
        raise type(error)(str(error).replace("config file", f"{name} file").replace("--config", name)) from None


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        limit = int(text)
    except ValueError:
        limit = 0
    if limit < 1:
        raise UsageError(f"format 'burler': option 'limit' must be a whole number above 0, not '{text:.40}'.")
    return limit


def _bool(text: str, name: str) -> bool:
    return _one_of(text, name, (*_YES, *_NO), shown=("true", "false")) in _YES


def _one_of(text: str, name: str, known: tuple[str, ...], shown: tuple[str, ...] = ()) -> str:
    value = text.strip().lower()
    if value not in known:
        raise UsageError(f"format 'burler': option '{name}' must be {' or '.join(shown or known)}, not '{text:.40}'.")
    return value
