"""Whether the columns of a source's Parquet or Arrow file are those that burler's own would have.

Not the same types: types whose every value a column of ours holds exactly, so that whoever reads the file gets
what the stream's schema promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from burler.errors import DataError
from burler.records.columns.nodes import record_type
from burler.records.columns.types import DIGITS, DecimalOf, FieldType, ListOf, MapOf, Scalar, StructOf

if TYPE_CHECKING:
    import pyarrow

_OPEN = (
    "{path} holds {found}, and the schema lets it hold anything: nobody knows whether that is plain text or JSON's text"
)


def misfit(types: pyarrow.Schema, schema: Mapping[str, Any], stream: str) -> str | None:
    """What of a file's types is not what the stream's schema asks for; None if all is.

    Args:
        types: with the names of the schema's properties, in any order.
    """
    try:
        record = record_type(schema, stream=stream)
    except DataError as error:
        return str(error)
    properties = _below(schema, "properties")
    return _first(
        _misfit(types.field(name).type, wanted, properties.get(name), f"column '{name}'")
        for name, wanted in record.fields
    )


def _below(node: Any, key: str) -> Mapping[str, Any]:
    """A part of a schema's node; nothing where there is none that can be looked into."""
    inner = node.get(key) if isinstance(node, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _is_text(node: Any) -> bool:
    """Whether a field can only hold text: then a column of text is that text."""
    named = node.get("type") if isinstance(node, Mapping) else None
    kinds = {named} if isinstance(named, str) else set(named or ())
    return kinds - {"null"} == {"string"}


def _misfit(found: Any, wanted: FieldType, node: Any, path: str) -> str | None:
    match wanted:
        case StructOf(fields):
            return _struct(found, dict(fields), node, path)
        case ListOf(item):
            return _items(found, item, node, path)
        case MapOf(value):
            return _map(found, value, node, path)
        case Scalar("string") if not _is_text(node):
            return _OPEN.format(path=path, found=found)
        case DecimalOf(scale):
            return None if _holds_decimal(found, scale) else _differs(path, found, f"decimal({DIGITS}, {scale})")
        case Scalar(name):
            return None if _holds(found, name) else _differs(path, found, _SHOWN[name])


_SHOWN = {
    "bigint": "integers of at most 64 bits",
    "double": "double",
    "boolean": "bool",
    "string": "text",
    "timestamp": "timestamps in UTC of at most microseconds",
    "date": "dates",
    "binary": "bytes",
    "null": "nothing but null",
}


def _differs(path: str, found: Any, wanted: str) -> str:
    return f"{path} is {found}, where the schema asks for {wanted}"


def _holds(found: Any, name: str) -> Any:
    import pyarrow.types as is_

    while is_.is_dictionary(found):
        found = found.value_type
    if is_.is_null(found):
        return True
    if name == "bigint":
        return is_.is_signed_integer(found) or (is_.is_unsigned_integer(found) and found.bit_width < 64)
    if name == "double":
        small = is_.is_integer(found) and found.bit_width < 64
        return small or is_.is_floating(found)
    if name == "timestamp":
        return is_.is_timestamp(found) and found.unit in ("s", "ms", "us") and found.tz in ("UTC", "Etc/UTC", "+00:00")
    checks = {
        "boolean": (is_.is_boolean,),
        "string": (is_.is_string, is_.is_large_string, is_.is_string_view),
        "date": (is_.is_date32,),
        "binary": (is_.is_binary, is_.is_large_binary, is_.is_binary_view, is_.is_fixed_size_binary),
    }
    return any(check(found) for check in checks.get(name, ()))


def _holds_decimal(found: Any, scale: int) -> Any:
    """Whether each value of a column is an exact decimal(38, scale)."""
    import pyarrow.types as is_

    if is_.is_null(found):
        return True
    if is_.is_integer(found):
        return DIGITS - scale >= 20  # 2^64 has 20 digits
    if not is_.is_decimal(found):
        return False
    return 0 <= found.scale <= scale and found.precision - found.scale <= DIGITS - scale


def _struct(found: Any, wanted: dict[str, FieldType], node: Any, path: str) -> str | None:
    import pyarrow.types as is_

    if not is_.is_struct(found):
        return _differs(path, found, "a struct")
    names = {field.name: field.type for field in found}
    if names.keys() != wanted.keys():
        return f"{path} has the fields {', '.join(sorted(names))}, and the schema {', '.join(sorted(wanted))}"
    inner = _below(node, "properties")
    return _first(
        _misfit(names[name], kind, inner.get(name), f"{path}, field '{name}'") for name, kind in wanted.items()
    )


def _items(found: Any, item: FieldType, node: Any, path: str) -> str | None:
    import pyarrow.types as is_

    if is_.is_list(found) or is_.is_large_list(found) or is_.is_fixed_size_list(found):
        return _misfit(found.value_type, item, _below(node, "items"), f"{path}, its items")
    return _differs(path, found, "a list")


def _map(found: Any, value: FieldType, node: Any, path: str) -> str | None:
    import pyarrow.types as is_

    if not is_.is_map(found) or not _holds(found.key_type, "string"):
        return _differs(path, found, "a map with keys of text")
    return _misfit(found.item_type, value, _below(node, "additionalProperties"), f"{path}, its values")


def _first(found: Iterable[str | None]) -> str | None:
    return next((one for one in found if one), None)
