"""A SOAP service, as authors use it."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import msgspec

from burler.call import callers_folder
from burler.config.secrets import hide
from burler.context import running
from burler.errors import DeclarationError, SoapError
from burler.extras import require
from burler.http.client import Client as HttpClient
from burler.http.masking import mask_url
from burler.http.origins import is_web, same_origin
from burler.http.paging_signs import more_said
from burler.http.reply import Reply
from burler.schema.documents import shown
from burler.soap.calling import Answer, Sending, call
from burler.soap.definitions import Wsdl, read_wsdl
from burler.soap.documents import Access, Documents, Places, file_of, open_address
from burler.soap.elements import elements_at, fields_beside, open_value, stranger
from burler.soap.fields import is_complex
from burler.soap.lookup import Way, operation_of, records_at, way_to
from burler.soap.paging import Paging, with_param
from burler.soap.reading import Reader
from burler.words import counted

logger = logging.getLogger("burler")

_ROWS = " rows"  # no element is called so

Row = dict[str, Any]


class Client:
    """Calls a SOAP service by its WSDL.

    One client serves all threads of a run; the WSDL is read when it is made.

    Args:
        wsdl: an http(s) address, or a path, which counts from the folder of the module that calls this.
        http: a ``burler.http.Client`` with the credentials, time limits and retries to use. Its credentials go to the
            origin of its ``base_url`` alone. Without it, one of no credentials is made.
        address: where the service is, if the WSDL is wrong about it.
        service, port: which of the WSDL's, by their names; the first SOAP port of the first service otherwise.
        username, password: for WS-Security's UsernameToken in each envelope; ``digest=True`` sends a digest of the
            password.
        wsse: another way to sign envelopes, as zeep takes it.
        soap_headers: sent with each call, as zeep takes them (``_soapheaders``).
        safe: names of operations that only read, so that they may be sent again when no answer comes.
        zone: of date-times that name no zone: ``datetime.UTC``, ``zoneinfo.ZoneInfo("Europe/Berlin")``.
        cache, cache_seconds, allow: see ``burler.wsdl``.

    Raises:
        DeclarationError: the WSDL can't be read or may not be; there is no such service or port; its address is on
            another server than the WSDL, and ``address`` does not say that this is right.
        MissingExtra: zeep is not installed.
    """

    def __init__(
        self,
        wsdl: str | Path,
        *,
        http: HttpClient | None = None,
        address: str | None = None,
        service: str | None = None,
        port: str | None = None,
        username: str | None = None,
        password: str | None = None,
        digest: bool = False,
        wsse: Any = None,
        soap_headers: Any = None,
        safe: Collection[str] = (),
        zone: datetime.tzinfo | None = None,
        cache: str | Path | None = None,
        cache_seconds: float | None = 86400.0,
        allow: str | Path | Sequence[str | Path] = (),
    ) -> None:
        require("zeep", extra="wsdl", needed_for="burler.soap.Client")
        import zeep

        base = callers_folder()
        url = str(wsdl)
        location = open_address(url)[0] if is_web(url) else str((base / file_of(url)).resolve())
        self._owns_http = http is None
        self.http = http or HttpClient(urljoin(url, "/") if is_web(url) else "")
        self._where = f"burler.soap.Client: WSDL {shown(location)}"
        access = Access(cache=None if cache is None else base / cache, cache_seconds=cache_seconds)
        try:
            self.wsdl = self._read(Places.of(location, allow, base), url, access)
            self._port = _port_of(self.wsdl, service, port, where=self._where)
            self.address = self._address(location, address)
            self._wsse = wsse or _token(username, password, digest)
            self._soap_headers = soap_headers
            self._safe = _known_names(safe, self._port.binding.all(), where=self._where)
            self._reader = Reader(self.wsdl.types, zone)
            self._settings = zeep.Settings(raw_response=True, forbid_dtd=True)  # the answers are read here
        except BaseException:
            self.close()
            raise

    def call(self, operation: str, params: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Call an operation once; gives the whole of its answer, as a row is: a dict, a list, or a value.

        Args:
            params: its parameters, as a mapping, by name, or both: ``client.call("GetContact", Id=5)``.

        Raises:
            SoapError: a fault (``Fault``), or parameters that don't fit.
            HttpError: there is no answer.
            DeclarationError: there is no such operation.
        """
        found = self._operation(operation)
        return self._whole(found, self._send(found, {**(params or {}), **named}))

    def rows(
        self, operation: str, params: Mapping[str, Any] | None = None, *, rows: str | None = None, **named: Any
    ) -> list[Row]:
        """Call an operation once; gives the rows of its answer.

        Args:
            params: see ``call``.
            rows: where they lie in it: "ListContactsResult.Contacts.Contact". Without it wrappers are taken off, as
                ``burler.wsdl`` does.

        Raises:
            SoapError, HttpError: see ``call``.
            DeclarationError: there is no such place, or no such operation.
        """
        found = self._operation(operation)
        way = self._way(found, rows)
        page, count = self._rows_at(found, self._send(found, {**(params or {}), **named}), way)
        self._say_nulls(operation, count - len(page))
        return page

    def pages(
        self,
        operation: str,
        params: Mapping[str, Any] | None = None,
        *,
        rows: str | None = None,
        page_param: str | None = None,
        first_page: Any = 1,
        next_page: str | None = None,
        following: Callable[[Any, dict[str, Any]], Mapping[str, Any] | None] | None = None,
        until: str = "empty",
        page_size: int | None = None,
    ) -> Iterator[list[Row]]:
        """Call an operation page by page; gives the rows of each page that has any.

        Args:
            params: of the first call.
            rows: see ``rows``.
            page_param: the parameter that says which page; "Paging.Page" is ``Page`` inside of ``Paging``.
            first_page: its first value; None leaves it out the first time.
            next_page: where the answer has its next value ("ListContactsResult.NextPage"); nothing ends. A truth value
                there says whether there are more pages, which are numbered. Without it they are numbered, too.
            following: instead of these: a function of the whole answer, as ``call`` gives it, and of the last
                parameters, which gives those of the next call, or None at the end.
            until: of numbered pages without ``next_page``: "empty", the first page without rows ends; "short": so does
                one of fewer than ``page_size`` rows.

        Raises:
            PagingError: a page leads to one that was there before, or there are numbers for what is no number.
            SoapError, HttpError, DeclarationError: see ``rows``.
        """
        found = self._operation(operation)
        paging = Paging(operation, page_param, next_page, following, until, page_size)
        way = self._way(found, rows)
        next_way = None
        if next_page is not None:
            next_way = way_to(found.output.body.type, next_page, where=self._where, what="next_page")
        turn: Mapping[str, Any] | None = dict(params or {})
        if page_param is not None and first_page is not None:
            turn = with_param(turn or {}, page_param, first_page)
        value, nulls, came, number = first_page, 0, 0, 0
        while turn is not None:
            paging.note(turn)
            answer = self._send(found, turn)
            page, count = self._rows_at(found, answer, way)
            nulls += count - len(page)
            came, number = came + count, number + 1
            if page:
                yield page
            if following is not None:
                turn = following(self._whole(found, answer), dict(turn))
                continue
            said = None if next_way is None else next(iter(self._values_at(answer, next_way)), None)
            turn, value = paging.next(turn, value, count, said)
        self._say_nulls(operation, nulls)
        beside = {**fields_beside(answer, way), _ROWS: [{}] * count}
        sign = more_said(Reply.of_body(msgspec.json.encode(beside), (_ROWS,)), rows=came, pages=number)
        run = running()
        if sign is not None and (following is None or run is None or run._reads_all):
            why = f"'{sign.place[-1]}' of the answer says that there are more than {came:,} rows"
            cure = "Say page_param= or next_page=; rows() if it is all."
            logger.warning("SOAP operation '%s': reading ends, and %s. %s", operation, why, cure)
            if run is not None:
                run.may_be_incomplete(f"SOAP operation '{operation}': {why}")

    def close(self) -> None:
        """Close the connections, if no client was given."""
        if self._owns_http:
            self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, places: Places, url: str, access: Access) -> Wsdl:
        documents = Documents(
            places, access, where=self._where, client=self.http, root_url=url if is_web(url) else None
        )
        return read_wsdl(places.root, documents, where=self._where, needed_for="burler.soap.Client")

    def _address(self, location: str, given: str | None) -> str:
        """Where calls go. A WSDL that came over the web says so itself, and passwords go there: so it is taken at
        its word only if it is the WSDL's own server, or the one that the author's client is for."""
        named: str = (self._port.binding_options or {}).get("address") or ""
        if named.startswith("http://") and same_origin("https" + named[4:], location):
            named = "https" + named[4:]  # a service behind a proxy that speaks TLS for it
        address = given or named
        if not is_web(address):
            raise DeclarationError(
                f"{self._where} names no http address of its service. Say it with address='http://...'."
            )
        trusted = [base for base in (location, self.http.base_url) if base and is_web(base)]
        if given is None and trusted and not any(same_origin(base, address) for base in trusted):
            raise DeclarationError(
                f"{self._where} says that its service is at {mask_url(address)}, on another server.\n"
                f"  If that is right, write address='{mask_url(address)}'; else give the one that is."
            )
        return address

    def _operation(self, name: str) -> Any:
        found = self._port.binding.all().get(name)
        if found is None:  # the error knows the names that look like it
            operation_of(self.wsdl, name, where=self._where)
            raise DeclarationError(f"{self._where}: the operation '{name}' is at another port. Say port=....")
        return found

    def _way(self, operation: Any, rows: str | None) -> Way:
        body = operation.output.body if operation.output is not None else None
        if body is None:
            raise DeclarationError(f"{self._where}: the operation '{operation.name}' answers nothing, so no rows.")
        way = records_at(body.type, rows, unwrap=True, where=self._where)
        if not is_complex(way.kind):
            place = rows or operation.name
            raise DeclarationError(f"{self._where}: '{place}' holds no records: it has no fields. Use call() for it.")
        return way

    def _send(self, operation: Any, params: Mapping[str, Any]) -> Answer:
        name = operation.name
        sending = Sending(self.http, name, name in self._safe, self.address, self._settings, self._wsse)
        sending.answers = operation.output is not None and operation.output.body is not None
        return call(sending, operation, dict(params), self._soap_headers)

    def _rows_at(self, operation: Any, answer: Answer, way: Way) -> tuple[list[Row], int]:
        """The rows of an answer, and the number of its elements: null and empty ones are no rows.

        Raises:
            SoapError: it is another answer than the WSDL's, so that having no rows would mean nothing.
        """
        fact = stranger(operation, answer, way)
        if fact:
            raise SoapError(
                f"SOAP operation '{operation.name}': the answer is not the one of the WSDL: {fact}.\n"
                "  Look at what the service sends, and whether its WSDL is a newer one."
            )
        read = self._reader.record(way.kind)
        elements = elements_at(answer, way)
        try:
            return [row for row in map(read, elements) if row is not None], len(elements)
        except RecursionError:
            raise self._too_deep() from None

    def _say_nulls(self, operation: str, nulls: int) -> None:
        if nulls:
            logger.warning("SOAP operation '%s': %s left out, null or empty.", operation, counted(nulls, "row"))

    def _values_at(self, answer: Answer, way: Way) -> Iterator[Any]:
        return map(self._reader.value(way.kind), elements_at(answer, way))

    def _whole(self, operation: Any, answer: Answer) -> Any:
        if answer.element is None:
            return None
        body = operation.output.body if operation.output is not None else None
        read = open_value if body is None else self._reader.value(body.type)
        try:
            return read(answer.element)
        except RecursionError:
            raise self._too_deep() from None

    def _too_deep(self) -> SoapError:
        return SoapError(f"SOAP at {mask_url(self.address)}: the answer is nested too deep to be read.")


def _port_of(wsdl: Wsdl, service: str | None, port: str | None, *, where: str) -> Any:
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


def _known_names(safe: Collection[str], operations: Mapping[str, Any], *, where: str) -> frozenset[str]:
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


def _token(username: str | None, password: str | None, digest: bool) -> Any:
    """WS-Security's UsernameToken; None without a name."""
    if username is None:
        if password is not None:
            raise DeclarationError("burler.soap.Client: a password without a username. Give both, or neither.")
        return None
    from zeep.wsse.username import UsernameToken

    if password:
        hide(password)
    return UsernameToken(username, password, use_digest=digest)
