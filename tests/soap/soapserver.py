"""A server on 127.0.0.1 that answers with what a test gives it, and remembers every request."""

from __future__ import annotations

from pathlib import Path

from requests.structures import CaseInsensitiveDict

from support.servers import serving

DATA = Path(__file__).parent.parent / "schema" / "data" / "wsdl"
CRM = (DATA / "crm.wsdl").read_text(encoding="utf-8")
TYPES = {f"/parts/{name}": (DATA / "parts" / name).read_bytes() for name in ("types.xsd", "simple.xsd", "money.xsd")}

SOAP_11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP_12 = "http://www.w3.org/2003/05/soap-envelope"


def envelope(inside, namespace=SOAP_11):
    return (
        f'<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="{namespace}" xmlns:c="urn:crm:types" '
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><s:Body>{inside}</s:Body></s:Envelope>'
    ).encode()


def fault(code, text, detail=""):
    return envelope(
        f"<s:Fault><faultcode>s:{code}</faultcode><faultstring>{text}</faultstring><detail>{detail}</detail></s:Fault>"
    )


class Web:
    """A server.

    ``pages`` maps a path to a body, to (status, headers, body), or to a function of (path, body) that gives one.
    ``seen`` has (method, path, headers, body) of each request. ``open`` counts the connections.
    """

    def __init__(self):
        self.pages = {}
        self.seen = []
        self._running = serving(self._answer)
        self._server = self._running.__enter__()
        self.port, self.url = self._server.port, self._server.url

    @property
    def open(self):
        return self._server.open

    def _answer(self, asked):
        self.seen.append((asked.method, asked.raw, CaseInsensitiveDict(asked.headers), asked.body))
        page = self.pages.get(asked.raw, self.pages.get("*", (404, {}, b"not here")))
        if callable(page):
            page = page(asked.raw, asked.body)
        status, headers, content = page if isinstance(page, tuple) else (200, {"Content-Type": "text/xml"}, page)
        content = content.encode() if isinstance(content, str) else content

        def broken_off(connection):
            connection.send(status, content, headers)
            connection.wfile.flush()
            connection.end()

        return broken_off if "Content-Length" in headers else (status, headers, content)

    @property
    def paths(self):
        return [path for _, path, _, _ in self.seen]

    def stop(self):
        self._running.__exit__(None, None, None)

    def serve_crm(self):
        """The WSDL of the contacts' service, with its address here; gives the WSDL's address."""
        self.pages["/crm.wsdl"] = CRM.replace("http://127.0.0.1:9/soap", f"{self.url}/soap").encode()
        self.pages.update(TYPES)
        return f"{self.url}/crm.wsdl"
