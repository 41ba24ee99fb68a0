"""What references point to: in the document, in one that was read before, in a file, by http.

A document is walked by place: a ``$id`` in a schema is an address, one among ``properties`` is a field,
one inside ``enum`` is a value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from burler.schema.documents import fetch, read_file, shown
from burler.schema_tree import DATA, OTHER, SCHEMA, below, step, tokens
from burler.suggest import did_you_mean

MOST_FETCHED = 100
"""Documents by http, for one schema."""

_INTO_A_FILE = "Put the schema into a file, burler.json_file('...'), or name folders by shared=[...]."


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
        return inner


class Unfound(Exception):
    """A reference that leads nowhere; the text says why and goes on from "$ref '...'"."""


class Target(NamedTuple):
    """What a reference points to, the scope it stands in, and its name for errors."""

    node: Any
    scope: Scope
    label: str


class Library:
    """The documents of one resolution.

    Args:
        root: the document that is resolved.
        source: words that errors of reading begin with.
        shared: folders for relative references that are not found beside their document.
        http: whether http addresses may be fetched.
    """

    def __init__(self, root: Document, *, source: str, shared: Sequence[Path], http: bool) -> None:
        self._root = root
        self._source = source
        self._shared = shared
        self._http = http
        self._files: dict[str, Document] = {os.path.realpath(root.path): root} if root.path else {}
        self._fetched: dict[str, Document] = {root.uri: root} if root.remote else {}
        self._all = [root]

    def find(self, reference: str, scope: Scope) -> Target:
        """What ``reference``, which stands in ``scope``, points to.

        Raises:
            Unfound: it points to nothing, or to what is not allowed.
            DeclarationError: the document can't be read.
        """
        uri, _, fragment = reference.partition("#")
        inside = self._resource(uri, scope, reference) if uri else scope
        node, found = self._locate(inside, unquote(fragment))
        return Target(node, enter(node, found), self._label(inside, fragment))

    def dynamic_anchors(self, name: str) -> int:
        """How many schemas, of all that were read, have this ``$dynamicAnchor``."""
        named = (
            one
            for document in self._all
            for (_, anchor), (one, _) in document.index().anchors.items()
            if anchor == name
        )
        return sum(node.get("$dynamicAnchor") == name for node in named)

    # ---- inside a document -----------------------------------------------------------------------

    def _locate(self, scope: Scope, fragment: str) -> tuple[Any, Scope]:
        if not fragment:
            return scope.root, scope
        if not fragment.startswith("/"):
            found = scope.document.index().anchors.get((scope.uri, fragment))
            if found is None:
                known = [name for uri, name in scope.document.index().anchors if uri == scope.uri]
                raise Unfound(
                    f"points to nothing: no schema {self._in(scope)}has the anchor '{shown(fragment)}'."
                    f"{did_you_mean(fragment, known) or ' A JSON pointer begins with #/.'}"
                )
            return found
        node, place = scope.root, SCHEMA
        for key in tokens(fragment):
            if place == SCHEMA:
                scope = enter(node, scope)
            place = below(place, key) if isinstance(node, Mapping) else place
            try:
                node = step(node, key)
            except LookupError:
                known = [str(name) for name in node] if isinstance(node, Mapping) else []
                raise Unfound(
                    f"points to nothing: {self._in(scope)}'{shown(key)}' is not there.{did_you_mean(key, known)}"
                ) from None
        return node, scope

    def _in(self, scope: Scope) -> str:
        document = scope.document
        if scope.uri != document.scope().uri:
            return f"in '{shown(scope.uri)}', which has an id of its own, "
        return f"in {document.name}, " if document.name else ""

    def _label(self, scope: Scope, fragment: str) -> str:
        document = scope.document
        name = document.name if scope.root is document.root else shown(scope.uri)
        return f"{name}#{shown(fragment)}" if fragment or not name else name

    # ---- other documents -------------------------------------------------------------------------

    def _resource(self, reference: str, scope: Scope, whole: str) -> Scope:
        try:
            uri = join(scope.uri, reference)
            scheme, relative = urlsplit(uri).scheme, not urlsplit(reference).scheme and reference[:2] != "//"
        except ValueError:
            raise Unfound("is no address.") from None
        if uri == scope.uri:
            return scope
        for document in (scope.document, *self._all):
            found = document.index().resources.get(uri)
            if found is not None and _may_declare(document, scope.document, uri):
                return found
        return self._read(uri, scheme, reference if relative else None, scope.document, whole).scope()

    def _read(self, uri: str, scheme: str, relative: str | None, origin: Document, whole: str) -> Document:
        """The document at an address that no schema declares; ``relative`` is the reference if it is a relative one."""
        if scheme == "file" and origin.remote:
            raise Unfound("points to a file, which a schema that came by http may not do.")
        if scheme == "file" and origin.path is None:  # made at run time, perhaps of what a server said
            raise Unfound(f"points to a file, which a schema that stands in no file may not do. {_INTO_A_FILE}")
        paths = [] if origin.remote else self._paths(uri, scheme, relative, origin)
        for path in paths:
            if _is_there(path):
                return self._file(path, whole)
        missing = f"points to no file: looked for {', '.join(shown(str(path)) for path in paths)}" if paths else ""
        if scheme in ("http", "https"):
            if self._http:
                return self._by_http(uri, whole)
            raise Unfound(
                (f"{missing}. By its base it is {shown(uri)}" if missing else "points to an http address")
                + ", which is fetched only if http=True is given, to burler.json_file for instance."
            )
        if missing:
            cure = "is the name right?" if self._shared else "name further folders by shared=[...]."
            raise Unfound(f"{missing}; {cure}")
        if not scheme:
            raise Unfound(f"points to a file, and it is not known which folder that counts from. {_INTO_A_FILE}")
        raise Unfound("points to an address that no schema declares as its $id.")

    def _paths(self, uri: str, scheme: str, relative: str | None, origin: Document) -> list[Path]:
        """The files that a reference may mean, the likeliest first."""
        texts: list[str] = []
        if scheme == "file":
            if urlsplit(uri).netloc not in ("", "localhost"):
                raise Unfound("points to a file of another machine.")
            texts.append(unquote(urlsplit(uri).path))
        if relative is not None:
            plain = unquote(relative)
            if origin.path is not None:  # where an $id gives another base: beside the file all the same
                texts.append(os.path.normpath(origin.path.parent / plain))
            found = [(folder, os.path.normpath(folder / plain.lstrip("/"))) for folder in self._shared]
            if origin.path is None:  # made at run time, perhaps of what a server said: nothing but what is shared
                found = [(folder, text) for folder, text in found if Path(text).is_relative_to(folder)]
                if self._shared and not found:
                    raise Unfound("leaves the shared folders, which a schema that stands in no file may not do.")
            texts.extend(text for _, text in found)
        return [Path(text) for text in dict.fromkeys(texts)]

    def _file(self, path: Path, whole: str) -> Document:
        real = os.path.realpath(path) if "\0" not in str(path) else str(path)
        document = self._files.get(real)
        if document is None:
            content = read_file(path, where=f"{self._source}: $ref '{shown(whole)}': schema file")
            document = self._files[real] = Document(file_uri(path), content, self._name(path), path)
            self._all.append(document)
        return document

    def _by_http(self, uri: str, whole: str) -> Document:
        document = self._fetched.get(uri)
        if document is None:
            if len(self._fetched) >= MOST_FETCHED:
                raise Unfound(f"would be fetched document number {MOST_FETCHED + 1} of one schema; that is too many.")
            content, final = fetch(uri, where=f"{self._source}: $ref '{shown(whole)}':")
            final = join("", final)
            document = self._fetched.get(final)
            if document is None:
                document = Document(final, content, shown(final), remote=True)
                self._all.append(document)
            self._fetched[uri] = self._fetched[final] = document
        return document

    def _name(self, path: Path) -> str:
        if self._root.path is None:
            return shown(str(path))
        beside = os.path.relpath(path, self._root.path.parent)
        return shown(str(path) if beside.startswith("../../..") else beside)


def _may_declare(document: Document, asking: Document, uri: str) -> bool:
    """Whether another document believes this one. What came by http speaks for its own host alone. A file's address
    is for those only who may refer to files: that the file was read for another one does not open it to all."""
    if document is asking:
        return True
    if urlsplit(uri).scheme == "file":
        return asking.path is not None and not document.remote
    return not document.remote or urlsplit(uri).netloc == urlsplit(document.uri).netloc


def _is_there(path: Path) -> bool:
    """Whether something is there; what can't be looked at counts, so that reading it says why not."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def join(base: str, reference: str) -> str:
    """An address that counts from another one; without fragment, in one spelling."""
    joined = urljoin(base, reference)
    parts = urlsplit(joined)
    if parts.scheme == "file":
        return f"file://{parts.netloc}{quote(unquote(parts.path))}"
    if parts.scheme in ("http", "https"):
        return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path or "/", parts.query, ""))
    return joined


def file_uri(path: Path) -> str:
    """The address of a file, its path as it was given (links are not followed)."""
    return f"file://{quote(str(path))}"
