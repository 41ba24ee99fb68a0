"""The documents of a WSDL as bytes: read or fetched from where they may lie, and looked at before any parser builds
something of them. zeep takes this for its transport.

A WSDL names others (imports, includes), and whoever wrote it may name any file of this machine and any server that this
machine reaches; so only what lies beside it is read, and what its author allows.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from burler.errors import BurlerError, DeclarationError
from burler.http.origins import as_sent, begins, climbs, is_web, same_origin
from burler.localfile import replace_file
from burler.schema.documents import MOST_BYTES, bytes_of, client_for, get, in_time, shown

if TYPE_CHECKING:
    from burler.http.client import Client

MOST_DOCUMENTS = 500
XML = "text/xml, application/xml, */*;q=0.5"
_PIECE = 65536


class DoctypeError(Exception):
    """An XML document has a DTD."""


def check_prolog(content: bytes) -> None:
    """Look at the beginning of an XML document, up to its first element.

    DTDs declare entities: names for other files and addresses, and names that grow to gigabytes. No WSDL, no XSD and no
    SOAP message has one (SOAP forbids them), so a document with one is refused before anything is made of it.

    Raises:
        DoctypeError: there is a DTD.
        lxml.etree.XMLSyntaxError: it is no XML.
    """
    from lxml import etree

    parser = etree.XMLParser(target=_Prolog(), resolve_entities=False, load_dtd=False, no_network=True)
    try:
        for at in range(0, len(content), _PIECE):
            parser.feed(content[at : at + _PIECE])
        parser.close()
    except _RootReached:
        pass


class _RootReached(Exception):
    pass


class _Prolog:
    """What lxml tells of a document while it reads."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise DoctypeError

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        raise _RootReached

    def end(self, tag: str) -> None:
        """Nothing: the first start ends it all."""

    def close(self) -> None:
        """Nothing, too."""


@dataclass(frozen=True, slots=True)
class Access:
    """How documents on the web are asked for.

    Attributes:
        auth, headers: as ``requests`` takes them; sent to the WSDL's own origin only.
        verify: TLS certificates: True, False, or a file of authorities.
        cache: a folder for copies; None keeps none.
        cache_seconds: how long a copy is good; None: for ever.
    """

    auth: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    verify: bool | str = True
    cache: Path | None = None
    cache_seconds: float | None = 86400.0


# ---- where they may lie ----------------------------------------------------------------------------------------------


def file_of(location: str) -> Path:
    """The path that a location names, as a path or as ``file:`` URL."""
    if location.lower().startswith("file:"):
        return Path(unquote(urlsplit(location).path))
    return Path(location)


def open_address(url: str) -> tuple[str, tuple[str, str] | None]:
    """An address without what may be secret in it, which zeep writes into its log: without the user, which comes beside
    it with the password, and without parameters ("?wsdl" is none)."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    query = "" if "=" in parts.query else parts.query
    plain = urlunsplit((parts.scheme, host, parts.path, query, ""))
    return plain, (unquote(name), unquote(password)) if at else None


@dataclass(frozen=True, slots=True)
class Places:
    """What may be read: of a WSDL on the web all of its own origin (scheme, host, port); of one in a file all files
    below its folder; and what ``allow`` adds.

    Attributes:
        root: the WSDL: an http(s) address, or an absolute path.
        allow: beginnings of http(s) addresses ("https://schemas.example.com/crm/"), and folders.
    """

    root: str
    allow: tuple[str, ...] = ()

    @classmethod
    def of(cls, root: str, allow: str | Path | Sequence[str | Path], base: Path) -> Places:
        """The same, of one place or several; paths count from ``base``."""
        given = [str(place) for place in ([allow] if isinstance(allow, str | Path) else allow)]
        return cls(root, tuple(place if is_web(place) else str(base / file_of(place)) for place in given))

    def check(self, location: str, *, what: str) -> str:
        """The address or path to read for a location.

        Args:
            what: what errors call the document that names it: "stream 'a' (tap.py:3): WSDL crm.wsdl".

        Raises:
            DeclarationError: it may not be read.
        """
        if is_web(location):
            if not self.check_web(location):
                raise _refused(location, self._reason_web(), what=what)
            return location
        scheme = urlsplit(location).scheme.lower()
        if scheme not in ("", "file") and len(scheme) > 1:  # one letter is a drive of Windows
            raise _refused(location, f"'{scheme}:' is no place that documents are read from", what=what)
        if scheme == "file" and urlsplit(location).netloc not in ("", "localhost"):
            raise _refused(location, "it is a file of another machine", what=what)
        path = os.path.realpath(file_of(location))  # a link that leads out of the folder counts as what it leads to
        if location != self.root and not any(Path(path).is_relative_to(folder) for folder in self._folders()):
            reason = "a WSDL from the web names a file" if is_web(self.root) else "it is not below the WSDL's folder"
            raise _refused(location, reason, what=what)
        return path

    def redirect(self, url: str, location: str, *, what: str) -> str:
        """The address that a redirect leads to.

        Raises:
            DeclarationError: it is on another server, and no place that is allowed.
        """
        following = urljoin(url, location)
        if not Places(url, self.allow).check_web(following):
            raise DeclarationError(
                f"{what} redirects to another server: {shown(following)}.\n"
                "  Write that address instead, if it is the right one."
            )
        return following

    def same_origin(self, url: str) -> bool:
        """Whether an address has the root's scheme, host and port, so that it may see its credentials."""
        return is_web(self.root) and same_origin(url, self.root)

    def check_web(self, url: str) -> bool:
        """Whether an http(s) address may be read."""
        if url == self.root:
            return True
        parts = as_sent(url)
        if climbs(parts.path):
            return False
        if self.same_origin(url):
            return True
        return any(begins(parts, as_sent(beginning)) for beginning in self.allow if is_web(beginning))

    def _folders(self) -> Sequence[str]:
        own = [] if is_web(self.root) else [str(Path(os.path.realpath(self.root)).parent)]
        return own + [os.path.realpath(file_of(place)) for place in self.allow if not is_web(place)]

    def _reason_web(self) -> str:
        return "it is on another server" if is_web(self.root) else "a WSDL in a file names the web"


