"""Files that a sync function yields (``burler.batch_files``): whether they go on as they are, or are read as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from burler.engine.writer.outlet import Outlet
from burler.errors import BatchError, FileError, StreamError
from burler.sinks.base import batch_config_of

if TYPE_CHECKING:
    from burler.batch.source_intake import Intake
    from burler.engine.run.stream import SyncRun
    from burler.engine.run.task import Task


class FilesGiven:
    """Asked by the pull of a worker, where user code yields files."""

    def __init__(self, sync: SyncRun) -> None:
        self._sync = sync

    def take(self, task: Task | None, stream: str | None, files: Any) -> Any:
        """Files that go on as they are, or an iterator of their pages.

        Raises:
            FileError: they are not there, or not what they should be. StreamError: a bookmark is said of them, and the
                stream has none.
        """
        name = stream or self._sync.name
        outlet = self._sync.outlets.get(name)
        if task is None or outlet is None:
            return files  # of a stream that is not selected, or not declared: whoever writes says so
        _check_bookmark(outlet, files)
        if name not in task.intakes:
            task.intakes[name] = self._intake(task, outlet)
        try:
            return task.intakes[name].take(files)
        except BatchError as error:  # of the source's files, and so of its stream
            raise FileError(str(error)) from None

    def passed(self, task: Task | None, stream: str | None, files: Any) -> None:
        """Files that go on stand in the page. Where the author's word alone moves the bookmark, the one that was said
        for them is saved behind them."""
        if task is None or files.bookmark is msgspec.UNSET:
            return
        run = task.given_to(stream or self._sync.name)["stream"]()
        if run.manual:
            run.save_bookmark(files.bookmark)

    def _intake(self, task: Task, outlet: Outlet) -> Intake:
        from burler.batch.source_intake import Intake

        name = outlet.planned.tap_stream_id
        config = batch_config_of(self._sync.engine.sink) if outlet.form != "messages" else None
        return Intake(task.given_to(name)["stream"](), config=config, rows_needed=_rows_needed(outlet))


def _check_bookmark(outlet: Outlet, files: Any) -> None:
    """Refuse a bookmark that nothing would keep: its author counts on it. A catalog may have a stream read without its
    replication key; then it plays no part, like those of rows."""
    planned = outlet.planned
    spec, may_have_one = planned.spec, planned.metadata.get((), {}).get("valid-replication-keys")
    if files.bookmark is msgspec.UNSET or spec.replication_key is not None or may_have_one:
        return
    if planned.replication_key is None and planned.resume_key is None:
        place = spec.sync.place if spec.sync is not None else spec.place
        raise StreamError(
            spec.tap_stream_id,
            f"stream '{spec.tap_stream_id}' ({place}): batch_files(bookmark=...) needs a stream with a "
            "replication_key, and this one has none: no state would hold the bookmark.\n"
            "  Declare the replication_key, or leave bookmark= out.",
        )


def _rows_needed(outlet: Outlet) -> str | None:
    """Why the rows of a stream have to be seen; None where they need not be."""
    spec = outlet.planned.spec
    if spec.post_transform is not None:
        return "a hook is called for its rows"
    if outlet.asks_bookmarks:
        return "its bookmark function looks at the rows"
    return None
