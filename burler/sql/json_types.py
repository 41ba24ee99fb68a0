"""The JSON Schema of a column's values, by its type."""

from __future__ import annotations

from typing import Any

_SMALL, _NORMAL, _BIG = 15, 31, 63  # bits of an integer beside its sign
_MOST_SCALE = 300  # a step of more digits is no float any more
_BASE64 = {"type": "string", "contentEncoding": "base64"}
_DATE_TIME = {"type": "string", "format": "date-time"}


def json_type(kind: Any, dialect: str, dimensions: int = 1) -> dict[str, Any] | None:
    """The JSON Schema of a type, without null.

    Args:
        kind: a type of SQLAlchemy.
        dialect: the database: ``"postgresql"``, ``"sqlite"``, ...
        dimensions: of an array, as it was declared.

    Returns:
        None for a type that neither SQLAlchemy nor this function knows.
    """
    import sqlalchemy as sa

    if isinstance(kind, sa.types.TypeDecorator):
        kind = kind.impl_instance if hasattr(kind, "impl_instance") else kind.impl
    if isinstance(kind, sa.types.NullType):
        return {} if dialect == "sqlite" else {"type": "string"} if dialect == "postgresql" else None
    if isinstance(kind, sa.ARRAY):
        return _array(kind, dialect, dimensions)
    if isinstance(kind, sa.Boolean):
        return {"type": "boolean"}
    if _is_float(kind):
        return {"type": "number"}
    if isinstance(kind, sa.Numeric):  # Oracle's NUMBER is an Integer, too, whatever its digits
        return _numeric(kind, dialect)
    if isinstance(kind, sa.Integer):
        return _integer(kind, dialect)
    if isinstance(kind, sa.DateTime):
        return dict(_DATE_TIME)
    if isinstance(kind, sa.Date):
        return {"type": "string", "format": "date"}
    if isinstance(kind, sa.Time):
        return {"type": "string"} if getattr(kind, "timezone", False) else {"type": "string", "format": "time"}
    if isinstance(kind, sa.JSON):
        return {}
    if isinstance(kind, sa.Uuid):
        return {"type": "string", "format": "uuid"}
    return _by_name(kind, dialect)


def _by_name(kind: Any, dialect: str) -> dict[str, Any] | None:
    """Types that only one database has, by their names; those of PostgreSQL are text, as it writes them."""
    import sqlalchemy as sa

    if isinstance(kind, sa.types._Binary):
        return dict(_BASE64)
    if isinstance(kind, sa.String | sa.Interval):
        return {"type": "string"}
    name = type(kind).__name__.upper()
    if name == "OID" and dialect == "postgresql":
        return {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
    if dialect == "postgresql":
        return {"type": "string"}
    if name == "YEAR":
        return {"type": "integer"}
    if name in ("MONEY", "SMALLMONEY"):  # SQL Server's
        return {"type": "number", "multipleOf": 0.0001}
    return {"type": "string"} if name in ("SET", "INTERVAL", "UNIQUEIDENTIFIER", "SQL_VARIANT", "XML") else None


def _is_float(kind: Any) -> bool:
    import sqlalchemy as sa

    return isinstance(kind, sa.Float) or type(kind).__name__.upper() in ("REAL", "DOUBLE", "DOUBLE_PRECISION", "FLOAT")


def _integer(kind: Any, dialect: str) -> dict[str, Any]:
    import sqlalchemy as sa

    small = isinstance(kind, sa.SmallInteger)
    bits = _BIG if dialect == "sqlite" or isinstance(kind, sa.BigInteger) else _SMALL if small else _NORMAL
    if dialect not in ("postgresql", "sqlite"):  # unsigned and medium ones, and numbers that have no bounds at all
        return {"type": "integer"}
    return {"type": "integer", "minimum": -(2**bits), "maximum": 2**bits - 1}


def _numeric(kind: Any, dialect: str) -> dict[str, Any]:
    """Fixed digits behind the point are a number with that step; as many as a value likes are exact text. SQLite holds
    nobody to what a column says."""
    if dialect == "sqlite":
        return {"type": "number"}
    precision, scale = kind.precision, kind.scale
    if precision is None or (scale or 0) > _MOST_SCALE:
        return {"type": "string", "format": "singer.decimal"}
    if not scale or scale < 0:
        most = 10 ** (precision - min(scale or 0, 0)) - 1
        return {"type": "integer", "minimum": -most, "maximum": most}
    return {"type": "number", "multipleOf": float(f"1e-{scale}")}


def _array(kind: Any, dialect: str, dimensions: int) -> dict[str, Any]:
    """Items may be null. Times in arrays come as the database writes them, since those without a zone have none."""
    import sqlalchemy as sa

    item = kind.item_type
    while hasattr(item, "data_type"):  # a domain: what it is made of
        item = item.data_type
    inner = json_type(item, dialect)
    if (isinstance(item, sa.DateTime) and not item.timezone) or isinstance(item, sa.types._Binary):
        inner = {"type": "string"}
    elif inner is not None and inner.get("format") == "singer.decimal":
        inner = {"type": "number"}
    made: dict[str, Any] = nullable(inner or {})
    for level in range(max(dimensions, 1)):
        made = {"type": "array" if level == max(dimensions, 1) - 1 else ["null", "array"], "items": made}
    return made


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The same with null; a schema that names no type takes null anyway."""
    return {**schema, "type": ["null", schema["type"]]} if "type" in schema else schema
