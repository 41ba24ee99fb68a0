"""Answers that are not those of the WSDL: to take them for answers without rows would lose the rows in silence."""

from __future__ import annotations

from typing import Any

from burler.soap.calling import Answer
from burler.soap.elements import local_name
from burler.soap.fields import array_item, fields_of, is_complex
from burler.soap.lookup import Way


def stranger(operation: Any, answer: Answer, way: Way) -> str:
    """What an answer has in place of what the WSDL says, on the way to its rows; "" where it is as it should be."""
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
