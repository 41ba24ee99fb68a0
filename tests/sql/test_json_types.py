"""Types of databases that no test here connects to: which JSON Schema they get."""

import pytest
from sqlalchemy.dialects import mssql, mysql, oracle

from support.internals import json_types

CENT = {"type": "number", "multipleOf": 0.01}


@pytest.mark.parametrize(
    "dialect, kind, schema",
    [
        ("mysql", mysql.TINYINT(display_width=1), {"type": "integer"}),
        ("mysql", mysql.BIGINT(unsigned=True), {"type": "integer"}),
        ("mysql", mysql.YEAR(), {"type": "integer"}),
        ("mysql", mysql.LONGTEXT(), {"type": "string"}),
        ("mysql", mysql.DECIMAL(10, 2), CENT),
        ("mysql", mysql.DOUBLE(), {"type": "number"}),
        ("mysql", mysql.ENUM("a", "b"), {"type": "string"}),
        ("mysql", mysql.JSON(), {}),
        ("mssql", mssql.BIT(), {"type": "boolean"}),
        ("mssql", mssql.MONEY(), {"type": "number", "multipleOf": 0.0001}),
        ("mssql", mssql.SMALLMONEY(), {"type": "number", "multipleOf": 0.0001}),
        ("mssql", mssql.DATETIMEOFFSET(), {"type": "string", "format": "date-time"}),
        ("mssql", mssql.UNIQUEIDENTIFIER(), {"type": "string", "format": "uuid"}),
        ("oracle", oracle.NUMBER(10, 2), CENT),
        ("oracle", oracle.NUMBER(), {"type": "string", "format": "singer.decimal"}),
        ("oracle", oracle.NUMBER(4, 0), {"type": "integer", "minimum": -9999, "maximum": 9999}),
        ("oracle", oracle.NUMBER(38, 500), {"type": "string", "format": "singer.decimal"}),
        ("oracle", oracle.FLOAT(), {"type": "number"}),
        ("oracle", oracle.VARCHAR2(10), {"type": "string"}),
    ],
)
def test_the_schema_of_a_type(dialect, kind, schema):
    assert json_types.json_type(kind, dialect) == schema
