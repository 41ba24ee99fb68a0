"""Imitations of Google Cloud Storage and Azure Blob Storage on this machine: as much of them as a lake asks for.

They keep conditions as the services say they do, one request at a time. What the services do beside that is not here:
tests with them show what burler sends and how it takes the answers.

    url = serving(GcsServer())
    url = serving(AzureServer())

``failing(rule)`` is as in ``s3_server``.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import email
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from support.servers import leaves_sockets

PAGE = 50


@dataclass
class Kept:
    data: bytes
    tag: str
    marks: dict[str, str]
    at: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))


_CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


class Server:
    """Objects of one bucket named "bucket"."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}
        self.requests: list[str] = []
        self.rule: Callable[[str], Any] = lambda asked: None
        self.writes = 1000
        self.heeds_conditions = True
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def failing(self, rule: Callable[[str], Any]) -> Iterator[None]:
        self.rule = rule
        try:
            yield
        finally:
            self.rule = lambda asked: None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        from werkzeug.wrappers import Request, Response

        if not self.heeds_conditions:
            environ = {name: value for name, value in environ.items() if name not in _CONDITIONS}
            for name in ("QUERY_STRING", "RAW_URI", "REQUEST_URI"):
                environ[name] = re.sub(r"ifGenerationMatch=\d+&?", "", environ.get(name, ""))
        request = Request(environ)
        asked = f"{request.method} {request.full_path}"
        with self._lock:
            self.requests.append(asked)
            act = self.rule(asked)
            response = None
            if act in (None, "answer is lost"):
                status, headers, body = self.answer(request)
                response = Response(body, status, headers)
        if act in ("hang up", "answer is lost"):
            with contextlib.suppress(OSError):
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        if response is None:
            response = Response(*self.error(*act))
        return response(environ, start_response)

    def answer(self, request: Any) -> tuple[int, dict[str, str], bytes]:
        raise NotImplementedError

    def error(self, status: int, code: str) -> tuple[bytes, int, dict[str, str]]:
        raise NotImplementedError

    def put(self, key: str, data: bytes, marks: dict[str, str]) -> Kept:
        self.writes += 1
        self.kept[key] = Kept(data, self.new_tag(), marks)
        return self.kept[key]

    def new_tag(self) -> str:
        return str(self.writes)

    def keys(self) -> list[str]:
        return sorted(self.kept)

    def listed(self, prefix: str, delimiter: str) -> tuple[list[str], list[str]]:
        inside = [key for key in self.keys() if key.startswith(prefix)]
        if not delimiter:
            return inside, []
        rests = {key: key[len(prefix) :] for key in inside}
        folders = {prefix + rest.partition("/")[0] + "/" for rest in rests.values() if "/" in rest}
        return [key for key, rest in rests.items() if "/" not in rest], sorted(folders)


def _part(header: str | None, data: bytes) -> tuple[int, dict[str, str], bytes] | None:
    """(status, headers, bytes) of a range; None: it begins behind the end."""
    if not header:
        return 200, {}, data
    first, _, last = header.removeprefix("bytes=").partition("-")
    start, stop = int(first), min(int(last) + 1 if last else len(data), len(data))
    if start >= len(data):
        return None
    return 206, {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}, data[start:stop]


