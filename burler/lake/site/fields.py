"""The fields of a schema as pages show them; what changed from one schema version to the next, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from burler import schema_tree
from burler.errors import DeclarationError
from burler.schema.refs import resolve_refs
from burler.schema_tree import type_of, types_of, walk
from burler.words import counted, cut

MOST_FIELDS = 5000
MOST_LEVELS = 30
_SHORT = 120  # characters of a value in a limit
_MANY = 12  # values of an enum that are named
_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "multipleOf": "a multiple of {}",
    "pattern": "matches {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "contentEncoding": "encoded as {}",
    "default": "default {}",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``path`` is dotted, with ``[]`` for the items of an array (``tags[].name``); a name that holds such
    signs itself stands in quotes. ``parent`` is the path of the field it lies in, empty at the top. ``nullable`` is
    None where the schema allows anything.
    """

    path: str
    name: str
    parent: str
    depth: int
    type: str
    nullable: bool | None
    required: bool
    description: str
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a schema in its order, and what had to be left out, in words (empty: nothing)."""

    fields: tuple[Field, ...]
    left_out: str = ""
    description: str = ""


def fields_of(schema: Mapping[str, Any]) -> Fields:
    """All fields of a schema. References are resolved; those that can't be are said in ``left_out``."""
    notes = []
    root: Any = schema
    if _has_references(schema):
        try:
            root = resolve_refs(schema, source="the schema")
        except (DeclarationError, RecursionError) as error:
            notes.append(f"References could not be resolved: {error}")
    found: list[Field] = []
    for field in _below(root, parent="", path="", depth=0):
        if len(found) == MOST_FIELDS:
            notes.append(f"Only the first {MOST_FIELDS:,} fields are shown.")
            break
        found.append(field)
    if any(field.depth == MOST_LEVELS - 1 for field in found):
        notes.append(f"Fields deeper than {MOST_LEVELS} levels are left out.")
    return Fields(tuple(found), " ".join(notes), _description(root))


def _has_references(schema: Any) -> bool:
    return any(isinstance(node, Mapping) and ("$ref" in node or "allOf" in node) for _, node in walk(schema))


def _below(node: Any, *, parent: str, path: str, depth: int) -> Iterator[Field]:
    """The fields inside of a node; ``path`` is where they are counted from, with ``[]`` where it is an array."""
    if depth >= MOST_LEVELS:
        return
    required = {quoted(name) for part in _parts(node) for name in _listed(part, "required") if isinstance(name, str)}
    for name, child in _children(node):
        here = f"{path}.{name}" if path else name
        yield Field(
            path=here,
            name=name,
            parent=parent,
            depth=depth,
            type=type_words(child),
            nullable=_nullable(child),
            required=name in required,
            description=_description(child),
            limits=tuple(dict.fromkeys(text for part in _parts(child) for text in _limits(part))),
        )
        inner, brackets = child, ""
        while (items := _items(inner)) is not None and len(brackets) < 2 * MOST_LEVELS:
            inner, brackets = items, brackets + "[]"
        yield from _below(inner, parent=here, path=here + brackets, depth=depth + 1)


def _listed(node: Mapping[str, Any], key: str) -> list[Any]:
    return node[key] if isinstance(node.get(key), list) else []


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    """Named fields, then rules for names that are not known beforehand."""
    seen: dict[str, Any] = {}
    for part in _parts(node):
        for way, child in schema_tree.parts(part):
            match way:
                case "properties", name:
                    seen.setdefault(quoted(name), child)
                case "patternProperties", pattern:
                    seen.setdefault(f"/{pattern}/", child)
                case ("additionalProperties",) if isinstance(child, Mapping) and child:
                    seen.setdefault("*", child)
    yield from seen.items()


def _parts(node: Any) -> Iterator[Mapping[str, Any]]:
    """The node itself, and the schemas of which a value has to fit one."""
    if not isinstance(node, Mapping):
        return
    yield node
    for branch in (*_listed(node, "anyOf"), *_listed(node, "oneOf")):
        if isinstance(branch, Mapping):
            yield branch


def _items(node: Any) -> Any:
    """The schema of an array's items, if there is one for all."""
    return next((part["items"] for part in _parts(node) if isinstance(part.get("items"), Mapping)), None)


def quoted(name: str) -> str:
    """A field's name as it stands in a path: in quotes where it would be misread."""
    return json.dumps(name, ensure_ascii=False) if not name or set(name) & set('.[]*/" \t\n') else name


def type_words(node: Any, depth: int = 0) -> str:
    """``string (date-time)``, ``array of integer``, ``integer or string``, ``any``."""
    if node is False:
        return "nothing"
    if not isinstance(node, Mapping) or depth > MOST_LEVELS:
        return "any"
    words = [_one_type(node, kind, depth) for kind in types_of(node) if kind != "null"]
    if not words:
        words = [type_words(part, depth + 1) for part in list(_parts(node))[1:] if types_of(part) != ("null",)]
        if not words and "properties" in node:
            words = ["object"]
        if not words and _values(node):
            words = [type_of(value) for value in _values(node) if value is not None]
    if not words:
        return "null" if "null" in types_of(node) else "any"
    return " or ".join(dict.fromkeys(words))


def _values(node: Mapping[str, Any]) -> list[Any]:
    return [node["const"]] if "const" in node else _listed(node, "enum")


