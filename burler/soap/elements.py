"""Elements of an answer: the way to the rows, those of which the WSDL says nothing, and what all readers share."""

from __future__ import annotations

from typing import Any

from burler.soap.calling import Answer
from burler.soap.faults import SOAP_11, SOAP_12
from burler.soap.fields import array_item, fields_of, is_complex
from burler.soap.lookup import Way

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


# ---- the way into an answer ------------------------------------------------------------------------------------------


def elements_at(answer: Answer, way: Way) -> list[Any]:
    """The elements at the end of a way into an answer."""
    found = [] if answer.element is None else [answer.element]
    for step in way.steps:
        found = [child for node in found for child in node if step is None or child.tag.rpartition("}")[2] == step]
    return found


def fields_beside(answer: Answer, way: Way) -> dict[str, str]:
    """The texts that stand beside the elements on a way into an answer, by their names."""
    found: dict[str, str] = {}
    node = answer.element
    for step in way.steps:
        if node is None:
            break
        found |= {local_name(child.tag): child.text for child in node if not len(child) and child.text}
        node = next((child for child in node if step is None or local_name(child.tag) == step), None)
    return found


def stranger(operation: Any, answer: Answer, way: Way) -> str:
    """What an answer has in place of what the WSDL says, on the way to its rows; "" where it is as it should be. To
    take another answer for one without rows would lose the rows in silence."""
    body = operation.output.body
    if answer.element is None:
        return "its Body is empty"
    expected = getattr(body, "name", None)
    got = local_name(answer.element.tag)
    # Of calls in the style of rpc the name says nothing; of several parts the element is the Body itself.
    if operation.style != "rpc" and answer.element is not answer.body and expected and got != expected:
        return f"<{got:.60}> in place of <{expected}>"
    kind, found = body.type, [answer.element]
    for step in way.steps:
        inside = [child for node in found for child in node]
        found = [child for child in inside if step is None or local_name(child.tag) == step]
        known = {field.local for field in fields_of(kind)} if is_complex(kind) else set()
        if not found and step is not None and inside and "" not in known:
            names = [name for child in inside if (name := local_name(child.tag)) not in known]
            return f"<{names[0]:.60}> in place of <{step}>" if names else ""
        kind = array_item(kind) if step is None else _type_of(kind, step)
    return ""


def _type_of(kind: Any, name: str) -> Any:
    fields = fields_of(kind) if is_complex(kind) else ()
    return next((one.type for one in fields if one.local == name), None)
