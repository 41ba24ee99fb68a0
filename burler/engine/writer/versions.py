"""Versions of full tables: ``version`` on rows, and ACTIVATE_VERSION once they are a whole table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from burler.engine.catalog.plan import PlannedStream
from burler.engine.state.ledger import FamilyState
from burler.errors import StreamError
from burler.singer.messages import ActivateVersion
from burler.singer.metadata import LOG_BASED
from burler.sinks import Sink


class Versions:
    """The version that rows of one stream carry ``now``, None for none, and when it counts.

    Args:
        allowed: False where the operator wants none, whatever the author's blocks say.
        limited: rows up to a limit are never a whole table: nothing may be dropped for them.
    """

    def __init__(
        self,
        planned: PlannedStream,
        sink: Sink,
        saved: FamilyState,
        *,
        now: Callable[[], dt.datetime],
        limited: bool,
        allowed: bool,
    ) -> None:
        self._planned = planned
        self._name = planned.tap_stream_id
        self._sink = sink
        self._saved = saved
        self._clock = now
        self._limited, self._allowed = limited, allowed
        self._previous = saved.version(self._name)
        # The first version of all is activated before its rows. Not where rows went out without one: targets would drop
        # those at once, and have nothing if this run does not come to its end.
        self._shown = limited or saved.has_progress(self._name)
        self.in_block = False  # of a full table: each of its rows is wanted
        self._by_block = False  # the author's ``with stream.full_table()`` has taken over
        self.withheld = False  # it has ended, and its rows are no whole table
        self.not_modified = False
        self.continued = False  # rows belong to the table as it stands
        self.rows_before = 0  # those of earlier tries
        self.only_with_rows = False  # a table without rows is none
        self.activated = False
        self.in_parts = False  # rows of other runs make up the table, too
        self.done = False  # nothing more is to be said of it in this run
        self._first: int | None = None  # the first version of all, which stands before its rows
        # Rows of a log belong to the whole table that came before them: targets that drop rows by their version would
        # keep those without one for ever.
        self._belongs = allowed and not limited and planned.replication_method == LOG_BASED
        self.now: int | None = self._previous if self._belongs else None
        if planned.versions:
            self.now = saved.interrupted.versions.get(self._name) or self._next()

    def belong_to(self, version: int) -> None:
        """The run is a part of another one: its rows are of the ``version`` that was chosen there, and it is there that
        the version counts once all parts are whole."""
        self.now, self._shown, self.in_parts = version, True, True

    def _next(self) -> int:
        """A version of now."""
        return next_version(self.now or self._previous, self._clock())

    def begin(self) -> None:
        """Rows follow. Before those of the first version of all stands its ACTIVATE_VERSION: targets then show them as
        they come."""
        if self.now is not None and self._previous is None and not self._shown and not self.not_modified:
            self._shown = True
            self._first = self.now
            self._sink.write(ActivateVersion(self._planned.stream, self.now))

    def keep(self) -> None:
        """The source says that rows of earlier runs still hold: the version that they have stays the one that counts,
        and the rows of this run belong to the table as it stands."""
        self.not_modified = True
        if self._planned.versions and not self._by_block:
            self.continued = True
            self.now = self._previous

    def not_changed(self, rows: int, place: str, *, by_name: bool, for_parent: bool) -> None:
        """The source says that nothing has changed; so many ``rows`` are out.

        Args:
            place: of the function that says so.
            by_name: rows may come from another function all the same. If none do, that means nothing, either.
            for_parent: it was said for one row of a parent, and something may have changed for one before it.

        Raises:
            StreamError: it came behind rows of a full table.
        """
        name, begun = self._name, rows > self.rows_before and not self.continued
        if by_name:
            self.only_with_rows = True
        elif not begun or not self._planned.versions:
            self.keep()
        elif for_parent:
            # That will never be a whole table: nothing counts that would keep its rows from coming again.
            self.not_modified = True
        else:
            raise StreamError(
                name,
                f"stream '{name}' ({place}): 'nothing has changed' (not_modified, 304) came behind "
                f"{rows} rows of a full table, which no ACTIVATE_VERSION may follow then.\n"
                "Say so, and call client.conditional for all resources, before the first row is yielded.",
            )

    def restart(self, rows: int) -> None:
        """A further try; so many ``rows`` came before it."""
        self.rows_before = rows
        if self.continued:
            self.now = self._next()
        self.not_modified = self.continued = self.only_with_rows = False

    def renew(self) -> None:
        """Another version for a further try that begins at the very beginning: rows of the one that failed are dropped
        with it."""
        if self._planned.versions and self.now is not None and not self._by_block:
            self.now = self._next()

    def begin_block(self) -> None:
        """A block of the author's begins: its rows are a full table."""
        self.in_block = True
        if self._allowed:
            self._by_block = True
            self.now = self._next()

    def end_block(self, *, whole: bool) -> None:
        """The block has ended, with an error unless ``whole``."""
        self.in_block = False
        if whole and self._by_block and not self._limited:
            self._activate()
        self.withheld = self._by_block and not whole
        if not self._planned.versions:
            self.now = self._previous if self._belongs else None

    def complete(self, rows: int) -> None:
        """All rows are out: the version that they make up counts from here on. Not where the source said that nothing
        has changed: that there are no rows does not mean that there are none."""
        whole = self._planned.versions and not self._by_block and not self.not_modified
        if whole and not self.in_parts and (rows or not self.only_with_rows):
            self.begin()
            self._activate()
        self.done = self.continued or not self.not_modified

    def leave_open(self) -> None:
        """All rows are out that came, and the table may have more. Targets show the first version of all from its
        beginning: the next run must not begin with another one, which would drop its rows."""
        if self._first is not None and self._planned.versions and not self._by_block:
            self._saved.put_version(self._name, self._first)

    def _activate(self) -> None:
        assert self.now is not None
        self._sink.write(ActivateVersion(self._planned.stream, self.now))
        self.activated = True
        self._saved.put_version(self._name, self.now)
        self._previous = self.now


def next_version(previous: int | None, now: dt.datetime) -> int:
    """A version of now. A clock that was set back must not make one that targets take for an older one."""
    return max(int(now.timestamp() * 1000), (previous or 0) + 1)
