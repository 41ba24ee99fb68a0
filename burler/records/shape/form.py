"""A JSON Schema in the form that shaping works on: what stands around unions is put into them.

``allOf`` is merged into what it stands beside; the keywords beside ``anyOf`` and ``oneOf`` go into every
branch (JSON Schema asks for both to hold); a union with null alone becomes a nullable type. Fields that
are known and not selected are marked, so that they are dropped without being called unknown and do
not come back through ``additionalProperties``. The schema given is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from burler.records.shape.values import ANYTHING, DROPPED, types_of
from burler.regex import compile_pattern
from burler.schema.overlay import ALSO, CONSTRAINTS, flat, overlay

_CHOOSING = {"not", ALSO, *CONSTRAINTS}  # by these a branch may refuse what the next one takes
_NOTES = ("title", "description", "$comment", "examples", "default")


def shaping_form(schema: Mapping[str, Any], deselected: Iterable[tuple[str, ...]] = ()) -> dict[str, Any]:
    """The form for a stream's (pruned) schema.

    Args:
        deselected: breadcrumbs of fields that are known and not wanted.
    """
    form: dict[str, Any] = _form(schema)
    for crumb in deselected:
        form = _without(form, crumb)
    return form


def with_required(form: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """A form whose rows must have these fields: a row without its key can't be told from another."""
    needed = [key for key in keys if key in (form.get("properties") or {})]
    return {**form, "required": list(dict.fromkeys([*(form.get("required") or ()), *needed]))} if needed else form


def _form(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    out = flat(node)
    for keyword in ("properties", "patternProperties"):
        if isinstance(out.get(keyword), Mapping):
            out[keyword] = {name: _form(sub) for name, sub in out[keyword].items()}
    patterns = out.get("patternProperties")
    if isinstance(patterns, dict) and isinstance(out.get("properties"), dict):  # both hold for a field that both know
        for name, sub in out["properties"].items():
            out["properties"][name] = all_of([sub, *_fitting(patterns, name)])
    if isinstance(out.get("properties"), dict) and not {"additionalProperties", "patternProperties"} & set(out):
        for name in out.get("required") or ():  # a field that must be there is no unknown one
            out["properties"].setdefault(name, True)
    for keyword in ("items", "additionalProperties", "additionalItems"):
        if keyword in out:
            out[keyword] = _form(out[keyword])
    for keyword in ("items", "prefixItems"):  # a tuple: a schema for each place
        if isinstance(out.get(keyword), list | tuple):
            out[keyword] = [_form(place) for place in out[keyword]]
    for keyword in ("anyOf", "oneOf"):
        if isinstance(out.get(keyword), list):
            return _union(out, keyword)
    return out


def _union(node: dict[str, Any], keyword: str) -> dict[str, Any]:
    branches = node[keyword]
    beside = {key: value for key, value in node.items() if key != keyword and key not in _NOTES}
    typed = [branch for branch in branches if not _is_null(branch)]
    if len(typed) == 1 and len(branches) == 2 and not beside and _is_plainly_typed(typed[0]):
        only: dict[str, Any] = {**typed[0], "type": [*types_of(typed[0]), "null"]}
        if isinstance(only.get("enum"), list | tuple):
            only["enum"] = [*only["enum"], None]
        if "const" in only:
            only["enum"] = [only.pop("const"), None]
        made: dict[str, Any] = _form(only)
        return made
    parts = [{} if branch is True else branch for branch in branches]  # what stands beside holds there as well
    joined = _joined([_form(overlay(beside, part)) if isinstance(part, Mapping) else part for part in parts])
    return joined[0] if len(joined) == 1 and isinstance(joined[0], dict) else {keyword: joined}


def _joined(branches: list[Any]) -> list[Any]:
    """Branches with those that only name types, and stand side by side, as one: a list of types means the same."""
    out: list[Any] = []
    for branch in branches:
        if out and _go_together(out[-1], branch):
            out[-1] = {**out[-1], **branch, "type": list(dict.fromkeys([*types_of(out[-1]), *types_of(branch)]))}
        else:
            out.append(branch)
    return out


def _go_together(one: Any, other: Any) -> bool:
    """Whether two branches say the same as one with the types of both: both only name types, or what one says beside
    its types (``properties``, ``maxLength``) is nothing to the types of the other."""
    if not (_is_plainly_typed(one) and _is_plainly_typed(other)):
        return False
    bare = [set(branch) <= {"type", *_NOTES} for branch in (one, other)]
    if all(bare):
        return True
    said = {*one, *other}
    return any(bare) and not set(types_of(one)) & set(types_of(other)) and not said & _CHOOSING


def all_of(nodes: Iterable[Any]) -> Any:
    """The form of what several forms ask for together."""
    asking = [node for node in nodes if node is not True]
    if False in asking:
        return False
    return asking[0] if len(asking) == 1 else _form({"allOf": asking})


def _is_null(branch: Any) -> bool:
    return isinstance(branch, Mapping) and types_of(branch) == ("null",)


def _is_plainly_typed(branch: Any) -> bool:
    return isinstance(branch, Mapping) and bool(types_of(branch)) and not {"anyOf", "oneOf", "allOf"} & set(branch)


def _without(node: Any, crumb: tuple[str, ...]) -> Any:
    """A form less one field, wherever values of it could come from: where a node is open (``{}``, a map, a pattern,
    items that are not described) it is described as far as the field needs it."""
    if not crumb:
        return DROPPED
    if node is DROPPED or node is False:
        return node
    out: dict[str, Any] = dict(node) if isinstance(node, Mapping) else {}
    unions = [keyword for keyword in ("anyOf", "oneOf") if isinstance(out.get(keyword), list)]
    for keyword in unions:
        out[keyword] = [_without(branch, crumb) for branch in out[keyword]]
    if unions:
        return out
    types = types_of(out)
    if crumb[0] == "properties" and len(crumb) > 1:
        if types and "object" not in types:
            return out
        _without_property(out, crumb[1], crumb[2:])
    elif not types or "array" in types:
        items = out.get("items", True)
        out["items"] = _without({} if isinstance(items, list) else items, crumb[1:])  # of a tuple only the names count
    if not types:
        out[ANYTHING] = True
    return out


def _without_property(node: dict[str, Any], name: str, rest: tuple[str, ...]) -> None:
    properties = dict(node.get("properties") or {})
    if name not in properties:
        let_in = node.get("additionalProperties", "properties" not in node)
        patterns = node.get("patternProperties") or {}
        let_in = next(iter(_fitting(patterns, name)), let_in)
        if let_in is False and rest:
            return
        properties[name] = let_in
    properties[name] = _without(properties[name], rest)
    if "properties" not in node:
        node.setdefault("additionalProperties", True)
    node["properties"] = properties


def _fitting(patterns: Mapping[str, Any], name: str) -> list[Any]:
    """The schemas of those patterns that are found in a field's name."""
    return [node for pattern, node in patterns.items() if compile_pattern(pattern).search(name)]