def _one_type(node: Mapping[str, Any], kind: str, depth: int) -> str:
    if kind == "array":
        items = node.get("items")
        if isinstance(items, list | tuple):
            return "array of fixed length"
        return "array" if not isinstance(items, Mapping) or not items else f"array of {type_words(items, depth + 1)}"
    if kind in ("string", "number", "integer") and isinstance(node.get("format"), str):
        return f"{kind} ({cut(node['format'], _SHORT)})"
    return cut(kind, _SHORT)


def _nullable(node: Any) -> bool | None:
    if not isinstance(node, Mapping):
        return None
    types = {kind for part in _parts(node) for kind in types_of(part)}
    if types:
        return "null" in types
    return None in _values(node) if _values(node) else None


def _description(node: Any) -> str:
    """What is said about a field: its description, else its title, else what a branch says."""
    for key in ("description", "title"):
        for part in _parts(node):
            if isinstance(part.get(key), str) and part[key].strip():
                return str(part[key]).strip()
    return ""


def _limits(node: Mapping[str, Any]) -> Iterator[str]:
    if values := _values(node):
        named = ", ".join(_shown(value) for value in values[:_MANY])
        more = f" and {len(values) - _MANY:,} more" if len(values) > _MANY else ""
        yield f"always {named}" if "const" in node else f"one of {named}{more}"
    for key, words in _LIMITS.items():
        if key in node and node[key] is not None:
            yield words.format(_shown(node[key]))
    for key, words in (("exclusiveMinimum", "more than"), ("exclusiveMaximum", "less than")):
        value = node.get(key)
        if value is True:  # draft 4: a word beside minimum
            yield f"{words} its limit, not equal"
        elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            yield f"{words} {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, str | Decimal):
        return cut(str(value), _SHORT)
    try:
        return cut(json.dumps(value, ensure_ascii=False, default=float), _SHORT)
    except RecursionError:
        return "a value too deep to show"


Kind = Literal["added", "removed", "changed"]
_SHORT_CHANGE = 160


@dataclass(frozen=True, slots=True)
class View:
    """One schema version as pages show it: its fields, keys and bookmark fields."""

    fields: Fields
    keys: tuple[str, ...] = ()
    bookmarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``path`` is a field, or empty for what concerns the stream itself; ``what`` says it in words."""

    kind: Kind
    path: str
    what: str


def compare(old: View, new: View) -> tuple[Change, ...]:
    """All differences: those of the stream first, then fields added, removed and changed, each in schema order."""
    before = {field.path: field for field in old.fields.fields}
    after = {field.path: field for field in new.fields.fields}
    return (
        *_of_stream(old, new),
        *_only_in("added", after, before),
        *_only_in("removed", before, after),
        *(
            Change("changed", path, "; ".join(said))
            for path, field in after.items()
            if path in before and (said := list(_differences(before[path], field)))
        ),
    )


def counts(changes: Sequence[Change]) -> str:
    """``2 added, 1 removed``; what there is none of is left out."""
    kinds: tuple[Kind, ...] = ("added", "removed", "changed")
    found = [(sum(change.kind == kind for change in changes), kind) for kind in kinds]
    return ", ".join(f"{count:,} {kind}" for count, kind in found if count)


def _of_stream(old: View, new: View) -> Iterator[Change]:
    for words, before, after in (("keys", old.keys, new.keys), ("bookmark fields", old.bookmarks, new.bookmarks)):
        if before != after:
            yield Change("changed", "", f"{words}: was {', '.join(before) or 'none'}, now {', '.join(after) or 'none'}")
    if old.fields.description != new.fields.description:
        yield Change("changed", "", _text("description", old.fields.description, new.fields.description))


def _only_in(kind: Kind, here: dict[str, Field], there: dict[str, Field]) -> Iterator[Change]:
    """Fields of one side alone. What lies inside such a field is counted, not listed."""
    inside: dict[str, int] = {}
    tops: dict[str, str] = {}
    for path, field in here.items():  # parents come before their fields
        if path not in there:
            tops[path] = tops.get(field.parent, path)
            inside[tops[path]] = inside.get(tops[path], -1) + 1
    for path, count in inside.items():
        words = [here[path].type]
        if here[path].nullable:
            words.append("may be null")
        if count:
            words.append(f"with {counted(count, 'field')} inside")
        yield Change(kind, path, ", ".join(words))


def _differences(old: Field, new: Field) -> Iterator[str]:
    if old.type != new.type:
        yield f"type: was {old.type}, now {new.type}"
    if bool(old.nullable) != bool(new.nullable):
        yield "may be null now" if new.nullable else "may not be null any more"
    if old.required != new.required:
        yield "always there now" if new.required else "may be missing now"
    if old.limits != new.limits:
        was, now = (cut("; ".join(one.limits), _SHORT_CHANGE) or "none" for one in (old, new))
        yield f"limits: was {was}, now {now}"
    if old.description != new.description:
        yield _text("description", old.description, new.description)


def _text(what: str, old: str, new: str) -> str:
    if not old:
        return f"{what} is new: “{cut(new, _SHORT_CHANGE)}”"
    return f"{what}: was “{cut(old, _SHORT_CHANGE)}”, now {f'“{cut(new, _SHORT_CHANGE)}”' if new else 'none'}"
