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

Each message names the stream or place, the fact and the cure, in at most three lines. Each class says below what to do
about it; the page of errors in the docs is made from these texts. ``exit_code`` is what the command line ends with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from burler.installing import install


class BurlerError(Exception):
    """Base of all errors that burler raises on purpose.

    ``except BurlerError`` catches all of them and nothing of yours. By itself it is raised where no kind fits: the
    text has the cure.
    """

    exit_code = 1


class UsageError(BurlerError):
    """The command, APP, config, catalog or state given is wrong; nothing was run.

    Mend the command, the catalog or the state that the text names, and start again. Trying again without a change
    gives the same: a scheduler should not retry exit code 2.
    """

    exit_code = 2


class AppError(UsageError):
    """APP can't be found, can't be imported, or holds no tap.

    ``APP`` is a file (``tap_crm.py``), a module (``tap_crm``), ``module:attribute``, or the command of an installed
    tap. The text says which of these was tried, and where. An error in the tap's own module is shown with its line.
    """


class ConfigError(UsageError):
    """The config is missing, unreadable, or lacks something the tap needs.

    All problems of the config come at once, a line each. ``burler about APP`` shows every key, with the variable that
    sets it. Secrets are never shown, so a value that is wrong may be ``***`` in the text.
    """


class CatalogError(UsageError):
    """The catalog is unreadable or does not fit the tap.

    Make the catalog anew (``burler discover APP --config config.json > catalog.json``) and put your selection back,
    or choose with ``--select``. A catalog of another version of the tap may name streams and fields that are gone.
    """


class StateError(UsageError):
    """The state is unreadable or not a JSON object.

    The file given with ``--state`` holds a state, a STATE message, or STATE lines, the newest last. An empty file is
    none: leave the option out for a first run. Keep the broken file until you know why: ``-o FILE`` replaces it
    whole, so a half state was written by something else.
    """


class DeclarationError(UsageError):
    """The tap's own code declares something that can't work.

    Said before anything runs: the tap's own code must change. docs/mistakes.md has the usual ones, each with a whole
    example. All gaps of a tap come at once.
    """


class MissingExtra(UsageError):
    """An optional package is needed and not installed.

    Install the extra that the text names, in the environment that runs the tap. Taps need no extras to be imported,
    so this comes when the thing is used.
    """

    def __init__(self, package: str, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package '{package}', of burler's extra '{extra}'. Install it: {install(extra)}"
        )
        self.package = package
        self.extra = extra


class StreamError(BurlerError):
    """A stream's sync failed. The other streams went on.

    The last STATE holds what is out of all of them. Run again with that STATE: the stream goes on at its bookmark.
    The cause stands behind the colon, and the whole traceback with ``BURLER_LOG_LEVEL=DEBUG``.
    """

    def __init__(self, stream: str, message: str) -> None:
        super().__init__(message)
        self.stream = stream

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamError, (self.stream, str(self))  # in another process it is no more than its text


class BadRecordError(StreamError):
    """A row does not fit the stream's schema.

    A row of the source does not fit its schema: the text has the field and the value. Correct the schema, or the row
    where the sync function gives it (``@tap.post_transform`` sees rows that fit alone); ``on_bad_record`` (``skip``,
    ``null``) lets a run pass such rows, counted in its report. docs/values.md says what each type takes.
    """


class UnsortedStreamError(StreamError):
    """Rows came against the order that the stream declares.

    The source gave rows against the order that the stream declares, so its bookmark could have passed rows that come
    later. Sort the request, or declare ``order="none"``: then the bookmark moves at the end of the stream alone.
    """


