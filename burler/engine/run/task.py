"""A task: one call of a root's function, with all that is called below it, and what a STATE may say of it.

A stream without partitions is one task; a partitioned one has a task for each partition. Calls of substreams' functions
belong to the task of their root.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from burler.call import Given, gives_nothing
from burler.context import Channel, bind, call_of
from burler.declare.spec import Children, UserFunction
from burler.engine.family import Partition, Progress
from burler.engine.run.calls import Calls, Snapshot
from burler.engine.state.ledger import Start
from burler.engine.writer.writer import StreamWriter
from burler.errors import NotModified, StreamError
from burler.pipeline.bookmark import KeyRange
from burler.singer.bookmark_values import key_text
from burler.source_state import SafeEntries

Row = Mapping[str, Any]
GREATEST: Any = object()
"""In place of a value that an author vouches for: the greatest that is out."""


class Member:
    """One stream of a family that has a function of its own: its ``stream`` object, its context, its children.

    ``names`` are the streams whose rows its function may yield: its own, and those that it emits.
    """

    __slots__ = ("call", "children", "context", "first_bookmark", "function", "given", "name", "names", "run")

    def __init__(self, calls: Calls, name: str, start: Start, partition: Partition) -> None:
        spec = calls.planned.specs[name]
        assert spec.sync is not None
        self.name, self.function = name, spec.sync
        self.run = calls.stream(spec, start, partition)
        self.call = call_of(self.run)
        self.first_bookmark = self.call.bookmark
        self.given = calls.given(self.run)
        self.names = calls.family.emits[name]
        self.children: dict[str, list[Member]] = {}
        self.context = contextvars.copy_context()
        self.context.run(bind, self.run)


class ChildRows(KeyRange):
    """What came of a substream for one row of its parent: counts rows, and notes the range of their ``key``."""

    __slots__ = ("_values", "count", "key")

    def __init__(self, key: str | None, key_format: str | None) -> None:
        super().__init__(key_format)
        self.key = key
        self.begin()

    def begin(self) -> None:
        """A further try of the call: only its rows count."""
        self.count = 0
        self._values: list[Any] = []

    def count_row(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.count += 1
        if self.key is not None:
            self._values.append(row.get(self.key))

    def done(self) -> Children:
        """All of it; ``is_mixed`` if values can't be compared."""
        values, self._values = self._values, []
        self.add(values)
        return Children(self.count, key_text(self.least.value), key_text(self.greatest.value))


