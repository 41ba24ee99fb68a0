"""A server on 127.0.0.1 that answers with what a test gives it, and remembers every request."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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
    ``seen`` has (method, path, headers, body) of each request. ``open`` counts the connections; with ``keep_alive`` it
    is the client who ends them.
    """

    def __init__(self, keep_alive=False):
        self.pages = {}
        self.seen = []
        self.open = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1" if keep_alive else "HTTP/1.0"

            def setup(self):
                outer.open += 1
                super().setup()

            def finish(self):
                super().finish()
                outer.open -= 1

            def do_GET(self):
                outer.answer(self)

            do_POST = do_GET

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"] or 0))
        self.seen.append((handler.command, handler.path, dict(handler.headers), body))
        page = self.pages.get(handler.path, self.pages.get("*", (404, {}, b"not here")))
        if callable(page):
            page = page(handler.path, body)
        status, headers, content = page if isinstance(page, tuple) else (200, {"Content-Type": "text/xml"}, page)
        content = content.encode() if isinstance(content, str) else content
        try:
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            pass  # the client has gone

    @property
    def paths(self):
        return [path for _, path, _, _ in self.seen]

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def serve_crm(self):
        """The WSDL of the contacts' service, with its address here; gives the WSDL's address."""
        self.pages["/crm.wsdl"] = CRM.replace("http://127.0.0.1:9/soap", f"{self.url}/soap").encode()
        self.pages.update(TYPES)
        return f"{self.url}/crm.wsdl"
