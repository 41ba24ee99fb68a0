"""Rules of area B: what a bookmark holds, beside the rows that it is of."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_orders import ORDERS

VALUE_RULES: tuple[Rule, ...] = (
    Rule(
        code="B320",
        name="replication-key-null",
        severity="warning",
        title="A row's replication key is null.",
        what=(
            "A record has null in its replication key, or lacks it. A replication key that the SCHEMA does not have is "
            "reported by C114."
        ),
        why=(
            "No bookmark covers such a row, and no request for what has changed since finds it again: its "
            "changes never come."
        ),
        mend=(
            "Take a key that each row has (the time of creation where nothing has changed yet), or read the "
            "stream whole."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": null}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B321",
        name="replication-key-mixed",
        severity="error",
        title="The replication key changes its kind.",
        what=("The replication key is text in one record and a number in another, or a date-time and then other text."),
        why=(
            'Values of two kinds have no order. The bookmark stands still, or compares as text: "9" is greater '
            'than "10".'
        ),
        mend="Convert the value in the tap before it is compared and emitted.",
        breaks=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["integer", "string"]}}}, "key_properties": ["id"], '
            '"bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": 5}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "six"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": 5}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B322",
        name="bookmark-of-other-kind",
        severity="warning",
        title="A bookmark can't be compared with the rows.",
        what=(
            "The bookmark of a STATE can't be compared with the values of the rows: text that is no date-time "
            "where rows have date-times, and the like."
        ),
        why=("Nobody can say what it covers. A tap that compares it as text stands still at the turn of a month."),
        mend="Write the bookmark in the form that the rows have.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "01 May 2024"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B323",
        name="bookmark-lags",
        severity="warning",
        title="The last bookmark stays behind the last row.",
        what=(
            "The last bookmark of a whole run lies below the greatest row. It may on purpose: a window to look back. "
            "The time of that row cut to milliseconds, seconds, minutes or the day is not reported."
        ),
        why="The rows between come again with each run, also when nothing has changed.",
        mend=(
            "Set the bookmark from the last page as well. If you look back on purpose, do so when you ask, and "
            "keep the bookmark at the last row."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B324",
        name="bookmark-beyond-rows",
        severity="warning",
        title="The last bookmark lies beyond the last row.",
        what=(
            "The last bookmark lies beyond the greatest row of the run: the time at which the run began or "
            "ended, or the end of a window."
        ),
        why=(
            "A row that the source writes late, with a time between the last row and the bookmark, is never "
            "read. Clocks of two machines differ, and transactions end late."
        ),
        mend="Take the bookmark from the rows, or the time of the run less what the source may be late.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-09T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
        ),
    ),
)
