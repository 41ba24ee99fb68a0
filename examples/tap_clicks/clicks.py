"""The tap's client: one consumer of a consumer group on the stream ``clicks``."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from . import ids

logger = logging.getLogger(__name__)
_PAGE = 500  # entries in a reply
_GRACE_SECONDS = 10  # so much longer than Redis itself waits, the connection does

Row = dict[str, Any]


class Clicks:
    """Reads the stream, and says what need not be kept as pending.

    What Redis knows of a group: the last entry that was handed out, and which of those handed out are not acknowledged
    (pending). What a STATE knows: the last click that is out. The STATE decides: a target that has lost rows gets them
    again, acknowledged or not.

    Args:
        url: of the server; it may hold a password.
        group: the consumer group. Nobody else may read with it: entries would be handed out to one of them only.
        block_seconds: how long ``read`` waits for entries.

    Raises:
        redis.exceptions.AuthenticationError: the password is wrong. A server that is away is no error yet.
    """

    def __init__(self, url: str, *, group: str, block_seconds: float, key: str = "clicks") -> None:
        self._key, self._group, self._consumer = key, group, group
        self._block_ms = max(1, round(block_seconds * 1000))
        # No retries in the client: where the reply to XREADGROUP is lost with the connection, its entries are pending,
        # and the next XREADGROUP would pass them over. Whoever calls begins anew, with `what_is_there`.
        self._redis = redis.Redis.from_url(
            url,
            protocol=2,
            decode_responses=True,
            encoding_errors="backslashreplace",  # a click that is not UTF-8 must not stop the others
            socket_connect_timeout=_GRACE_SECONDS,
            socket_timeout=block_seconds + _GRACE_SECONDS,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
        )
        self._handed_out: deque[str] = deque()  # in the order of their rows
        self._knows_pending = False
        try:
            self._redis.ping()
        except redis.exceptions.AuthenticationError:
            raise
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            logger.warning("the Redis server does not answer yet")

    def what_is_there(self, *, after: str) -> Iterator[list[Row]]:
        """Pages of all entries behind the bookmark, to the end that the stream has now; more may come meanwhile, and
        are left to ``read``.

        First what was handed out before, acknowledged or not, and is not covered by a STATE. Then what never was.

        Args:
            after: the id of the bookmark.
        """
        given, end = self._begin(after)
        if not self._knows_pending:
            yield from self._pending(ids.number(after))
            self._knows_pending = True
        while ids.number(after) < ids.number(given):
            entries = self._redis.xrange(self._key, min=f"({after}", max=given, count=_PAGE)
            if not entries:
                break
            after = entries[-1][0]
            yield self._rows(entries)
        while ids.number(given) < ids.number(end) and (page := self.read()):
            given = page[-1]["entry_id"]
            yield page

    def read(self, *, wait: bool = False) -> list[Row]:
        """The next entries, of those that were never handed out. Where there are none: an empty list, with ``wait``
        after ``block_seconds``."""
        found = self._redis.xreadgroup(
            self._group, self._consumer, {self._key: ">"}, count=_PAGE, block=self._block_ms if wait else None
        )
        return self._rows(found[0][1]) if found else []

    def acknowledge(self, *, up_to: str) -> None:
        """Take entries that have been read here off the list of pending ones, as far as a STATE covers them.

        A server that is away is no error: they stay on the list here, too, and the next call takes them off.
        """
        end = ids.number(up_to)
        try:
            while covered := self._covered(end):
                self._redis.xack(self._key, self._group, *covered)
                for _ in covered:  # only now: a call that fails, or is cut off, is made up for by the next one
                    self._handed_out.popleft()
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
            logger.warning("acknowledging clicks up to %s has to wait: %s", up_to, error)

    def fields(self, key: str) -> Iterator[tuple[str, str]]:
        """All fields of a hash, with their values. One may come twice; none that is there all the time is left out."""
        yield from self._redis.hscan_iter(key, count=_PAGE)

    def close(self) -> None:
        """Give back the connections."""
        self._redis.close()

    # ---- inside ------------------------------------------------------------------------------------------

    def _begin(self, bookmark: str) -> tuple[str, str]:
        """The ids of the last entry that the group was given, and of the stream's last one. A group that is not there
        is made: it begins behind the bookmark."""
        begin = end = "0-0"
        if self._redis.exists(self._key):
            end = self._redis.xinfo_stream(self._key)["last-generated-id"]
            if ids.number(bookmark) <= ids.number(end):
                begin = bookmark
            else:
                logger.warning(
                    "the Redis stream '%s' ends at %s, before the bookmark %s: it was made anew, or Redis has lost "
                    "its end. What it holds comes; the bookmark stays until an id is greater",
                    self._key,
                    end,
                    bookmark,
                )
        try:
            self._redis.xgroup_create(self._key, self._group, id=begin, mkstream=True)
        except redis.exceptions.ResponseError as error:
            if "BUSYGROUP" not in str(error):  # it is there already
                raise
        groups = {group["name"]: group for group in self._redis.xinfo_groups(self._key)}
        return groups[self._group]["last-delivered-id"], end

    def _pending(self, up_to: tuple[int, int]) -> Iterator[list[Row]]:
        """Pages of this consumer's pending entries at or before the bookmark. Some were not acknowledged any more after
        the last STATE; others were handed to a process that had the group, too, and died with them. Those behind the
        bookmark come with the stream."""
        after, gone = "0-0", 0
        while entries := self._redis.xreadgroup(self._group, self._consumer, {self._key: after}, count=_PAGE)[0][1]:
            after = entries[-1][0]
            deleted = [entry_id for entry_id, values in entries if not values]
            self._handed_out.extend(deleted)
            gone += len(deleted)
            if again := [(name, values) for name, values in entries if values and ids.number(name) <= up_to]:
                yield self._rows(again)
        if gone:
            logger.warning("%d clicks were deleted from Redis before a STATE covered them: they are lost", gone)

    def _rows(self, entries: list[tuple[str, dict[str, str]]]) -> list[Row]:
        self._handed_out.extend(entry_id for entry_id, _ in entries)
        return [_row(entry_id, values) for entry_id, values in entries]

    def _covered(self, end: tuple[int, int]) -> list[str]:
        """The first entries of those handed out, as far as ``end``, so many as go into one command."""
        count, known = 0, self._handed_out  # by index: another thread may add to its end meanwhile
        while count < min(len(known), _PAGE) and ids.number(known[count]) <= end:
            count += 1
        return [known[at] for at in range(count)]


def _row(entry_id: str, values: dict[str, str]) -> Row:
    """All values in Redis are text. One that should be a number and is none goes on as text, so that `on_bad_record`
    decides what becomes of its row."""
    row: Row = {**values, "entry_id": entry_id, "at": ids.moment(entry_id)}
    took = row.get("took_ms")
    if took is not None and took.isdecimal() and took.isascii():
        row["took_ms"] = int(took)
    return row
