"""Every setting of a run, in one table that ``--help``, ``--about`` and the docs are made from (specs 11.28).

Settings stand in the tap's config beside the tap's own keys.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from burler.errors import ConfigError

_MOST = {int: 1e15, float: 1e9}  # more rows or bytes than a disk holds; more seconds than a clock waits


def _setting(default: Any, about: str, choices: tuple[str, ...] = (), *, zero: bool = False) -> Any:
    return field(default=default, metadata={"about": about, "choices": choices, "zero": zero})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings, with their defaults. Units stand in the names."""

    start_date: str | None = _setting(
        None, "First bookmark of a stream that has none yet: an RFC 3339 date-time with a zone."
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
        False, "What sources said of themselves (ETags and the like) does not count: everything is fetched."
    )
    tail: bool = _setting(False, "Go on for ever: streams are polled again and again, tail functions stay connected.")
    state_message_min_interval_ms: int = _setting(
        60_000, "Tail: a STATE comes at the latest this long after the first record that none covers yet."
    )
    new_record_polling_interval_ms: int = _setting(60_000, "Tail: the wait between two polls of a stream.")
    max_full_table_age_seconds: float | None = _setting(
        None,
        "Tail: a FULL_TABLE stream is read again once its last reading began this long ago; none: it is read once.",
    )
    tail_drain: bool = _setting(False, "Tail: a poll that brought new rows is followed by the next one without a wait.")
    tail_retry: bool = _setting(
        True, "Tail: a stream that failed is tried again, after a wait that grows to 5 minutes."
    )
    tail_max_retries: int | None = _setting(
        10, "Tail: so many failures of a stream in a row; one more, and it has failed for good. null: never.", zero=True
    )
    tail_full_table_on_failure: bool = _setting(
        False, "Tail: a stream that would have failed for good forgets its bookmark and begins anew, once."
    )
    tail_stop_on_failure: bool = _setting(
        True, "Tail: a stream that has failed for good ends the tap (exit code 1); false: the others go on."
    )
    tail_max_rounds: int | None = _setting(None, "Tail: each stream is polled so many times, then the tap ends.")
    tail_max_seconds: float | None = _setting(None, "Tail: the tap ends after this time, as if it were told to stop.")
    tail_rediscover_seconds: float | None = _setting(
        None, "Tail: schemas are discovered again after this time; SIGHUP does it at once. none: only then."
    )
    acknowledge_state_file: str | None = _setting(
        None,
        "Acknowledge to sources only what this file confirms: a state, or STATE lines, that whoever runs the tap "
        "writes. It is looked at every 10 seconds.",
    )
    metrics_port: int | None = _setting(None, "Numbers for Prometheus on http://127.0.0.1:PORT/metrics.")
    metrics_file: str | None = _setting(None, "Numbers for Prometheus in this file, written anew every 15 seconds.")
    metrics_interval_seconds: float = _setting(60.0, "Tail: METRIC lines and one line for each stream come this often.")
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
    max_file_bytes: int = _setting(
        64 * 1024 * 1024, "Lake: a file is closed and committed at this size, before compression."
    )
    max_file_records: int | None = _setting(None, "Lake: a file is closed and committed at this many records.")
    max_file_age_seconds: float = _setting(60.0, "Lake: a file is closed and committed at this age, with its STATE.")
    tap_id: str | None = _setting(None, "Lake: the folder of this tap; the tap's name by default.")


def read_settings(config: Mapping[str, Any]) -> Settings:
    """The settings a config holds; text (from environment variables) is read as the setting's type.

    Raises:
        ConfigError: every value that is of the wrong kind or not above zero.
    """
    given: dict[str, Any] = {}
    problems = []
    for item in fields(Settings):
        if config.get(item.name) is None:
            continue
        try:
            value = (
                0 if item.metadata["zero"] and _is_zero(config[item.name]) else _as(str(item.type), config[item.name])
            )
            if item.metadata["choices"] and value not in item.metadata["choices"]:
                raise ValueError(f"one of {', '.join(item.metadata['choices'])}")
            given[item.name] = value
        except ValueError as error:
            problems.append(f"setting '{item.name}' must be {error}")
    start = given.get("start_date")
    if start is not None and not _is_moment(start):
        problems.append("setting 'start_date' must be an RFC 3339 date-time with a zone, as 2024-01-02T03:04:05Z")
    if problems:
        raise ConfigError("\n  ".join(problems))
    return Settings(**given)


def _is_zero(value: Any) -> bool:
    return not isinstance(value, bool) and str(value).strip() in ("0", "0.0")


def _is_moment(text: str) -> bool:
    try:
        return dt.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _as(kind: str, value: Any) -> Any:
    if kind.startswith("bool"):
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if isinstance(value, bool):
            return value
        raise ValueError("true or false")
    if kind.startswith("str"):
        if isinstance(value, str):
            return value
        raise ValueError("text")
    wanted = int if kind.startswith("int") else float
    what = "a whole number above 0" if wanted is int else "a number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(what)
    try:
        number = wanted(value)
        exact = number == (value if isinstance(value, int) else float(value))
    except (ValueError, OverflowError):
        raise ValueError(what) from None
    if not exact or not 0 < number < _MOST[wanted]:
        raise ValueError(what)
    return number


def markdown_table() -> str:
    """All settings as a Markdown table: the docs hold it, and a test keeps them equal."""
    rows = ["| setting | default | does |", "|---|---|---|"]
    for item in fields(Settings):
        default = "none" if item.default is None else str(item.default).lower()
        rows.append(f"| `{item.name}` | {default} | {item.metadata['about']} |")
    return "\n".join(rows) + "\n"
