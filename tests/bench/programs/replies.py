"""The source that is waited for: what it replies, and how it is asked. Only the standard library is used."""

from __future__ import annotations

import http.client
import json

import standard

REPLY_ROWS = 100
MOST_ACCOUNTS = 64


def accounts(count: int) -> tuple[int, int]:
    """How many accounts share so many rows, and how many replies each has."""
    all_replies = max(1, count // REPLY_ROWS)
    of_each = -(-all_replies // MOST_ACCOUNTS)
    return all_replies // of_each, of_each


def rows(number: int, of_each: int) -> list[dict[str, object]]:
    """The rows of a reply."""
    name = standard.account(number // of_each)
    return [dict(row, a=name) for row in standard.part(number, REPLY_ROWS)]


def body(number: int, of_each: int) -> bytes:
    """A reply: a JSON array of rows."""
    return json.dumps(rows(number, of_each), separators=(",", ":")).encode()


class Source:
    """One connection to it, kept open.

    Args:
        address: host and port, with a colon between them.
    """

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address)

    def get(self, number: int) -> bytes:
        """A reply, as bytes.

        Raises:
            OSError, http.client.HTTPException: there is none.
        """
        self._connection.request("GET", f"/{number}")
        reply = self._connection.getresponse()
        got = reply.read()
        if reply.status != 200:
            raise http.client.HTTPException(f"status {reply.status} for reply {number}")
        return got
