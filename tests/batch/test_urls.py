"""Batch files by URL: what can be read is read byte for byte, what can't is one clear error, and never a short file."""

from __future__ import annotations

import gzip
import os
import sys
from urllib.parse import quote

import piped
import pytest
from piped import SCHEMA, batch, expanded, rows

from burler.errors import BatchError, MissingExtra
from burler.testing import canary
from support.servers import Server, serving

CONTENT = rows(*range(200_000))  # 5 MB, more than any buffer
PACKED = {"name": "gzip"}


def read(url, options=None, **more):
    """The lines of a file that a message names, beside its size where it is said."""
    return b"".join(lines for lines, _ in piped.read(batch(url, **more), options=options).pages())


def sized(count):
    return {"file_stats": [{"bytes": count}]}


# ---- this machine ------------------------------------------------------------------------------------------


def test_files_of_this_machine_however_they_are_written(tmp_path):
    content = rows(1)
    for name in ("x.jsonl", "a b.jsonl", "ü.jsonl", "50%.jsonl", "a#b.jsonl", "a?b.jsonl", "a%41.jsonl"):
        path = tmp_path / name
        path.write_bytes(content)
        encoded = f"file://{quote(str(path))}"
        for url in (str(path), f"file://{path}", f"file:{path}", f"file://localhost{path}", encoded, f"FILE://{path}"):
            assert read(url, **sized(len(content))) == content, url


def test_the_name_as_it_is_written_comes_first(tmp_path):
    (tmp_path / "a%41").write_bytes(rows(1))
    (tmp_path / "aA").write_bytes(rows(2))
    assert read(f"file://{tmp_path}/a%41") == rows(1)
    (tmp_path / "a%41").unlink()
    assert read(f"file://{tmp_path}/a%41") == rows(2)


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(CONTENT)
    pages = piped.read(batch(f"file://{path}")).pages()
    next(pages)
    os.truncate(path, 2_000_000)
    with pytest.raises(
        BatchError, match=rf"^stream 'users': batch file 'file://{path}' ends after [\d,]+ of {len(CONTENT):,}"
    ):
        list(pages)


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
    return "nonsense://x/y", "no store has nonsense://"


@pytest.mark.parametrize(
    "case",
    [missing, folder, pipe, device, relative, other_machine, below_a_file, no_store],
    ids=lambda case: case.__name__,
)
def test_what_can_not_be_read_is_one_error(tmp_path, case):
    url, says = case(tmp_path)
    for more in ({}, sized(5)):
        with pytest.raises(Exception, match=f"(?s){says}") as caught:
            read(url, **more)
        if case is not no_store:
            assert isinstance(caught.value, BatchError)
            assert str(caught.value).startswith(f"stream 'users': batch file '{url}' ")
        assert len(str(caught.value).splitlines()) <= 3


# ---- web servers -------------------------------------------------------------------------------------------


@pytest.fixture
def web(monkeypatch):
    """A server that gives the content, until its answer is changed."""
    with serving(lambda asked: CONTENT) as server:
        monkeypatch.setenv("BURLER_ALLOW", server.url)  # it is this machine
        yield server


def test_a_file_of_a_web_server(web: Server):
    assert read(f"{web.url}/x.jsonl") == CONTENT


def test_the_size_is_looked_at_with_the_one_request(web: Server):
    """A URL that is signed for GET is good for no HEAD, and some are good for one request."""
    content = rows(1, 2)
    web.answer = lambda asked: content
    assert read(f"{web.url}/x", **sized(len(content))) == content
    assert [asked.method for asked in web.asked] == ["GET"]
    with pytest.raises(BatchError, match="bytes where the message says"):
        read(f"{web.url}/x", **sized(5))
    web.answer = lambda asked: b""
    assert read(f"{web.url}/x", **sized(0)) == b""


def test_bytes_come_as_they_are_stored(web: Server):
    """A server that calls a packed file's packing an encoding of the way does not have it unpacked."""
    packed = gzip.compress(rows(1))
    web.answer = lambda asked: (200, {"Content-Encoding": "gzip"}, packed)
    assert read(f"{web.url}/x.jsonl.gz", compression=PACKED) == rows(1)
    assert web.asked[0].headers["accept-encoding"] == "identity"


