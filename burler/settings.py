"""Every setting of a run, in one table that ``--help``, ``--about`` and the docs are made from.

Settings stand in the tap's config beside the tap's own keys.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from burler import times
from burler.batch_config import BatchConfig, read_batch_config
from burler.errors import ConfigError
from burler.numbers import MOST_SECONDS

_MOST = {"int": 1e15, "float": MOST_SECONDS}  # more rows or bytes than a disk holds


def _setting(
    default: Any,
    about: str,
    choices: tuple[str, ...] = (),
    *,
    zero: bool = False,
    most: int | None = None,
    null: str = "",
    flag: str | None = None,
    group: str = "Tail",
    common: bool = False,
) -> Any:
    """A setting.

    Args:
        choices: the words it may be; all, if empty.
        zero: 0 is a number that it may be.
        most: the greatest number that it may be; by default what its unit allows.
        null: what null stands for, where that is not the default.
        flag: the word for its value in ``--help``, where it is an option of the command line, too; booleans need none.
        group: under which heading of ``--help`` that option stands.
        common: a word that taps have keys of their own for: what a tap's ``config_spec`` names so is the tap's, and
            the setting comes as an option.
    """
    told = {"about": about, "choices": choices, "zero": zero, "most": most, "null": null, "flag": flag, "group": group}
    return field(default=default, metadata={**told, "common": common})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings, with their defaults. Units stand in the names."""

    start_date: str | None = _setting(
        None,
        "First bookmark of a stream that has none yet and whose key is no number: an RFC 3339 date-time with a zone.",
    )
    full_table_versions: bool = _setting(
        True,
        "FULL_TABLE streams send 'version' and ACTIVATE_VERSION, so that targets drop rows that are gone.",
    )
    currently_syncing: bool = _setting(True, "STATE names the stream a run is in; the next run begins with it.")
    state_scope: str = _setting(
        "full",
        "What a STATE carries: everything (`full`), or the streams and partitions that have changed since the last one "
        "(`touched`; merged in order they give the whole, null stands for what is gone).",
        ("full", "touched"),
    )
    ignore_source_state: bool = _setting(
        False,
        "What sources said of themselves (ETags and the like) does not count: everything is fetched.",
        flag="",
        group="What is read",
    )
    tail: bool = _setting(
        False, "Go on for ever: streams are polled again and again, tail functions stay connected.", flag=""
    )
    state_message_min_interval_ms: int = _setting(
        60_000, "Tail: a STATE comes at the latest this long after the first record that none covers yet.", flag="MS"
    )
    new_record_polling_interval_ms: int = _setting(60_000, "Tail: the wait between two polls of a stream.", flag="MS")
    max_full_table_age_seconds: float | None = _setting(
        None,
        "Tail: a FULL_TABLE stream is read again once its last reading began this long ago; none: it is read once.",
        flag="SECONDS",
    )
    tail_drain: bool = _setting(
        False, "Tail: a poll that brought new rows is followed by the next one without a wait.", flag=""
    )
    tail_retry: bool = _setting(
        True, "Tail: a stream that failed is tried again, after a wait that grows to 5 minutes.", flag=""
    )
    tail_max_retries: int | None = _setting(
        10,
        "Tail: so many failures of a stream in a row; one more, and it has failed for good. 0: at the first; null (or "
        "the word `forever`): never.",
        zero=True,
        flag="COUNT|forever",
        null="no end",
    )
    tail_full_table_on_failure: bool = _setting(
        False, "Tail: a stream that would have failed for good forgets its bookmark and begins anew, once.", flag=""
    )
    tail_stop_on_failure: bool = _setting(
        True, "Tail: a stream that has failed for good ends the tap (exit code 1); false: the others go on.", flag=""
    )
    tail_max_rounds: int | None = _setting(
        None, "Tail: each stream is polled so many times, then the tap ends.", flag="COUNT"
    )
    tail_max_seconds: float | None = _setting(
        None, "Tail: the tap ends after this time, as if it were told to stop.", flag="SECONDS"
    )
    tail_rediscover_seconds: float | None = _setting(
        None,
        "Tail: schemas are discovered again after this time; SIGHUP does it at once. none: only then.",
        flag="SECONDS",
    )
    acknowledge_state_file: str | None = _setting(
        None,
        "Acknowledge to sources only what this file confirms: a state, or STATE lines, that whoever runs the tap "
        "writes. It is looked at every 10 seconds.",
        flag="FILE",
    )
    metrics_port: int | None = _setting(
        None, "Tail: numbers for Prometheus on http://127.0.0.1:PORT/metrics.", flag="PORT", most=65_535
    )
    metrics_file: str | None = _setting(
        None, "Tail: numbers for Prometheus in this file, written anew every 15 seconds.", flag="FILE"
    )
    metrics_interval_seconds: float = _setting(
        60.0, "Tail: METRIC lines and one line for each stream come this often.", flag="SECONDS"
    )
    batch: bool | None = _setting(
        None,
        "Rows go into files, and BATCH messages name these in place of RECORDs. By default where there is a "
        "`batch_config`; `false`: never, whatever else says so.",
        flag="",
        group="Where it goes",
    )
    batch_config: BatchConfig | None = _setting(  # noqa: RUF009 (it is frozen)
        None,
        "How: an object with `encoding` (`format`, `compression`, ...), `storage` (`root`, `prefix`, `options`), "
        "`batch_size`, `batch_bytes`, `batch_age_seconds`, `dialect`, `presign_seconds`, `activate_version`.",
    )
    workers: int = _setting(1, "Streams that are synced at a time, each in a thread.")
    partition_workers: int | None = _setting(
        None, "Partitions of a stream that are synced at a time. It comes before the streams' own `workers`."
    )
    max_failures: int = _setting(
        100,
        "So many partitions of a stream, or calls of a substream's function, may fail; one more ends the stream.",
        zero=True,
    )
    parent_buffer_rows: int = _setting(
        100, "Rows of a stream that are read ahead, at the most, before the functions of its substreams are called."
    )
    parent_buffer_seconds: float = _setting(1.0, "Substreams wait no longer than this for rows to be read ahead.")
    partition_bookmarks_warning: int = _setting(
        10_000, "One warning where the state holds more partitions of a stream than this."
    )
    page_max_rows: int = _setting(1000, "Rows that are gathered, at the most, before they are shaped and written.")
    page_max_age_seconds: float = _setting(1.0, "Rows wait no longer than this for a page to fill.")
    on_bad_record: str | None = _setting(
        None,
        "A row that does not fit its schema: `error` ends its stream, `skip` leaves the row out, `null` the field. "
        "It comes before what the streams say themselves; without both, `error`.",
        ("error", "skip", "null"),
    )
    max_bad_records: int = _setting(
        100, "So many rows of a stream may be left out or have fields set to null; one more ends the stream."
    )
    on_nan: str = _setting(
        "error",
        "NaN and infinities, which JSON has no form for: `error` (the row does not fit) or `null`.",
        ("error", "null"),
    )
    check_constraints: bool | None = _setting(
        None,
        "Hold values against enums, bounds, lengths, patterns and `multipleOf` of the schema (`true`), or against "
        "types only. It comes before what the streams say themselves; without both, `true`.",
    )
    log_values: bool = _setting(
        False,
        "Values of rows may stand in log lines, errors and the report; else only those of keys do.",
        flag="",
        group="The log",
    )
    metrics: str = _setting(
        "streams",
        "METRIC lines in the log: of streams and of the run, or of each HTTP request as well (`requests`; not in a "
        "tail).",
        ("streams", "requests"),
        flag="streams|requests",
        group="The log",
        common=True,
    )
    max_file_bytes: int = _setting(
        64 * 1024 * 1024, "Lake: a file is closed and committed at this size, before compression."
    )
    max_file_records: int | None = _setting(None, "Lake: a file is closed and committed at this many records.")
    max_file_age_seconds: float = _setting(60.0, "Lake: a file is closed and committed at this age, with its STATE.")
    tap_id: str | None = _setting(
        None, "Lake: the folder of this tap; the tap's name by default.", flag="ID", group="Where it goes"
    )
    max_open_files: int = _setting(100, "Lake: beyond so many open files, one a stream, the oldest is closed.")
    max_open_bytes: int = _setting(
        1024 * 1024 * 1024,
        "Lake: beyond so many bytes in open files, compressed, on local disk until they are closed, the greatest is.",
    )
    lake_compression: str = _setting("gz", "Lake: how new files are compressed.", ("gz", "bz2", "none"))
    lake_encoding: str | None = _setting(
        None,
        "Lake: how a new one spells schema hashes in its folders: `base58`, the default, or `base85` as the Singerlake "
        "text has it.",
        ("base58", "base85"),
    )
    lake_options: dict[str, Any] | None = _setting(  # noqa: RUF009 (null by default)
        None, "Lake: an object for the library that reaches its store (credentials, an endpoint)."
    )
    lock_ttl_seconds: float = _setting(
        300.0, "Lake: a lock that its holder did not renew for so long is taken over; it does so each tenth of that."
    )
    lock_timeout_seconds: float = _setting(
        600.0, "Lake: the longest wait for the lock of another writer; then the run ends with exit code 3.", zero=True
    )

    @property
    def wants_batches(self) -> bool:
        """Whether rows go out as BATCH messages where a stream's metadata say nothing else."""
        return self.batch_config is not None if self.batch is None else self.batch


