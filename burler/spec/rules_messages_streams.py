"""Rules of area M: versions, batches, selection."""

from __future__ import annotations

from burler.spec.rule import Rule

STREAM_RULES: tuple[Rule, ...] = (
    Rule(
        code="M212",
        name="version-order",
        severity="error",
        title="Versions and ACTIVATE_VERSION contradict each other.",
        what=(
            "Rows of a full table carry one version; ACTIVATE_VERSION names it once its rows are out, before "
            "them in the first run alone. Versions do not go back, and no row goes without one beside rows that "
            "have one. Rows of the version that the given state speaks of belong to the table as it stands; those of "
            "a BATCH need no ACTIVATE_VERSION, since many targets do not know their version."
        ),
        why=(
            "A target deletes all rows of other versions at ACTIVATE_VERSION. Named too early, never, or "
            "wrongly, it empties the table, keeps what is gone at the source, or deletes what has just come."
        ),
        mend=(
            "Take a version when the table begins (milliseconds since 1970), put it on each row, and send "
            "ACTIVATE_VERSION after the last one, never after a partial run."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1}, "version": 5}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 2}, "version": 5}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1}, "version": 5}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 2}, "version": 5}\n'
            '{"type": "ACTIVATE_VERSION", "stream": "users", "version": 5}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M213",
        name="batch-unreadable",
        severity="error",
        title="The files of a BATCH can't be read.",
        what=(
            "The files of each BATCH are read as its message says: place, format, compression, number of rows. "
            "Their rows are then held against the rules like those of RECORDs."
        ),
        why=(
            "The message is all that a target gets. A file that is missing, half written or packed otherwise "
            "ends the load, or passes as empty."
        ),
        mend=(
            "Close and flush a file before its message goes out, and name it by a URL that the target's machine "
            "can open."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "BATCH", "stream": "users", "encoding": {"format": "jsonl", "compression": "none"}, '
            '"manifest": ["file:///no/such/folder/users-1.jsonl"]}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "BATCH", "stream": "users", "encoding": {"format": "jsonl", "compression": "none"}, '
            '"manifest": []}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M223",
        name="stream-not-selected",
        severity="error",
        title="Rows of a stream come that nobody selected.",
        what="With the catalog of the run at hand: messages come of streams alone that it selects.",
        why="Who deselects a stream has a reason: its rows are costly, or must not leave the source.",
        mend="Look at `selected` in the metadata of the empty breadcrumb before a stream is read.",
        breaks=(
            '# catalog {"streams": [{"tap_stream_id": "users", "stream": "users", "schema": {"type": '
            '"object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}, '
            '"key_properties": ["id"], "metadata": [{"breadcrumb": [], "metadata": {"selected": false, '
            '"table-key-properties": ["id"]}}, {"breadcrumb": ["properties", "id"], "metadata": '
            '{"inclusion": "automatic"}}, {"breadcrumb": ["properties", "name"], "metadata": {"inclusion": '
            '"available", "selected": true}}]}]}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '# catalog {"streams": [{"tap_stream_id": "users", "stream": "users", "schema": {"type": '
            '"object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}, '
            '"key_properties": ["id"], "metadata": [{"breadcrumb": [], "metadata": {"selected": true, '
            '"table-key-properties": ["id"]}}, {"breadcrumb": ["properties", "id"], "metadata": '
            '{"inclusion": "automatic"}}, {"breadcrumb": ["properties", "name"], "metadata": {"inclusion": '
            '"available", "selected": true}}]}]}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M224",
        name="field-not-selected",
        severity="error",
        title="A field comes that nobody selected.",
        what="With the catalog of the run at hand: a record has no field that it deselects.",
        why=(
            "Personal data are deselected for good reasons. They land in the warehouse although somebody has said no."
        ),
        mend="Leave deselected fields out of the record and of the SCHEMA.",
        breaks=(
            '# catalog {"streams": [{"tap_stream_id": "users", "stream": "users", "schema": {"type": '
            '"object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}, '
            '"key_properties": ["id"], "metadata": [{"breadcrumb": [], "metadata": {"selected": true, '
            '"table-key-properties": ["id"]}}, {"breadcrumb": ["properties", "id"], "metadata": '
            '{"inclusion": "automatic"}}, {"breadcrumb": ["properties", "name"], "metadata": {"inclusion": '
            '"available", "selected": false}}]}]}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '# catalog {"streams": [{"tap_stream_id": "users", "stream": "users", "schema": {"type": '
            '"object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}, '
            '"key_properties": ["id"], "metadata": [{"breadcrumb": [], "metadata": {"selected": true, '
            '"table-key-properties": ["id"]}}, {"breadcrumb": ["properties", "id"], "metadata": '
            '{"inclusion": "automatic"}}, {"breadcrumb": ["properties", "name"], "metadata": {"inclusion": '
            '"available", "selected": true}}]}]}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M226",
        name="stream-without-rows",
        severity="info",
        title="A selected stream has no row in a run from the beginning.",
        what=(
            "In a whole run that was given no state, each stream that the catalog selects, or that sends its SCHEMA, "
            "should send a row."
        ),
        why=(
            "The source may have none. As often a filter is too narrow, a right is missing, or an error was taken for "
            "an empty answer, and nobody sees it, since the run ends well. Of a stream without rows most rules say "
            "nothing."
        ),
        mend="Look at the source by hand. Verify with an account and a start date that have rows in each stream.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}}}, "key_properties": ["id"]}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M227",
        name="key-of-many-rows",
        severity="warning",
        title="Most rows of a stream come under a key that another row has.",
        what=(
            "In a run of a stream that is not read whole, more than half of the rows have the key (and the same value "
            "of the replication key, where there is one) of a row before them. Looked at from ten rows on; streams "
            "that are LOG_BASED are left out."
        ),
        why=(
            "A target keeps one row of each key: the others are lost. Or the same rows are read again and again, which "
            "costs."
        ),
        mend=(
            "Take more fields into key_properties until they tell rows apart: in a substream often the parent's. If "
            "the rows are the same, sort the request, so that pages do not overlap."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "notes", "schema": {"type": "object", "properties": {"contact": '
            '{"type": "integer"}, "id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            + "".join(
                f'{{"type": "RECORD", "stream": "notes", "record": {{"contact": {contact}, "id": 1, "at": '
                '"2024-05-01T00:00:00Z"}}\n'
                for contact in range(1, 11)
            )
            + '{"type": "STATE", "value": {"bookmarks": {"notes": {"at": "2024-05-01T00:00:00Z"}}}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "notes", "schema": {"type": "object", "properties": {"contact": '
            '{"type": "integer"}, "id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}, '
            '"key_properties": ["contact", "id"], "bookmark_properties": ["at"]}\n'
            + "".join(
                f'{{"type": "RECORD", "stream": "notes", "record": {{"contact": {contact}, "id": 1, "at": '
                '"2024-05-01T00:00:00Z"}}\n'
                for contact in range(1, 11)
            )
            + '{"type": "STATE", "value": {"bookmarks": {"notes": {"at": "2024-05-01T00:00:00Z"}}}}\n'
        ),
    ),
)
