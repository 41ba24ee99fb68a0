"""How often a stream of a tail is tried again, and after which wait."""

from __future__ import annotations

import errno
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from burler.settings import Settings

FIRST_SECONDS, MOST_SECONDS = 1.0, 300.0

_ERRNOS = {errno.ENOTCONN, errno.ESHUTDOWN, errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTUNREACH}

_CONNECTION = re.compile(
    "^(NoAnswerError|OperationalError|InterfaceError|ChunkedEncodingError|IncompleteRead|RemoteProtocolError)$"
    "|Connection(?!String|Setting|Config|Info|Name|Param)"
    "|(Timeout|TimedOut|Disconnect|Disconnected|Disconnection|NotConnected)(Error|Exception)?$"
    "|^NoBrokersAvailable|(Connect|Reconnect|Network)(Error|Exception|Failure|Failed)$"
    "|(Socket|Channel|Stream|Transport|Pipe|Link|Resource)(Is)?(Closed|Broken|Reset|Lost|Aborted)"
    "|(Closed|Broken|Lost)(Socket|Channel|Stream|Transport|Pipe|Link|Resource)"
)
"""Names of error classes of clients: burler's own, of databases (PEP 249), of HTTP, of queues. In whole words, so that
a record that is broken, or a period that is closed, is none."""


@dataclass(slots=True)
class Tries:
    """Failures of one stream in a row.

    Attributes:
        failures: in a row; ``wait``: seconds after the last one.
        error: the last one; None after a good round.
        for_good: it is tried no more.
        began_anew: it has forgotten its bookmark since its last good round.
    """

    settings: Settings
    spread: Callable[[], float] = lambda: random.random()
    failures: int = 0
    wait: float = 0.0
    error: BaseException | None = None
    for_good: bool = False
    began_anew: bool = field(default=False)

    def good(self) -> bool:
        """A good round; whether it follows a failure."""
        recovered = self.failures > 0
        self.failures, self.error, self.began_anew = 0, None, False
        return recovered

    def failed(self, error: BaseException) -> float | None:
        """Seconds until the next try, with full jitter; None where there is none: it has failed for good."""
        self.failures += 1
        self.error = error
        most = self.settings.tail_max_retries
        if not self.settings.tail_retry or (most is not None and self.failures > most):
            return None
        self.wait = self.wait_seconds()
        return self.wait

    def wait_seconds(self) -> float:
        """A wait after so many failures, with full jitter."""
        return self.spread() * min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 20))

    def begin_anew(self) -> bool:
        """Whether the stream is to forget its bookmark instead of failing for good; once between two good rounds."""
        if not self.settings.tail_full_table_on_failure or self.began_anew:
            return False
        self.failures, self.began_anew = 0, True
        return True


def is_connection(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, says that a connection is lost: the client is then made anew.
    Clients have errors of their own for that; their names say so, or those of their bases."""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, ConnectionError | TimeoutError | EOFError) or getattr(error, "errno", None) in _ERRNOS:
            return True
        if any(_CONNECTION.search(kind.__name__) for kind in type(error).__mro__):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False