def read_settings(
    config: Mapping[str, Any],
    variables: Mapping[tuple[str, ...], str] | None = None,
    *,
    own: Collection[str] = (),
) -> Settings:
    """The settings a config holds; text (from environment variables) is read as the setting's type.

    null stands for the default, but where it is a value of its own: ``tail_max_retries``.

    Args:
        variables: the environment variables that have set keys, to be named in errors.
        own: the keys that the tap's ``config_spec`` names; of the settings only ``metrics`` is none then.

    Raises:
        ConfigError: every value that is of the wrong kind, too small or too big.
    """
    given: dict[str, Any] = {}
    problems = []
    for item in fields(Settings):
        if item.name not in config or (config[item.name] is None and not item.metadata["null"]):
            continue
        if item.metadata["common"] and item.name in own:
            continue
        try:
            given[item.name] = read_value(item.name, config[item.name])
        except ValueError as error:
            came = (variables or {}).get((item.name,))
            what = f"environment variable {came}" if came else f"setting '{item.name}'"
            problems.append(f"{what} must be {error}")
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n  ".join(problems))
    return Settings(**given)


def read_value(name: str, value: Any, *, null: bool = True) -> Any:
    """The value of one setting, as its type; text is read.

    Args:
        null: whether null is a value, where the setting takes it; the text "null" or "none" is null, too, and
            where null means that there is no end, "forever".

    Raises:
        ValueError: what it must be, in words.
    """
    item = Settings.__dataclass_fields__[name]
    if null and _takes_null(item) and (value is None or _is_word_for_null(item, value)):
        return None
    kind = str(item.type).partition(" ")[0]
    if kind == "BatchConfig":
        return read_batch_config(value)
    if kind.startswith("dict"):
        return _object(value)
    if kind == "bool":
        value = _truth(value)
    elif kind == "str":
        value = _text(value)
    else:
        ending = f", or null or 'forever' for {item.metadata['null']}" if null and item.metadata["null"] else ""
        value = _number(value, int if kind == "int" else float, item.metadata["zero"], _most(name, kind), ending)
    if item.metadata["choices"] and value not in item.metadata["choices"]:
        raise ValueError(f"one of {', '.join(item.metadata['choices'])}")
    if name == "start_date" and times.strict(value) is None:
        raise ValueError("an RFC 3339 date-time with a zone, as 2024-01-02T03:04:05Z")
    return value


