"""The streams of one run: whose functions are called, what each of them is given, and where they begin.

Where they begin is said in ``burler.runtime.coverage``.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import msgspec

from burler.context import StreamRun
from burler.declare.checks import line_of
from burler.declare.inject import gives_nothing
from burler.declare.spec import StreamSpec
from burler.errors import StreamError
from burler.runtime.coverage import Coverage, bookmark_of
from burler.runtime.family import Given, Member, rows_of
from burler.runtime.plan import PlannedRun, PlannedStream
from burler.singer import state as st

if TYPE_CHECKING:
    from burler.runtime.sync import Engine


class Members:
    """Every function of a run's line that is called, by the name of its stream."""

    def __init__(self, engine: Engine, planned: PlannedRun) -> None:
        self._engine = engine
        self._specs = engine.session.specs
        self.root = planned.spec.tap_stream_id
        self.planned = {stream.tap_stream_id: stream for stream in planned.streams}
        self.line = tuple(spec.tap_stream_id for spec in engine.session.line(planned.spec))
        self.coverage = Coverage(engine, planned.spec, self.planned)
        self.start = self.coverage.start
        self._encoded_state = msgspec.json.encode(engine.state)
        self._givens: dict[str, Given] = {}
        called = self._called()
        self.by_name = {name: self._member(self._specs[name]) for name in self.line if name in called}
        for member in self.by_name.values():
            above = self._specs[member.name].parent
            if above is not None:
                self.giver(above).children.setdefault(above, []).append(member)

    def _called(self) -> set[str]:
        """The root in any case; a substream if it, or one below it, is wanted."""
        wanted = {one.tap_stream_id for name in self.planned for one in line_of(self._specs[name], self._specs)}
        return {name for name in {*wanted, self.root} if self._specs[name].sync is not None}

    def giver(self, name: str) -> Member:
        """The member whose function yields a stream's rows: its own, or the one that emits it."""
        return self.by_name[self._specs[name].emitted_by or name]

    def rank(self, name: str) -> int:
        """Where rows of a stream stand in a page: a function's own rows first, parents before children, since
        those may refer to them."""
        return len(line_of(self._specs[name], self._specs)) if name in self._specs else len(self._specs)

    def open(self) -> Any:
        """Call the root's function; what it gives, with what its substreams give for each of its rows."""
        root = self.by_name[self.root]
        return rows_of(root, self._call) if len(self.by_name) > 1 else self._call(root, None)

    def _call(self, member: Member, parent: Any) -> Any:
        given = {**member.given, "parent": lambda: parent}
        result = self._engine.session.invoke(member.function, given, stream=member.name)
        if result is None and gives_nothing(member.function.fn):
            raise StreamError(
                member.name,
                f"stream '{member.name}' ({member.place}): its function neither yields nor returns anything. "
                "Yield rows, or return a list of them; [] if there are none.",
            )
        return result

    def initial(self, stream: PlannedStream) -> Any:
        """The bookmark that a stream's run begins with."""
        if stream.tap_stream_id == self.root:
            return self.start
        return bookmark_of(self._engine.state, stream.tap_stream_id, stream.bookmark_key)

    def _member(self, spec: StreamSpec) -> Member:
        name = spec.tap_stream_id
        assert spec.sync is not None
        emitted = frozenset(one for one in self.line if self._specs[one].emitted_by == name)
        run = self._stream_run(spec)
        paths = {one: self._specs[one].records_path for one in (*emitted, name)}
        return Member(name, spec.sync, run, self._given(run), names=emitted | {name}, records_paths=paths)

    def given_to(self, name: str) -> Given:
        """What functions of a stream's rows (bookmark, post_transform) may ask for: its own ``stream``, also if another
        function yields its rows."""
        if name not in self._givens:
            giver = self.giver(name)
            same = giver.name == name
            self._givens[name] = giver.given if same else self._given(self._stream_run(self._specs[name]))
        return self._givens[name]

    def _given(self, run: StreamRun) -> Given:
        engine, encoded = self._engine, self._encoded_state

        @functools.cache
        def snapshot() -> Any:
            """A copy: what an author writes into it must not get into a STATE ahead of the rows."""
            return msgspec.json.decode(encoded)

        return engine.session.given(state=snapshot, catalog=lambda: engine.catalog, stream=lambda: run)

    def _stream_run(self, spec: StreamSpec) -> StreamRun:
        engine, name = self._engine, spec.tap_stream_id
        planned = self.planned.get(name)
        entry = engine.catalog.entries.get(name)
        key = planned.bookmark_key if planned else spec.bookmark_key
        bookmark = self.start if name == self.root else bookmark_of(engine.state, name, key)
        return StreamRun(
            engine.session.tap,
            name,
            bookmark=bookmark if bookmark is not None or key is None else engine.settings.start_date,
            state={} if self.coverage.afresh and name == self.root else self._saved_state(name),
            selected=frozenset(self.planned),
            schema=planned.schema if planned else None,
            metadata=planned.metadata if planned else entry.metadata if entry else None,
            config=engine.session.config,
            client=engine.session.client,
            key_properties=planned.key_properties if planned else spec.key_properties,
            replication_key=planned.replication_key if planned else spec.replication_key,
            replication_method=planned.replication_method if planned else spec.replication_method,
        )

    def _saved_state(self, name: str) -> dict[str, Any]:
        saved: dict[str, Any] = copy.deepcopy(st.get_bookmark(self._engine.state, name, "stream_state", {}))
        return saved
