"""From a tap to tables in one call: its rows into a lake, then the lake into tables.

The lake stays between the two, as the truth: STATE is out once rows are committed there, and whatever becomes of the
tables, a further run goes on from both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.config.loading import Loaded
from burler.declare.tap import Tap
from burler.engine.run.signals import Stopper
from burler.engine.run.sync import SyncResult
from burler.errors import BurlerError, ExportError, StorageError, UsageError
from burler.lake.lake import Lake
from burler.lake.store import LAKE_OF_TABLES, open_store
from burler.settings import Settings
from burler.spark.export import export
from burler.spark.export_options import checked
from burler.spark.export_run import StreamResult
from burler.spark.extraction.driving import Emit
from burler.spark.extraction.extracting import prepared
from burler.spark.formats.file_tables import FILE_FORMATS
from burler.spark.formats.opening import check_format
from burler.suggest import near_or_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Landed:
    """What came of it: ``extracted`` with rows, errors and last state; ``tables``, one result a stream."""

    extracted: SyncResult
    tables: list[StreamResult]

    @property
    def state(self) -> dict[str, Any]:
        """The last state: of what is committed in the lake."""
        return self.extracted.state


def land(
    spark: SparkSession,
    app: str | Path | Tap | None,
    out: str | Path,
    *,
    lake: str | Path | None = None,
    exec: str | None = None,
    tap_id: str | None = None,
    config: Mapping[str, Any] | Loaded | None = None,
    catalog: Any = None,
    state: Mapping[str, Any] | None = None,
    full_refresh: bool | str | Collection[str] = False,
    select: str | None = None,
    slots: int | None = None,
    emit: Emit = lambda state: None,
    settings: Callable[[Settings], Settings] = lambda settings: settings,
    stopper: Stopper | None = None,
    **export_options: Any,
) -> Landed:
    """Extract a tap into a lake, on the session's executors, and bring the tables of it up to date.

    Args:
        out: where tables go, see ``burler.spark.export``; so do ``export_options`` (format, mode, ...).
        lake: folder or URL; by default the folder ``_lake`` in ``out``.
        others: see ``burler.spark.extract``.

    A stream whose extraction failed stands in ``extracted.errors``; what came of it is in its table. Where the run was
    told to stop, ``tables`` is empty: the next run makes them.

    Raises:
        ExportError: rows are in the lake, ``emit`` has had their STATE, and a table could not be made of them. The next
            run, or ``burler.spark.export``, goes on.
        UsageError, LockLost, StorageError: see ``burler.spark.extract``. TypeError: an argument that nobody knows. Both
            are told before anything is extracted.
    """
    refuse_unknown(export_options)
    place = lake_of(out, lake, kind=str(export_options.get("format", "delta")))
    with prepared(
        app,
        place,
        exec=exec,
        tap_id=tap_id,
        config=config,
        catalog=catalog,
        state=state,
        full_refresh=full_refresh,
        select=select,
        settings=settings,
    ) as what:
        done = what.run(spark, slots=slots, emit=emit, stopper=stopper)
        if done.stopped_by is not None:
            return Landed(done, [])
        target = what.target
    tables = make_tables(
        spark, place, out, tap_id=target.tap_id, lake_options=target.settings.lake_options, **export_options
    )
    return Landed(done, tables)


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Look at what is meant for the export before hours of extraction.

    Raises:
        TypeError: one that it does not take. UsageError: a value that it does not take.
    """
    own = {"spark", "lake", "out", "taps", "lake_options"}
    known = [name for name in signature(export).parameters if name not in own]
    for name in options:
        if name not in known:
            hint = near_or_all(name, known, "It takes")
            raise TypeError(f"burler.spark.land does not take {name!r}.{hint}")
    defaults = {name: one.default for name, one in signature(export).parameters.items()}
    wanted = checked(**{name: options.get(name, defaults[name]) for name in signature(checked).parameters})
    check_format(wanted.kind, wanted.options)


def make_tables(
    spark: SparkSession | None,
    lake: str | Path,
    out: str | Path,
    *,
    tap_id: str,
    lake_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[StreamResult]:
    """Export what a tap has landed.

    Raises:
        ExportError: see ``land``; it says that the lake is right, and how to go on.
    """
    store = open_store(str(lake), must_exist=True, options=lake_options)
    if not any(one.tap_id == tap_id for one in Lake(store).streams()):
        logger.info("%s: nothing has landed yet, so there is no table to make", tap_id)
        return []
    try:
        return export(spark, lake, out, taps=[tap_id], lake_options=lake_options, **options)
    except UsageError:
        raise
    except BurlerError as error:
        kind = StorageError if isinstance(error, StorageError) else ExportError
        raise kind(
            f"{error}\n  The rows are in the lake and their STATE is out; only tables are behind. "
            f"Run again, or: burler export {lake} {out}"
        ) from error


def lake_of(out: str | Path, lake: str | Path | None, *, kind: str = "delta") -> str:
    """The lake to land in.

    Raises:
        UsageError: none is named, and ``out`` is no folder that could hold one.
    """
    if lake is not None:
        return str(lake)
    if kind in ("delta", *FILE_FORMATS) and not str(out).startswith("jdbc:"):
        return f"{str(out).rstrip('/')}/{LAKE_OF_TABLES}"
    raise UsageError(f"format '{kind}' has no folder of its own at {out}: say where the lake is to be (lake=, --lake).")