class Task:
    """Where it begins, what it has given, and what is missing of it.

    Args:
        writers: of the streams that are wanted.

    Raises:
        StreamError: what the state says of it is no bookmark.
    """

    def __init__(self, calls: Calls, writers: Mapping[str, StreamWriter], partition: Partition) -> None:
        self._calls = calls
        self.family, self.planned = calls.family, calls.planned
        self.writers = writers
        self.partition, self.key = partition, partition.key
        self.error: BaseException | None = None
        self.behind: set[str] = set()  # streams of which rows are missing
        self.incomplete: dict[str, str] = {}  # streams of which they may be: their sources said that there is more
        self.retries = 0
        self.complete = False
        self.held = False
        self.wants_state = False  # its author has asked for one among rows that wait for what belongs to them
        self._caught_up = False
        self.pending: list[Callable[[], None]] = []
        # Of the key of its rows, where partitions rise.
        self._range = KeyRange(calls.family.key_format) if calls.family.order is not None else None
        self.has_emitted = False
        # Parents' rows that came by name, by the stream whose function emitted them, without their children yet.
        self.emitted: dict[str, list[tuple[str, Row]]] = {}
        self.emitting = threading.Lock()
        self.child_rows: dict[str, ChildRows] = {}  # what came of substreams for a row, for bookmark functions that ask
        self.asked: list[tuple[str, Row, dict[str, Any]]] = []  # parents' rows, with what came for each
        self._givens: dict[str, Given] = {}
        self._start = start = calls.saved.start(partition.key)
        self.members = {name: Member(calls, name, start, partition) for name in self.family.called}
        self.root = self.members[self.family.root]  # whose function is called first
        self.children: dict[str, list[Member]] = {}
        """The members that are called for rows of a stream."""
        for member in self.members.values() if self.family.has_children else ():
            above = self.planned.specs[member.name].parent
            if above is not None:
                siblings = self.children.setdefault(above, [])
                siblings.append(member)
                self.members[self.family.givers[above]].children[above] = siblings
        self.trackers = calls.trackers(start)
        self._original = self._safe = self.states()
        self.sources = SafeEntries(self._original.sources)

    # ---- what is called --------------------------------------------------------------------------------

    def attach(self, channel: Channel) -> None:
        """Say where what its functions emit beside their rows goes."""
        for member in self.members.values():
            member.call.channel = channel

    def invoke(self, member: Member, parent: Any) -> Any:
        """Call a member's function, for a row of its parent; what it gives.

        Raises:
            StreamError: it neither yields nor returns anything.
        """
        member.given["parent"] = lambda: parent
        is_conditional = member.run.source_state.automatic
        try:
            result = self._calls.session.invoke(member.function, member.given, stream=member.name)
        except NotModified:
            if not is_conditional:
                raise
            return []
        if is_conditional and hasattr(result, "__next__"):
            return _until_not_modified(result)
        if result is None and not self.has_emitted and not _emits(fn := member.function.fn) and gives_nothing(fn):
            raise StreamError(
                member.name,
                f"stream '{member.name}' ({member.function.place}): its function neither yields nor returns anything. "
                "Yield rows, or return a list of them; [] if there are none.",
            )
        return result

    def given_to(self, name: str) -> Given:
        """What functions of a stream's rows (bookmark, post_transform) may ask for: its own ``stream``, also if another
        function yields its rows."""
        if name in self.members:
            return self.members[name].given
        if name not in self._givens:
            run = self._calls.stream(self.planned.specs[name], self._start, self.partition)
            self._givens[name] = self._calls.given(run)
        return self._givens[name]

    def take_files(self, stream: str | None, files: Any) -> Any:
        """Files that the root's function yields, for its own stream or another; see ``StreamWriter.take_files``."""
        name = stream or self.family.root
        writer = self.writers.get(name)
        if writer is None:
            return files  # of a stream that is not selected, or not declared: whoever writes says so
        return writer.take_files(files, self.given_to(name)["stream"]())

    def files_passed(self, stream: str | None, files: Any) -> None:
        """Files that go on stand in the page. Where the author's word alone moves the bookmark, the one that was said
        for them is saved behind them."""
        if files.bookmark is not msgspec.UNSET:
            run = self.given_to(stream or self.family.root)["stream"]()
            if run.manual:
                run.save_bookmark(files.bookmark)

    # ---- a tail function with overlap (docs/tail.md) ----------------------------------------------------

    @property
    def _overlaps(self) -> bool:
        return self.planned.specs[self.family.root].overlap

    def catch_up(self, stream: str, caught_up: Callable[[], None]) -> Iterator[Any]:
        """What the sync function of the root gives, in its tail function. Of a full table it is a whole version.

        Args:
            caught_up: called behind the last of it.

        Raises:
            StreamError: the tail function is not declared so, or has asked for it before.
        """
        root, first = self.root, self.planned.first
        if first is None or stream != root.name or not self._overlaps or self._caught_up:
            raise StreamError(
                stream,
                f"stream '{stream}' ({root.function.place}): catch_up() is for a tail function that is declared with "
                "overlap=True beside a sync function, once in a call. Without overlap the sync function runs before.",
            )
        self._caught_up = True
        return self._batch(first, caught_up)

    def _batch(self, first: UserFunction, caught_up: Callable[[], None]) -> Iterator[Any]:
        root, planned = self.root, self.planned.by_name.get(self.family.root)
        whole = root.run.full_table() if planned is not None and planned.versions else contextlib.nullcontext()
        with whole:
            given = self._calls.session.invoke(first, root.given, stream=root.name)
            if hasattr(given, "__next__"):
                yield from given
            elif given is not None:
                yield given
        root.call.end()
        caught_up()

    def caught_up(self, stream: str) -> None:
        """The tail function has handed on all that its sync function gave."""
        self.note_incomplete()
        if stream in self.trackers:
            self.trackers[stream].reached()

    def check_overlap(self) -> None:
        """Rows, or the end, of a tail function with overlap that has not asked for the batch: that would never come.

        Raises:
            StreamError: it is one.
        """
        if self.planned.pushes and not self._caught_up and self._overlaps:
            root = self.root
            raise StreamError(
                root.name,
                f"stream '{root.name}' ({root.function.place}): overlap=True, and its tail function has not called "
                "stream.catch_up(): the rows of its sync function would never come. Say yield from stream.catch_up(), "
                "once it is subscribed.",
            )

    # ---- what it has given -----------------------------------------------------------------------------

    def states(self) -> Snapshot:
        """Each ``stream.state`` and ``stream.source_state`` as it stands now.

        Raises:
            StreamError: one that holds something else.
        """
        for member in self.members.values():
            if member.run.state or member.run.source_state.has_entries:
                break
        else:
            return self._calls.nothing_kept
        found = {name: member.run.state for name, member in self.members.items()}
        kept = {
            name: one.run.source_state.entries()
            for name, one in self.members.items()
            if one.run.source_state.has_entries
        }
        try:
            positions = msgspec.json.encode(found)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            guilty = next((one for one in self.members.values() if not _has_json(one.run.state)), self.root)
            raise StreamError(
                guilty.name,
                f"stream '{guilty.name}' ({guilty.function.place}): stream.state must hold JSON values only: {error}.",
            ) from None
        return Snapshot(positions, kept)

    def settle(self) -> None:
        """The functions have come to their end: what their sources said of what they gave counts."""
        self.root.call.end()
        for member in self.members.values():
            member.run.source_state.settle()

    def keep_states(self, states: Snapshot) -> None:
        """What authors kept when everything before it was in the page. Not once rows are missing: a position of the
        author's own can't be held back to where they are."""
        if not self.held:
            self._safe = states
            if not self.root.call.incomplete:  # else the next run would hear that nothing has changed
                self._calls.sources_changed |= self.sources.keep(states.sources)

    def drop_sources(self, stream: str) -> None:
        """Entries of a stream no longer count, whatever else may be said of it."""
        self.sources.drop(stream, self.members[stream].run.source_state.entries())

    def observe(self, name: str, keys: list[Any]) -> None:
        """Take the bookmark values of rows that are written. Those of the root wait, where it has substreams, until
        what belongs to them is out, too.

        Raises:
            UnsortedStreamError, StreamError: see ``BookmarkTracker``.
        """
        tracker = self.trackers.get(name)
        if tracker is None or not keys:
            return
        if self._waits(name):
            self.pending.append(functools.partial(tracker.observe, keys))
        else:
            tracker.observe(keys)
        if self._range is not None and name == self.family.root:
            self._range.add(keys)

    def _waits(self, name: str) -> bool:
        """Whether rows of a stream count only once what belongs to them is out: those of parents, and of the root,
        whose bookmark speaks for all that comes in its run."""
        return name in self.children or (self.family.has_children and name == self.family.root)

    def release(self, states: Snapshot) -> None:
        """What belongs to all rows so far is out."""
        pending, self.pending = self.pending, []
        for act in pending:
            act()
        self.keep_states(states)

    def save_bookmark(self, name: str, value: Any) -> None:
        """What an author vouches for: a value, or ``GREATEST`` of what is out."""
        tracker = self.trackers.get(name)
        if tracker is None:
            return
        self._calls.saved_by_hand = True
        save = tracker.save if value is GREATEST else functools.partial(tracker.save, value)
        if self._waits(name):
            self.pending.append(save)
            self.wants_state = True
        else:
            save()

    def miss(self, stream: str, values: Mapping[str, Any] | None) -> None:
        """Rows of a substream are missing: those for the rows of the streams above that have these bookmark values.

        Args:
            values: None where it can't be told which: bookmarks stay where they are.
        """
        self.held = True
        self.behind |= self.family.below(stream)
        above = self.family.above[stream]
        for name, tracker in self.trackers.items():
            if name in self.behind:
                tracker.hold(None)
            elif name not in above:
                continue
            elif values is not None and name in values:
                tracker.hold(values[name])
            else:
                tracker.hold(tracker.safe if name == self.family.root else None)

    def note_incomplete(self) -> None:
        """The root's function has ended, and its source said that there is more than it read. Behind rows that rise the
        next run goes on; a bookmark that moves at the end stays, and so do those of substreams, whose parents may be
        among what is missing."""
        root = self.family.root
        if not self.root.call.incomplete:
            return
        self.incomplete[root] = self.root.call.incomplete
        self.behind |= self.family.below(root)
        for name, tracker in self.trackers.items():
            if name != root or not tracker.goes_on:
                tracker.hold(None)
        self.held |= root not in self.trackers or not self.trackers[root].goes_on

    def progress(self) -> Progress:
        """How far it has come, as far as it is safe to say now."""
        tables = [(name, self.writers[name].versions) for name in self.family.tables]
        positions = self._calls.no_positions if self._safe is self._calls.nothing_kept else None
        return Progress(
            self.partition,
            {name: msgspec.to_builtins(tracker.safe) for name, tracker in self.trackers.items()},
            msgspec.json.decode(self._safe.positions) if positions is None else positions,
            self.sources.to_save(
                # Rows that belong to the table as it stands wait for none.
                tables_are_whole=all(table.done or table.continued for _name, table in tables),
                drops_rows=any(table.activated for _name, table in tables),
            ),
            {name: table.now for name, table in tables if table.now is not None},
            self.complete,
            frozenset(self.behind),
            frozenset(name for name, table in tables if table.not_modified),
            *(() if self._range is None else (self._range.least, self._range.greatest)),
        )

    def finish(self) -> None:
        """The function has come to its end, and all that it gave is out."""
        self.complete = True
        for tracker in self.trackers.values():
            tracker.complete()

    def again(self) -> None:
        """Prepare a further try: everything as it was at the beginning."""
        self.retries += 1
        self.incomplete.clear()
        for member in self.members.values():
            member.call.begin()
        self._caught_up = False
        self.pending.clear()
        self.asked.clear()
        self.child_rows.clear()
        for writer in self.writers.values():
            writer.task_again(self.key)
        self.emitted.clear()
        for tracker in self.trackers.values():
            tracker.restart()
        for name, state in msgspec.json.decode(self._original.positions).items():
            self.members[name].run.state = state
            self.members[name].run.source_state.restart()
        self.sources.restart()


def _emits(fn: Any) -> bool:
    """Whether a function emits rows by name (``stream.emit_record``): then it need not yield."""
    names: Sequence[str] = getattr(getattr(fn, "__code__", None), "co_names", ())
    return any(name in ("emit_record", "emit_records") for name in names)


def _until_not_modified(items: Iterator[Any]) -> Iterator[Any]:
    """What a function yields whose requests are conditional, and iterators that it yields: 304 ends it there, and is no
    error."""
    try:
        for item in items:
            if isinstance(item, tuple) and len(item) == 2 and hasattr(item[1], "__next__"):
                yield item[0], _until_not_modified(item[1])
            else:
                yield _until_not_modified(item) if hasattr(item, "__next__") else item
    except NotModified:
        return
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _has_json(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True
