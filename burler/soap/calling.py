"""One call of a SOAP operation: zeep makes the envelope, burler.http sends it, and the answer is looked at before
anything is made of it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burler.errors import HttpError, SoapError
from burler.http.masking import mask_url
from burler.soap.documents import DoctypeError, check_prolog
from burler.soap.faults import body_of, fault_error, fault_in

if TYPE_CHECKING:
    import requests

_FAULT_STATUSES = (400, 500)  # SOAP 1.1 answers faults with 500, SOAP 1.2 those of the sender with 400
_MOST_LEVELS = 64
_MOST_MORE = 100_000
_MOST_TIMES = 4


@dataclass
class Answer:
    """The reply to a call.

    Attributes:
        body: the envelope's Body.
        element: the first element in it; None of an empty Body.
    """

    response: requests.Response
    envelope: Any
    body: Any
    element: Any


@dataclass
class Sending:
    """What zeep takes for its client while it makes and sends one envelope.

    Attributes:
        repeat: the operation only reads: it may be sent again.
        answer: what came.
        made: zeep has made the envelope: the parameters fit.
        answers: the operation answers something: nothing is no answer.
    """

    http: Any
    operation: str
    repeat: bool
    address: str
    settings: Any
    wsse: Any = None
    plugins: list[Any] = field(default_factory=list)
    answer: Answer | None = None
    made: bool = False
    answers: bool = True

    @property
    def transport(self) -> Sending:
        """zeep asks its client for its transport; this is both."""
        return self

    def post_xml(self, address: str, envelope: Any, headers: dict[str, str]) -> requests.Response:
        """Send an envelope. What is no envelope (a page of a proxy, half a document) counts as no answer: it
        is asked for again where the operation may be sent again.

        Raises:
            Fault: the service says so.
            HttpError: there is no answer.
        """
        from lxml import etree

        self.made = True
        content = etree.tostring(envelope, xml_declaration=True, encoding="utf-8")
        response: requests.Response = self.http.request(
            "POST",
            address,
            data=content,
            headers=headers,
            endpoint=self.operation,
            retry=True if self.repeat else None,
            allow_statuses=_FAULT_STATUSES,
            check=self._look,
        )
        assert self.answer is not None
        return response

    def _look(self, response: requests.Response) -> None:
        """Take the reply apart.

        Raises:
            ValueError: it is no envelope.
            Fault: it is one.
        """
        if not response.content and response.status_code in (200, 201, 202, 204):
            if self.answers:
                raise ValueError("nothing at all")
            self.answer = Answer(response, None, None, None)
            return
        envelope = parse_envelope(response)
        body = body_of(envelope)
        if body is None:
            raise ValueError(f"no SOAP envelope but <{_tag(envelope)}>")
        fault = fault_in(body)
        if fault is not None:
            raise fault_error(fault, operation=self.operation, where=mask_url(self.address))
        if response.status_code in _FAULT_STATUSES:
            raise ValueError(f"status {response.status_code} without a fault")
        element = next(iter(body), None)
        self.answer = Answer(response, envelope, body, element)


def parse_envelope(response: requests.Response) -> Any:
    """The XML of a reply, also of one with attachments.

    Raises:
        ValueError: it is no XML, or has a document type, which SOAP forbids.
    """
    from lxml import etree

    content = response.content
    kind = response.headers.get("Content-Type", "")
    parts: list[Any] = []
    if kind.lower().startswith("multipart/related"):
        content, parts = _parts(content, kind)
    try:
        check_prolog(content)
        # huge_tree lets texts be longer than 10 MB (files in base64); the client limits the whole, and there are no
        # entities that could grow.
        parser = etree.XMLParser(
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            remove_comments=True,
            remove_pis=True,
            huge_tree=True,
        )
        envelope = etree.fromstring(content, parser)
    except DoctypeError:
        raise ValueError("a document type (<!DOCTYPE ...>), which no SOAP answer has") from None
    except etree.XMLSyntaxError as error:
        raise ValueError(f"no XML: {error.msg}") from None
    if parts:
        from zeep.wsdl.attachments import MessagePack
        from zeep.wsdl.messages.xop import process_xop

        process_xop(envelope, MessagePack(parts=parts))
    return envelope


def _parts(content: bytes, kind: str) -> tuple[bytes, list[Any]]:
    """The root part of a reply with attachments, and the others."""
    from requests_toolbelt.multipart.decoder import (  # type: ignore[import-untyped]
        ImproperBodyPartContentException,
        MultipartDecoder,
    )

    try:
        parts = MultipartDecoder(content, kind, "utf-8").parts
    except (ImproperBodyPartContentException, ValueError, TypeError, AttributeError) as error:  # no boundary
        raise ValueError(f"broken parts ({type(error).__name__})") from None
    if not parts:
        raise ValueError("no parts")
    return parts[0].content, list(parts[1:])


def call(sending: Sending, operation: Any, params: dict[str, Any], headers: Any = None) -> Answer:
    """Call an operation.

    Args:
        operation: zeep's.
        headers: SOAP headers, as zeep takes them.

    Raises:
        SoapError: the parameters are not those of the operation; or a fault.
        HttpError: there is no answer.
    """
    import zeep.exceptions

    given = dict(params) if headers is None else {**params, "_soapheaders": headers}
    options = {"address": sending.address}
    try:
        operation.binding.send(sending, options, operation.name, (), given)
    except HttpError as error:
        said = str(error).replace("If it may be repeated, say retry=True.", "If it only reads, name it in safe=[...].")
        error.args = (f"SOAP operation '{operation.name}': {said}", *error.args[1:])
        raise
    except (TypeError, AttributeError, zeep.exceptions.Error) as error:
        if sending.made:
            raise
        text = " ".join(str(error).split())
        raise SoapError(
            f"SOAP operation '{operation.name}': its parameters don't fit: {text:.300}\n  It takes: {_takes(operation)}"
        ) from error
    assert sending.answer is not None
    _arrange(sending.answer, operation)
    return sending.answer


def _arrange(answer: Answer, operation: Any) -> None:
    """Bring answers of older kinds into the form of all others: one element that holds everything."""
    if answer.body is None:
        return
    if operation.style == "rpc":
        try:
            _put_in_place(answer.body)
        except ValueError as error:
            raise SoapError(f"SOAP operation '{operation.name}': the answer can't be read: {error}.") from None
        answer.element = next(iter(answer.body), None)
    elif getattr(operation.output, "_is_body_wrapped", False):  # several parts, side by side in the body
        answer.element = answer.body


def _takes(operation: Any) -> str:
    try:
        return f"{operation.input.signature()!s:.300}" or "nothing"
    except Exception:  # zeep can't print all types
        return "see the WSDL."


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2][:60]


# ---- answers in SOAP's own encoding, whose values may stand elsewhere in the body: <item href="#id1"/> ---------------


def _put_in_place(body: Any) -> None:
    """Put what an answer refers to in the place of the reference, and take it away from the body.

    A few references that refer to each other can stand for more elements than there is memory for, so there is a limit:
    four times the elements of the body, and 100,000.

    Args:
        body: the envelope's; its first element is the answer, those that have an ``id`` may be referred to.

    Raises:
        ValueError: something holds itself, or the answer becomes too big.
    """
    answer = next(iter(body), None)
    targets = {one.get("id"): one for one in body if one is not answer and one.get("id") is not None}
    if answer is None or not targets:
        return
    sizes = {name: sum(1 for _ in one.iter()) for name, one in targets.items()}
    left = _MOST_MORE + _MOST_TIMES * sum(1 for _ in body.iter())
    stack: list[tuple[Any, tuple[str, ...]]] = [(answer, ())]
    while stack:
        element, around = stack.pop()
        href = element.get("href", "")
        name = href[1:]
        if href[:1] == "#" and name in targets:
            if name in around or len(around) >= _MOST_LEVELS:
                raise ValueError(f"what '#{name:.60}' refers to holds itself, or is nested too deep")
            left -= sizes[name]
            if left < 0:
                raise ValueError("its references stand for far more elements than it has; it is not read")
            element, around = _replaced(element, targets[name]), (*around, name)
        stack += [(child, around) for child in element]
    for one in targets.values():
        body.remove(one)


def _replaced(element: Any, target: Any) -> Any:
    """A copy of ``target`` under the name and in the place of ``element``. Its prefixes come along: types are named by
    them (``xsi:type="n:Item"``)."""
    from lxml import etree

    new = etree.Element(element.tag, {key: text for key, text in target.items() if key != "id"}, nsmap=target.nsmap)
    new.text = target.text
    new.extend([deepcopy(child) for child in target])
    element.getparent().replace(element, new)
    return new
