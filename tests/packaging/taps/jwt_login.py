"""Rows from a server that gives a token for a signed statement, and looks at both."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import burler

tap = burler.tap("tap-signed")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.answer({"access_token": "given", "expires_in": 3600} if asked.count(".") >= 2 else {})

    def do_GET(self):
        self.answer([{"id": 1}] if self.headers["Authorization"] == "Bearer given" else [])

    def answer(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@tap.client
def client(config):
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    secret = "a shared secret that is long enough"
    login = burler.http.jwt_assertion(key=secret, issuer="me", token_url=f"{url}/token", algorithm="HS256")
    return burler.http.Client(url, auth=login)


@tap.sync("rows", key_properties="id")
def rows(client):
    yield from client.pages("/rows")


tap.schema("rows", {"type": "object", "properties": {"id": {"type": "integer"}}})
