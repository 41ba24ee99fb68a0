"""Types of databases that no test here connects to: which JSON Schema they get."""

import pytest
from foreign import foreign
from sqlalchemy.dialects import mssql, mysql, oracle

import burler

CENT = {"type": "number", "multipleOf": 0.01}
EXACT = {"type": "string", "format": "singer.decimal"}
TYPES = {
    "mysql": [
        (mysql.TINYINT(display_width=1), {"type": "integer"}),
        (mysql.BIGINT(unsigned=True), {"type": "integer"}),
        (mysql.YEAR(), {"type": "integer"}),
        (mysql.LONGTEXT(), {"type": "string"}),
        (mysql.DECIMAL(10, 2), CENT),
        (mysql.DOUBLE(), {"type": "number"}),
        (mysql.ENUM("a", "b"), {"type": "string"}),
        (mysql.SET("a", "b"), {"type": "string"}),
        (mysql.JSON(), {}),
        (mysql.LONGBLOB(), {"type": "string", "contentEncoding": "base64"}),
        (mysql.TIME(), {"type": "string", "format": "time"}),
    ],
    "mssql": [
        (mssql.BIT(), {"type": "boolean"}),
        (mssql.MONEY(), {"type": "number", "multipleOf": 0.0001}),
        (mssql.SMALLMONEY(), {"type": "number", "multipleOf": 0.0001}),
        (mssql.DATETIMEOFFSET(), {"type": "string", "format": "date-time"}),
        (mssql.UNIQUEIDENTIFIER(), {"type": "string", "format": "uuid"}),
        (mssql.SQL_VARIANT(), {"type": "string"}),
    ],
    "oracle": [
        (oracle.NUMBER(10, 2), CENT),
        (oracle.NUMBER(), EXACT),
        (oracle.NUMBER(4, 0), {"type": "integer", "minimum": -9999, "maximum": 9999}),
        (oracle.NUMBER(38, 500), EXACT),
        (oracle.FLOAT(), {"type": "number"}),
        (oracle.VARCHAR2(10), {"type": "string"}),
    ],
}


@pytest.mark.parametrize("kind", TYPES)
def test_the_schema_of_each_type(kind, tmp_path):
    columns = {f"c{at}": one for at, (one, _schema) in enumerate(TYPES[kind])}
    url = foreign(kind, tmp_path / "x.db", {f"{kind}_types": {"id": None, **columns}})
    with burler.sql.Database(url) as database:
        (entry,) = database.discover().entries.values()
    assert entry.key_properties == ("id",)
    found = entry.schema["properties"]
    assert [(one, found[f"c{at}"]) for at, (one, _schema) in enumerate(TYPES[kind])] == TYPES[kind]


def test_a_type_that_has_no_form_in_json_is_named(tmp_path):
    url = foreign("oracle", tmp_path / "x.db", {"places": {"id": None, "rowplace": oracle.ROWID()}})
    with burler.sql.Database(url) as database:
        (entry,) = database.discover().entries.values()
    assert entry.metadata[("properties", "rowplace")]["inclusion"] == "unsupported"
