"""A server that makes exports when it is asked to, and takes its time."""

from __future__ import annotations

import contextlib

import support.servers


class Exports:
    """What the server knows. ``looks_needed``: so often a job is looked at before it is ready."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.headers: dict[str, str] = {}
        self.jobs: dict[str, int] = {}
        self.looks_needed = 3
        self.log: list[str] = []
        self.broken_downloads = 0

    def answer(self, asked):
        name = asked.path.rpartition("/")[2]
        if asked.method == "POST":
            job = f"job-{len(self.jobs) + 1}"
            self.jobs[job] = 0
            self.log.append(f"ask {job}")
            return 202, {}, {"id": job}
        if asked.method == "DELETE":
            self.log.append(f"cancel {name}")
            self.jobs.pop(name, None)
            return {}
        self.log.append(f"get {asked.path}")
        if asked.path.startswith("/files/"):
            return self.file(self.files[name])
        if name not in self.jobs:
            return 404, {}, {"error": "no such job"}
        self.jobs[name] += 1
        done = self.jobs[name] >= self.looks_needed
        return {"urls": [f"/files/{one}" for one in self.files] if done else None}

    def file(self, body):
        if not self.broken_downloads:
            return 200, self.headers, body
        self.broken_downloads -= 1

        def half(connection):
            connection.send(200, body[: len(body) // 2], length=len(body))
            connection.close_connection = True

        return half


@contextlib.contextmanager
def serving():
    """``(url, exports)`` of a server that runs in a thread."""
    exports = Exports()
    with support.servers.serving(exports.answer) as server:
        yield server.url, exports
