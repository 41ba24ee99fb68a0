"""Rules of area C on key properties and replication."""

from __future__ import annotations

from burler.spec.catalog_example import example
from burler.spec.rule import Rule

_ID = {"type": "integer"}
_TIME = {"type": "string", "format": "date-time"}
_UPDATED = {"updated_at": _TIME}
_STAYS = {"updated_at": {"inclusion": "automatic"}}
_BY_TIME = {"replication_method": "INCREMENTAL", "replication_key": "updated_at"}

KEY_RULES: tuple[Rule, ...] = (
    Rule(
        code="C110",
        name="key-not-in-schema",
        severity="error",
        title="A key property is no field of the stream's schema.",
        what="Looked at are `key_properties`, or in its place what metadata says: `table-key-properties`, for views "
        "`view-key-properties`. Keys are fields of the top. A `key_properties` that is no list of names is reported "
        "as well.",
        why="A target makes its primary key of these columns. It ends at the first row, or takes the missing value of "
        "every row for the key, so that all rows but one are lost.",
        mend="Write the field's name as it stands in `properties`; look for a difference in case or a renamed field. "
        "A key inside a nested object must be copied to the top by the tap.",
        breaks=example(stream={"key_properties": ["user_id"]}),
        keeps=example(stream={"key_properties": ["id"]}),
    ),
    Rule(
        code="C111",
        name="key-nullable",
        severity="warning",
        title="A key property may be null.",
        what="Reported where the type of a key, or a branch of its union, is null. Fields without any type are C124's.",
        why="A primary key can't be null: databases refuse the row, and targets that merge by `=` never find it "
        "again, so that each run adds it once more.",
        mend="Take null from the type of the field. If the source does send rows without it, it is no key.",
        breaks=example(fields={"id": {"type": ["null", "integer"]}}),
        keeps=example(fields={"id": _ID}),
    ),
    Rule(
        code="C112",
        name="key-not-automatic",
        severity="warning",
        title="A key property may be deselected.",
        what="Reported where the inclusion of a key is another than `automatic`. Keys without an inclusion are C121's.",
        why="Selection tools offer the field to users as any other. Without it rows come without their key, which "
        "targets refuse.",
        mend="Give the key fields `inclusion: automatic` in discovery. What is automatic always comes, whatever a "
        "user selects.",
        breaks=example(field_metadata={"id": {"inclusion": "available"}}),
        keeps=example(field_metadata={"id": {"inclusion": "automatic"}}),
    ),
    Rule(
        code="C113",
        name="no-key",
        severity="warning",
        title="A stream has no key properties.",
        what="Reported where neither `key_properties` nor metadata names a key. The key that a user names for a view "
        "counts.",
        why="Nothing tells a target which rows are the same: what a resumed run sends again is there twice. Some "
        "targets refuse such streams unless they are told not to (`primary_key_required`).",
        mend="Name the fields that tell rows apart; for a view its user does so by `view-key-properties`. If the "
        "source has none, as with events, let the tap make one of the row's place or content, or ignore this rule for "
        "the stream.",
        breaks=example(stream={"key_properties": []}, field_metadata={"id": {"inclusion": "available"}}),
        keeps=example(),
    ),
    Rule(
        code="C114",
        name="replication-key-not-in-schema",
        severity="error",
        title="A replication key is no field of the stream's schema.",
        what="Looked at are `replication_key`, `replication-key` and `valid-replication-keys`; in a SCHEMA message "
        "`bookmark_properties`. Only fields of the top count, since a bookmark is compared with them.",
        why="The field is pruned from rows with all else that the schema does not know. The bookmark does not move, "
        "and each run reads everything again, or the run ends at its first row.",
        mend="Add the field to `properties`, or correct its name. A value that is in no row is no replication key: "
        "keep it in state, under a name of the tap's own.",
        breaks=example(stream={**_BY_TIME, "replication_key": "updated"}, fields=_UPDATED, field_metadata=_STAYS),
        keeps=example(stream=_BY_TIME, fields=_UPDATED, field_metadata=_STAYS),
    ),
    Rule(
        code="C115",
        name="replication-key-not-automatic",
        severity="warning",
        title="The replication key may be deselected.",
        what="Looked at is the key that the stream has, or the only valid one of a stream that is forced to "
        "INCREMENTAL. A field that the user has selected by word is passed over.",
        why="A user who leaves the field out gets rows without it. The tap then can't tell how far it came, and reads "
        "everything in each run.",
        mend="Give the field `inclusion: automatic` in discovery. singer-python's `get_standard_metadata` does so for "
        "key properties alone.",
        breaks=example(stream=_BY_TIME, fields=_UPDATED),
        keeps=example(stream=_BY_TIME, fields=_UPDATED, field_metadata=_STAYS),
    ),
    Rule(
        code="C116",
        name="replication-method-unknown",
        severity="error",
        title="A replication method is none of Singer's.",
        what="Looked at are `replication_method` and, in metadata, `replication-method` and "
        "`forced-replication-method`. They are FULL_TABLE, INCREMENTAL or LOG_BASED, in capitals.",
        why="Taps compare with these words and fall through to a full table, or end. Orchestrators do not show "
        "whether the stream keeps a bookmark.",
        mend="Write one of the three words. A tap's own variant of a method goes into a metadata key of its own "
        "(`tap-crm.mode`).",
        breaks=example(stream={"replication_method": "full"}),
        keeps=example(stream={"replication_method": "FULL_TABLE"}),
    ),
    Rule(
        code="C117",
        name="incremental-without-key",
        severity="error",
        title="A stream is INCREMENTAL and names no replication key.",
        what="Reported where there is no `replication_key`, no `replication-key` and no `valid-replication-keys`. Of "
        "a stream that the tap itself forces to INCREMENTAL see C134.",
        why="Nobody can choose or check what the bookmark is made of. Taps that read the catalog again find no key, "
        "and end or read the whole table.",
        mend="Name the field in `valid-replication-keys` of the stream's metadata and in `replication_key`. If there "
        "is none, the method is FULL_TABLE, however the tap saves its own position.",
        breaks=example(stream={"replication_method": "INCREMENTAL"}, fields=_UPDATED, field_metadata=_STAYS),
        keeps=example(stream=_BY_TIME, fields=_UPDATED, field_metadata=_STAYS),
    ),
    Rule(
        code="C122",
        name="metadata-disagrees",
        severity="error",
        title="A stream's metadata says another thing than its entry.",
        what="Compared are `key_properties` with `table-key-properties` (not for views), the method with "
        "`forced-replication-method`, and the replication key with `valid-replication-keys`. What is said in one "
        "place alone is no disagreement.",
        why="Some tools go by the entry, some by metadata. The stream has one key in one place and another one "
        "elsewhere, and targets load rows twice or over each other.",
        mend="Make both of one declaration. A user's replication key must be one of `valid-replication-keys`.",
        breaks=example(root={"table-key-properties": ["id", "updated_at"]}, fields=_UPDATED, field_metadata=_STAYS),
        keeps=example(root={"table-key-properties": ["id"]}, fields=_UPDATED, field_metadata=_STAYS),
    ),
    Rule(
        code="C129",
        name="replication-key-without-order",
        severity="error",
        title="A replication key is of a type whose values have no order.",
        what="Reported where a replication key is an object, an array or a boolean, and nothing else. A union of such "
        "a type with text or a number is let pass.",
        why="A bookmark is the greatest value so far. Of objects there is none: the comparison fails in the middle of "
        "a run. Of booleans it is true after the first rows, and stays so.",
        mend="Use a time, a number or text that grows with each change. If all that the source has is a flag, read "
        "the whole table (FULL_TABLE).",
        breaks=example(stream=_BY_TIME, fields={"updated_at": {"type": "boolean"}}, field_metadata=_STAYS),
        keeps=example(stream=_BY_TIME, fields=_UPDATED, field_metadata=_STAYS),
    ),
    Rule(
        code="C130",
        name="key-no-single-value",
        severity="warning",
        title="A key property is an object or an array.",
        what="Reported where a key's type, or a branch of its union, is `object` or `array`. Keys that may be null as "
        "well are C111's besides.",
        why="Few databases take such columns for a primary key, and targets that compare keys as text take two "
        "objects that differ in the order of their members for two keys.",
        mend="Copy what tells rows apart to a field of the top that is text or a number, and make that the key. A "
        "digest of the whole object will do if nothing else does.",
        breaks=example(fields={"id": {"type": "object", "properties": {"n": _ID}}}),
        keeps=example(fields={"id": _ID}),
    ),
    Rule(
        code="C134",
        name="incremental-by-its-own-position",
        severity="info",
        title="A stream is forced to INCREMENTAL and names no replication key.",
        what="Reported where `forced-replication-method` is INCREMENTAL, and no replication key is named anywhere. "
        "Where the method is the user's choice it is C117.",
        why="The tap keeps a position of its own, or that of a parent stream. That is allowed; but orchestrators "
        "can't show what the bookmark is made of, and nobody can check by the rows whether it moves as it should.",
        mend="If it is a field of the rows, name it in `valid-replication-keys` and `replication_key`. Otherwise say "
        "in the tap's documentation what the position is. A substream goes on with its parent's, and is right so.",
        breaks=example(root={"forced-replication-method": "INCREMENTAL"}),
        keeps=example(root={"forced-replication-method": "FULL_TABLE"}),
    ),
)
