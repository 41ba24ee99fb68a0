"""Rules of area C on a catalog's streams and the names in it."""

from __future__ import annotations

from burler.spec.catalog_example import example
from burler.spec.rule import Rule

_TEXT = {"type": ["null", "string"]}
_LONG = "amount_in_the_currency_of_the_account_at_the_time_of_the_booking"

STREAM_RULES: tuple[Rule, ...] = (
    Rule(
        code="C101",
        name="catalog-unreadable",
        severity="error",
        title="The catalog, or a stream in it, is not of the form that Singer's tools read.",
        what="A catalog is an object with a list `streams`. Each stream is an object with `tap_stream_id` and "
        "`stream`, which are text, and a `schema`. What lacks one of these, or has it of another kind, is reported.",
        why="Readers differ in what they fall back on: singer-python finds a stream by `tap_stream_id` alone, others "
        "go by `stream`. A stream with one of the two is selected by one tool and not seen by the next, without a "
        "word.",
        mend="Print `tap_stream_id`, `stream` and `schema` for each stream. Where the tap has no ids, give both the "
        "same text.",
        breaks=example(without=["tap_stream_id"]),
        keeps=example(),
    ),
    Rule(
        code="C102",
        name="duplicate-stream",
        severity="error",
        title="Two streams have the same tap_stream_id.",
        what="Reported for the second and each further stream of a `tap_stream_id`. The first one is left alone.",
        why="Catalogs are read into tables by id. One of the two entries is lost, and with it its selection, its "
        "schema and its bookmark, since state is kept by id, too.",
        mend="Give each stream an id of its own. For tables put what they lie in before their names: `sales-orders`, "
        "`archive-orders`.",
        breaks=example(others=["people", "people"]),
        keeps=example(others=["people", "persons"]),
    ),
    Rule(
        code="C103",
        name="duplicate-stream-name",
        severity="error",
        title="Two streams send their rows under the same name.",
        what="Looked at is what a stream's messages are called: `stream_alias` if there is one, else `stream`. "
        "Streams whose metadata name different databases or schemas are passed over: taps put those before the name.",
        why="A target knows a stream by that name alone. Rows of both end in one table; the second SCHEMA changes its "
        "columns, and rows with equal keys overwrite each other.",
        mend="Give each stream its own `stream`, or a `stream_alias` to one of them. For tables of several databases "
        "put the database's or the schema's name before it.",
        breaks=example(others=["users"]),
        keeps=example(others=["people"]),
    ),
    Rule(
        code="C104",
        name="stream-name-unsafe",
        severity="warning",
        title="A stream's name can't be part of a path or a table's name everywhere.",
        what='Reported are names that are empty, hold `/ \\ : * ? " < > |` or control characters, begin or end with a '
        "dot or a space, or have more than 200 bytes. The name that counts is the one on the stream's messages.",
        why="Targets make file names, folders and tables of it. A slash makes a folder that is not there, a colon "
        "ends the run on Windows, and a name that is too long is refused by the file system.",
        mend="Use letters, digits, `_`, `-` and dots inside. Keep the source's own name in `tap_stream_id`, or in "
        "metadata of the tap's own.",
        breaks=example(stream={"stream": "crm/users"}),
        keeps=example(stream={"stream": "crm_users"}),
    ),
    Rule(
        code="C105",
        name="stream-case-twins",
        severity="warning",
        title="Two streams' names differ in the case of letters alone.",
        what="Looked at are the names under which rows go out, as in C103. Reported is the later of the two.",
        why="Snowflake and most PostgreSQL targets fold the case of tables, and so do the file systems of macOS and "
        "Windows. There the two streams are one table or one file.",
        mend="Rename one of them, by `stream` or `stream_alias`. If they are one thing in the source, send both under "
        "one stream with a field that tells them apart.",
        breaks=example(others=["Users"]),
        keeps=example(others=["Members"]),
    ),
    Rule(
        code="C106",
        name="field-case-twins",
        severity="warning",
        title="Two fields of one object differ in the case of letters alone.",
        what="Looked at in every object of the schema, nested ones as well. Branches of a union are objects of their "
        "own.",
        why="In Spark, BigQuery, Snowflake and DuckDB the case of a column's name does not count. The target refuses "
        "the table, or one of the two fields gets the values of the other.",
        mend="Rename one of the two in the tap, or leave it out. If the source sends now one and now the other, take "
        "the values of both into one field.",
        breaks=example(fields={"email": _TEXT, "Email": _TEXT}),
        keeps=example(fields={"email": _TEXT, "email_2": _TEXT}),
    ),
    Rule(
        code="C126",
        name="name-too-long-for-columns",
        severity="warning",
        title="A field's name is too long for a column of PostgreSQL.",
        what="Reported are fields of the top with names of more than 63 bytes in UTF-8, and fields that are equal in "
        "their first 63 bytes. Names inside of objects are not looked at.",
        why="PostgreSQL cuts a name there. A target does not find its column again in the next run; of two fields "
        "that are cut to one, the table can hold but one.",
        mend="Shorten the names in the tap. Put what tells two apart at the beginning.",
        breaks=example(fields={_LONG: {"type": "number"}}),
        keeps=example(fields={"amount_in_account_currency": {"type": "number"}}),
    ),
    Rule(
        code="C128",
        name="catalog-empty",
        severity="info",
        title="The catalog has no streams.",
        what="Reported if the list `streams` is empty. A list that is missing is C101's.",
        why="A tap of a database without tables may say so. More often discovery saw nothing because a permission is "
        "missing, and ended with 0 all the same.",
        mend="Let discovery fail if the account may see nothing, and name the permission that it needs. If there may "
        "be nothing, let it log that it looked and found nothing.",
        breaks='{"streams": []}',
        keeps=example(),
    ),
)
