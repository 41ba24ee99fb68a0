"""Names of fields that Spark would take for something else."""

from __future__ import annotations

import pytest

from burler.errors import ExportError

pytestmark = pytest.mark.usefixtures("packages")

INTEGER = {"type": ["null", "integer"]}


def schema(name: str, *, is_inner: bool) -> dict:
    own = {"s": {"type": "object", "properties": {name: INTEGER}}} if is_inner else {name: INTEGER}
    return {"properties": {"id": INTEGER, **own}}


@pytest.mark.parametrize("is_inner", [True, False])
@pytest.mark.parametrize("name", ["${spark.app.name}", "a${env:HOME}b"])
def test_a_name_that_spark_puts_a_setting_into_is_refused(lake, run, name, is_inner):
    """Parquet files of Spark's had the setting's value as the field's name: the column was null, the value told."""
    row = {"s": {name: 5}} if is_inner else {name: 5}
    lake.commit("users", [{"id": 1, **row}], schema=schema(name, is_inner=is_inner))

    with pytest.raises(
        ExportError, match=r"stream 'users': its field .* has the form of a variable.*\nRename"
    ) as caught:
        run()

    assert name in str(caught.value)


@pytest.mark.parametrize("is_inner", [True, False])
def test_a_name_that_no_table_can_have_is_refused(lake, run, is_inner, with_spark):
    row = {"s": {"a\0b": 5}} if is_inner else {"a\0b": 5}
    lake.commit("users", [{"id": 1, **row}], schema=schema("a\0b", is_inner=is_inner))

    with pytest.raises(ExportError, match=r"stream 'users': the name of its field 'a\\x00b' holds the character NUL"):
        run()


NAMES = ["a\\b", "a b", "a.b", "x,y", "`", "a`b", "${x", "$x", "${}", "(a|b)?+.+", "*", "s.*"]


@pytest.mark.parametrize("is_inner", [True, False])
def test_other_names_are_names(lake, run, rows_of, spark, is_inner, with_spark):
    """Also where the user's session makes patterns of quoted names in SQL text."""
    own = {name: at for at, name in enumerate(NAMES)}
    fields = dict.fromkeys(NAMES, INTEGER)
    properties = {"s": {"type": "object", "properties": fields}} if is_inner else fields
    lake.commit(
        "users", [{"id": 1, **({"s": own} if is_inner else own)}], schema={"properties": {"id": INTEGER, **properties}}
    )
    spark.conf.set("spark.sql.parser.quotedRegexColumnNames", "true")
    try:
        run()
    finally:
        spark.conf.unset("spark.sql.parser.quotedRegexColumnNames")

    assert rows_of("users", *(["s"] if is_inner else NAMES)) == [(own,) if is_inner else tuple(own.values())]
