"""Rules of areas O and R: order, and removed paths."""

from __future__ import annotations

from burler.spec.rule import Rule

ROW_RULES: tuple[Rule, ...] = (
    Rule(
        code="O401",
        name="order-not-kept",
        severity="error",
        title="Rows come against the order that their function declares.",
        what="",
        why="",
        mend="",
        breaks="",
        keeps="",
    ),
    Rule(
        code="O402",
        name="bookmark-without-order",
        severity="warning",
        title="A bookmark moves between rows that are not sorted.",
        what="",
        why="",
        mend="",
        breaks="",
        keeps="",
    ),
    Rule(
        code="R501",
        name="field-not-in-schema",
        severity="warning",
        title="Records hold a field that the SCHEMA does not have.",
        what="",
        why="",
        mend="",
        breaks="",
        keeps="",
    ),
    Rule(
        code="R502",
        name="source-field-dropped",
        severity="warning",
        title="The source sends a field that the schema drops.",
        what="",
        why="",
        mend="",
        breaks="",
        keeps="",
    ),
    Rule(
        code="R503",
        name="field-never-seen",
        severity="info",
        title="A field of the schema never comes.",
        what="",
        why="",
        mend="",
        breaks="",
        keeps="",
    ),
    Rule(
        code="R504",
        name="kind-never-seen",
        severity="info",
        title="A field may be of a kind that never comes.",
        what="",
        why="",
        mend="",
        breaks="",
        keeps="",
    ),
)
