"""A stream's schema from a WSDL or an XSD, through zeep."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burler.call import callers_folder
from burler.errors import BurlerError, DeclarationError
from burler.http.origins import is_web
from burler.schema.documents import shown
from burler.schema.sources import of_config
from burler.soap.definitions import Wsdl, read_wsdl
from burler.soap.documents import Access, Documents, Places, file_of, open_address
from burler.soap.lookup import records_at, type_of
from burler.soap.schemas import ObjectSchemas

Config = Mapping[str, Any]
Place = str | Path | Callable[[Config], str | Path]
_STREAM = re.compile(r"stream '(.*?)'")


@dataclass(frozen=True, slots=True)
class WsdlSource:
    """A schema in a WSDL; see ``wsdl``."""

    source: Place
    base: Path
    element: str | None = None
    operation: str | None = None
    rows: str | None = None
    modify: Callable[..., Any] | None = None
    parse: Callable[..., Any] | None = None
    auth: Any = None
    headers: Any = None
    verify: Any = True
    cache: Any = None
    cache_seconds: float | None = 86400.0
    allow: Any = ()
    recursive: str | int = "error"

    def load(self, *, where: str, config: Config) -> dict[str, Any]:
        """The schema of the element's, or the operation's, records.

        Raises:
            DeclarationError: the WSDL can't be read or may not be, the element is not there, it holds no fields, its
                type holds itself, or a function of the author fails.
            MissingExtra: zeep is not installed.
        """
        wsdl, named = self.read(where=where, config=config)
        if self.parse is not None:
            made = _called(self.parse, "parse", wsdl.document or wsdl.types, where=where)
            schema = made if isinstance(made, Mapping) else self._schema_of(wsdl, made, named)
        else:
            found = _STREAM.match(where)
            kind = type_of(
                wsdl, element=self.element, operation=self.operation, stream=found[1] if found else "", where=named
            )
            schema = self._schema_of(wsdl, kind, named)
        if self.modify is not None:
            changed = _called(self.modify, "modify", schema, where=where)
            schema = schema if changed is None else changed
        if not isinstance(schema, dict):
            raise DeclarationError(f"{where}: wsdl: modify gives the schema, a dict, not {type(schema).__name__}.")
        return schema

    def read(self, *, where: str, config: Config) -> tuple[Wsdl, str]:
        """The WSDL, and words for errors that name it.

        Raises:
            DeclarationError: see ``load``.
        """
        place = of_config(self.source, config, what="the document", where=f"{where}: wsdl")
        if not isinstance(place, str | Path) or not str(place):
            raise DeclarationError(f"{where}: wsdl: the document is a path or a URL, not {type(place).__name__}.")
        user, url = None, str(place)
        if is_web(url):
            location, user = open_address(url)
        else:
            location = url = str((self.base / file_of(url)).resolve())
        named = f"{where}: WSDL {shown(location)}"
        access = self._access(config, where, user)
        documents = Documents(
            Places.of(location, of_config(self.allow, config, what="allow", where=f"{where}: wsdl"), self.base),
            access,
            where=named,
            root_url=url,
        )
        return read_wsdl(location, documents, where=named), named

    def _access(self, config: Config, where: str, user: tuple[str, str] | None) -> Access:
        named = f"{where}: wsdl"
        cache = of_config(self.cache, config, what="cache", where=named)
        auth = self.auth if _is_auth(self.auth) else of_config(self.auth, config, what="auth", where=named)
        return Access(
            auth=auth or user,
            headers=of_config(self.headers, config, what="headers", where=named) or {},
            verify=self.verify,
            cache=self.base / cache if cache else None,
            cache_seconds=self.cache_seconds,
        )

    def _schema_of(self, wsdl: Wsdl, kind: Any, named: str) -> dict[str, Any]:
        found = records_at(getattr(kind, "type", kind), self.rows, unwrap=self.operation is not None, where=named)
        schema = ObjectSchemas(wsdl, recursive=self.recursive, where=named).record(found.kind)
        if not schema.get("properties"):
            raise DeclarationError(
                f"{named}: '{self.element or self.operation or 'what parse gave'}' has no fields, so it is no "
                "stream's rows.\n  Say with rows= where the records lie, or name another element."
            )
        return schema


def wsdl(
    url: Place | None = None,
    *,
    filepath: Place | None = None,
    element: str | None = None,
    operation: str | None = None,
    rows: str | None = None,
    modify: Callable[..., Any] | None = None,
    parse: Callable[..., Any] | None = None,
    auth: Any = None,
    headers: Mapping[str, str] | Callable[[Config], Mapping[str, str]] | None = None,
    verify: bool | str = True,
    cache: Place | None = None,
    cache_seconds: float | None = 86400.0,
    allow: str | Path | Sequence[str | Path] | Callable[[Config], Any] = (),
    recursive: str | int = "error",
) -> WsdlSource:
    """A schema from a WSDL or an XSD.

    Any of ``url``, ``filepath``, ``auth``, ``headers``, ``cache`` and ``allow`` may be a function of the config.

    Args:
        url: an http(s) address, fetched at each discovery and run unless ``cache`` has a copy.
        filepath: a path instead; it counts from the folder of the module that calls this.
        element: an element or a type by its name, also as "{namespace}name". Without it and ``operation``, the one
            that is named as the stream is, in singular or plural.
        operation: a call, of which the answer is taken.
        rows: where the records lie in it: "ListContactsResult.Contacts.Contact". Without it an operation's wrappers
            are taken off: whatever holds one field only.
        modify: gets the schema, and changes it or gives another.
        parse: gets zeep's document (its ``Document``, or ``Schema`` of an XSD) and gives an element, a type or a
            schema: for what names can't say.
        auth, headers, verify: as ``requests`` takes them; credentials go to the origin of ``url`` alone.
        cache: a folder for copies of what is fetched; for how long they are good: ``cache_seconds``.
        allow: further places that documents may be imported from: beginnings of addresses, folders. Without it, all
            must be of the WSDL's own origin, or in its folder and below.
        recursive: what to do with a type that holds itself: "error"; "open", to admit anything there; or how often it
            may stand in itself.

    Raises:
        ValueError: both or none of ``url`` and ``filepath``, ``element`` and ``operation`` at once, or a wrong
            ``rows`` or ``recursive``.
    """
    source = filepath if url is None else url
    if source is None or (url is not None and filepath is not None):
        raise ValueError("burler.wsdl: give either url=... or filepath=....")
    if sum(one is not None for one in (element, operation, parse)) > 1:
        raise ValueError("burler.wsdl: give one of element=..., operation=... and parse=....")
    if rows is not None and not all(rows.split(".")):
        raise ValueError(f"rows={rows!r} is no path. Write names parted by dots, as in 'Contacts.Contact'.")
    depth = isinstance(recursive, int) and not isinstance(recursive, bool) and 1 <= recursive <= 20
    if not depth and recursive not in ("error", "open"):
        raise ValueError(f"recursive={recursive!r} is unknown. Known: 'error', 'open', a number from 1 to 20.")
    return WsdlSource(
        source, callers_folder(), element, operation, rows, modify, parse, auth, headers, verify, cache,
        cache_seconds, allow, recursive,
    )  # fmt: skip


def _is_auth(value: Any) -> bool:
    """Whether something callable is no function of the config but a way to sign requests."""
    from requests.auth import AuthBase

    return isinstance(value, AuthBase)


def _called(function: Callable[..., Any], what: str, *arguments: Any, where: str) -> Any:
    try:
        return function(*arguments)
    except BurlerError:
        raise
    except Exception as error:
        raise DeclarationError(
            f"{where}: wsdl: the function {what}= failed: {type(error).__name__}: {error}"
        ) from error
