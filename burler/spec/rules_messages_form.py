"""Rules of area M: what each message must be, and which must come before it."""

from __future__ import annotations

from burler.spec.rule import Rule

FORM_RULES: tuple[Rule, ...] = (
    Rule(
        code="M201",
        name="invalid-json",
        severity="error",
        title="A line of stdout is no JSON.",
        what=(
            "Each line of stdout is read as JSON in UTF-8. NaN and Infinity, which Python writes, are no JSON; "
            "neither is a log line, a blank warning of a library, or the half of a line."
        ),
        why=(
            "A target ends at the first such line, or leaves it out without a word, and the rows behind it never come."
        ),
        mend=(
            "Log to stderr, never to stdout: look for print() in the tap and its libraries. Write one message a "
            "line, and decide what becomes of NaN before a row goes out."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            "INFO fetching page 1\n"
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
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
        code="M202",
        name="malformed-message",
        severity="error",
        title="A line is JSON and no message.",
        what=(
            "A message is an object with a text `type`; RECORD, SCHEMA, BATCH and ACTIVATE_VERSION name a "
            "`stream`, a RECORD has an object `record`, a STATE a `value`. Members of another kind are reported "
            "as well."
        ),
        why=("Targets look these members up without asking: they end with a KeyError, or file the row under nothing."),
        mend=("Write messages with a library (burler, singer-python), or hold them against Singer's specification."),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": [1, "Ada"]}\n'
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
        code="M203",
        name="unknown-type",
        severity="warning",
        title="A message has a type that Singer does not know.",
        what="Known types are SCHEMA, RECORD, STATE, ACTIVATE_VERSION and BATCH.",
        why=("Some targets end at a type that they do not know, others pass it over, so what it was to say is lost."),
        mend="Say it in the log, or in a type that Singer has. A misspelt type is a lost message.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "HEARTBEAT", "at": "2024-05-01T00:00:00Z"}\n'
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
        code="M204",
        name="before-schema",
        severity="error",
        title="A message of a stream comes before the stream's SCHEMA.",
        what="A RECORD, BATCH or ACTIVATE_VERSION must stand behind a SCHEMA of its stream.",
        why=(
            "A target makes its table of the SCHEMA. Without one it ends, mostly with a KeyError that names the "
            "stream and nothing else."
        ),
        mend=(
            "Write the SCHEMA when the stream begins, before the first request, also of streams that then have no row."
        ),
        breaks=(
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 2, "name": "Ada"}}\n'
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
        code="M209",
        name="schema-repeated",
        severity="warning",
        title="The same SCHEMA comes again and again.",
        what="A SCHEMA that is equal to the last one of its stream says nothing new.",
        why=(
            "Targets flush what they hold at each SCHEMA, and compare it with the table: one for each page or "
            "parent makes a load ten times as slow."
        ),
        mend="Write it once when the stream begins, and again only when it has changed.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 2, "name": "Ada"}}\n'
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
        code="M214",
        name="mixed-forms",
        severity="warning",
        title="RECORDs and BATCHes of one stream come in one run.",
        what="A stream sends RECORDs or BATCHes in a run, not both.",
        why=(
            "Targets hold RECORDs back and load BATCHes at once, so what was sent first is loaded last, and an "
            "older row wins."
        ),
        mend="Decide for the stream and the run; where a page is too small for a file, write a small file.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "BATCH", "stream": "users", "encoding": {"format": "jsonl", "compression": "none"}, '
            '"manifest": []}\n'
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
        code="M215",
        name="secret-in-message",
        severity="error",
        title="A message holds a secret of the config.",
        what=(
            "The secrets of the config (values of keys that look like one) are searched in each message: plain, "
            "escaped, percent-encoded and in base64. Short ones, under six characters, are left out; those under "
            "sixteen count where they stand by themselves, and not inside of a longer word or number."
        ),
        why=(
            "A token in a row is a token in the warehouse, its backups and its dashboards, for all who may read them."
        ),
        mend=(
            "Leave request headers, signed URLs and echoes of the request out of what is emitted, and renew the secret."
        ),
        breaks=(
            '# config {"access_token": "s3cr3t-t0k3n-of-ada"}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "s3cr3t-t0k3n-of-ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '# config {"access_token": "s3cr3t-t0k3n-of-ada"}\n'
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="M216",
        name="schema-malformed",
        severity="error",
        title="A SCHEMA lacks what it must have.",
        what=(
            "A SCHEMA has an object `schema` and a list of names `key_properties`, which may be empty; "
            "`bookmark_properties`, if there, is a name or a list of names."
        ),
        why="`key_properties` that is null or missing breaks most targets: they go through it without a look.",
        mend=(
            "Send an empty list where there is no key, and the schema as an object, also for a stream without fields."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": null}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
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
        code="M225",
        name="type-in-lower-case",
        severity="warning",
        title="A message's type is not written in upper case.",
        what="The types of messages are written in upper case, as in Singer's own examples.",
        why=(
            "Singer's specification takes any case; most targets compare with upper case alone, and pass the "
            "message over."
        ),
        mend="Write RECORD, SCHEMA, STATE and the others in upper case, as libraries do.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}, "born": {"type": ["null", "string"], '
            '"format": "date-time"}}}, "key_properties": ["id"]}\n'
            '{"type": "Record", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
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
