"""Rules of area C on metadata."""

from __future__ import annotations

from burler.spec.catalog_example import example
from burler.spec.rule import Rule

_TEXT = {"type": ["null", "string"]}
_EMAIL = {"email": _TEXT}

METADATA_RULES: tuple[Rule, ...] = (
    Rule(
        code="C118",
        name="metadata-unknown-key",
        severity="warning",
        title="A metadata key is none that tools know.",
        what="Known are the keys of Singer's documentation, those of databases (`schema-name`, `sql-datatype`, ...), "
        "and a tap's own, which begin with its name and a dot (`tap-crm.segment`). A key that stands in many places "
        "is reported once, at the first.",
        why="Nobody reads it. If a known key was meant, what it should say is not said: `selected_by_default` selects "
        "nothing.",
        mend="Write the key as the finding suggests, with hyphens. Put the tap's name and a dot before a key of its "
        "own.",
        breaks=example(root={"selected_by_default": True}),
        keeps=example(root={"selected-by-default": True}),
    ),
    Rule(
        code="C119",
        name="metadata-unpublishable",
        severity="error",
        title="Metadata does not say what it is about.",
        what="Reported are breadcrumbs that are no list of names, that lead to no place of the schema, or that stand "
        "there twice, and entries without `breadcrumb` or `metadata`. Where the schema has a `$ref` left, no place is "
        "missed.",
        why="What such an entry says is lost: an inclusion, or the user's choice. Of two entries for one breadcrumb "
        "most readers keep the later one, with none of the keys of the first.",
        mend='A breadcrumb is [] for the stream, ["properties", "city"] for a field, ["properties", "tags", "items", '
        '"properties", "name"] inside of arrays. Put all keys of one place into one entry.',
        breaks=example(metadata=[{"breadcrumb": ["properties", "mail"], "metadata": {"inclusion": "available"}}]),
        keeps=example(
            fields=_EMAIL,
            field_metadata={"email": None},
            metadata=[{"breadcrumb": ["properties", "email"], "metadata": {"inclusion": "available"}}],
        ),
    ),
    Rule(
        code="C120",
        name="metadata-wrong-value",
        severity="error",
        title="A metadata key has a value of a wrong kind, or stands in a wrong place.",
        what="Reported are an `inclusion` that is not `automatic`, `available` or `unsupported`; truths that are "
        "text; names that are no list; and keys of streams at fields, or the other way round. null is no value, and "
        "no fault.",
        why='Readers do not look twice: in Python the text "false" counts as true and selects the stream; an '
        "inclusion that nobody knows makes strict readers end.",
        mend="Write JSON's true and false without quotes, names as a list, and the inclusion as one of the three "
        "words. Check the key's level: a key of the stream stands under the breadcrumb [].",
        breaks=example(root={"selected": "false"}),
        keeps=example(root={"selected": False}),
    ),
    Rule(
        code="C121",
        name="inclusion-missing",
        severity="warning",
        title="A field has no inclusion.",
        what="Looked at are the fields of the top. An `inclusion` in the field's schema, as it was once written, "
        "counts.",
        why="Singer's documentation asks for it. Tools that show the fields leave out those without one; some taps "
        "and readers take them, others do not.",
        mend="Write an entry for each field: `automatic` for keys and the replication key, `unsupported` for what "
        "can't come, `available` for all others. singer-python's `get_standard_metadata` makes them all.",
        breaks=example(fields=_EMAIL, field_metadata={"email": None}),
        keeps=example(fields=_EMAIL),
    ),
    Rule(
        code="C127",
        name="unsupported-selected",
        severity="warning",
        title="A field or stream is unsupported, and selected.",
        what='Reported where `inclusion` is `unsupported` and `selected` is true. The text "true" counts as well.',
        why="It never comes. Whoever selected it waits for a column that will not be there, or the tap fails at a "
        "value that it can't read.",
        mend="Take `selected` out. In discovery write none for fields that are unsupported.",
        breaks=example(fields=_EMAIL, field_metadata={"email": {"inclusion": "unsupported", "selected": True}}),
        keeps=example(fields=_EMAIL, field_metadata={"email": {"inclusion": "unsupported"}}),
    ),
)