def _refused(location: str, reason: str, *, what: str) -> DeclarationError:
    place = location.rpartition("/")[0] + "/" if "/" in location else location
    return DeclarationError(
        f"{what} names the document '{shown(location)}', which is not read: {reason}.\n"
        f"  Save it beside the WSDL and name it there, or write allow=['{shown(place)}'] if you trust that place."
    )


# ---- reading and fetching --------------------------------------------------------------------------------------------


class Documents:
    """A WSDL's documents: ``load`` is what zeep calls for each.

    Args:
        where: words that errors begin with: "stream 'contacts' (tap_crm.py:14): WSDL crm.wsdl".
        client: asks in place of one that is made for this, with its own patience and credentials.
        root_url: the WSDL's address with all that may be secret in it; ``places.root`` is what zeep gets to know.
    """

    def __init__(
        self,
        places: Places,
        access: Access,
        *,
        where: str,
        client: Client | None = None,
        root_url: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.places = places
        self.refusal: BurlerError | None = None  # the first one: zeep may hide what is raised in between
        self._access = access
        self._where = where
        self._client = client
        self._root_url = root_url or places.root
        self._now = now
        self._count = 0
        self._bytes = 0
        self._root: dict[str, bytes] = {}  # it is looked at first, and then read again by zeep

    def load(self, location: str) -> bytes:
        """A document, safe to parse.

        Raises:
            DeclarationError: it may not be read, can't be, is too large, or is no plain XML.
        """
        try:
            return self._load(str(location))
        except BurlerError as error:
            self.refusal = self.refusal or error
            raise

    def _load(self, location: str) -> bytes:
        known = _known_document(location) or self._root.get(location)
        if known is not None:
            return known
        place = self.places.check(location, what=self._where)
        self._count += 1
        if self._count > MOST_DOCUMENTS:
            raise DeclarationError(f"{self._where} names more than {MOST_DOCUMENTS} documents. Is it the right one?")
        named = f"{self._where}: the document {shown(place)}" if place != self.places.root else self._where
        url = self._root_url if place == self.places.root else place
        content = self._cached(url, named) if is_web(place) else bytes_of(Path(place), named=named, kinds="WSDL or XSD")
        self._bytes += len(content)
        if self._bytes > MOST_BYTES:
            raise DeclarationError(f"{named}: {MOST_BYTES // 2**20} MiB of documents, too many for a WSDL.")
        _check(content, named)
        if location == self.places.root:
            self._root[location] = content
        return content

    def _cached(self, url: str, named: str) -> bytes:
        folder = self._access.cache
        if folder is None:
            return self._fetched(url)
        copy = folder / f"{hashlib.sha256(url.encode()).hexdigest()}.xml"
        try:
            age = self._now() - copy.stat().st_mtime
            if self._access.cache_seconds is None or 0 <= age < self._access.cache_seconds:
                return copy.read_bytes()
        except OSError:
            pass  # no copy, or none that can be read: it is fetched
        content = self._fetched(url)
        _check(content, named)  # a sign-in page that came instead must not stay
        _keep(copy, content, self._where)
        return content

    def _fetched(self, url: str) -> bytes:
        content: bytes = self._get(url) if self._client else in_time(lambda: self._get(url), self._where)
        return content

    def _get(self, url: str) -> bytes:
        """Fetch an address. Redirects are followed within the origin that was asked, so that no server can send this
        program elsewhere."""
        named = f"{self._where}: {shown(url)}" if url != self._root_url else self._where

        def following(url: str, location: str) -> str:
            return self.places.redirect(url, location, what=named)

        client = self._client or client_for(
            self._root_url, auth=self._access.auth, headers=self._access.headers, verify=self._access.verify
        )
        try:
            return bytes(get(client, url, named=named, accept=XML, endpoint="WSDL", following=following).content)
        finally:
            if self._client is None:
                client.close()


def _check(content: bytes, named: str) -> None:
    from lxml import etree

    try:
        check_prolog(content)
    except DoctypeError:
        raise DeclarationError(
            f"{named} has a document type (<!DOCTYPE ...>), which could name other files, so it is not read.\n"
            "  Is it an HTML page, such as a sign-in? Else save a copy without that line."
        ) from None
    except etree.XMLSyntaxError as error:
        raise DeclarationError(f"{named} is no XML: {error.msg}. Is the address right?") from None


def _keep(copy: Path, content: bytes, where: str) -> None:
    """Write a copy as a whole or not at all: another process may read it at the same moment."""
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        replace_file(copy, content)
    except OSError as error:
        raise DeclarationError(
            f"{where}: the cache folder {copy.parent} can't be written: {error.strerror}. Is it right?"
        ) from None


# ---- two schemas that many WSDLs import by their public address: attributes of XML itself, and SOAP's encoding -------


# They are written here in the little that types refer to, so that no WSDL makes burler ask those servers.

_XML_SCHEMA = """\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="http://www.w3.org/XML/1998/namespace">
  <xs:attribute name="lang" type="xs:string"/>
  <xs:attribute name="space" type="xs:NCName"/>
  <xs:attribute name="base" type="xs:anyURI"/>
  <xs:attribute name="id" type="xs:ID"/>
  <xs:attributeGroup name="specialAttrs">
    <xs:attribute ref="xml:base"/><xs:attribute ref="xml:lang"/>
    <xs:attribute ref="xml:space"/><xs:attribute ref="xml:id"/>
  </xs:attributeGroup>
</xs:schema>
"""

_ENCODED = [
    "anyURI",
    "base64Binary",
    "boolean",
    "byte",
    "date",
    "dateTime",
    "decimal",
    "double",
    "duration",
    "float",
    "hexBinary",
    "int",
    "integer",
    "long",
    "NCName",
    "negativeInteger",
    "nonNegativeInteger",
    "positiveInteger",
    "QName",
    "short",
    "string",
    "time",
    "token",
    "unsignedByte",
    "unsignedInt",
    "unsignedLong",
    "unsignedShort",
]


def _encoding() -> str:
    """SOAP 1.1's encoding: each simple type as an element and as a type with attributes, and arrays of anything."""
    named = "".join(
        f'<xs:element name="{name}" type="tns:{name}"/>'
        f'<xs:complexType name="{name}"><xs:simpleContent><xs:extension base="xs:{name}">'
        '<xs:attributeGroup ref="tns:commonAttributes"/></xs:extension></xs:simpleContent></xs:complexType>'
        for name in _ENCODED
    )
    return f"""\
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:tns="http://schemas.xmlsoap.org/soap/encoding/"
    targetNamespace="http://schemas.xmlsoap.org/soap/encoding/">
  <xs:attribute name="root" type="xs:boolean"/>
  <xs:attribute name="arrayType" type="xs:string"/>
  <xs:attribute name="offset" type="xs:string"/>
  <xs:attribute name="position" type="xs:string"/>
  <xs:attributeGroup name="commonAttributes">
    <xs:attribute name="id" type="xs:ID"/><xs:attribute name="href" type="xs:anyURI"/>
  </xs:attributeGroup>
  <xs:attributeGroup name="arrayAttributes">
    <xs:attribute ref="tns:arrayType"/><xs:attribute ref="tns:offset"/>
  </xs:attributeGroup>
  <xs:group name="Array">
    <xs:sequence><xs:any namespace="##any" minOccurs="0" maxOccurs="unbounded" processContents="lax"/></xs:sequence>
  </xs:group>
  <xs:complexType name="Array">
    <xs:group ref="tns:Array" minOccurs="0"/>
    <xs:attributeGroup ref="tns:arrayAttributes"/><xs:attributeGroup ref="tns:commonAttributes"/>
  </xs:complexType>
  <xs:element name="Array" type="tns:Array"/>
  <xs:simpleType name="base64"><xs:restriction base="xs:base64Binary"/></xs:simpleType>
  {named}
</xs:schema>
"""


def _known_document(location: str) -> bytes | None:
    """The document at one of the public addresses that burler has a copy of; None for any other."""
    place = location.removeprefix("https://").removeprefix("http://")
    if place in ("www.w3.org/2001/xml.xsd", "www.w3.org/2001/03/xml.xsd", "www.w3.org/2009/01/xml.xsd"):
        return _XML_SCHEMA.encode()
    if place == "schemas.xmlsoap.org/soap/encoding/":
        return _encoding().encode()
    return None
