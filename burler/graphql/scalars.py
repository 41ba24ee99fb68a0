"""What GraphQL's scalars are in JSON Schema: a table that authors can add to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_NUMBER = {"type": "number"}
_TIME = {"type": "string", "format": "date-time"}
_ANY: dict[str, Any] = {}

_NAMES: tuple[tuple[Mapping[str, Any], str], ...] = (
    (_TEXT, "String ID"),
    (_WHOLE, "Int"),
    (_NUMBER, "Float"),
    ({"type": "boolean"}, "Boolean"),
    (_TIME, "DateTime DateTimeISO DateTimeTz ISO8601DateTime ISODateTime Timestamptz timestamptz"),
    ({"type": "string", "format": "date"}, "Date ISO8601Date LocalDate CalendarDate date"),
    # Integer and number fields take the text of a number too: servers send big ones as either.
    (_WHOLE, "BigInt BigInteger Long Int64 UInt64 UnsignedInt64 bigint PositiveInt NonNegativeInt Byte Short"),
    (_NUMBER, "Decimal BigDecimal Money numeric Double Number"),
    (_TEXT, "URI URL Url UUID Uuid GUID uuid EmailAddress Email HTML Markdown Base64 Base64String PhoneNumber"),
    (_TEXT, "Color HexColorCode Duration ISO8601Duration Locale TimeZone GitObjectID CurrencyCode CountryCode"),
    # A time may be with or without a zone, and a local one has none by its name.
    (_TEXT, "Time LocalTime LocalDateTime NaiveDateTime timestamp JSONString"),
    (_ANY, "JSON JSONObject Json json jsonb Any Object Map"),
)

SCALARS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: schema for schema, names in _NAMES for name in names.split()}
)
"""Name of a scalar -> JSON Schema of its values that are not null. Pass ``scalars={"Weight": {"type": "number"}}`` to
add to it, or to overrule it. A scalar that stands in no table takes any JSON value (``{}``), unless it says by
``@specifiedBy`` that it is RFC 3339's date-time or a UUID."""

_SPECIFIED = (("rfc3339", _TIME), ("date-time", _TIME), ("iso-8601", _TIME), ("rfc4122", _TEXT), ("rfc9562", _TEXT))


def schema_of_scalar(name: str, specified_by: str | None, own: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The JSON Schema of a scalar's values.

    Args:
        specified_by: the address that its ``@specifiedBy`` names.
        own: the author's table.
    """
    if name in own:
        return dict(own[name])
    if name in SCALARS:
        return dict(SCALARS[name])
    said = (specified_by or "").lower()
    return dict(next((schema for word, schema in _SPECIFIED if word in said), _ANY))
