"""Batch files by URL: what can be read is read byte for byte, what can't is one clear error, and never a short file."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import os
import socket
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from burler.errors import BatchError, MissingExtra
from burler.testing import canary
from support.internals import batch_urls, config_watched, urls_web

CONTENT = bytes(range(256)) * 20_000  # 5 MB, more than any buffer


def read(url, options=None, **more):
    with batch_urls.open_url(url, options, **more) as file:
        return file.read()


# ---- this machine ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["x.jsonl", "a b.jsonl", "ü.jsonl", "50%.jsonl", "a#b.jsonl", "a?b.jsonl", "a%41.jsonl"]
)
def test_files_of_this_machine_however_they_are_written(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(CONTENT)
    encoded = f"file://{quote(str(path))}"
    for url in (str(path), f"file://{path}", f"file:{path}", f"file://localhost{path}", encoded, f"FILE://{path}"):
        assert read(url) == CONTENT, url
        assert batch_urls.size_of_url(url) == len(CONTENT)


def test_the_name_as_it_is_written_comes_first(tmp_path):
    (tmp_path / "a%41").write_bytes(b"plain")
    (tmp_path / "aA").write_bytes(b"decoded")
    assert read(f"file://{tmp_path}/a%41") == b"plain"
    (tmp_path / "a%41").unlink()
    assert read(f"file://{tmp_path}/a%41") == b"decoded"


def test_a_file_can_be_read_from_any_place(tmp_path):
    (tmp_path / "x").write_bytes(CONTENT)
    with batch_urls.open_url(f"file://{tmp_path}/x") as file:
        assert file.seekable() and file.readable() and not file.writable()
        assert file.seek(-10, os.SEEK_END) == len(CONTENT) - 10
        assert file.read() == CONTENT[-10:]
        file.seek(1000)
        assert file.read(10) == CONTENT[1000:1010] and file.tell() == 1010


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(CONTENT)
    with batch_urls.open_url(f"file://{path}", stream="crm") as file:
        file.read(10)
        os.truncate(path, 2_000_000)
        with pytest.raises(
            BatchError, match=rf"^stream 'crm': batch file 'file://{path}' ends after [\d,]+ of 5,120,000"
        ):
            file.read()


def missing(tmp_path):
    return (
        f"file://{tmp_path}/gone.jsonl",
        r"is not there.\n  .*Run the tap again with the last STATE that its target has stored.$",
    )


def folder(tmp_path):
    return f"file://{tmp_path}", "is no file, but a folder, pipe or device"


def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return f"file://{tmp_path}/pipe", "is no file, but a folder, pipe or device"


def device(_tmp_path):
    return "file:///dev/zero", "is not read: it lies in one of /proc, /sys, /dev."


def relative(_tmp_path):
    return "batches/x.jsonl", "is no absolute path"


def other_machine(_tmp_path):
    return "file://nas/x.jsonl", "can't be read: it is a file of the machine 'nas'"


def below_a_file(tmp_path):
    (tmp_path / "f").write_text("")
    return f"file://{tmp_path}/f/x.jsonl", "can't be read: Not a directory"


def no_store(_tmp_path):
    return "nonsense://x/y", "nonsense:// can't be opened: Protocol not known"


@pytest.mark.parametrize(
    "case",
    [missing, folder, pipe, device, relative, other_machine, below_a_file, no_store],
    ids=lambda case: case.__name__,
)
def test_what_can_not_be_read_is_one_error(tmp_path, case):
    url, says = case(tmp_path)
    for ask in (batch_urls.open_url, batch_urls.size_of_url):
        with pytest.raises(Exception, match=f"(?s){says}") as caught:
            ask(url, stream="crm")
        if case is not no_store:
            assert isinstance(caught.value, BatchError)
            assert str(caught.value).startswith(f"stream 'crm': batch file '{url}' ")
        assert len(str(caught.value).splitlines()) <= 3


# ---- web servers -------------------------------------------------------------------------------------------


class Web:
    """A server whose answer is what ``act(handler)`` does."""

    def __init__(self):
        web = self
        self.asked = []
        self.act = lambda handler: handler.whole(CONTENT)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                web.asked.append((self.path, dict(self.headers)))
                web.act(self)

            def head(self, status, **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()

            def whole(self, content, status=200, **headers):
                self.head(status, Content_Length=len(content), **headers)
                with contextlib.suppress(OSError):  # who asks for the size goes before the body
                    self.wfile.write(content)

            def hang_up(self):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, *_arguments):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._thread.join(30)
        self._server.server_close()


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setattr(urls_web, "_WAIT_SECONDS", 0.01)
    server = Web()
    monkeypatch.setenv("BURLER_ALLOW", server.url)  # it is this machine
    try:
        yield server
    finally:
        server.close()


def test_a_file_of_a_web_server(web):
    assert read(f"{web.url}/x.jsonl") == CONTENT
    assert batch_urls.size_of_url(f"{web.url}/x.jsonl") == len(CONTENT)
    with batch_urls.open_url(f"{web.url}/x.jsonl") as file:
        assert not file.seekable()
        assert file.read(10) == CONTENT[:10]


def test_the_size_is_asked_for_with_get_and_one_byte(web):
    """A URL that is signed for GET is good for no HEAD."""

    def ranged(handler):
        assert handler.headers["Range"] == "bytes=0-0"
        handler.whole(CONTENT[:1], 206, Content_Range=f"bytes 0-0/{len(CONTENT)}")

    web.act = ranged
    assert batch_urls.size_of_url(f"{web.url}/x") == len(CONTENT)
    web.act = lambda handler: handler.whole(b"", 416, Content_Range="bytes */0")
    assert batch_urls.size_of_url(f"{web.url}/x") == 0


def test_bytes_come_as_they_are_stored(web):
    """A server that calls a packed file's packing an encoding of the way does not have it unpacked."""
    packed = gzip.compress(b"rows\n")
    web.act = lambda handler: handler.whole(packed, Content_Encoding="gzip")
    assert read(f"{web.url}/x.jsonl.gz") == packed
    assert web.asked[0][1]["Accept-Encoding"] == "identity"


