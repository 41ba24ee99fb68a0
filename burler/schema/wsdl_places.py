"""Where documents of a WSDL may lie. A WSDL names others (imports, includes), and whoever wrote it may name any file of
this machine and any server that this machine reaches; so only what lies beside it is read, and what its author allows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from burler.errors import DeclarationError
from burler.http.origins import as_sent, begins, climbs, is_web, same_origin
from burler.schema.documents import shown


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
