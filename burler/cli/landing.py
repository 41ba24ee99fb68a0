"""``--sink spark:OUT``: the run lands in a lake, and tables are made of it behind the last STATE."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from burler.errors import BurlerError, UsageError
from burler.words import counted

if TYPE_CHECKING:
    from burler.engine.run.sync import SyncResult
    from burler.settings import Settings
    from burler.spark import StreamResult

logger = logging.getLogger(__name__)

_KIND = "spark:"


@dataclass(frozen=True, slots=True)
class Landing:
    """Where rows land, and where tables go."""

    lake: str
    out: str

    @property
    def sink(self) -> str:
        """The sink of the run itself."""
        return f"lake:{self.lake}"

    def tables(self, result: SyncResult, settings: Settings, *, tap_id: str, code: int) -> int:
        """Make the tables of what has landed; the exit code. Not where the run was told to stop: the next one does."""
        if result.stopped_by is not None:
            logger.info("stopped: tables are not made; the next run does, or: burler export %s %s", self.lake, self.out)
            return code
        from burler.spark.land import make_tables

        try:
            make_tables(
                None,
                self.lake,
                self.out,
                tap_id=tap_id,
                lake_options=settings.lake_options,
                on_progress=_tell,
            )
        except BurlerError as error:
            logger.debug("traceback", exc_info=True)
            logger.critical("%s", str(error))
            return code or 1
        return code


def landing_of(sink: str, lake: str | None, *, look: str | None) -> Landing | None:
    """What ``--sink`` and ``--lake`` say; None for another sink.

    Args:
        look: the option that asks for a few rows only.

    Raises:
        UsageError: no OUT, ``--lake`` beside another sink, a look at a few rows; an extra is missing.
    """
    if not sink.startswith(_KIND):
        if lake is not None:
            raise UsageError("--lake is for --sink spark:OUT: rows land there, tables go to OUT. Else: --sink lake:URL")
        return None
    out = sink.removeprefix(_KIND)
    if not out:
        raise UsageError("--sink spark: needs the folder that tables go to, as in --sink spark:./tables")
    if look is not None:
        raise UsageError(
            f"{look} is a look at a few rows, of which no table can be made. Leave it or --sink spark: out."
        )
    from burler.extras import require
    from burler.spark.land import lake_of

    for module in ("pyspark", "deltalake"):  # before the first row, not behind the last
        require(module, extra="spark", needed_for="--sink spark:")
    return Landing(lake_of(out, lake), out)


def _tell(result: StreamResult) -> None:
    """Of one table; stdout belongs to messages."""
    name: Any = f"{result.tap_id}/{result.stream}"
    if result.error is not None:
        logger.warning("table '%s': failed", name)
    elif result.skipped:
        logger.info("table '%s': up to date", name)
    else:
        logger.info("table '%s': %s read, %d written", name, counted(result.rows_read, "row"), result.rows_written)
