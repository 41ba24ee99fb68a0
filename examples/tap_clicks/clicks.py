"""The tap's client: one consumer of a consumer group on the stream ``clicks``."""

from __future__ import annotations

import logging
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
    (pending). What a STATE knows: the last click that is out. The STATE decides: what is behind its bookmark comes
    again, acknowledged or not.

    It keeps nothing in mind itself: after a lost connection there is a new one of these, perhaps while a function still
    uses the old one.

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
        self._redis: Any = redis.Redis.from_url(
            url,
            protocol=2,
            decode_responses=True,
            encoding_errors="backslashreplace",  # a click that is not UTF-8 must not stop the others
            socket_connect_timeout=_GRACE_SECONDS,
            socket_timeout=block_seconds + _GRACE_SECONDS,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            self._redis.ping()
        except redis.exceptions.AuthenticationError:
            raise
        except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError):
            logger.warning("the Redis server does not answer yet")

    def what_is_there(self, *, after: str) -> Iterator[list[Row]]:
        """Pages of all entries behind the bookmark, to the end that the stream has now; more may come meanwhile, and
        are left to ``read``.

        First what was handed out before: what a process that died had on its list of pending entries, and what a target
        has lost after it was acknowledged. Then what never was.

        Args:
            after: the id of the bookmark.
        """
        after, given, end = self._begin(after)
        while ids.number(after) < ids.number(given):
            entries = self._redis.xrange(self._key, min=f"({after}", max=given, count=_PAGE)
            if not entries:
                break
            after = entries[-1][0]
            yield _rows(entries)
        while ids.number(given) < ids.number(end) and (page := self.read()):
            given = page[-1]["entry_id"]
            yield page

    def read(self, *, wait: bool = False) -> list[Row]:
        """The next entries, of those that were never handed out. Where there are none: an empty list, with ``wait``
        after ``block_seconds``."""
        found = self._redis.xreadgroup(
            self._group, self._consumer, {self._key: ">"}, count=_PAGE, block=self._block_ms if wait else None
        )
        return _rows(found[0][1]) if found else []

    def acknowledge(self, *, up_to: str) -> None:
        """Take entries off the list of pending ones, as far as a STATE covers them."""
        more = True
        while more:
            pending = self._redis.xpending_range(self._key, self._group, min="-", max=up_to, count=_PAGE)
            if pending:
                self._redis.xack(self._key, self._group, *(entry["message_id"] for entry in pending))
            more = len(pending) == _PAGE

    def fields(self, key: str) -> Iterator[tuple[str, str]]:
        """All fields of a hash, with their values. One may come twice; none that is there all the time is left out."""
        yield from self._redis.hscan_iter(key, count=_PAGE)

    def close(self) -> None:
        """Give back the connections."""
        self._redis.close()

    # ---- inside ------------------------------------------------------------------------------------------

    def _begin(self, bookmark: str) -> tuple[str, str, str]:
        """Three ids: where to begin, the last entry that the group was given, and the stream's last one. A group that
        is not there is made."""
        begin = end = "0-0"
        if self._redis.exists(self._key):
            end = self._redis.xinfo_stream(self._key)["last-generated-id"]
            if ids.number(bookmark) <= ids.number(end):
                begin = bookmark
            else:
                logger.warning(
                    "the Redis stream '%s' ends at %s, before the bookmark %s: it was made anew, or Redis has lost "
                    "its end. All of it comes, again and again, until an id is greater",
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
        return begin, groups[self._group]["last-delivered-id"], end


def _rows(entries: list[tuple[str, dict[str, str]]]) -> list[Row]:
    return [_row(entry_id, values) for entry_id, values in entries]


def _row(entry_id: str, values: dict[str, str]) -> Row:
    """All values in Redis are text. One that should be a number and is none goes on as text, so that `on_bad_record`
    decides what becomes of its row."""
    row: Row = {**values, "entry_id": entry_id, "at": ids.moment(entry_id)}
    took = row.get("took_ms")
    if took is not None and took.isdecimal() and took.isascii():
        row["took_ms"] = int(took)
    return row
