"""Rows into batch files, where the config, the command line or a stream's metadata say so; all else goes on as it is.

A stream goes out either as RECORDs or as BATCHes for the whole run: targets take the order between the two for what it
is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burler.batch_config import BatchConfig
from burler.singer.messages import ActivateVersion, ArrowPage, Batch, Message, Records, Schema, State
from burler.sinks.base import Form, Forward, Sink

if TYPE_CHECKING:
    from burler.batch.writer import BatchWriter


class BatchSink(Forward):
    """Stands before the sink that prints.

    Args:
        on: whether streams are batched of which nothing is said.
        tap: stands in the names of files.
    """

    def __init__(self, sink: Sink, config: BatchConfig, *, on: bool, tap: str) -> None:
        super().__init__(sink)
        self._config = config
        self._on = on
        self._tap = tap
        self._forms: dict[str, Form] = {}
        self._writer: BatchWriter | None = None

    def choose(self, stream: str, said: bool | None) -> Form:
        """See ``Sink.choose``. The storage is opened, and looked at, before the first message.

        Raises:
            ConfigError, UsageError, StorageError: it can't be written. MissingExtra: it needs a package.
        """
        if stream not in self._forms:
            wanted = self._on if said is None else said
            self._forms[stream] = (
                "messages" if not wanted else "columns" if self._config.encoding.is_columnar else "rows"
            )
            if wanted and self._writer is None:
                self._writer = self._opened()
        return self._forms[stream]

    @property
    def config(self) -> BatchConfig | None:
        """See ``Sink.config``."""
        return self._config

    @property
    def made(self) -> dict[str, Any] | None:
        """See ``Sink.made``."""
        return None if self._writer is None else self._writer.made

    def columns(self, stream: str) -> Any:
        """See ``Sink.columns``."""
        return None if self._writer is None else self._writer.arrow_schema(stream)

    def write(self, message: Message) -> None:
        """Take a message."""
        writer = self._writer
        if writer is None:
            self._sink.write(message)
        elif isinstance(message, State):
            writer.state(message)
        elif self._forms.get(message.stream, "messages") == "messages":
            writer.pass_on(message)
        elif isinstance(message, Records):
            writer.rows(message.stream, message.lines, message.count, message.time_extracted, message.version)
        elif isinstance(message, ArrowPage):
            writer.table(message)
        elif isinstance(message, Schema):
            writer.schema(message)
        elif isinstance(message, ActivateVersion):
            writer.activate_version(message)
        elif isinstance(message, Batch):
            writer.batch(message)

    def settle(self) -> None:
        """All files are ended, and the STATE of them goes on."""
        if self._writer is not None:
            self._writer.flush()
            self._writer.report()
        super().settle()

    def tick(self) -> None:
        """Files that are old enough are ended, with their STATE."""
        if self._writer is not None:
            self._writer.tick()
        super().tick()

    def close(self, *, complete: bool) -> None:
        """End all files and let the last STATE go; after an error of files or messages, give up what is open."""
        if self._writer is not None:
            if complete:
                self._writer.close()
            else:
                self._writer.abort()
        super().close(complete=complete)

    def _opened(self) -> BatchWriter:
        from burler.batch.encoders import prepare
        from burler.batch.writer import BatchWriter

        prepare(self._config.encoding)
        return BatchWriter(self._config, tap=self._tap, emit=self._sink.write)
