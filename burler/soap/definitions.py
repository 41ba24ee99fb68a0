"""A WSDL or XSD as zeep reads it, with what zeep leaves out: enumerations of simple types, which types are abstract and
which derive from them, and which elements may stand for another.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from burler.errors import BurlerError, DeclarationError
from burler.extras import require
from burler.schema.documents import shown
from burler.soap.documents import Documents

XSD = "http://www.w3.org/2001/XMLSchema"


@dataclass
class Notes:
    """What was seen of a WSDL's types, by their qualified names ("{namespace}name")."""

    abstract: set[str] = field(default_factory=set)
    derived: dict[str, list[str]] = field(default_factory=dict)
    substitutes: dict[str, list[Any]] = field(default_factory=dict)
    """Of an element: the names of those that may stand in its place."""


@dataclass(frozen=True)
class Wsdl:
    """A WSDL that was read.

    Attributes:
        types: zeep's Schema: all elements and types.
        document: zeep's Document with messages and services; None of an XSD file.
    """

    types: Any
    document: Any
    notes: Notes

    def operations(self) -> Iterator[tuple[str, Any]]:
        """Name and operation, service by service; a name may come again with another port."""
        for service in self.document.services.values() if self.document is not None else ():
            for port in service.ports.values():
                yield from port.binding.all().items()


def read_wsdl(location: str, documents: Documents, *, where: str, needed_for: str = "burler.wsdl") -> Wsdl:
    """Read a WSDL or XSD with all that it imports.

    Args:
        location: an http(s) address or an absolute path.
        documents: hands out the documents, and refuses those that may not be read.
        where: words that errors begin with.

    Raises:
        DeclarationError: a document can't be read, or makes no sense.
        MissingExtra: zeep is not installed.
    """
    require("zeep", extra="wsdl", needed_for=needed_for)
    import zeep
    from lxml import etree

    made = _classes()
    settings = zeep.Settings(forbid_dtd=True, force_https=False)  # that would make https: of file:, too
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zeep's, of operations that a port type lacks: such are not there
            root = etree.fromstring(
                documents.load(location), etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True)
            )
            kind = etree.QName(root).localname
            if kind == "schema":
                types = made.schema(root, documents, location, settings)
                return Wsdl(types, None, types.notes)
            if kind != "definitions":
                raise DeclarationError(f"{where} is neither a WSDL nor an XSD: its root element is '{kind:.60}'.")
            document = made.document(location, documents, settings=settings)
            return Wsdl(document.types, document, document.types.notes)
    except BurlerError as error:
        raise (documents.refusal or error) from None
    except Exception as error:  # zeep raises all sorts of things where a WSDL is not as it expects
        if documents.refusal is not None:
            raise documents.refusal from None
        logging.getLogger(__name__).debug("zeep on %s", where, exc_info=True)
        text = " ".join(str(error).replace(location, shown(location)).split())  # an address may hold a secret
        raise DeclarationError(f"{where} can't be understood: {type(error).__name__}: {text:.300}") from None


@dataclass(frozen=True)
class _Made:
    document: Any
    schema: Any


@functools.cache
def _classes() -> _Made:
    """zeep's classes, extended. zeep is not imported before a WSDL is read, so they are made then."""
    import zeep.wsdl.wsdl
    import zeep.xsd.schema

    visitor = _visitor_class()

    class Document(zeep.xsd.schema.SchemaDocument):  # type: ignore[misc]
        def load(self, schema: Any, node: Any) -> None:
            if node is not None:
                visitor(schema, self).visit_schema(node)

    class Schema(zeep.xsd.Schema):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.notes = Notes()
            super().__init__(*arguments, **options)

        def create_new_document(self, node: Any, url: Any, base_url: Any = None, target_namespace: Any = None) -> Any:
            namespace = (node.get("targetNamespace") if node is not None else None) or target_namespace
            document = Document(namespace, url, base_url or url)
            self.documents.add(document)
            document.load(self, node)
            return document

    class Root(zeep.wsdl.wsdl.Document):  # type: ignore[misc]
        def load(self, location: Any) -> None:
            self.types = Schema(node=None, transport=self.transport, location=self.location, settings=self.settings)
            super().load(location)

    return _Made(Root, Schema)


