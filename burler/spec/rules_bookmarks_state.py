"""Rules of area B: the state as a whole."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_orders import ORDERS

STATE_RULES: tuple[Rule, ...] = (
    Rule(
        code="B301",
        name="state-no-object",
        severity="error",
        title="The value of a STATE is no JSON object.",
        what="The value of a STATE is a JSON object.",
        why=(
            "An orchestrator stores it and gives it back as the file of --state. Text, a list or null ends the "
            "next run, or makes it begin anew."
        ),
        mend="Keep all that the tap must know in one object: bookmarks of streams under `bookmarks`.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": "2024-05-01T00:00:00Z"}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B308",
        name="state-grows",
        severity="warning",
        title="The state grows with each row.",
        what=(
            "Something inside of the STATE grows with the rows: a list that gets an item for every other row or "
            "more, or the whole by `state-bytes-per-row` (4) beyond `state-bytes` (16384). Bookmarks of "
            "partitions do not count."
        ),
        why=(
            "Each STATE is written, stored and read again. A list of all ids that were ever seen ends in "
            "megabytes a message, and in an orchestrator that takes it no more."
        ),
        mend="Keep what is needed to go on: the greatest value, and the keys that stand at it.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z", "seen": '
            "[1]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z", "seen": [1, '
            "2]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z", "seen": [1, '
            "2, 3]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z", "seen": [1, '
            "2, 3, 4]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 5, "at": "2024-05-05T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-05T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 6, "at": "2024-05-06T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-06T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 7, "at": "2024-05-07T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-07T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6, 7]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 8, "at": "2024-05-08T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-08T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6, 7, 8]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 9, "at": "2024-05-09T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-09T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6, 7, 8, 9]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 10, "at": "2024-05-10T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-10T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6, 7, 8, 9, 10]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 11, "at": "2024-05-11T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-11T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 12, "at": "2024-05-12T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-12T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}}}\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 13, "at": "2024-05-13T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-13T00:00:00Z", "seen": [1, '
            "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}}}}\n"
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 5, "at": "2024-05-05T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-05T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 6, "at": "2024-05-06T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-06T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 7, "at": "2024-05-07T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-07T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 8, "at": "2024-05-08T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-08T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 9, "at": "2024-05-09T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-09T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 10, "at": "2024-05-10T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-10T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 11, "at": "2024-05-11T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-11T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 12, "at": "2024-05-12T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-12T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 13, "at": "2024-05-13T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-13T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B309",
        name="currently-syncing-left",
        severity="warning",
        title="The last STATE of a whole run names a stream that is being synced.",
        what="The last STATE of a run that came to its end has a `currently_syncing` that is not null.",
        why=(
            "The next run begins with that stream, as after a break: the order of streams is another one each "
            "time, and who watches believes that the run broke off."
        ),
        mend="Take the key out, or set it to null, in the STATE behind the last stream.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}, '
            '"currently_syncing": "orders"}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B310",
        name="no-state",
        severity="error",
        title="A run of incremental streams writes no STATE.",
        what=(
            "A whole run has rows of a stream with a replication key, and no STATE. Where the given state covers all "
            "rows, none is needed."
        ),
        why="Without a STATE the next run knows nothing: everything is read again.",
        mend="Write a STATE at least when each stream has ended.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
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
        code="B315",
        name="progress-markers-left",
        severity="error",
        title="The last STATE holds progress markers that were never made final.",
        what=(
            "The last STATE of a whole run holds `progress_markers`: the Singer SDK keeps there how far an "
            "unsorted stream has come, until it has ended."
        ),
        why="They are no bookmark: the next run begins where the one before began.",
        mend=(
            "Let the stream come to its end, and finalise its state. In the SDK an overridden method mostly "
            "leaves it out."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"progress_markers": {"replication_key": '
            '"at", "replication_key_value": "2024-05-01T00:00:00Z"}, "replication_key_value": '
            '"2024-05-01T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B316",
        name="bookmark-lost",
        severity="error",
        title="A STATE lacks a bookmark that an earlier one had.",
        what=(
            "A stream that an earlier STATE, or the state that the run was given, had a bookmark of is missing "
            "in a later STATE. What is needed only while a full table is under way may go, and so may streams that the "
            "catalog does not have."
        ),
        why="A target keeps the last STATE and nothing else: the stream begins anew with the next run.",
        mend=(
            "Change one state object, and write the whole of it each time; do not make a new one for each stream. "
            "`state_scope: touched` of burler leaves out what has not changed, for readers that merge STATEs: ignore "
            "the rule there."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"users": {"id": 7}}}}\n'
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
        code="B317",
        name="state-heavy",
        severity="warning",
        title="STATEs outweigh the rows.",
        what="A hundred STATEs or more take more bytes than the rows.",
        why=(
            "Targets write and store each STATE; many flush what they hold first, so that each row becomes a "
            "load of its own."
        ),
        mend="Write a STATE for each thousand rows, or for each page.",
        breaks=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": "integer"}}}, "key_properties": ["id"], '
            '"bookmark_properties": ["at"]}\n'
            "# 100 times, $N = 1, 2, ...\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": $N, "at": $N}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": $N}, "note": "a STATE behind each '
            'row is a STATE too often, whatever it says"}}}\n'
            "# end\n"
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": "integer"}}}, "key_properties": ["id"], '
            '"bookmark_properties": ["at"]}\n'
            "# 100 times, $N = 1, 2, ...\n"
            '{"type": "RECORD", "stream": "orders", "record": {"id": $N, "at": $N}}\n'
            "# end\n"
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": 100}}}}\n'
        ),
    ),
    Rule(
        code="B318",
        name="rows-after-state",
        severity="warning",
        title="Rows come after the last STATE.",
        what=(
            "Rows of an incremental stream came behind the last STATE of a whole run, and its bookmark does not cover "
            "them."
        ),
        why="No STATE covers them: they come again with each run.",
        mend="Write a STATE behind the last row of each stream.",
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
        ),
    ),
)
