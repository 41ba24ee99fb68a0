"""Pieces of the client: the port of a WSDL, addresses, signatures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from burler.config.secrets import hide
from burler.errors import DeclarationError
from burler.http.origins import is_web
from burler.soap.calling import Answer
from burler.soap.definitions import Wsdl
from burler.soap.documents import file_of
from burler.soap.elements import local_name
from burler.soap.lookup import Way


def elements_at(answer: Answer, way: Way) -> list[Any]:
    """The elements at the end of a way into an answer."""
    found = [] if answer.element is None else [answer.element]
    for step in way.steps:
        found = [child for node in found for child in node if step is None or child.tag.rpartition("}")[2] == step]
    return found


def fields_beside(answer: Answer, way: Way) -> dict[str, str]:
    """The texts that stand beside the elements on a way into an answer, by their names."""
    found: dict[str, str] = {}
    node = answer.element
    for step in way.steps:
        if node is None:
            break
        found |= {local_name(child.tag): child.text for child in node if not len(child) and child.text}
        node = next((child for child in node if step is None or local_name(child.tag) == step), None)
    return found


def root_of(url: str) -> str:
    """The top of an address's server."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "/", "", ""))


def listed(allow: str | Path | Sequence[str | Path], base: Path) -> tuple[str, ...]:
    """Places as whole paths and addresses."""
    places = [allow] if isinstance(allow, str | Path) else list(allow)
    return tuple(str(place) if is_web(str(place)) else str(base / file_of(str(place))) for place in places)


def port_of(wsdl: Wsdl, service: str | None, port: str | None, *, where: str) -> Any:
    """zeep's port: the one that is named, else the first that speaks SOAP.

    Raises:
        DeclarationError: there is none.
    """
    services = wsdl.document.services if wsdl.document is not None else {}
    if service is not None and service not in services:
        raise DeclarationError(f"{where} has no service '{service}'. Services: {', '.join(services) or 'none'}.")
    ports = {
        name: one
        for own, found in services.items()
        if service in (None, own)
        for name, one in found.ports.items()
        if hasattr(one.binding, "nsmap") and "soap-env" in one.binding.nsmap
    }
    if port is not None and port not in ports:
        raise DeclarationError(f"{where} has no SOAP port '{port}'. Ports: {', '.join(ports) or 'none'}.")
    if not ports:
        raise DeclarationError(f"{where} has no SOAP port, so nothing can be called.")
    return ports[port] if port is not None else next(iter(ports.values()))


def known_names(safe: Collection[str], operations: Mapping[str, Any], *, where: str) -> frozenset[str]:
    """The names of operations that may be sent again.

    Raises:
        DeclarationError: one is no operation.
    """
    names = frozenset((safe,) if isinstance(safe, str) else safe)
    for name in sorted(names - set(operations)):
        raise DeclarationError(
            f"{where}: safe names '{name}', which is no operation. Operations: {', '.join(list(operations)[:12])}."
        )
    return names


def token(username: str | None, password: str | None, digest: bool) -> Any:
    """WS-Security's UsernameToken; None without a name."""
    if username is None:
        if password is not None:
            raise DeclarationError("burler.soap.Client: a password without a username. Give both, or neither.")
        return None
    from zeep.wsse.username import UsernameToken

    if password:
        hide(password)
    return UsernameToken(username, password, use_digest=digest)


def raw_settings() -> Any:
    """zeep's settings for calls: burler itself reads the answers."""
    import zeep

    return zeep.Settings(raw_response=True, forbid_dtd=True)
