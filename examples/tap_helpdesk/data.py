"""What the helpdesk knows: accounts, their tickets, the tickets' comments, events of each month, agents.

Everything comes from a seed, so that two servers with the same seed and size hold the same rows.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]

PAGE_ROWS = 100
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04", "2024-05", "2024-06")
_WORDS = ("printer", "login", "invoice", "slow", "broken", "again", "update", "please", "urgent", "thanks", "ünïcode")
_FIRST, _LAST = ("Ann", "Bo", "Cem", "Dee", "Eli", "Fay"), ("Ito", "Novak", "Okafor", "Silva", "Weiß")


@dataclass(frozen=True)
class Size:
    """How much there is. `tickets` is for each account: half to one and a half times that, `even`: exactly that."""

    accounts: int = 12
    tickets: int = 40
    comments: int = 4  # of a ticket, at most
    events: int = 300  # of a month
    agents: int = 30
    even: bool = False


class Data:
    """All rows, in the order in which they are listed. Safe to use from several threads."""

    def __init__(self, size: Size | None = None, seed: int = 1) -> None:
        self.size = size or Size()
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._last_id = 0
        self.accounts = [self._account(number) for number in range(1, self.size.accounts + 1)]
        self.tickets: dict[str, list[Row]] = {}
        self.comments: dict[int, list[Row]] = {}
        for account in self.accounts:
            self._fill(account["id"])
        self.events = {month: self._events(month) for month in MONTHS}
        self.agents = [{"id": n, "name": self._name(), "active": self._chance(0.8)} for n in range(self.size.agents)]

    def agents_etag(self) -> str:
        """What changes when the agents change."""
        return f'"{hashlib.sha256(json.dumps(self.agents).encode()).hexdigest()[:16]}"'

    def page(self, rows: Sequence[Row], fields: Sequence[str], since: str, after: str) -> tuple[list[Row], str]:
        """Return a page of `rows`, which are sorted by `fields`, and where the next one begins ("" if there is none).

        Args:
            since: least value of the first field, inclusive; "" for all.
            after: where this page begins, as the last one said.
        """
        with self._lock:
            begin = 0
            if after:
                begin = bisect.bisect_right(rows, json.loads(after), key=lambda row: [row[field] for field in fields])
            elif since:
                begin = bisect.bisect_left(rows, since, key=lambda row: row[fields[0]])
            page = list(rows[begin : begin + PAGE_ROWS])
            more = begin + PAGE_ROWS < len(rows)
        return page, json.dumps([page[-1][field] for field in fields]) if more else ""

    def change(self, count: int) -> list[int]:
        """Change `count` tickets, each of them later than all changes before, and hire an agent; the tickets' ids."""
        with self._lock:
            changed = []
            latest = max(rows[-1]["updated_at"] for rows in self.tickets.values() if rows)
            for step in range(1, count + 1):
                rows = self.tickets[self._random.choice([name for name, rows in self.tickets.items() if rows])]
                row = rows.pop(self._random.randrange(len(rows)))
                at = _text(datetime.fromisoformat(latest) + timedelta(seconds=step))
                comment = self._comment(row["id"], at)
                self.comments[row["id"]].append(comment)
                rows.append({**row, "updated_at": at, "status": "open", "comment_count": row["comment_count"] + 1})
                changed.append(row["id"])
            self.agents.append({"id": len(self.agents), "name": self._name(), "active": True})
            return changed

    def _account(self, number: int) -> Row:
        return {"id": f"acc-{number:03}", "name": f"{self._words(2).title()} Ltd", "plan": self._pick("free", "pro")}

    def _fill(self, account: str) -> None:
        mean = self.size.tickets
        count = mean if self.size.even else self._random.randint(mean // 2, mean + mean // 2)
        # Whole minutes of some days: tickets that share a time are common.
        times = sorted(_text(BEGIN + timedelta(minutes=self._random.randrange(5000))) for _ in range(count))
        rows = [self._ticket(account, at) for at in times]
        self.tickets[account] = sorted(rows, key=lambda row: (row["updated_at"], row["id"]))

    def _ticket(self, account: str, at: str) -> Row:
        number = self._next()
        comments = [self._comment(number, at) for _ in range(self._random.randint(0, self.size.comments))]
        self.comments[number] = comments
        return {
            "id": number,
            "account": account,
            "subject": self._words(4),
            "status": self._pick("open", "waiting", "closed"),
            "agent": self._random.randrange(self.size.agents) if self.size.agents and self._chance(0.9) else None,
            "comment_count": len(comments),
            "updated_at": at,
        }

    def _comment(self, ticket: int, at: str) -> Row:
        return {"id": self._next(), "ticket": ticket, "author": self._name(), "text": self._words(9), "created_at": at}

    def _events(self, month: str) -> list[Row]:
        begin = datetime.fromisoformat(f"{month}-01T00:00:00Z")
        times = sorted(
            _text(begin + timedelta(minutes=self._random.randrange(28 * 1440))) for _ in range(self.size.events)
        )
        kinds = ("login", "view", "export")
        return [{"id": self._next(), "kind": self._pick(*kinds), "at": at} for at in times]

    def _next(self) -> int:
        self._last_id += 1
        return self._last_id

    def _pick(self, *values: str) -> str:
        return self._random.choice(values)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _words(self, count: int) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(count))

    def _name(self) -> str:
        return f"{self._pick(*_FIRST)} {self._pick(*_LAST)}"


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
