"""References in JSON Schemas, replaced by what they point to.

SCHEMA messages must not hold ``$ref``: targets do not resolve them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from burler.errors import DeclarationError
from burler.schema.documents import shown
from burler.schema.merge import merge_all
from burler.schema.targets import Document, Library, Scope, Target, Unfound, enter, file_uri, join
from burler.schema_tree import DATA, MAP, OTHER, SCHEMA, below

MOST_VALUES = 1_000_000
"""Values in a schema once its references are replaced; a few lines can ask for 2 to the 30th."""
MOST_LEVELS = 64
"""Schemas inside one another."""

_WORDS = ("$ref", "$dynamicRef", "$recursiveRef")
_MARKS = frozenset({"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
_DEFINITIONS = frozenset({"definitions", "$defs", "$vocabulary"})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_CHECKED = frozenset({"type", "required", "allOf", "anyOf", "oneOf"})


def resolve_refs(
    schema: Any,
    *,
    source: str,
    base: Path | str | None = None,
    shared: Sequence[Path | str] = (),
    http: bool = False,
    pointer: str = "#",
) -> Any:
    """A copy of ``schema`` in which every reference is replaced by what it points to, and ``allOf`` is merged.

    Definitions (``definitions``, ``$defs``) and marks (``$id``, ``id``, ``$anchor``, ``$schema``) are left out
    where they are keywords; fields of such names stay. Keywords beside a reference are merged with
    what it points to (see ``schema.merge``). The input is not changed, and the copy shares nothing with it.

    Args:
        schema: the document: a schema, or anything that holds schemas (OpenAPI), see ``pointer``.
        source: words that every error begins with: "stream 'contacts' (tap_crm.py:14)".
        base: path, ``file:`` or http(s) address of the document; relative references count from there.
            None for a schema in code: it may refer to itself and to ``shared`` only.
        shared: folders where a relative reference is looked for if it is not found beside its document.
        http: fetch what http(s) references point to, each document once. A fetched document can't refer to files.
        pointer: resolve this part of the document only, "#/components/schemas/Contact".

    Raises:
        DeclarationError: a reference to nothing, or to what is not allowed; a document that can't be read; a
            cycle (Singer schemas are finite); a schema that grows too large. The chain of references is shown.
    """
    root = _document(dict(schema) if isinstance(schema, Mapping) else schema, base)
    folders = [_absolute(folder) for folder in ([shared] if isinstance(shared, str | Path) else shared)]
    library = Library(root, source=source, shared=folders, http=http)
    resolver = _Resolver(library, root, source)
    try:
        node, scope = root.root, root.scope()
        if pointer not in ("", "#"):
            node, scope, _ = resolver.part(pointer, scope)
        resolved = resolver.walk(node, SCHEMA, scope, 0)
        return _unshared(resolved) if resolver.shares else resolved
    except RecursionError:
        resolver.too_deep()


def _document(schema: Any, base: Path | str | None) -> Document:
    if base is None:
        return Document("", schema, "")
    scheme = urlsplit(base).scheme if isinstance(base, str) else ""
    if scheme in ("http", "https"):
        return Document(join("", str(base)), schema, "", remote=True)
    path = _absolute(unquote(urlsplit(str(base)).path) if scheme == "file" else base)
    return Document(file_uri(path), schema, "", path)


def _absolute(path: Path | str) -> Path:
    """Without ``..``, and without following links: what is beside a link is meant to be found."""
    return Path(os.path.normpath(path if Path(path).is_absolute() else Path.cwd() / path))


class _Resolver:
    """One resolution. What a reference points to is resolved once; ``shares`` says that the result is no tree yet."""

    def __init__(self, library: Library, root: Document, source: str) -> None:
        self.shares = False
        self._library = library
        self._root = root
        self._source = source
        self._active: dict[tuple[int, str, str], str] = {}  # the references that are being followed, with their names
        self._known: dict[tuple[int, str, str], tuple[Any, int, int]] = {}  # resolved: value, size, height
        self._count = 0
        self._peak = 0

    def part(self, pointer: str, scope: Scope) -> Target:
        """The part of the document that is to be resolved."""
        fragment = pointer if pointer.startswith("#") else f"#{pointer}"
        try:
            target = self._library.find(fragment, scope)
        except Unfound as problem:
            raise DeclarationError(f"{self._source}: the part '{shown(fragment)}' of the document {problem}") from None
        if not isinstance(target.node, Mapping | bool):
            raise DeclarationError(f"{self._source}: the part '{shown(fragment)}' {_no_schema(target.node)}")
        return target

    def walk(self, node: Any, place: str, scope: Scope, level: int) -> Any:
        """The copy of what stands at a place; ``level`` counts the schemas around it."""
        if type(node) is dict or isinstance(node, Mapping):
            if level > self._peak:
                if level > MOST_LEVELS:
                    self.too_deep()
                self._peak = level
            if place == MAP:
                self._add(len(node) + 1)
                return {name: self.walk(sub, SCHEMA, scope, level) for name, sub in node.items()}
            if place == DATA:
                self._add(len(node) + 1)
                return {key: self.walk(part, DATA, scope, level + 1) for key, part in node.items()}
            if place == SCHEMA and ("$id" in node or "id" in node):
                scope = enter(node, scope)
            if "$ref" in node or "$dynamicRef" in node or "$recursiveRef" in node:
                word = next(word for word in _WORDS if word in node)
                if place == SCHEMA or isinstance(node[word], str):
                    return self._reference(node, word, place, scope, level)
            return self._keywords(node, place, scope, level)
        if isinstance(node, list | tuple):
            self._add(len(node))
            inner = level + 1 if place == DATA else level
            return [item if type(item) is str else self.walk(item, place, scope, inner) for item in node]
        if type(node) is float and not math.isfinite(node):
            self._fail(f"the number {node}", scope, " is none that JSON has. Leave it out.")
        return node

    def _keywords(self, node: Mapping[str, Any], place: str, scope: Scope, level: int) -> Any:
        self._add(len(node) + 1)
        out: dict[str, Any] = {}
        is_schema = place == SCHEMA
        for key, value in node.items():
            kind = type(value)
            if is_schema and key in _CHECKED and (problem := _no_value_of(key, value)):
                self._fail(f"{key}: {shown(repr(value))}", scope, f" {problem}")
            if kind is float and not math.isfinite(value):
                self._fail(f"{key}: {value}", scope, " is no number that JSON has. Leave it out.")
            if kind in _SCALARS:
                if not (is_schema and key in _MARKS and (kind is str or key == "$recursiveAnchor")):
                    out[key] = value
            elif kind is list and key == "type":
                self._add(len(value))
                out[key] = [item if type(item) is str else self.walk(item, OTHER, scope, level + 1) for item in value]
            elif not (is_schema and key in _DEFINITIONS and isinstance(value, Mapping)):
                out[key] = self.walk(value, below(place, key), scope, level + 1)
        if is_schema and isinstance(out.get("allOf"), list):
            self.shares = True
            parts = out.pop("allOf")
            return merge_all(parts, out)
        return out

    def _reference(self, node: Mapping[str, Any], word: str, place: str, scope: Scope, level: int) -> Any:
        """What a reference points to, with what stands beside it."""
        beside = {key: value for key, value in node.items() if key not in (word, "$id", "id")}
        layer = self.walk(beside, place, scope, level) if beside else {}
        target = self._find(node[word], word, scope)
        key = (id(target.node), target.scope.uri, place)
        if key in self._active:
            self._fail_cycle(key, target.label)
        if key in self._known:
            value, size, height = self._known[key]
            self.shares = True
            self._add(size)
            self._peak = max(self._peak, level + height)
            if self._peak > MOST_LEVELS:
                self.too_deep()
        else:
            outer_peak, self._peak, before = self._peak, level, self._count
            self._active[key] = target.label
            value = self.walk(target.node, place, target.scope, level)
            del self._active[key]
            self._known[key] = value, self._count - before, self._peak - level
            self._peak = max(self._peak, outer_peak)
        if layer is False:
            return False
        if not layer or not (place == SCHEMA or isinstance(value, dict)):
            return value
        self.shares = True
        return merge_all([value], layer) if place == SCHEMA else {**value, **layer}

    def _find(self, reference: Any, word: str, scope: Scope) -> Target:
        if not isinstance(reference, str):
            self._fail(
                f"{word} {shown(repr(reference))}",
                scope,
                " is no text. A field of this name stands below 'properties'.",
            )
        try:
            target = self._library.find(reference, scope)
        except Unfound as problem:
            self._fail(f"{word} '{shown(reference)}'", scope, f" {problem}")
        if not isinstance(target.node, Mapping | bool):
            self._fail(f"{word} '{shown(reference)}'", scope, f" {_no_schema(target.node)}")
        name = reference.partition("#")[2]
        own = target.node.get("$dynamicAnchor") if isinstance(target.node, Mapping) else None
        if word == "$dynamicRef" and own == name and self._library.dynamic_anchors(name) > 1:
            self._fail(
                f"$dynamicRef '{shown(reference)}'",
                scope,
                f" has several targets: more than one schema has the $dynamicAnchor '{shown(name)}'. "
                "That is not supported; name the one that is meant by $ref.",
            )
        return target

    # ---- limits and errors -----------------------------------------------------------------------

    def _add(self, values: int) -> None:
        self._count += values
        if self._count > MOST_VALUES:
            raise DeclarationError(
                f"{self._source}: the schema has more than {MOST_VALUES:,} values once its references are "
                f"replaced. Leave out parts that the stream does not need.{self._reached()}"
            )

    def too_deep(self) -> NoReturn:
        raise DeclarationError(
            f"{self._source}: the schema is nested deeper than {MOST_LEVELS} levels. "
            f"Does it hold itself? Make an inner part {{}} (any value).{self._reached()}"
        )

    def _fail(self, fact: str, scope: Scope, more: str) -> NoReturn:
        name = scope.document.name
        place = f" (in {name})" if name else ""
        raise DeclarationError(f"{self._source}: {fact}{place}{more}{self._reached()}")

    def _fail_cycle(self, key: tuple[int, str, str], label: str) -> NoReturn:
        names = list(self._active.values())[list(self._active).index(key) :]
        raise DeclarationError(
            f"{self._source}: the schema refers to itself: {self._chain([*names, label])}. "
            "Singer schemas can't be recursive: put {} (any value) in the place of one of these references."
        )

    def _reached(self) -> str:
        return f"\n  Reached by {self._chain(list(self._active.values()))}" if self._active else ""

    def _chain(self, labels: list[str]) -> str:
        if not all(label.startswith("#") for label in labels):
            path = self._root.path
            own = path.name if path is not None and path.suffix != ".py" else "(the schema)"
            labels = [own + label.removesuffix("#") if label[:1] == "#" else label for label in labels]
        if len(labels) > 12:
            labels = [*labels[:6], f"... ({len(labels) - 10} more) ...", *labels[-4:]]
        return " -> ".join(labels)


def _no_schema(node: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = ((list, "a list"), (str, "text"), (type(None), "null"))
    kind = next((name for kind, name in kinds if isinstance(node, kind)), "a number")
    return f"points to {kind}, which is no schema."


def _no_value_of(key: str, value: Any) -> str:
    """What is wrong with a value that nobody can read on from; "" if nothing is."""
    items = value if isinstance(value, list | tuple) else ()
    if key == "required":
        return "" if all(isinstance(item, str) for item in items) else "lists what is no name of a field."
    if key == "type":  # draft 3 has schemas there as well
        return "" if all(isinstance(item, str | Mapping) for item in items) else "lists what is no type."
    return "" if value is None or isinstance(value, list | tuple | Mapping) else "is no list of schemas."


def _unshared(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: value if type(value) in _SCALARS else _unshared(value) for key, value in node.items()}
    return [_unshared(item) for item in node] if isinstance(node, list) else node
