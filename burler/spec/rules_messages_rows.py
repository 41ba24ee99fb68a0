"""Rules of area M: records, their keys and values."""

from __future__ import annotations

from burler.spec.rule import Rule

RECORD_RULES: tuple[Rule, ...] = (
    Rule(
        code="M205",
        name="record-does-not-fit",
        severity="error",
        title="A record does not fit its SCHEMA.",
        what=(
            "Each record is held against the SCHEMA before it: types at every depth, required fields, enum, "
            "bounds, lengths, patterns, multipleOf, and formats (date, date-time, time, email, ipv4, ipv6, hostname, "
            "regex, uuid); unions and references by the library jsonschema. 1.0 in an integer field, a date-time "
            "without a zone and fields that the SCHEMA does not name have rules of their own."
        ),
        why=(
            "Targets that validate end there. Those that do not load what their database makes of the value: "
            "null, a cut text, another number."
        ),
        mend=(
            "Convert the value in the tap, or widen the schema to what the source sends: the report's schema "
            "patch has the kinds that came."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": "1", "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M207",
        name="key-missing",
        severity="error",
        title="A record's key is missing or null.",
        what="Each record must have all its key properties, none of them null.",
        why=(
            "Rows without a key can't be told from each other: a target ends, or keeps one of them and loses the rest."
        ),
        mend=(
            "Take a key that every row has. If the source has none, send an empty list of key properties and let "
            "rows be appended."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": ["null", "integer"]}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", '
            '"string"], "format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": null, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M208",
        name="duplicate-key",
        severity="error",
        title="A full table has two rows of one key.",
        what=(
            "Within one version of a full table, or a run of one without versions, no two records may have the "
            "same key. Incremental streams may send a row again."
        ),
        why=(
            "The target keeps the last one: either a row is read twice because pages overlap, or the key is no "
            "key and rows are lost."
        ),
        mend=(
            "Sort the request by a field that is unique, so that pages do not shift, or take more fields into the key."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 2, "name": "Ada"}}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 2, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M210",
        name="time-without-zone",
        severity="warning",
        title="time_extracted is no RFC 3339 time with a zone.",
        what="`time_extracted` is an RFC 3339 date-time with a zone, where there is one.",
        why=(
            "A target puts it into `_sdc_extracted_at`; without a zone it is taken for UTC or for the target's "
            "own zone, and the newest row of a key may be the wrong one."
        ),
        mend="Use an aware time in UTC: datetime.now(datetime.UTC), written as 2024-05-01T12:00:00Z.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}, "time_extracted": '
            '"2024-05-01T12:00:00"}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}, "time_extracted": '
            '"2024-05-01T12:00:00Z"}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M211",
        name="time-in-future",
        severity="warning",
        title="time_extracted lies in the future.",
        what=("`time_extracted` lies no more than `future-seconds` (300) behind the time at which the message came."),
        why=(
            "It says when a row was read. Rows of the future win against each later reading until their time has come."
        ),
        mend=("Take the time when the page came, in UTC. A local time with a Z behind it lies hours ahead or behind."),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}, "time_extracted": '
            '"9000-05-01T12:00:00Z"}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}, "time_extracted": '
            '"2024-05-01T12:00:00Z"}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M217",
        name="date-time-without-zone",
        severity="error",
        title="A date-time of a record has no zone.",
        what="Text in a date-time field has a date, a time and a zone.",
        why=(
            "Some targets refuse it; the others take it for UTC or for their own zone, so the same row means "
            "another time in each warehouse."
        ),
        mend="Add the zone that the source means, or declare the field as `date` or as plain text.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "born": "1815-12-10T00:00:00"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "born": "1815-12-10T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M218",
        name="integer-as-float",
        severity="error",
        title="A whole number of an integer field is written as 1.0.",
        what="In an integer field a whole number is written without a point.",
        why=(
            "JSON Schema takes 1.0 for an integer since draft 6 only; of ten targets eight refuse it, and one "
            "loses the row."
        ),
        mend=(
            "Convert with int() where the value is whole; numbers that went through pandas or a spreadsheet are floats."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1.0}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M219",
        name="hard-value",
        severity="warning",
        title="A value can't be stored by many targets.",
        what=(
            "Numbers beyond doubles, numbers of thousands of digits and halves of surrogate pairs are JSON that many "
            "programs can't read; integers beyond -2^63 to 2^63-1 in integer fields and NUL in text are values that "
            "many databases can't store; a date-time with a space for the T is read by some programs alone."
        ),
        why=(
            "Seven of ten targets end at half of a surrogate pair; PostgreSQL stores no NUL, and no integer "
            "beyond -2^63 to 2^63-1."
        ),
        mend="Send such values as text, and replace what is broken; write date-times with a T.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "\\ud800"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
)
