"""Reading PostgreSQL: pages of a table, or of an author's own statement."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from burler.context import running
from burler.errors import SqlError
from burler.sql import parameters, postgres_select
from burler.sql.ahead import InHand, NothingCame, fetch_ahead
from burler.sql.failures import shown, sql_error
from burler.sql.pool import L, Pool
from burler.sql.postgres_links import AdbcLink, PsycopgLink
from burler.sql.postgres_select import Asked, Result
from burler.sql.reading import Reading

if TYPE_CHECKING:
    from sqlalchemy import URL

logger = logging.getLogger(__name__)

_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "transaction_read_only": "on",
    "idle_in_transaction_session_timeout": "0",  # whoever takes the rows may be slow
}
_NOTES = {"title", "description"}


class PostgresReader:
    """Reads one database; any number of threads may do so at a time, each with a connection of its own.

    Args:
        statement_timeout_seconds: after which the server gives a statement up; None: its own setting.
        adbc: fetch through ADBC; None: if it is installed.
    """

    def __init__(
        self,
        url: URL,
        *,
        connect_timeout_seconds: float,
        statement_timeout_seconds: float | None,
        adbc: bool | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._monotonic = monotonic
        self.adbc = _has_adbc() if adbc is None else adbc
        self._settings = dict(_SETTINGS)
        self._patience_seconds = statement_timeout_seconds
        if statement_timeout_seconds is not None:  # rows are waited for here: the server would count the target's time
            self._settings["statement_timeout"] = "0"
        self._describers = Pool(lambda: PsycopgLink(url, connect_timeout_seconds), monotonic)
        self._links: Pool[Any] = (
            Pool(lambda: AdbcLink(url, connect_timeout_seconds), monotonic) if self.adbc else self._describers
        )

    # ---- what is asked ---------------------------------------------------------------------------------

    def table_pages(self, reading: Reading) -> Iterator[Any]:
        """The pages of a table."""
        table, described = reading.table, _described()
        names = list(dict.fromkeys((*reading.names, *reading.order)))
        plain = postgres_select.render(postgres_select.plain_select(table.name, table.schema, names))

        def asked(link: PsycopgLink) -> tuple[Asked, list[Result]]:
            by_name = {one.name: one for one in link.describe(plain).columns}
            results = [by_name[name] for name in reading.names]
            made = postgres_select.table_select(
                table.name,
                table.schema,
                results,
                [by_name[name] for name in reading.order],
                reading.start,
                json=self._json(results, described),
                nulls_first=reading.nulls_first,
            )
            return made, results

        return self._pages(f"stream '{reading.stream}'", asked)

    def query_pages(self, sql: str, values: Mapping[str, Any], what: str) -> Iterator[Any]:
        """The pages of a statement with ``:name`` in it. PostgreSQL itself says of which types its values are."""
        described = _described()

        def asked(link: PsycopgLink) -> tuple[Asked, list[Result]]:
            numbered, names = parameters.with_settings(sql, None)
            parameters.check_names(names, values)
            found = link.describe(numbered)
            types = dict(zip(names, found.parameters, strict=True))
            nulls = frozenset(name for name in names if values[name] is None)
            plain, _names = parameters.with_settings(sql, types, nulls)
            settings = {
                f"burler.p{i}": parameters.as_text(name, values[name])
                for i, name in enumerate(names)
                if name not in nulls
            }
            made = postgres_select.wrapped(plain, found.columns, settings, json=self._json(found.columns, described))
            return made, found.columns

        return self._pages(what, asked)

    def _json(self, results: Sequence[Result], described: frozenset[str]) -> bool:
        """Whether Arrow has no lossless form for one, or there is JSON that must be looked into: in that of whole rows
        this is much faster."""
        return not self.adbc or any(
            (one.is_array and not one.is_list) or (one.is_json and one.name in described) for one in results
        )

    # ---- how it comes ----------------------------------------------------------------------------------

    def _pages(self, what: str, asked: Callable[[PsycopgLink], tuple[Asked, list[Result]]]) -> Iterator[Any]:
        """The pages of one transaction."""
        from burler.sql.arrow_columns import json_page, json_rows, settled

        hand = InHand(lambda link: link.cancel())
        patience, clock = self._patience_seconds, self._monotonic
        ahead = fetch_ahead(self._fetched(asked, hand), hand.cancel, patience_seconds=patience, monotonic=clock)
        with self._translated(what), contextlib.closing(ahead) as pages:
            for page, results, as_json in pages:
                if isinstance(page, list):
                    yield json_rows(b"[" + b",".join(page) + b"]", results)
                elif not page.num_rows:
                    continue
                elif as_json:
                    yield json_rows(json_page(page.column(0)), results)
                else:
                    yield settled(page, results)

    def _fetched(
        self, asked: Callable[[PsycopgLink], tuple[Asked, list[Result]]], hand: InHand
    ) -> Generator[tuple[Any, list[Result], bool], None, None]:
        """What the thread beside does: all that a server may let it wait for, as for a table that somebody locks."""
        with _used(self._describers, hand) as describer:
            describer.begin(self._settings)
            question, results = asked(describer)
            describer.end()
        with _used(self._links, hand) as link:
            link.begin({**self._settings, **question.settings})
            with contextlib.closing(link.fetch(question.sql)) as pages:
                for page in pages:
                    yield page, results, question.json
            try:
                link.end()
            except Exception:  # the rows are out: that the connection is gone now is no matter
                hand.cancelled = True

    @contextlib.contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except SqlError as error:
            raise SqlError(str(error) if str(error).startswith(what) else f"{what}: {error}") from error.__cause__
        except NothingCame:
            seconds = f"{self._patience_seconds:g} seconds"
            raise SqlError(
                f"{what}: {shown(self._url)}: no rows came for {seconds} (statement timeout).\n"
                "  statement_timeout_seconds says how long the next rows may take: an index may help, or more time."
            ) from None
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except Exception as error:
            if not _is_drivers(error):
                raise
            for pool in (self._links, self._describers):  # where one connection was lost, others may be as well
                pool.empty()
            raise sql_error(error, what, self._url) from None

    def close(self) -> None:
        """Close all connections; those in use when they are given back."""
        self._links.close()
        self._describers.close()


@contextlib.contextmanager
def _used(pool: Pool[L], hand: InHand) -> Iterator[L]:
    """A link of a pool, for a block. One in which anything went wrong is not used again."""
    link, whole = pool.take(), False
    try:
        with hand.holding(link):
            yield link
        whole = not hand.cancelled
    finally:
        pool.give_back(link, whole=whole)


def _described() -> frozenset[str]:
    """The fields of the running stream that its schema says more of than that they are there."""
    run = running()
    fields = (run.schema.get("properties") or {}).items() if run is not None else ()
    return frozenset(name for name, node in fields if isinstance(node, Mapping) and not node.keys() <= _NOTES)


def _has_adbc() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("adbc_driver_postgresql", "pyarrow"))


def _is_drivers(error: BaseException) -> bool:
    """Whether an error comes from a driver. ADBC's readers raise plain OSError and ValueError for the server's own."""
    module = type(error).__module__.partition(".")[0]
    if module in ("adbc_driver_manager", "psycopg", "pyarrow", "sqlalchemy"):
        return True
    return isinstance(error, OSError) or "libpq" in str(error)