class GcsServer(Server):
    """Google's JSON API."""

    def __init__(self) -> None:
        super().__init__()
        self.uploads: dict[str, tuple[str, str | None, dict[str, str], bytes]] = {}

    def error(self, status: int, code: str) -> tuple[bytes, int, dict[str, str]]:
        text = json.dumps({"error": {"code": status, "message": f"{code}, says the test"}})
        return text.encode(), status, {"Content-Type": "application/json"}

    def answer(self, request: Any) -> tuple[int, dict[str, str], bytes]:
        path, args = request.environ.get("RAW_URI", request.path).partition("?")[0], request.args
        if "/b/bucket/" not in path:
            return self._no(404, "bucket")
        if "/upload/" in path:
            return self._upload(request, args)
        if path.endswith("/o"):
            return self._list(args)
        key = unquote(path.rpartition("/o/")[2])
        kept = self.kept.get(key)
        if kept is None:
            return self._no(404, "object")
        if args.get("ifGenerationMatch", kept.tag) != kept.tag:
            return self._no(412, "conditionNotMet")
        if request.method == "DELETE":
            del self.kept[key]
            return 204, {}, b""
        if args.get("alt") == "media":
            part = _part(request.headers.get("Range"), kept.data)
            if part is None:
                return self._no(416, "range")
            return part[0], {"X-Goog-Generation": kept.tag, **part[1]}, part[2]
        return self._said(key, kept)

    def _no(self, status: int, code: str) -> tuple[int, dict[str, str], bytes]:
        body, status, headers = self.error(status, code)
        return status, headers, body

    def _said(self, key: str, kept: Kept) -> tuple[int, dict[str, str], bytes]:
        about = {"name": key, "size": str(len(kept.data)), "generation": kept.tag, "metadata": kept.marks}
        return 200, {"Content-Type": "application/json"}, json.dumps(about).encode()

    def _list(self, args: Any) -> tuple[int, dict[str, str], bytes]:
        names, folders = self.listed(args.get("prefix", ""), args.get("delimiter", ""))
        start = int(args.get("pageToken", "0"))
        items = [
            {
                "name": n,
                "size": str(len(self.kept[n].data)),
                "updated": self.kept[n].at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
            for n in names[start : start + PAGE]
        ]
        page: dict[str, Any] = {"items": items, "prefixes": folders if not start else []}
        if start + PAGE < len(names):
            page["nextPageToken"] = str(start + PAGE)
        return 200, {"Content-Type": "application/json"}, json.dumps(page).encode()

    def _upload(self, request: Any, args: Any) -> tuple[int, dict[str, str], bytes]:
        if request.method == "PUT":
            return self._take(request, args["upload_id"])
        if args["uploadType"] == "resumable":
            about = json.loads(request.get_data())
            upload = str(len(self.uploads))
            self.uploads[upload] = (about["name"], args.get("ifGenerationMatch"), about.get("metadata", {}), b"")
            return 200, {"Location": f"{request.base_url}?upload_id={upload}"}, b""
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        about, media = email.message_from_bytes(head + request.get_data()).get_payload()
        described = json.loads(about.get_payload())
        edge = request.headers["Content-Type"].partition("boundary=")[2].encode()
        content = request.get_data().split(b"\r\n\r\n", 2)[2].removesuffix(b"\r\n--" + edge + b"--\r\n")
        assert media.get_content_type() == "application/octet-stream"
        return self._store(described["name"], content, described.get("metadata", {}), args.get("ifGenerationMatch"))

    def _take(self, request: Any, upload: str) -> tuple[int, dict[str, str], bytes]:
        key, condition, marks, had = self.uploads[upload]
        size = int(request.headers["Content-Range"].rpartition("/")[2])
        assert int(request.headers["Content-Range"].split()[1].partition("-")[0]) == len(had)
        data = had + request.get_data()
        self.uploads[upload] = (key, condition, marks, data)
        if len(data) < size:
            assert len(request.get_data()) % (256 << 10) == 0
            return 308, {"Range": f"bytes=0-{len(data) - 1}"}, b""
        return self._store(key, data, marks, condition)

    def _store(
        self, key: str, data: bytes, marks: dict[str, str], condition: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        kept = self.kept.get(key)
        if condition is not None and condition != (kept.tag if kept else "0"):
            return self._no(412, "conditionNotMet")
        return self._said(key, self.put(key, data, marks))


class AzureServer(Server):
    """The Blob service's REST API, for the account "account"."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[tuple[str, str], bytes] = {}

    def new_tag(self) -> str:
        return f'"0x{self.writes:X}"'

    def error(self, status: int, code: str) -> tuple[bytes, int, dict[str, str]]:
        text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}, says the test</Message></Error>'
        return text.encode(), status, {"Content-Type": "application/xml", "x-ms-error-code": code}

    def answer(self, request: Any) -> tuple[int, dict[str, str], bytes]:
        _, container, key = [*request.path.removeprefix("/account").split("/", 2), ""][:3]
        if container != "bucket":
            return self._no(404, "ContainerNotFound")
        if request.args.get("comp") == "list":
            return self._list(request.args)
        kept = self.kept.get(key)
        if request.method == "PUT":
            return self._put(request, key, kept)
        if kept is None:
            return self._no(404, "BlobNotFound")
        if request.headers.get("If-Match", kept.tag) != kept.tag:
            return self._no(412, "ConditionNotMet")
        if request.method == "DELETE":
            del self.kept[key]
            return 202, {}, b""
        about = {"ETag": kept.tag, "Last-Modified": _http_date(kept.at), "x-ms-blob-type": "BlockBlob"}
        about |= {f"x-ms-meta-{name}": value for name, value in kept.marks.items()}
        if request.method == "HEAD":
            return 200, {**about, "Content-Length": str(len(kept.data))}, b""
        part = _part(request.headers.get("x-ms-range") or request.headers.get("Range"), kept.data)
        if part is None:
            return self._no(416, "InvalidRange")
        return part[0], {**about, **part[1]}, part[2]

    def _no(self, status: int, code: str) -> tuple[int, dict[str, str], bytes]:
        body, status, headers = self.error(status, code)
        return status, headers, body

    def _put(self, request: Any, key: str, kept: Kept | None) -> tuple[int, dict[str, str], bytes]:
        data, headers = request.get_data(), request.headers
        if request.args.get("comp") == "block":
            self.blocks[key, request.args["blockid"]] = data
            return 201, {}, b""
        if headers.get("If-None-Match") == "*" and kept is not None:
            return self._no(409, "BlobAlreadyExists")
        if "If-Match" in headers and (kept is None or headers["If-Match"] != kept.tag):
            return self._no(412, "ConditionNotMet")
        if request.args.get("comp") == "blocklist":
            data = b"".join(self.blocks[key, name] for name in re.findall(r"<Latest>(.*?)</Latest>", data.decode()))
        marks = {
            n.lower().removeprefix("x-ms-meta-"): v for n, v in headers.items() if n.lower().startswith("x-ms-meta-")
        }
        new = self.put(key, data, marks)
        return 201, {"ETag": new.tag, "Last-Modified": _http_date(new.at)}, b""

    def _list(self, args: Any) -> tuple[int, dict[str, str], bytes]:
        names, folders = self.listed(args.get("prefix", ""), args.get("delimiter", ""))
        start = int(args.get("marker") or "0")
        blobs = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{_http_date(self.kept[name].at)}"
            f"</Last-Modified><Etag>{self.kept[name].tag}</Etag><Content-Length>{len(self.kept[name].data)}"
            "</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for name in names[start : start + PAGE]
        )
        blobs += "".join(f"<BlobPrefix><Name>{escape(f)}</Name></BlobPrefix>" for f in (folders if not start else []))
        after = str(start + PAGE) if start + PAGE < len(names) else ""
        text = (
            '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="bucket">'
            f"<Blobs>{blobs}</Blobs><NextMarker>{after}</NextMarker></EnumerationResults>"
        )
        return 200, {"Content-Type": "application/xml"}, text.encode()


def azure_connection(url: str, key: str) -> str:
    """What Azure's libraries take to reach ``AzureServer``; ``key`` is any secret."""
    coded = base64.b64encode(key.encode()).decode()
    return f"DefaultEndpointsProtocol=http;AccountName=account;AccountKey={coded};BlobEndpoint={url}/account;"


def _http_date(at: dt.datetime) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", at.utctimetuple())


def serving(app: Server) -> str:
    """Runs a server in this process until that ends: its URL."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_a: Any, **_k: Any) -> None:
            pass

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, args=(0.05,), name="cloud-server", daemon=True).start()
    leaves_sockets(server.server_port)
    return f"http://127.0.0.1:{server.server_port}"
