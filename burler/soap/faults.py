"""SOAP faults as errors."""

from __future__ import annotations

from typing import Any

from burler.config.secrets import masked
from burler.errors import SoapError

SOAP_11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP_12 = "http://www.w3.org/2003/05/soap-envelope"
_ENVELOPES = (SOAP_11, SOAP_12)
_MOST_TEXT = 300
_CURES = {
    "Client": "The service does not like what was sent: compare the parameters with its documentation.",
    "Sender": "The service does not like what was sent: compare the parameters with its documentation.",
    "Server": "The service failed by itself: try later; safe=[...] names operations that may be sent again.",
    "Receiver": "The service failed by itself: try later; safe=[...] names operations that may be sent again.",
    "VersionMismatch": "The service speaks another version of SOAP: choose another port with port=....",
    "MustUnderstand": "The service does not know a header that was sent.",
}


class Fault(SoapError):
    """A service answered with a fault.

    Attributes:
        operation: what was called.
        code: the code without its prefix: "Client", "Server.Busy", "Receiver".
        subcodes: those of SOAP 1.2, the outer first.
        text: what the service says.
        detail: the text of the fault's detail, cut to 300 characters.
    """

    def __init__(
        self, message: str, *, operation: str, code: str, text: str, subcodes: tuple[str, ...] = (), detail: str = ""
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.code = code
        self.subcodes = subcodes
        self.text = text
        self.detail = detail


def body_of(envelope: Any) -> Any:
    """The Body of an envelope; None where the document is no envelope."""
    for namespace in _ENVELOPES:
        if envelope.tag == f"{{{namespace}}}Envelope":
            return envelope.find(f"{{{namespace}}}Body")
    return None


def fault_in(body: Any) -> Any:
    """The Fault in a Body; None if there is none."""
    for namespace in _ENVELOPES:
        found = body.find(f"{{{namespace}}}Fault")
        if found is not None:
            return found
    return None


def fault_error(fault: Any, *, operation: str, where: str) -> Fault:
    """The error that a Fault is.

    Args:
        where: the address, masked.
    """
    if fault.tag.startswith(f"{{{SOAP_12}}}"):
        code, subcodes = _codes_12(fault)
        text = fault.findtext(f"{{{SOAP_12}}}Reason/{{{SOAP_12}}}Text") or ""
        detail = fault.find(f"{{{SOAP_12}}}Detail")
    else:
        code, subcodes = _local(fault.findtext("faultcode") or ""), ()
        text = fault.findtext("faultstring") or ""
        detail = fault.find("detail")
    shown = _shown(text) or "(no text)"
    inside = _shown(" ".join(part.strip() for part in detail.itertext() if part.strip())) if detail is not None else ""
    codes = " ".join(filter(None, (code, *subcodes))) or "without a code"
    more = f"\n  detail: {inside}" if inside else ""
    cure = _CURES.get(code.partition(".")[0], "See the service's documentation for this code.")
    return Fault(
        f"SOAP operation '{operation}' at {where}: fault {codes}: {shown}{more}\n  {cure}",
        operation=operation,
        code=code,
        subcodes=subcodes,
        text=shown,
        detail=inside,
    )


def _codes_12(fault: Any) -> tuple[str, tuple[str, ...]]:
    codes: list[str] = []
    node = fault.find(f"{{{SOAP_12}}}Code")
    while node is not None and len(codes) < 10:
        codes.append(_local(node.findtext(f"{{{SOAP_12}}}Value") or ""))
        node = node.find(f"{{{SOAP_12}}}Subcode")
    return (codes[0], tuple(codes[1:])) if codes else ("", ())


def _local(code: str) -> str:
    return code.strip().rpartition(":")[2]


def _shown(text: str) -> str:
    """A text of the service for an error: one line, not too long, no secrets."""
    line = masked(" ".join(text.split()))
    return line if len(line) <= _MOST_TEXT else line[:_MOST_TEXT] + "..."
