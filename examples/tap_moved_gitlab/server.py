"""A small GitLab server, to try the tap on: `python -m examples.tap_moved_gitlab.server 8777`.

It answers as the REST API of GitLab, version 4, does: `/projects/ID` (a number, or the path with its slash as `%2F`),
`/projects/ID/...` with `repository/branches`, `repository/commits`, `issues`, `milestones` and `users`, `/groups/ID`
and `/groups/ID/milestones`. Lists come 20 at a time (`per_page`, at most 100), with `Link`, `X-Next-Page` and, where
GitLab has it, `X-Total-Pages`. The token is `glpat-of-the-example`.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from .data import Data, Row

TOKEN = "glpat-of-the-example"
_LIST = re.compile(r"/(projects|groups)/([^/]+)/(.+)")
_ONE = re.compile(r"/(projects|groups)/([^/]+)")
# What a list is asked for by, and the field that is held against it.
_SINCE = {"repository/commits": ("since", "committed_date"), "issues": ("updated_after", "updated_at")}


class Gitlab(ThreadingHTTPServer):
    """The server.

    Args:
        data: what it holds; may be changed while it runs.
        token: the one that it takes.
        count_commits: `X-Total-Pages` for commits, as GitLab before 13.5 had it.

    Attributes:
        asked: each request's path and query, in order.
    """

    daemon_threads = True

    def __init__(self, data: Data, *, token: str = TOKEN, count_commits: bool = True, port: int = 0) -> None:
        self.data, self.token, self.count_commits = data, token, count_commits
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Where its API is reached."""
        return f"http://127.0.0.1:{self.server_address[1]}/api/v4"

    @contextmanager
    def running(self) -> Iterator[Gitlab]:
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            self.server_close()
            thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone away is no event."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Gitlab
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer a request."""
        self.server.asked.append(self.path)
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        path = url.path.removeprefix("/api/v4")
        if self.server.token not in (query.get("private_token"), self.headers["Private-Token"]):
            return self._send(401, {"message": "401 Unauthorized"})
        found = self._listed(path) if _LIST.fullmatch(path) else self._one(path)
        if found is None:
            return self._send(404, {"message": "404 Not found"})
        if isinstance(found, dict):
            return self._send(200, found)
        return self._page(path, query, found)

    def _one(self, path: str) -> Row | None:
        match = _ONE.fullmatch(path)
        if match is None:
            return None
        data, number = self.server.data, self._number(match[1], match[2])
        if match[1] == "projects":
            return data.projects.get(number)
        group = data.groups.get(number)
        return None if group is None else {**group, "projects": list(data.projects.values())}

    def _listed(self, path: str) -> list[Row] | None:
        match = _LIST.fullmatch(path)
        assert match is not None
        data, number = self.server.data, self._number(match[1], match[2])
        lists = {"milestones": data.group_milestones} if match[1] == "groups" else {
            "repository/branches": data.branches,
            "repository/commits": data.commits,
            "issues": data.issues,
            "milestones": data.milestones,
            "users": data.users,
        }  # fmt: skip
        return lists.get(match[3], {}).get(number)

    def _number(self, kind: str, name: str) -> int:
        """The number of a project or group; -1 if there is none."""
        if name.isdecimal():
            return int(name)
        path, data = unquote(name), self.server.data
        if kind == "groups":
            return next((number for number, one in data.groups.items() if one["path"] == path), -1)
        return next((number for number, one in data.projects.items() if one["path_with_namespace"] == path), -1)

    def _page(self, path: str, query: dict[str, str], rows: list[Row]) -> None:
        kind = path.split("/", 3)[3]
        if kind in _SINCE:
            asked, field = _SINCE[kind]
            rows = [row for row in rows if row[field][:19] >= query.get(asked, "")[:19]]
            rows = sorted(rows, key=lambda row: row[field], reverse=True)  # the newest first
        page, size = int(query.get("page") or 1), min(int(query.get("per_page") or 20), 100)
        last = max(1, -(-len(rows) // size))
        headers = {"X-Page": page, "X-Per-Page": size, "X-Next-Page": page + 1 if page < last else ""}
        if kind != "repository/commits" or self.server.count_commits:
            headers |= {"X-Total": len(rows), "X-Total-Pages": last}
        if page < last:
            following = {**query, "page": page + 1, "per_page": size}
            following.pop("private_token", None)
            headers["Link"] = f'<{self.server.url}{path}?{urlencode(following)}>; rel="next"'
        self._send(200, rows[(page - 1) * size : page * size], headers)

    def _send(self, status: int, body: Any, headers: dict[str, Any] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "application/json"}.items():
            self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


if __name__ == "__main__":
    server = Gitlab(Data(), port=int(sys.argv[1]))
    sys.stdout.write(f"GitLab is here: {server.url}\n")
    sys.stdout.flush()
    server.serve_forever()