def test_headers_are_sent_and_passwords_of_netrc_are_not(web: Server, tmp_path, monkeypatch):
    netrc = tmp_path / "config-netrc.json"  # a file that may hold secrets
    netrc.write_text(f"machine 127.0.0.1 login me password {canary('netrc')}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    token = canary("web-token")
    assert read(f"{web.url}/x", {"headers": {"Authorization": token}}) == CONTENT
    assert read(f"{web.url}/x") == CONTENT
    assert [asked.headers.get("authorization") for asked in web.asked] == [token, None]


def chunks(connection, *pieces, ends):
    connection.send_response(200)
    connection.send_header("Transfer-Encoding", "chunked")
    connection.end_headers()
    for piece in pieces:
        connection.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    connection.wfile.write(b"0\r\n\r\n" if ends else b"")
    connection.wfile.flush()
    if not ends:
        connection.end()


def cut(connection):
    connection.send(200, CONTENT[:1_500_000], length=len(CONTENT))
    connection.wfile.flush()
    connection.end()


@pytest.mark.parametrize(("act", "counts"), [(cut, True), (cut, False), ("chunks", True)])
def test_a_connection_that_breaks_off_is_an_error(web: Server, monkeypatch, act, counts):
    """Also with older libraries, which do not count themselves."""
    import urllib3

    if not counts:
        init = urllib3.HTTPResponse.__init__
        monkeypatch.setattr(
            urllib3.HTTPResponse,
            "__init__",
            lambda *given, **more: init(*given, **{**more, "enforce_content_length": False}),
        )
    web.answer = lambda asked: (lambda one: chunks(one, CONTENT[:1_500_000], ends=False)) if act == "chunks" else act
    with pytest.raises(BatchError) as caught:
        read(f"{web.url}/x.jsonl")
    said = str(caught.value)
    assert said.startswith(f"stream 'users': batch file '{web.url}/x.jsonl' broke off after ")
    assert (f"of {len(CONTENT):,} bytes" in said) == (act is cut) and said.endswith("Run again.")


def test_chunks_to_their_end_are_whole(web: Server):
    web.answer = lambda asked: lambda connection: chunks(connection, rows(1), rows(2), ends=True)
    assert read(f"{web.url}/x") == rows(1, 2)


@pytest.mark.parametrize(
    ("status", "says", "asked"),
    [
        (404, "answers 404 Not Found.\n  Is the URL right", 1),
        (403, "answers 403 Forbidden.\n  A signed URL holds for a time only: sign for longer", 1),
        (500, "answers 500 Internal Server Error.\n  Run again.", 3),
        (204, "answers 204 No Content.", 1),
    ],
)
def test_answers_that_are_no_file(web: Server, status, says, asked):
    web.answer = lambda _asked: status
    signature = canary("signature")
    with pytest.raises(BatchError) as caught:
        read(f"{web.url}/x.jsonl?X-Amz-Signature={signature}")
    assert f"batch file '{web.url}/x.jsonl' can't be read: its server {says}" in str(caught.value)
    assert len(web.asked) == asked and signature in web.paths[0]


def test_a_server_that_is_busy_is_asked_again(web: Server):
    web.answer = lambda asked: 503 if len(web.asked) == 1 else CONTENT
    assert read(f"{web.url}/x") == CONTENT and len(web.asked) == 2


def test_a_server_that_is_not_there(monkeypatch):
    monkeypatch.setenv("BURLER_ALLOW", "http://127.0.0.1:1/")
    signature = canary("signature")
    with pytest.raises(BatchError) as caught:
        read(f"http://127.0.0.1:1/x.jsonl?sig={signature}")
    assert "batch file 'http://127.0.0.1:1/x.jsonl' can't be read: no answer from its server (" in str(caught.value)
    assert "Is the host the right one" in str(caught.value)
    assert "refused" in str(caught.value)


def test_redirects_are_followed(web: Server):
    web.answer = lambda asked: rows(7) if asked.path == "/there" else (302, {"Location": "/there"}, b"")
    assert read(f"{web.url}/x") == rows(7)


# ---- stores ------------------------------------------------------------------------------------------------


def test_a_file_of_a_store(s3_server, monkeypatch):
    url = s3_server.put("batches/x.jsonl", CONTENT)
    assert read(url, s3_server.options, **sized(len(CONTENT))) == CONTENT
    monkeypatch.setenv("BURLER_ALLOW", s3_server.endpoint_url)
    signed = s3_server.client.generate_presigned_url(
        "get_object", Params={"Bucket": s3_server.bucket, "Key": "batches/x.jsonl"}, ExpiresIn=60
    )
    assert read(signed, **sized(len(CONTENT))) == CONTENT


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
    s3_server.put("x", rows(1))
    for more in ({}, sized(5)):
        with s3_server.failing(lambda asked: rule), pytest.raises(BatchError, match=f"(?s){says}") as caught:
            read(s3_server.url(key), s3_server.options, **more)
        assert str(caught.value).startswith(f"stream 'users': batch file '{s3_server.url(key)}' ")


def test_a_store_that_fails_on_the_way_or_has_another_file_by_then(s3_server, impatient):
    long = CONTENT * 4
    url = s3_server.put("x", long)
    pages = piped.read(batch(url), options=s3_server.options).pages()
    next(pages)
    with (
        s3_server.failing(lambda asked: "hang up"),
        pytest.raises(BatchError, match=f"batch file '{url}' can't be read"),
    ):
        list(pages)
    pages = piped.read(batch(url), options=s3_server.options).pages()
    next(pages)
    s3_server.put("x", long.replace(b"n", b"m"))
    with pytest.raises(BatchError, match=f"batch file '{url}' can't be read"):
        list(pages)


def test_a_folder_of_a_store_is_no_file(s3_server):
    s3_server.put("batches/x", b"")
    with pytest.raises(BatchError, match="is no file, but a folder"):
        read(s3_server.url("batches"), s3_server.options)


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtra, match=r"reading batch files on s3:// needs the package 's3fs'"):
        read("s3://bucket/x.jsonl?versionId=1")


def test_urls_are_shown_without_what_may_be_secret():
    secret = canary("shown")
    for url, shown in (
        (f"http://127.0.0.1:1/x.jsonl?X-Amz-Signature={secret}", "http://127.0.0.1:1/x.jsonl"),
        (f"memory://bucket/x?versionId={secret}", "memory://bucket/x"),
        (f"sftp://me:{secret}@127.0.0.1:1/x", "sftp://"),
        ("file:///a?b", "file:///a?b"),
        ("/a?b", "/a?b"),
    ):
        error = str(expanded(SCHEMA, batch(url)).error)
        assert shown in error and secret not in error, error.replace(secret, "SECRET")