def _visitor_class() -> Any:
    """zeep's reader of XSD that also notes what zeep leaves out."""
    from zeep.xsd.elements import Choice, RefElement
    from zeep.xsd.visitor import SchemaVisitor, tags

    class Reference(RefElement):  # type: ignore[misc]
        """A reference to an element that others may stand for: a choice of all of them."""

        def resolve(self) -> Any:
            names = list(_substitutes(self._schema.notes, self._ref.text))
            if not names:
                return super().resolve()
            elements = [self._schema.get_element(name) for name in (self._ref, *names)]
            one = [element.clone(element.qname, min_occurs=0) for element in elements]
            return Choice(one, min_occurs=self.min_occurs, max_occurs=self.max_occurs).resolve()

    class Visitor(SchemaVisitor):  # type: ignore[misc]
        def process(self, node: Any, parent: Any) -> Any:
            if node.tag == tags.simpleType:
                return self.visit_simple_type(node, parent)
            if parent.tag == tags.schema and node.tag == tags.complexType:
                _note_type(self, node, tags)
            elif parent.tag == tags.schema and node.tag == tags.element and node.get("substitutionGroup"):
                head = _qualified(self, node, node.get("substitutionGroup"))
                self.schema.notes.substitutes.setdefault(head, []).append(_own_name(self, node))
            return super().process(node, parent)

        def process_reference(self, node: Any, **options: Any) -> Any:
            found = super().process_reference(node, **options)
            if type(found) is RefElement:
                return Reference(node.tag, found._ref, self.schema, **options)
            return found

        def visit_simple_type(self, node: Any, parent: Any) -> Any:
            return _with_choices(super().visit_simple_type(node, parent), node, tags)

    return Visitor


def _substitutes(notes: Notes, head: str, seen: frozenset[str] = frozenset()) -> Iterator[Any]:
    for name in notes.substitutes.get(head, ()):
        if name not in seen:
            yield name
            yield from _substitutes(notes, name, seen | {head, name})


def _qualified(visitor: Any, node: Any, name: str) -> str:
    prefix, _, local = name.rpartition(":")
    namespace = node.nsmap.get(prefix or None) or visitor.document._target_namespace
    return f"{{{namespace}}}{local}" if namespace else local


def _own_name(visitor: Any, node: Any) -> str:
    """The qualified name of what stands at the top of a schema."""
    namespace = visitor.document._target_namespace
    return f"{{{namespace}}}{node.get('name')}" if namespace else str(node.get("name"))


def _note_type(visitor: Any, node: Any, tags: Any) -> None:
    """Remember of a named type whether it is abstract, and what it extends or restricts."""
    notes: Notes = visitor.schema.notes
    own = _own_name(visitor, node)
    if node.get("abstract") in ("true", "1"):
        notes.abstract.add(own)
    for content in node.iterchildren(tags.complexContent):
        for step in content.iterchildren(tags.extension, tags.restriction):
            if step.get("base"):
                notes.derived.setdefault(_qualified(visitor, step, step.get("base")), []).append(own)


def _with_choices(made: Any, node: Any, tags: Any) -> Any:
    """The type that zeep made of a ``simpleType``, with the enumeration that stands in it."""
    steps = node.iterchildren(tags.restriction)
    choices = [one.get("value", "") for step in steps for one in step.iterchildren(f"{{{XSD}}}enumeration")]
    if hasattr(made, "base_type"):
        plain = made.resolve

        def resolve() -> Any:
            base = made.base_type.resolve()
            if hasattr(base, "item_type"):
                return base  # zeep can't restrict lists: their items are what counts
            resolved = plain()
            if choices:
                type(resolved).burler_choices = choices  # a class of its own for each simpleType; bases keep theirs
            return resolved

        made.resolve = resolve
    return made


def choices_of(simple_type: Any) -> list[str]:
    """The texts that a simple type enumerates: its own, else those of its base."""
    found: list[str] = getattr(type(simple_type), "burler_choices", [])
    return found
