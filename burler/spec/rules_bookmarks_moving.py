"""Rules of area B: how a bookmark moves."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_orders import ORDERS

MOVING_RULES: tuple[Rule, ...] = (
    Rule(
        code="B302",
        name="state-ahead",
        severity="error",
        title="A STATE comes before the rows that it covers.",
        what=(
            "A STATE whose bookmark lies beyond all rows so far is kept in mind. If a row below that bookmark "
            "comes behind it, the STATE came too early."
        ),
        why=(
            "Everything that a STATE covers must be out before it: the target stores the STATE, the run breaks "
            "off, and the next one begins behind rows that never came."
        ),
        mend=(
            "Write the STATE behind the rows of the page, from their own values; not from the page that was "
            "asked for, the end of a window, or the clock."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
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
        code="B303",
        name="row-behind-state",
        severity="error",
        title="A row comes that the STATE before it has passed.",
        what=(
            "A row comes whose replication key is below the bookmark of a STATE before it, and not below the "
            "state that the run was given."
        ),
        why=(
            "A run that is resumed from that STATE begins behind this row: it is lost if the run breaks off in between."
        ),
        mend="Sort the request by the replication key, or write the bookmark only when the stream has ended.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
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
        code="B304",
        name="bookmark-goes-back",
        severity="warning",
        title="A bookmark goes back.",
        what=(
            "The bookmark of a stream in a STATE is smaller than in the one before it, or than in the state that "
            "the run was given."
        ),
        why=(
            "Rows that were out come again, each time. Where another stream's code writes it, rows of this "
            "stream are read by that one's place."
        ),
        mend=(
            "Write the greater of the old bookmark and the new one; do not begin a run with a STATE of the start date."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
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
        code="B305",
        name="bookmark-stands-still",
        severity="error",
        title="Rows come, and the bookmark does not move.",
        what=(
            "An incremental stream has rows, and its bookmark in the last STATE of a whole run is missing, or "
            "stands where it stood before."
        ),
        why=(
            "Each run reads everything again: nothing is lost, and every run takes as long as the first one, "
            "until it takes too long."
        ),
        mend=(
            "Set the bookmark from the rows under the name of their own stream, and write a STATE once the "
            "stream has ended."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {}}}\n'
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
        code="B306",
        name="bookmark-slow",
        severity="warning",
        title="The bookmark advances too slowly to ever catch up.",
        what=(
            "How far a date-time bookmark went, divided by how long the stream took (by `time_extracted`, else "
            "by the clock): less than `min-advance-ratio` (1) is reported for runs of at least "
            "`min-advance-seconds` (10), unless the bookmark has come near to now."
        ),
        why=("A bookmark that goes on by half a second for each second of the run never catches up with the source."),
        mend=(
            "Ask for more rows at once, for several windows at a time, or for less of each row; raise the limit "
            "to see slow streams early."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}, '
            '"time_extracted": "2024-06-01T00:00:00Z"}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-01T00:00:05Z"}, '
            '"time_extracted": "2024-06-01T00:00:30Z"}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:05Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}, '
            '"time_extracted": "2024-06-01T00:00:00Z"}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 9, "at": "2024-05-09T00:00:00Z"}, '
            '"time_extracted": "2024-06-01T00:00:30Z"}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-09T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B307",
        name="bookmark-in-future",
        severity="error",
        title="A bookmark lies in the future.",
        what=(
            "A date-time bookmark lies more than `future-seconds` (300) behind the time of the run; one without a zone "
            "14 hours more, since it may be local time."
        ),
        why="Rows that the source gets until then are below the bookmark and are never read.",
        mend="Take the bookmark from the rows. A row with a time in the future must not move it beyond now.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "9000-01-01T00:00:00Z"}}}}\n'
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
)
