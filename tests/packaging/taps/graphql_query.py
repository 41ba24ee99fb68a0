"""A query that is parsed where it is declared, and gives its rows from a server of its own."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import burler

tap = burler.tap("tap-ships")
SHIPS = burler.graphql.Query("query { ships { edges { node { id } } pageInfo { hasNextPage endCursor } } }")
PAGE = {"ships": {"edges": [{"node": {"id": 7}}], "pageInfo": {"hasNextPage": False, "endCursor": None}}}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"data": PAGE}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@tap.client
def client(config):
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return burler.http.Client(f"http://127.0.0.1:{server.server_port}")


@tap.sync("ships", key_properties="id")
def ships(client):
    yield from SHIPS.pages(client)


tap.schema("ships", {"type": "object", "properties": {"id": {"type": "integer"}}})
