"""Elements of which the WSDL says nothing, and the little that all readers of elements share."""

from __future__ import annotations

from typing import Any

from burler.soap.faults import SOAP_11, SOAP_12

XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
OF_SOAP = (
    XSI,
    f"{{{SOAP_11}}}",
    f"{{{SOAP_12}}}",
    "{http://schemas.xmlsoap.org/soap/encoding/}",
    "{http://www.w3.org/2003/05/soap-encoding}",
)
"""Attributes whose names begin so are the protocol's, and no data."""
_NIL = f"{XSI}nil"


def local_name(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def is_nil(element: Any) -> bool:
    """Whether an element says that it is null."""
    return element.get(_NIL) in ("true", "1")


def add(row: dict[str, Any], name: str, value: Any) -> None:
    """A value of a row; of a name that comes again all values, as a list."""
    old = row.get(name)
    if old is None:
        row[name] = value
    else:
        row[name] = [*old, value] if isinstance(old, list) else [old, value]


def open_value(element: Any) -> Any:
    """An element without a type: its text, or an object of its elements and attributes; a name that comes again holds
    a list."""
    if is_nil(element):
        return None
    out: dict[str, Any] = {
        local_name(name): value for name, value in element.attrib.items() if not name.startswith(XSI)
    }
    if not len(element):
        if not out:
            return element.text
        return {**out, "value": element.text} if element.text and element.text.strip() else out
    seen: dict[str, list[Any]] = {}
    for child in element:
        seen.setdefault(local_name(child.tag), []).append(open_value(child))
    for name, values in seen.items():
        out[name] = values[0] if len(values) == 1 else values
    return out
