"""What runs on an executor: one part of a tap into files of the lake, which only the driver commits."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from burler import logs
from burler.appref import AppRef
from burler.config.secrets import masked
from burler.engine.remote import Part, run_part
from burler.errors import UsageError
from burler.lake.rolling import WrittenFile
from burler.lake.store import open_store
from burler.lake.writer import PartWriter
from burler.settings import Settings
from burler.singer.messages import Message, Schema
from burler.sinks import Sink, compression_of, roll_of

FAILED = "burler-task-failed: "
"""What the message of a task that Spark may try again begins with."""


@dataclass(frozen=True, slots=True)
class Target:
    """The lake that files go into, and how they are made."""

    url: str
    tap_id: str
    settings: Settings = field(repr=False)

    def writer(self, kind: Callable[..., Any] = PartWriter) -> Any:
        """What makes files: a ``PartWriter``, or a ``kind`` of one."""
        store = open_store(self.url, options=self.settings.lake_options)
        settings = roll_of(self.settings)
        return kind(store, self.tap_id, settings=settings, compression=compression_of(self.settings))


@dataclass(frozen=True, slots=True)
class Done:
    """What comes back from a task: how it ended, and the files that are durable and in no manifest yet.

    ``schemas``: those that the driver can't know before.
    """

    end: Any
    files: tuple[WrittenFile, ...]
    schemas: tuple[Schema, ...] = ()


class Task(Protocol):
    """Something to do on an executor."""

    def run(self) -> Done:
        """Do it.

        Raises:
            BurlerError: the lake can't be written, or the tap can't be run here.
        """


@dataclass(frozen=True, slots=True)
class PartTask:
    """One part of a burler app. The config never shows: neither here nor in what Spark writes of its plans."""

    ref: AppRef
    part: Part
    target: Target
    config: Mapping[str, Any] = field(repr=False)
    catalog: Any = field(default=None, repr=False)
    select: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def run(self) -> Done:
        """See ``Task.run``."""
        sink = PartSink(self.target.writer())
        end = run_part(
            self.ref.load(),
            self.part,
            config=dict(self.config),
            catalog=self.catalog,
            select=self.select,
            state=self.state,
            sink=sink,
            settings=lambda _own: self.target.settings,
        )
        return Done(end, tuple(sink.files))


class PartSink(Sink):
    """Rows into files. STATEs on the way are let go: what counts is said at the end, by the driver;
    nobody is told of one before that."""

    def __init__(self, writer: PartWriter) -> None:
        self._writer = writer
        self.files: list[WrittenFile] = []

    def write(self, message: Message) -> None:
        """Take a message."""
        self._writer.take(message)

    def tick(self) -> None:
        """Files that are old enough are ended."""
        self._writer.tick()

    def close(self, *, complete: bool) -> None:
        """End the files; drop them where an error ends the run."""
        if complete:
            self.files = self._writer.close()
        else:
            self._writer.abort()


@dataclass(frozen=True, slots=True)
class Refused:
    """A task that would fail in the same way on every executor."""

    text: str

    def to_error(self) -> UsageError:
        """The error to raise on the driver."""
        return UsageError(self.text)


def work(payload: bytes) -> bytes:
    """Run a task that was sent, and what comes of it, both pickled.

    Raises:
        RuntimeError: the task failed in a way that may pass, as with a full disk: Spark tries it again if told to.
            The message holds no secret, and the traceback nothing beside it.
    """
    logs.mask_records()
    task: Task = pickle.loads(payload)
    said = ""
    done: Done | Refused | None = None
    try:
        done = task.run()
    except UsageError as error:
        done = Refused(masked(str(error)))
    except Exception as error:
        said = FAILED + logs.in_one_line(error)
    if done is None:
        raise RuntimeError(said)  # out here, so that Spark prints no traceback of what came before it
    return pickle.dumps(done)