def test_headers_are_sent_and_passwords_of_netrc_are_not(web, tmp_path, monkeypatch):
    netrc = tmp_path / "config-netrc.json"  # a file that may hold secrets
    netrc.write_text(f"machine 127.0.0.1 login me password {canary('netrc')}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    token = canary("web-token")
    assert read(f"{web.url}/x", {"headers": {"Authorization": token}}) == CONTENT
    assert read(f"{web.url}/x") == CONTENT
    assert [headers.get("Authorization") for _, headers in web.asked] == [token, None]


def cut(handler):
    handler.head(200, Content_Length=len(CONTENT))
    handler.wfile.write(CONTENT[:1_500_000])
    handler.hang_up()


def cut_chunks(handler):
    handler.head(200, Transfer_Encoding="chunked")
    handler.wfile.write(b"%x\r\n%b\r\n" % (1_500_000, CONTENT[:1_500_000]))
    handler.hang_up()


@pytest.mark.parametrize(("act", "counts"), [(cut, True), (cut, False), (cut_chunks, True)])
def test_a_connection_that_breaks_off_is_an_error(web, act, counts):
    """Also with older libraries, which do not count themselves."""
    web.act = act
    with batch_urls.open_url(f"{web.url}/x.jsonl", stream="crm") as file, pytest.raises(BatchError) as caught:
        file.raw._response.raw.enforce_content_length = counts
        file.read()
    said = str(caught.value)
    assert said.startswith(f"stream 'crm': batch file '{web.url}/x.jsonl' broke off after ")
    assert ("of 5,120,000 bytes" in said) == (act is cut) and said.endswith("Run again.")


def test_chunks_to_their_end_are_whole(web):
    def chunked(handler):
        handler.head(200, Transfer_Encoding="chunked")
        handler.wfile.write(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")

    web.act = chunked
    assert read(f"{web.url}/x") == b"hello world"
    assert batch_urls.size_of_url(f"{web.url}/x") is None


@pytest.mark.parametrize(
    ("status", "says", "asked"),
    [
        (404, "answers 404 Not Found.\n  Is the URL right", 1),
        (403, "answers 403 Forbidden.\n  A signed URL holds for a time only: sign for longer", 1),
        (500, "answers 500 Internal Server Error.\n  Run again.", 3),
        (204, "answers 204 No Content.", 1),
    ],
)
def test_answers_that_are_no_file(web, status, says, asked):
    web.act = lambda handler: handler.whole(b"", status)
    signature = canary("signature")
    for ask in (batch_urls.open_url, batch_urls.size_of_url):
        web.asked.clear()
        with pytest.raises(BatchError) as caught:
            ask(f"{web.url}/x.jsonl?X-Amz-Signature={signature}")
        assert f"batch file '{web.url}/x.jsonl' can't be read: its server {says}" in str(caught.value)
        assert len(web.asked) == asked and signature in web.asked[0][0]


def test_a_server_that_is_busy_is_asked_again(web):
    def busy(handler):
        web.act = lambda handler: handler.whole(CONTENT)
        handler.whole(b"", 503)

    web.act = busy
    assert read(f"{web.url}/x") == CONTENT and len(web.asked) == 2


def test_a_server_that_is_not_there(web):
    web.close()
    signature = canary("signature")
    with pytest.raises(BatchError) as caught:
        read(f"{web.url}/x.jsonl?sig={signature}")
    assert f"batch file '{web.url}/x.jsonl' can't be read: no answer from its server (" in str(caught.value)
    assert "refused" in str(caught.value)


def test_a_signature_is_hidden_in_logs_from_then_on(web):
    signature = canary("signature")
    read(f"{web.url}/x?sig={signature}")
    assert signature not in config_watched.clean(f"GET /x?sig={signature}")


def test_redirects_are_followed(web):
    def elsewhere(handler):
        web.act = lambda handler: handler.whole(b"there")
        handler.whole(b"", 302, Location="/there")

    web.act = elsewhere
    assert read(f"{web.url}/x") == b"there"


# ---- stores ------------------------------------------------------------------------------------------------


def test_a_file_of_a_store(s3_server):
    url = s3_server.put("batches/x.jsonl", CONTENT)
    assert read(url, s3_server.options) == CONTENT
    assert batch_urls.size_of_url(url, s3_server.options) == len(CONTENT)
    with batch_urls.open_url(url, s3_server.options) as file:
        file.seek(-10, os.SEEK_END)
        assert file.read() == CONTENT[-10:]


def test_a_file_of_a_store_is_read_in_pieces(s3_server):
    url = s3_server.put("big", bytes(20 << 20))
    with batch_urls.open_url(url, s3_server.options) as file:
        file.read(10)
        assert file.raw._file.cache.cache.__len__() <= 10 << 20


def test_a_signed_url_of_a_store(s3_server, monkeypatch):
    monkeypatch.setenv("BURLER_ALLOW", s3_server.endpoint_url)
    s3_server.put("batches/x.jsonl", CONTENT)
    signed = s3_server.client.generate_presigned_url(
        "get_object", Params={"Bucket": s3_server.bucket, "Key": "batches/x.jsonl"}, ExpiresIn=60
    )
    assert read(signed) == CONTENT and batch_urls.size_of_url(signed) == len(CONTENT)


@pytest.fixture
def impatient(s3_server, monkeypatch):
    """The store's library asks twice, not 25 times."""
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setattr(s3fs.core.S3File, "retries", 1)


@pytest.mark.parametrize(
    ("key", "rule", "says"),
    [
        ("gone", None, "is not there.\n"),
        ("x", (403, "AccessDenied"), "can't be read: .*\n  Check the rights of who reads it"),
        ("x", "hang up", "can't be read: "),
    ],
)
def test_a_store_that_does_not_give_the_file(s3_server, impatient, key, rule, says):
    s3_server.put("x", b"rows\n")
    for ask in (read, batch_urls.size_of_url):
        with s3_server.failing(lambda asked: rule), pytest.raises(BatchError, match=f"(?s){says}") as caught:
            ask(s3_server.url(key), s3_server.options, stream="crm")
        assert str(caught.value).startswith(f"stream 'crm': batch file '{s3_server.url(key)}' ")


def test_a_store_that_fails_on_the_way(s3_server, impatient):
    url = s3_server.put("x", bytes(20 << 20))
    with batch_urls.open_url(url, s3_server.options) as file:
        file.read(10)
        with (
            s3_server.failing(lambda asked: "hang up"),
            pytest.raises(BatchError, match=f"batch file '{url}' can't be"),
        ):
            file.read()


def test_a_file_of_a_store_that_is_replaced_on_the_way(s3_server):
    url = s3_server.put("x", bytes(20 << 20))
    with batch_urls.open_url(url, s3_server.options) as file:
        file.read(10)
        s3_server.put("x", b"another" * (3 << 20))
        with pytest.raises(BatchError, match=f"batch file '{url}' can't be read"):
            file.read()


def test_a_folder_of_a_store_is_no_file(s3_server):
    s3_server.put("batches/x", b"")
    with pytest.raises(BatchError, match="is no file, but a folder"):
        batch_urls.open_url(s3_server.url("batches"), s3_server.options)


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtra, match=r"reading s3://bucket/x.jsonl needs the package 's3fs'.*install 's3fs>="):
        batch_urls.open_url("s3://bucket/x.jsonl?versionId=1")


def test_urls_are_shown_without_what_may_be_secret():
    secret = canary("shown")
    assert (
        batch_urls.shown(f"https://bucket.example/x.jsonl?X-Amz-Signature={secret}") == "https://bucket.example/x.jsonl"
    )
    assert batch_urls.shown(f"s3://bucket/x?versionId={secret}") == "s3://bucket/x"
    assert secret not in batch_urls.shown(f"sftp://me:{secret}@host/x")
    assert batch_urls.shown("file:///a?b") == "file:///a?b" and batch_urls.shown("/a?b") == "/a?b"
    assert Path(batch_urls.shown("/a b")) == Path("/a b")
