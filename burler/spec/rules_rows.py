"""Rules of areas O and R: order, and removed paths."""

from __future__ import annotations

from burler.spec.rule import Rule

ROW_RULES: tuple[Rule, ...] = (
    Rule(
        code="O401",
        name="order-not-kept",
        severity="error",
        title="Rows come against the order that their function declares.",
        what=(
            "A function with `@burler.verify.ensure_ordering` gives a record against the order that it declares, "
            "or one without the field. In a normal run that is an error of the stream."
        ),
        why=(
            "Who goes on from a bookmark in the middle relies on the order: what comes late lies behind the "
            "bookmark already."
        ),
        mend=(
            "Ask the source for the order (sort=created_at), or declare the one that it keeps, and write "
            "bookmarks at the end only."
        ),
        breaks=(
            '@burler.verify.ensure_ordering("created_at", "ASC")\n'
            "def tickets():\n"
            '    yield {"id": 1, "created_at": "2024-05-02"}\n'
            '    yield {"id": 2, "created_at": "2024-05-01"}\n'
        ),
        keeps=(
            '@burler.verify.ensure_ordering("created_at", "ASC")\n'
            "def tickets():\n"
            '    yield {"id": 2, "created_at": "2024-05-01"}\n'
            '    yield {"id": 1, "created_at": "2024-05-02"}\n'
        ),
    ),
    Rule(
        code="O402",
        name="bookmark-without-order",
        severity="warning",
        title="A bookmark moves between rows that are not sorted.",
        what="The bookmark of a STATE is that of the last row, though a row before it had a greater one.",
        why=(
            "The rows are not sorted by the replication key, and the bookmark follows the last instead of the "
            "greatest: rows come again, and where the order is another one, rows are lost."
        ),
        mend=(
            "Sort the request by the replication key, or take the greatest value and write the bookmark when the "
            "stream has ended."
        ),
        breaks=(
            '{"type": "SCHEMA", "stream": "orders", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "at": {"type": ["null", "string"], "format": "date-time"}}}, '
            '"key_properties": ["id"], "bookmark_properties": ["at"]}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
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
        code="R501",
        name="field-not-in-schema",
        severity="warning",
        title="Records hold a field that the SCHEMA does not have.",
        what=(
            "A record has a field that its SCHEMA does not name, at any depth, where `additionalProperties` is "
            "not said to be true."
        ),
        why=(
            "Some targets refuse the row; the others drop the field without a word, and it is missing in the warehouse."
        ),
        mend="Add it to the schema (the report's patch has it), or leave it out of the record.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada", "stars": 5}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}}}, "key_properties": ["id"]}\n'
            '{"type": "RECORD", "stream": "users", "record": {"id": 1, "name": "Ada"}}\n'
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="R502",
        name="source-field-dropped",
        severity="warning",
        title="The source sends a field that the schema drops.",
        what=(
            "The source of a burler tap sends a field that the stream's schema does not know. It was dropped and "
            "counted; the report has a schema that would keep it."
        ),
        why=(
            "What the source has added is not in the warehouse, and nobody knows. It can be read later only as "
            "long as the source still has it."
        ),
        mend="Merge the patch into the schema, or name the field and deselect it.",
        breaks=(
            '@tap.sync("users", schema={"properties": {"id": {"type": "integer"}}})\n'
            "def users():\n"
            '    yield {"id": 1, "stars": 5}\n'
        ),
        keeps=(
            '@tap.sync("users", schema={"properties": {"id": {"type": "integer"}, "stars": {"type": ["null", '
            '"integer"]}}})\n'
            "def users():\n"
            '    yield {"id": 1, "stars": 5}\n'
        ),
    ),
    Rule(
        code="R503",
        name="field-never-seen",
        severity="info",
        title="A field of the schema never comes.",
        what="A field of the SCHEMA came in none of twenty rows or more, not even as null.",
        why="The source calls it otherwise by now, or never had it: a column that stays empty.",
        mend="Look at what the source sends, rename the field or take it out.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}}}, "key_properties": ["id"]}\n'
            "# 20 times, $N = 1, 2, ...\n"
            '{"type": "RECORD", "stream": "users", "record": {"id": $N}}\n'
            "# end\n"
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}}}, "key_properties": ["id"]}\n'
            "# 20 times, $N = 1, 2, ...\n"
            '{"type": "RECORD", "stream": "users", "record": {"id": $N, "name": "Ada"}}\n'
            "# end\n"
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
    Rule(
        code="R504",
        name="kind-never-seen",
        severity="info",
        title="A field may be of a kind that never comes.",
        what=(
            "A field may be of several types, and in a hundred values or more one of them never came. null and "
            "integer beside number do not count."
        ),
        why="Many targets make text of a column with several types: numbers can't be added up any more.",
        mend="Declare the type that comes, if the source promises it.",
        breaks=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string", "object"]}}}, "key_properties": '
            '["id"]}\n'
            "# 100 times, $N = 1, 2, ...\n"
            '{"type": "RECORD", "stream": "users", "record": {"id": $N, "name": "Ada"}}\n'
            "# end\n"
            '{"type": "STATE", "value": {}}\n'
        ),
        keeps=(
            '{"type": "SCHEMA", "stream": "users", "schema": {"type": "object", "properties": {"id": '
            '{"type": "integer"}, "name": {"type": ["null", "string"]}}}, "key_properties": ["id"]}\n'
            "# 100 times, $N = 1, 2, ...\n"
            '{"type": "RECORD", "stream": "users", "record": {"id": $N, "name": "Ada"}}\n'
            "# end\n"
            '{"type": "STATE", "value": {}}\n'
        ),
    ),
)
