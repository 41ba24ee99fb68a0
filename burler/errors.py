"""Every error burler raises on purpose, in one tree.

    BurlerError                      exit 1
    ├── UsageError                   exit 2   wrong command line, APP, catalog, state
    │   ├── AppError                          APP can't be found, loaded, or holds no tap
    │   ├── ConfigError                       config missing, unreadable or invalid
    │   ├── CatalogError                      catalog unreadable or at odds with the tap
    │   ├── StateError                        state unreadable or not a JSON object
    │   ├── DeclarationError                  the tap's own code declares something wrong
    │   └── MissingExtra                      an optional package is not installed
    ├── StreamError                  exit 1   a stream failed; the others went on
    │   ├── BadRecordError                    a row does not fit its schema
    │   ├── UnsortedStreamError               rows came against the declared order
    │   ├── OrderingError                     records came against the order of an ensure_ordering
    │   └── PartialError                      some of its partitions or parents failed; the rest is out
    ├── DataError                    exit 1   input data is broken (message, lake file)
    │   ├── MessageError                      a line that is no Singer message
    │   │   └── BatchError                    a BATCH message or file that can't be read, or a row it can't hold
    │   └── LakeError                         a lake file or manifest is broken
    ├── SourceError                  exit 1   what a source gave is no answer
    │   ├── HttpError                         a reply that is an error, or none at all
    │   │   ├── NotFoundError                 there is no such thing, or not any more (404, 410)
    │   │   ├── CredentialsError              the source does not accept who asks (401, 403)
    │   │   └── NoAnswerError                 no reply came, or it broke off
    │   ├── NotModified                       nothing has changed (304): ends a function, no failure
    │   ├── PagingError                       pages go in a circle, or the next one is none
    │   ├── GraphQLError                      a reply with errors in it
    │   ├── SoapError                         a fault, or a document that is none
    │   ├── SqlError                          a database refused a query, or went away
    │   └── FileError                         a file that can't be read as what it should be
    ├── StorageError                 exit 1   a store can't be written or read (disk full, ...)
    ├── ExportError                  exit 1   tables could not be published
    ├── LockLost                     exit 3   another writer took over, or held the lock for too long
    └── OutputClosed                 exit 4   the reader of stdout went away

Each message names the stream or place, the fact and the cure, in at most three lines
``exit_code`` is what the command line ends with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from burler.installing import install


class BurlerError(Exception):
    """Base of all errors that burler raises on purpose."""

    exit_code = 1


class UsageError(BurlerError):
    """The command, APP, config, catalog or state given is wrong; nothing was run."""

    exit_code = 2


class AppError(UsageError):
    """APP can't be found, can't be imported, or holds no tap."""


class ConfigError(UsageError):
    """The config is missing, unreadable, or lacks something the tap needs."""


class CatalogError(UsageError):
    """The catalog is unreadable or does not fit the tap."""


class StateError(UsageError):
    """The state is unreadable or not a JSON object."""


class DeclarationError(UsageError):
    """The tap's own code declares something that can't work."""


class MissingExtra(UsageError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package '{package}', of burler's extra '{extra}'. Install it: {install(extra)}"
        )
        self.package = package
        self.extra = extra


class StreamError(BurlerError):
    """A stream's sync failed. The other streams went on."""

    def __init__(self, stream: str, message: str) -> None:
        super().__init__(message)
        self.stream = stream


class BadRecordError(StreamError):
    """A row does not fit the stream's schema."""


class UnsortedStreamError(StreamError):
    """Rows came against the order that the stream declares."""


class OrderingError(StreamError):
    """A record came against the order that ``ensure_ordering`` declares.

    Attributes:
        key, order: what was declared.
        before, value: the two values, as they came.
        row: which record it was, counted from 1 over all that the call gave.
    """

    def __init__(self, stream: str, message: str, *, key: str, order: str, before: Any, value: Any, row: int) -> None:
        super().__init__(stream, message)
        self.key, self.order, self.before, self.value, self.row = key, order, before, value, row


@dataclass(frozen=True, slots=True)
class Failure:
    """One part of a stream that failed while the stream went on.

    Attributes:
        stream: the stream whose rows are missing.
        where: the part, as a person reads it: ``partition {"account":"a"}`` or ``parent id=5``.
        error: what ended it.
    """

    stream: str
    where: str
    error: BaseException


class PartialError(StreamError):
    """Parts of a stream failed: partitions, or calls for one parent each. What the other parts gave is out.

    Attributes:
        failures: each part that failed, in the order in which they did; at least one.
    """

    def __init__(self, stream: str, failures: Iterable[Failure]) -> None:
        self.failures = list(failures)
        count = len(self.failures)
        if not count:
            raise ValueError(f"stream '{stream}': a PartialError needs a failure")
        parts = "1 part" if count == 1 else f"{count} parts"
        super().__init__(stream, f"stream '{stream}': {parts} failed, first {self.failures[0].where}")


class DataError(BurlerError):
    """Input data is broken."""


class MessageError(DataError):
    """A line is no valid Singer message."""


class BatchError(MessageError):
    """A BATCH message, or a file of one, that can't be read; or a row that a batch file can't hold.

    Attributes:
        rows_taken: rows of the same page that stood before that row, and are in a file.
    """

    rows_taken = 0


class LakeError(DataError):
    """A file of a lake is broken or at odds with its manifest."""


class SourceError(BurlerError):
    """What a source gave is no answer. Raised in the author's function, it ends the stream,
    the partition or the call."""


class HttpError(SourceError):
    """A reply of an HTTP server that is an error, or none at all.

    Attributes:
        status: of the reply; None where none came.
        url: what was asked for, secrets masked.
        method: "GET", ...
        body: the first bytes of the reply, secrets masked.
        attempts: how often it was asked for.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        url: str = "",
        method: str = "",
        body: bytes = b"",
        attempts: int = 1,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.url = url
        self.method = method
        self.body = body
        self.attempts = attempts


class NotFoundError(HttpError):
    """There is no such thing, or not any more (404, 410)."""


class CredentialsError(HttpError):
    """The source does not accept who asks (401, 403), or gives no new token."""


class NoAnswerError(HttpError):
    """No reply came (refused, reset, timed out), or it broke off half way."""


class NotModified(SourceError):
    """The source says that nothing has changed (304), where ``source_state=True`` made a request conditional. It ends
    the stream's function, and is no failure."""


class PagingError(SourceError):
    """Pages go in a circle, or what should lead to the next one does not."""


class GraphQLError(SourceError):
    """A GraphQL reply with errors.

    Attributes:
        errors: the reply's ``errors``.
    """

    def __init__(self, message: str, errors: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.errors = list(errors)


class SoapError(SourceError):
    """A SOAP fault, or a document that is none that can be read."""


class SqlError(SourceError):
    """A database refused a query, or went away."""


class FileError(SourceError):
    """A file of a source that can't be read as what it should be."""


class StorageError(BurlerError):
    """A store can't be read or written (missing rights, full disk, ...)."""


class ExportError(BurlerError):
    """Tables could not be made or published from a lake."""


class LockLost(BurlerError):
    """Another writer has taken this stream's place in the lake; nothing of this commit counts."""

    exit_code = 3


class OutputClosed(BurlerError):
    """The program that reads our stdout has gone."""

    exit_code = 4
