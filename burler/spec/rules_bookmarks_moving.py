"""Rules of area B: how a bookmark moves."""

from __future__ import annotations

from burler.spec.rule import Rule

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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}, '
            '"time_extracted": "2024-06-01T00:00:00Z"}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-01T00:00:05Z"}, '
            '"time_extracted": "2024-06-01T00:00:30Z"}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:05Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "9000-01-01T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
    ),
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": null}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "01 May 2024"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
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
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-09T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
        ),
    ),
)