class OrderingError(StreamError):
    """A record came against the order that ``ensure_ordering`` declares.

    ``@burler.verify.ensure_ordering`` saw two records in the other order; the text has both. The source does not sort
    as the code believes: nothing after the first of them is right.

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

    The bookmark waits for the rest. Run again with the last STATE. ``max_failures`` says how many may fail before the
    stream ends.

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
    """Input that burler was given is broken: a message, a file.

    Nothing of it was taken in behind the place that the text names.
    """


class MessageError(DataError):
    """A line is no valid Singer message.

    The program before the pipe printed it. Tap and log lines mixed on stdout are the usual cause: ``any-tap 2>log |
    burler ...``. ``burler verify -`` says more of a tap's output.
    """


class BatchError(MessageError):
    """A BATCH message, or a file of one, that can't be read; or a row that a batch file can't hold.

    The file is left as it is. Is it from an older run, cut off, or already removed by its reader?

    Attributes:
        rows_taken: rows of the same page that stood before that row, and are in a file.
    """

    rows_taken = 0


class LakeError(DataError):
    """A file of a lake is broken or at odds with its manifest.

    ``burler lake check LAKE`` looks at all of a lake and says what to do; ``burler lake rebuild`` makes manifests
    anew from the data files, which are the truth.
    """


class SourceError(BurlerError):
    """What a source gave is no answer.

    Raised in the author's function, it ends the stream, the partition or the call; the next run goes on at the
    bookmark.
    """


class HttpError(SourceError):
    """A reply of an HTTP server that is an error, or none at all.

    The text has method, URL (secrets masked), status and the start of the reply, and how often it was asked. Rate
    limits, lost connections and 5xx were tried again already (``retries=``, ``max_wait_seconds=``): see docs/http.md.

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
    """There is no such thing, or not any more (404, 410).

    404 or 410. Look at ``base_url`` and the path; where a thing may be missing, ``allow_statuses=(404,)`` gives the
    reply instead of this error. In a substream it ends the call for that parent alone.
    """


class CredentialsError(HttpError):
    """The source does not accept who asks (401, 403), or gives no new token.

    401 or 403: the token is wrong, has expired, or lacks a right. Credentials that can be renewed were renewed and
    tried once more; a fixed token is not tried again, since that may lock an account. See docs/credentials.md.
    """


class NoAnswerError(HttpError):
    """No reply came (refused, reset, timed out), or it broke off half way.

    No reply came, or it broke off: name, port, proxy, firewall, or a server that is down. It was asked for as often
    as ``retries=`` and ``max_wait_seconds=`` of the client say. The next run goes on at the bookmark.
    """


class NotModified(SourceError):
    """The source says that nothing has changed (304), where ``source_state=True`` made a request conditional. It
    ends the stream's function, and is no failure.

    No failure: the source says that nothing has changed since the last run (docs/source-state.md). Seen only in your
    own ``except``.
    """


class PagingError(SourceError):
    """Pages go in a circle, or what should lead to the next one does not.

    The server's pages lead in a circle, to another host, or nowhere. burler stops rather than read for ever or lose
    rows; docs/paging.md has the options of each paginator.
    """


class GraphQLError(SourceError):
    """A GraphQL reply with errors.

    The reply holds ``errors``; the text has the first of them, with its path. Partial data is not used unless the
    call says so.

    Attributes:
        errors: the reply's ``errors``.
    """

    def __init__(self, message: str, errors: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.errors = list(errors)


class SoapError(SourceError):
    """A SOAP fault, or a document that is none that can be read.

    A fault of the server, or a document that is no SOAP. The text has the fault's code and words.
    """


class SqlError(SourceError):
    """A database refused a query, or went away.

    The database refused the query or went away. The transaction was rolled back (reads alone are made); the next run
    goes on at the bookmark.
    """


class FileError(SourceError):
    """A file of a source that can't be read as what it should be.

    A file of the source can't be read as what it should be: cut off, another encoding, another format. Mend it, or
    say how it is written (``csv=``, ``encoding=``). Files before it are noted and not read again; with
    ``on_bad_file="skip"`` the stream goes on past it and counts it. See docs/files.md.
    """


class StorageError(BurlerError):
    """A store can't be read or written (missing rights, full disk, ...).

    A disk or a store can't be read or written: full, no rights, no network. What was committed stands, what was half
    written is invisible to readers; run again once it is mended.
    """


class ExportError(BurlerError):
    """Tables could not be made or published from a lake.

    Tables could not be made or published. The tables that were there are as they were; run the export again.
    """


class LockLost(BurlerError):
    """Another writer has taken this stream's place in the lake; nothing of this commit counts.

    Another writer took this stream of the lake over, because this one did not renew its lock in time (a machine that
    slept, a clock that jumped) or both were started. Nothing of the lost commit counts. See that one run at a time is
    scheduled, then run again with the last STATE.
    """

    exit_code = 3


class OutputClosed(BurlerError):
    """The program that reads our stdout has gone.

    The target, or whatever reads the tap, ended before the tap did: its own error is the one to read. All that it has
    taken is covered by the STATEs that it printed.
    """

    exit_code = 4
