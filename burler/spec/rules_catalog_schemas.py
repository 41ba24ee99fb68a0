"""Rules of area C on schemas; they hold for SCHEMA messages as well."""

from __future__ import annotations

from burler.spec.catalog_example import example
from burler.spec.rule import Rule

_ID = {"type": "integer"}
_TEXT = {"type": ["null", "string"]}
_CITY = {"type": ["null", "object"], "properties": {"city": _TEXT}}
_NODE = {"type": ["null", "object"], "properties": {"child": {"$ref": "#/properties/node"}}}
_FLAT = {"type": ["null", "object"], "properties": {"child_id": {"type": ["null", "integer"]}}}

SCHEMA_RULES: tuple[Rule, ...] = (
    Rule(
        code="C107",
        name="schema-no-object",
        severity="error",
        title="A stream's schema describes no object with fields.",
        what="Reported is a schema that is no JSON object, whose `type` has no `object`, or that has neither "
        "`properties` nor an explicit `additionalProperties` at its top. Fields inside a union at the top do not "
        "count.",
        why="Targets make a column of each member of `properties`. Without it they end with an error, or make a table "
        "that holds nothing.",
        mend="List the fields under `properties` at the top. Where they can't be known, say so by "
        "`additionalProperties: true`.",
        breaks=example(schema={"type": "object"}, without=["metadata"]),
        keeps=example(),
    ),
    Rule(
        code="C108",
        name="unresolved-reference",
        severity="error",
        title="A $ref is left in a schema.",
        what="Reported is each `$ref`, `$dynamicRef` and `$recursiveRef` that a row's value would meet, whether it "
        "points to something, to nothing, or into another document. `definitions` that nothing refers to are no fault.",
        why="Singer asks taps to resolve references before they send a schema. Targets look for `type` in each field, "
        "find none, and end with an error or leave the column out.",
        mend="Put what the reference points to in its place: `singer.resolve_schema_references` does it, and burler "
        "does it by itself. Then leave `definitions` out.",
        breaks=example(
            schema={
                "type": "object",
                "properties": {"id": _ID, "address": {"$ref": "#/definitions/address"}},
                "definitions": {"address": _CITY},
            },
            field_metadata={"address": {"inclusion": "available"}},
        ),
        keeps=example(fields={"address": _CITY}),
    ),
    Rule(
        code="C109",
        name="recursive-reference",
        severity="error",
        title="A schema holds itself.",
        what="Reported in place of C108 where one who follows a reference comes round to where he was. Every "
        "reference on the way into the circle is reported.",
        why="Such a schema can't be resolved: it has no end, and so no columns. Resolvers run until the memory or the "
        "stack is used up.",
        mend="Cut the circle: in the inner place put an object without further fields, the id of the inner thing, or "
        "its JSON as text. Inner things that matter can be a stream of their own, with the id of the outer one.",
        breaks=example(fields={"node": _NODE}),
        keeps=example(fields={"node": _FLAT}),
    ),
    Rule(
        code="C123",
        name="type-unknown",
        severity="error",
        title="A type is none that JSON Schema has.",
        what="The types are array, boolean, integer, null, number, object and string, in small letters. Reported is "
        "every other word, what is no text, and an empty list.",
        why="Validators refuse each row of the stream or break off, and targets that look for a type they know take "
        "the column for text or leave it out.",
        mend='Write the type of JSON Schema that is meant; the finding names it. A date-time is `"type": "string", '
        '"format": "date-time"`.',
        breaks=example(fields={"visits": {"type": "int"}}),
        keeps=example(fields={"visits": {"type": "integer"}}),
    ),
    Rule(
        code="C124",
        name="type-hard-for-targets",
        severity="warning",
        title="A field's schema is valid, but targets can make no column of it.",
        what="Reported are fields without a type, of null alone, or of several types (`integer` with `number` is "
        "one); unions of several objects; arrays without `items` or with a schema for each position; "
        "`patternProperties`. A union of one type and null, and of one type in two formats, is taken for what it is. "
        "Fields that are `unsupported` never come and are not looked at.",
        why="A column has one type. Targets differ: one takes text, another the first of the types, a third leaves "
        "the column out in silence or ends. Parquet, BigQuery and Spark need to know what an array holds.",
        mend="Name the one type that the values have. If they do differ, write them as text: `json.dumps(value)` with "
        "`type: string`.",
        breaks=example(fields={"extra": {}}),
        keeps=example(fields={"extra": _TEXT}),
    ),
    Rule(
        code="C125",
        name="schema-invalid",
        severity="error",
        title="A keyword of a schema has a value that no draft of JSON Schema allows.",
        what="Looked at are the keywords that validators read: `properties`, `required`, `enum`, `pattern`, bounds, "
        "lengths, unions, `format`, `title` and so on. A `pattern` must compile in Python. Schemas nested deeper than "
        "100 are reported here as well.",
        why="Validators check the schema before the first row, or trip over the keyword at a row: the target ends, "
        "and nothing of the stream is loaded.",
        mend="Give the keyword the value that the finding asks for, or leave the keyword out. `required` belongs to "
        "the object, as a list of names.",
        breaks=example(fields={"email": {**_TEXT, "pattern": "(.+@.+"}}),
        keeps=example(fields={"email": {**_TEXT, "pattern": "(.+)@.+"}}),
    ),
    Rule(
        code="C131",
        name="required-not-in-schema",
        severity="warning",
        title="An object requires a field that it does not have.",
        what="Reported are names in `required` that `properties` does not list. An object that takes further fields "
        "by an explicit `additionalProperties`, by patterns or by a union is passed over.",
        why="The tap drops what its schema does not know, and so sends no row that has the field. Targets that "
        "validate refuse every row.",
        mend="Add the field to `properties`, or take it from `required`. Often it was renamed in one of the two.",
        breaks=example(schema={"type": "object", "properties": {"id": _ID}, "required": ["id", "name"]}),
        keeps=example(schema={"type": "object", "properties": {"id": _ID}, "required": ["id"]}),
    ),
    Rule(
        code="C132",
        name="format-unknown",
        severity="warning",
        title="A format is likely to be meant for another one.",
        what="Reported are formats of text that look like `date-time`, `date` or `singer.decimal` and are none: "
        "`datetime`, `timestamp`, `Date-Time`. All other formats are left alone.",
        why="Formats that nobody knows are passed over without a word. The column becomes text, and comparisons of "
        "time in the warehouse compare letters.",
        mend="Write the format that the finding names. Then see that the values are of that format: a date-time has a "
        "zone.",
        breaks=example(fields={"created": {**_TEXT, "format": "datetime"}}),
        keeps=example(fields={"created": {**_TEXT, "format": "date-time"}}),
    ),
    Rule(
        code="C133",
        name="enum-without-null",
        severity="warning",
        title="A field may be null by its type, and not by its enum.",
        what="Reported where `type` lists null and `enum` does not. A `type` of one word, and fields without a type, "
        "are passed over.",
        why="By JSON Schema a value must fit both, so that null fits nowhere. Targets that validate refuse the first "
        "row without a value.",
        mend="Add null to `enum`, or take it from `type` if there always is a value. Schemas made by code forget it "
        "where a field is made nullable after its enum.",
        breaks=example(fields={"status": {**_TEXT, "enum": ["open", "done"]}}),
        keeps=example(fields={"status": {**_TEXT, "enum": ["open", "done", None]}}),
    ),
)
