"""A server that makes exports when it is asked to, and takes its time."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Exports:
    """What the server knows. ``looks_needed``: so often a job is looked at before it is ready."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.headers: dict[str, str] = {}
        self.jobs: dict[str, int] = {}
        self.looks_needed = 3
        self.log: list[str] = []
        self.broken_downloads = 0


def _handler(exports):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _send(self, status, body, headers=None):
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _json(self, status, value):
            self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            job = f"job-{len(exports.jobs) + 1}"
            exports.jobs[job] = 0
            exports.log.append(f"ask {job}")
            self._json(202, {"id": job})

        def do_DELETE(self):
            job = self.path.rpartition("/")[2]
            exports.log.append(f"cancel {job}")
            exports.jobs.pop(job, None)
            self._json(200, {})

        def do_GET(self):
            exports.log.append(f"get {self.path}")
            name = self.path.rpartition("/")[2]
            if self.path.startswith("/files/"):
                body = exports.files[name]
                if exports.broken_downloads:
                    exports.broken_downloads -= 1
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body[: len(body) // 2])
                    self.close_connection = True
                    return
                self._send(200, body, exports.headers)
            elif name not in exports.jobs:
                self._json(404, {"error": "no such job"})
            else:
                exports.jobs[name] += 1
                done = exports.jobs[name] >= exports.looks_needed
                self._json(200, {"urls": [f"/files/{one}" for one in exports.files] if done else None})

        def log_message(self, *args):
            pass

    return Handler


@contextlib.contextmanager
def serving():
    """``(url, exports)`` of a server that runs in a thread."""
    exports = Exports()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(exports))
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", exports
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
