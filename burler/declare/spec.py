"""What a stream is declared to be: one frozen object, whatever spelling declared it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from burler.declare.strategies import EndOfSync, Strategy
from burler.schema.sources import Source
from burler.singer.metadata import FULL_TABLE

_END = EndOfSync()


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of the tap's author and the parameters it asks for.

    ``owner`` is the class of a class-style stream; then ``fn`` is its plain function and is called on an
    instance, which a session makes once per stream.
    """

    fn: Callable[..., Any]
    names: tuple[str, ...]
    place: str
    owner: type | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """When a sync is begun anew, and from where.

    Attributes:
        on: exceptions of user code that begin it anew; all of them are below Exception.
        setup: called before each retry; gives None (from the original bookmark) or a bookmark to begin with.
        most: tries after the first.
    """

    on: tuple[type[BaseException], ...]
    setup: UserFunction | None = None
    most: int = 3


FIRST_KEY = "*"
"""As ``resumable_by`` of a pattern: the first field of each stream's key."""


@dataclass(frozen=True, slots=True)
class Children:
    """What came of one substream for one row of its parent, for a bookmark function that asks for ``children``.

    Attributes:
        count: how many rows.
        least, greatest: of their replication key; None without rows, or without a key.
    """

    count: int
    least: Any = None
    greatest: Any = None


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One declared stream.

    ``found``: discovery found it, and a pattern declares it.
    ``emitted_by`` names the stream whose sync function yields this one's rows; then ``sync`` is None. It is None, too,
    where ``tail`` alone gives them.
    ``parent`` names the stream for each row of which ``sync`` is called. ``root`` is the stream in whose run
    this one is synced: itself, or the first of its line.
    ``order`` is "asc" (rows rise by the replication key; checked) or "none".
    ``method_said``: the author has named the replication method; else it follows from what is known.
    ``versions``: None follows the tap's setting, True/False decides for this stream.
    ``on_bad_record`` and ``check_constraints``: what happens to a row that does not fit, and whether the schema's
    enums and bounds count for that. Settings come before them.
    ``records_path`` leads to the rows in JSON documents that its function yields as bytes.
    ``source_state``: its GET requests are conditional; 304 ends its function.
    ``metadata`` is a function that visits every node of the schema, ``fixed_metadata`` what was said as a
    mapping: dotted field path ("" for the stream) -> metadata.
    ``module_file`` is where relative references of its schema count from.
    ``on_unsorted``: "error" or "end_of_sync", what happens when the declared order breaks. ``resume``: "inclusive" or
    "exclusive", whether the source gives the rows at the bookmark once more.
    ``lookback``: how far before the saved bookmark a run begins; a timedelta, or a number in the key's unit (seconds
    for date-times, days for dates). ``bookmark_format``: how a date-time is written for the source (``strftime``), in
    ``stream.bookmark``. ``signpost``: no saved bookmark passes the time at which the sync began.
    ``resumable_by``: the field by which the rows of a FULL_TABLE stream rise.
    ``workers``: partitions at a time. ``rollup``: the first stream of the line is read again from where this
    substream stands.
    ``partitions`` gives the partitions; ``partition_order`` "asc" says that rows rise from one to the next;
    ``partition_key`` is the field, or the function of a partition, that names it in the state.
    ``acknowledge`` is called once a STATE that moved the stream has been written.
    ``tail`` is called in a tail run, after ``sync``, and goes on giving rows; with ``overlap`` it is called first, and
    calls ``stream.catch_up()`` itself. ``wake`` yields whenever the stream should be polled at once.
    ``new_record_polling_interval_ms`` and ``max_full_table_age_seconds``: of this stream, in a tail run.
    """

    tap_stream_id: str
    place: str
    sync: UserFunction | None = None
    emitted_by: str | None = None
    parent: str | None = None
    root: str = ""
    key_properties: tuple[str, ...] = ()
    replication_key: str | None = None
    replication_method: str = FULL_TABLE
    method_said: bool = False
    found: bool = False
    strategy: Strategy = _END
    order: str = "none"
    versions: bool | None = None
    on_bad_record: str | None = None
    check_constraints: bool | None = None
    records_path: tuple[str, ...] = ()
    schema: Mapping[str, Any] | Source | None = None
    schema_fn: UserFunction | None = None
    bookmark: UserFunction | None = None
    metadata: UserFunction | None = None
    fixed_metadata: Mapping[str, Mapping[str, Any]] | None = None
    post_transform: UserFunction | None = None
    module_file: str | None = None
    on_unsorted: str = "error"
    resume: str = "inclusive"
    lookback: float | timedelta | None = None
    bookmark_format: str | None = None
    signpost: bool = False
    resumable_by: str | None = None
    retry: Retry | None = None
    workers: int = 1
    rollup: bool = False
    source_state: bool = False
    partitions: UserFunction | None = None
    partition_order: str = "none"
    partition_key: str | Callable[[dict[str, Any]], str] | None = None
    acknowledge: UserFunction | None = None
    tail: UserFunction | None = None
    overlap: bool = False
    wake: UserFunction | None = None
    new_record_polling_interval_ms: int | None = None
    max_full_table_age_seconds: float | None = None

    @property
    def where(self) -> str:
        """Words that an error of the stream begins with: ``stream 'contacts' (tap_crm.py:14)``."""
        return f"stream '{self.tap_stream_id}' ({self.place})"

    @property
    def bookmark_key(self) -> str | None:
        """The key under which the stream's bookmark stands in the state; None if it keeps none."""
        if self.replication_method == FULL_TABLE:
            return None
        return self.replication_key or ("bookmark" if self.bookmark else None)

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for the streams that discovery finds and that are named like it (``public.*``)."""
        return "*" in self.tap_stream_id
