"""The documents of a WSDL as bytes: read or fetched from the places that ``wsdl_places`` lets through, and looked at
before any parser builds something of them. zeep takes this for its transport.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.errors import BurlerError, DeclarationError
from burler.http.origins import is_web
from burler.localfile import replace_file
from burler.schema.documents import MOST_BYTES, client_for, get, in_time, shown
from burler.schema.wsdl_known import known_document
from burler.schema.wsdl_places import Places

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
        known = known_document(location) or self._root.get(location)
        if known is not None:
            return known
        place = self.places.check(location, what=self._where)
        self._count += 1
        if self._count > MOST_DOCUMENTS:
            raise DeclarationError(f"{self._where} names more than {MOST_DOCUMENTS} documents. Is it the right one?")
        named = f"{self._where}: the document {shown(place)}" if place != self.places.root else self._where
        url = self._root_url if place == self.places.root else place
        content = self._cached(url, named) if is_web(place) else _read(Path(place), named)
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


def _read(path: Path, named: str) -> bytes:
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "no regular file"
            raise DeclarationError(f"{named} is {kind}. Give the path of a WSDL or XSD file.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DeclarationError(f"{named}: {error.strerror}. Is the path right?") from None
    except ValueError as error:  # a null byte in the name
        raise DeclarationError(f"{named} can't be read: {error}.") from None
    if len(content) > MOST_BYTES:
        raise DeclarationError(f"{named} is larger than {MOST_BYTES // 2**20} MiB, too large for a WSDL.")
    return content


def _keep(copy: Path, content: bytes, where: str) -> None:
    """Write a copy as a whole or not at all: another process may read it at the same moment."""
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        replace_file(copy, content)
    except OSError as error:
        raise DeclarationError(
            f"{where}: the cache folder {copy.parent} can't be written: {error.strerror}. Is it right?"
        ) from None