def _takes_null(item: Field[Any]) -> bool:
    return str(item.type).endswith("| None")


def _is_word_for_null(item: Field[Any], value: Any) -> bool:
    if not isinstance(value, str) or str(item.type).startswith("str"):  # of text, "none" may be a name
        return False
    return value.strip().lower() in (("null", "none", "forever") if item.metadata["null"] else ("null", "none"))


def _truth(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("text")


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if isinstance(value, dict):
        return value
    raise ValueError("a JSON object")  # without its text: it may hold secrets


def _most(name: str, kind: str) -> float:
    said = Settings.__dataclass_fields__[name].metadata["most"]
    if said is not None:
        return float(said)
    return MOST_SECONDS * 1000 if name.endswith("_ms") else _MOST[kind]


def _number(value: Any, wanted: type[int] | type[float], zero: bool, most: float, ending: str) -> int | float:
    """A number above 0, or also 0, up to ``most``; ``ending`` stands at the end of the error."""
    what = ("a whole number" if wanted is int else "a number") + (", 0 or more" if zero else " above 0")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(what + ending)
    try:
        number = wanted(value)
        exact = number == (number if isinstance(value, str) else value)  # NaN is not
    except (ValueError, OverflowError):
        raise ValueError(what + ending) from None
    if not exact or number < 0 or (number == 0 and not zero) or (isinstance(value, str) and "_" in value):
        raise ValueError(what + ending)
    if number > most:
        raise ValueError(f"{what} and no more than {most:.0f}{ending}")
    return number


def option_of(name: str) -> str:
    """``tail_max_rounds`` -> ``--tail-max-rounds``."""
    return "--" + name.replace("_", "-")


def default_text(item: Field[Any]) -> str:
    """A setting's default, as help and docs show it."""
    return "none" if item.default is None else str(item.default).lower()


def markdown_table() -> str:
    """All settings as a Markdown table, for the docs and ``burler about``."""
    rows = ["| setting | flag | default | does |", "|---|---|---|---|"]
    for item in fields(Settings):
        flag = "" if item.metadata["flag"] is None else f"`{option_of(item.name)}`"
        rows.append(f"| `{item.name}` | {flag} | {default_text(item)} | {item.metadata['about']} |")
    return "\n".join(rows) + "\n"
