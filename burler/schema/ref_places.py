"""Where in a document its schemas stand, and by which addresses they are known.

A document is walked by place: a ``$id`` in a schema is an address, one among ``properties`` is a field,
one inside ``enum`` is a value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit, uses_relative

from burler.schema_tree import DATA, OTHER, SCHEMA, below


@dataclass(slots=True, eq=False)
class Document:
    """One document that was read, or was given.

    Attributes:
        uri: its address; "" for a schema in code of which nobody said where it stands.
        name: what errors call it; "" for the schema that is resolved.
        path: its file, if it is one.
        remote: it came by http, and so may name no file.
    """

    uri: str
    root: Any
    name: str
    path: Path | None = None
    remote: bool = False
    _index: Index | None = None

    @property
    def draft(self) -> int:
        """The draft that ``$schema`` names: 3, 4, 6, 7, 2019, 2020; 0 if none."""
        named = self.root.get("$schema") if isinstance(self.root, dict) else None
        if not isinstance(named, str):
            return 0
        drafts = {"draft-03": 3, "draft-04": 4, "draft-06": 6, "draft-07": 7, "2019-09": 2019, "2020-12": 2020}
        return next((number for text, number in drafts.items() if text in named), 0)

    def index(self) -> Index:
        """All addresses in the document; found at the first call."""
        if self._index is None:
            self._index = Index(self)
        return self._index

    def scope(self) -> Scope:
        """The scope of the document's root."""
        return enter(self.root, Scope(self.uri, None, self))


@dataclass(frozen=True, slots=True)
class Scope:
    """What references count from: an address, and the schema it is the address of."""

    uri: str
    root: Any
    document: Document


def enter(node: Any, scope: Scope) -> Scope:
    """The scope inside ``node``, which stands in ``scope``: another one if the node has an address of its own."""
    if node is scope.root:
        return scope
    uri = scope.uri
    given = _identifier(node, scope.document.draft)
    if given and not given.startswith("#"):
        uri = join(scope.uri, given.partition("#")[0])
    if scope.root is None:  # a document's root
        return Scope(uri, node, scope.document)
    return scope if uri == scope.uri else Scope(uri, node, scope.document)


def _identifier(node: Any, draft: int) -> str | None:
    """A schema's ``$id``, or ``id`` as draft 4 has it. Until draft 7 a reference made it void."""
    if not isinstance(node, dict):
        return None
    given = node.get("$id")
    if isinstance(given, str) and not ("$ref" in node and draft in (6, 7)):
        return given
    given = node.get("id")
    return given if isinstance(given, str) and "$ref" not in node and draft in (0, 3, 4) else None


@dataclass(slots=True)
class Index:
    """Addresses and anchors of one document. What stands in unknown keywords counts only where nothing else does."""

    document: Document
    resources: dict[str, Scope] = field(default_factory=dict)
    anchors: dict[tuple[str, str], tuple[Any, Scope]] = field(default_factory=dict)
    dynamic: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        doubtful: list[tuple[Any, Scope]] = []
        scope = self.document.scope()
        self._walk(self.document.root, scope, SCHEMA, doubtful)
        for node, scope in doubtful:
            self._walk(node, scope, OTHER, None)
        if self.document.uri:
            self.resources[self.document.uri] = self.document.scope()

    def _walk(self, top: Any, scope: Scope, place: str, doubtful: list[tuple[Any, Scope]] | None) -> None:
        stack = [(top, scope, place)]
        seen: set[tuple[int, str]] = set()
        while stack:
            node, scope, place = stack.pop()
            if not isinstance(node, dict | list) or (id(node), place) in seen:
                continue
            seen.add((id(node), place))  # a schema made in Python may hold one object many times, or itself
            if isinstance(node, list):
                stack.extend((item, scope, place) for item in reversed(node))
                continue
            if place == SCHEMA or (place == OTHER and doubtful is None and "$id" in node):
                scope = self._note(node, scope)
            for key, value in reversed(node.items()):
                inner = below(place, key)
                if inner == OTHER and doubtful is not None:
                    doubtful.append((value, scope))
                elif inner != DATA:
                    stack.append((value, scope, inner))

    def _note(self, node: dict[str, Any], scope: Scope) -> Scope:
        inner = enter(node, scope)
        self.resources.setdefault(inner.uri, inner)
        names = [node.get("$anchor"), node.get("$dynamicAnchor")]
        names.append((_identifier(node, self.document.draft) or "").partition("#")[2])
        for name in names:
            if isinstance(name, str) and name and not name.startswith("/"):
                self.anchors.setdefault((inner.uri, name), (node, inner))
        if isinstance(node.get("$dynamicAnchor"), str):
            self.dynamic.add((inner.uri, node["$dynamicAnchor"]))
        return inner


def join(base: str, reference: str) -> str:
    """An address that counts from another one; without fragment, in one spelling."""
    scheme = urlsplit(base).scheme
    if base and "://" in base and scheme not in uses_relative and not urlsplit(reference).scheme:
        joined = urljoin("http" + base[len(scheme) :], reference)
        joined = scheme + joined[len("http") :]
    else:
        joined = urljoin(base, reference) if base else reference
    parts = urlsplit(joined)
    path = urlsplit(urljoin("http://x/", parts.path)).path if "/." in parts.path else parts.path
    if parts.scheme == "file":
        return f"file://{parts.netloc}{quote(unquote(path))}"
    if parts.scheme in ("http", "https"):
        return urlunsplit((parts.scheme, parts.netloc.lower(), path or "/", parts.query, ""))
    return joined


def file_uri(path: Path) -> str:
    """The address of a file, its path as it was given (links are not followed)."""
    return f"file://{quote(str(path))}"
