"""Bodies of replies: how big they may be, how they are packed, and files of them."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import os
import random
import socket
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import responses
import urllib3
from clocks import Clock
from faultserver import MIB, FaultServer

from burler.errors import HttpError, NoAnswerError, NotFoundError, StorageError
from burler.http import Client
from support.servers import serving, session_of


def got(body, headers=None, **options):
    """What a client makes of a body."""
    with (
        serving(lambda asked: (200, headers or {}, body)) as server,
        Client(server.url, retries=0, **options) as client,
    ):
        return client.get("/a").content


CHUNK_BYTES = 64 * 1024  # about what is read at a time
NOISE = random.Random(1).randbytes(3 * CHUNK_BYTES + 17)
FLAT = b"ab" * (5 * CHUNK_BYTES)


@pytest.mark.parametrize("content", [b"", b"x", NOISE, FLAT], ids=["empty", "one", "noise", "flat"])
@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        (None, bytes),
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("identity", bytes),
        ("gzip", lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:])),
        ("gzip", lambda data: gzip.compress(data) + bytes(100)),
        ("gzip", lambda data: b"" if not data else gzip.compress(data)),
    ],
)
def test_packed_bodies_are_unpacked(content, encoding, pack):
    assert got(pack(content), {"Content-Encoding": encoding} if encoding else None) == content


def test_all_cuts_of_a_gzip_body_are_noticed():
    packed = gzip.compress(NOISE[:50])
    for cut in range(1, len(packed)):
        with pytest.raises(NoAnswerError, match="its gzip breaks off"):
            got(packed[:cut], {"Content-Encoding": "gzip"})


def deflated(data, bits):
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("content", [b"x", NOISE, FLAT], ids=["one", "noise", "flat"])
@pytest.mark.parametrize("bits", [15, -15], ids=["zlib", "bare"])
def test_both_forms_of_deflate_are_unpacked_and_their_cuts_noticed(content, bits):
    """Some servers leave out the header that RFC 9110 wants."""
    packed, headers = deflated(content, bits), {"Content-Encoding": "deflate"}
    assert got(packed, headers) == content
    for cut in {1, 2, len(packed) // 2, len(packed) - 1}:
        with pytest.raises(NoAnswerError, match="its deflate breaks off"):
            got(packed[:cut], headers)


@pytest.mark.parametrize(
    "behind",
    [b"x", b"\0" * 10 + b"x", b"\x1f", b"\x1f\x8c", gzip.compress(b"[]")[:-1], b"more" * 10],
    ids=["a letter", "zeros first", "half a magic", "a magic", "cut", "more"],
)
def test_what_stands_behind_a_gzip_body_and_is_none_makes_it_no_answer(behind):
    """It may be the rest of the rows, damaged."""
    with pytest.raises(NoAnswerError, match="its gzip"):
        got(gzip.compress(b"[1]") + behind, {"Content-Encoding": "gzip"})


def test_a_gzip_body_whose_parts_come_in_any_pieces_is_unpacked():
    packed = b"".join(gzip.compress(bytes([65 + number])) for number in range(5)) + bytes(3)
    for size in (1, 2, 3, 7):
        pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
        with serving(lambda asked: in_pieces(pieces)) as server, Client(server.url, retries=0) as client:  # noqa: B023
            assert client.get("/a").content == b"ABCDE"


def in_pieces(pieces):
    """A packed reply whose end is not said before it comes."""

    def reply(connection):
        connection.send_response(200)
        connection.send_header("Content-Encoding", "gzip")
        connection.send_header("Transfer-Encoding", "chunked")
        connection.end_headers()
        for piece in itertools.chain(pieces, [b""]):
            connection.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    return reply


@pytest.mark.parametrize("behind", [bytes(CHUNK_BYTES), b"x" * CHUNK_BYTES], ids=["zeros", "rubbish"])
def test_the_limit_holds_behind_the_end_of_a_gzip_body_too(behind):
    taken = []

    def pieces():
        yield gzip.compress(b"[]")
        for number in range(400):
            taken.append(number)
            yield behind

    with (
        serving(lambda asked: in_pieces(pieces())) as server,
        Client(server.url, retries=0, max_response_bytes=MIB) as client,
    ):
        tracemalloc.start()
        with pytest.raises(HttpError):
            client.get("/a")
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(taken) < 400
    assert peak < 4 * MIB


def test_a_part_that_nobody_asked_for_is_no_answer():
    part = (206, {"Content-Range": "bytes 0-1/10"}, b"[1")
    replies = iter([part, b"[1]", part])
    with serving(lambda asked: next(replies)) as server, Client(server.url, **Clock().options) as client:
        assert client.get("/a").content == b"[1]"
        assert client.get("/a", headers={"Range": "bytes=0-1"}).status_code == 206


@pytest.mark.parametrize(
    ("headers", "fact"),
    [
        ({"Content-Length": ["2", "3"]}, "its reply has two lengths"),
        ({f"X-{number}": "1" for number in range(150)}, "more headers, or longer ones, than can be read"),
        ({"X-Long": "x" * 70_000}, "more headers, or longer ones, than can be read"),
    ],
    ids=["two lengths", "many headers", "long header"],
)
def test_headers_that_can_not_be_read_are_the_replys_and_may_pass(headers, fact):
    replies = iter([(200, headers, b"[]"), b"[]", *[(200, headers, b"[]")] * 6])
    with serving(lambda asked: next(replies)) as server, Client(server.url, **Clock().options) as client:
        assert client.get("/a").content == b"[]"
        with pytest.raises(NoAnswerError, match=fact):
            client.get("/a")


def test_a_body_that_is_shorter_than_it_says_is_noticed_whatever_urllib3_does():
    """Older versions pass it on as if nothing was missing."""

    def older(_request):
        body, headers = io.BytesIO(b"only"), {"Content-Length": "10"}
        return urllib3.HTTPResponse(body, headers, 200, preload_content=False, enforce_content_length=False)

    with (
        Client("http://x.example", session=session_of(older), retries=0) as client,
        pytest.raises(NoAnswerError, match="6 bytes are missing"),
    ):
        client.get("/a")


def test_a_body_of_the_greatest_size_is_taken_and_one_of_a_byte_more_is_not():
    for headers, pack in ((None, bytes), ({"Content-Encoding": "gzip"}, gzip.compress)):
        assert len(got(pack(bytes(5000)), headers, max_response_bytes=5000)) == 5000
        with pytest.raises(HttpError, match="its body has more than 5,000 bytes") as caught:
            got(pack(bytes(5001)), headers, max_response_bytes=5000)
        assert "max_response_bytes" in str(caught.value)


def test_the_limit_can_be_another_for_one_request():
    with serving(lambda asked: bytes(100)) as server, Client(server.url, max_response_bytes=50) as client:
        assert len(client.get("/a", max_response_bytes=100).content) == 100


def test_a_bomb_is_never_unpacked_whole():
    bomb = gzip.compress(bytes(300 * MIB), 1)
    with (
        serving(lambda asked: (200, {"Content-Encoding": "gzip"}, bomb)) as server,
        Client(server.url, retries=0, max_response_bytes=2 * MIB) as client,
    ):
        tracemalloc.start()
        with pytest.raises(HttpError, match="2,097,152 bytes"):
            client.get("/a")
        _now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 12 * MIB


def test_a_broken_reply_leaves_no_broken_connection_behind():
    """The next request of the same client gets its own reply, never the rest of the one before."""
    with FaultServer(streams={"a": 10}, lasting={"bad": "huge"}) as server:
        server.streams["bad"] = 10
        with Client(server.url, retries=0, max_response_bytes=MIB) as client:
            for _ in range(3):
                with pytest.raises(HttpError):
                    client.get("/rows/bad")
                assert client.json("/rows/a") == server.rows("a")


def test_replies_of_the_package_responses_are_limited_too():
    with (
        responses.RequestsMock() as mocked,
        Client("https://api.example.com", max_response_bytes=10, retries=0) as client,
    ):
        mocked.get("https://api.example.com/a", body=b"x" * 11)
        with pytest.raises(HttpError, match="more than 10 bytes"):
            client.get("/a")


# Files


def test_a_download(tmp_path):
    path = tmp_path / "export.csv"
    with (
        serving(lambda asked: (200, {"Content-Encoding": "gzip", "X-Sum": "1"}, gzip.compress(NOISE))) as server,
        Client(server.url, max_response_bytes=10) as client,
    ):
        headers = client.download("/export", path, params={"part": 1})
    assert headers["X-Sum"] == "1"
    assert path.read_bytes() == NOISE
    assert server.asked[0].query == {"part": "1"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_download_that_breaks_off_begins_anew(tmp_path):
    path = tmp_path / "rows.json"
    with (
        FaultServer(streams={"a": 500}, kinds=["half", "500", "half-gzip", "drop"], rate=1, in_a_row=4) as server,
        Client(server.url, **Clock().options) as client,
    ):
        client.download("/rows/a", path)
        whole = client.get("/rows/a").content
    assert path.read_bytes() == whole
    assert sum(server.faults.values()) >= 4
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_broken_try_wrote_is_gone(tmp_path):
    replies = iter([(200, {"Content-Encoding": "gzip"}, gzip.compress(NOISE)[:-20]), b"short"])
    path = tmp_path / "a"
    with serving(lambda asked: next(replies)) as server, Client(server.url, **Clock().options) as client:
        client.download("/a", path)
    assert path.read_bytes() == b"short"


@pytest.mark.parametrize("kind", ["half", "500", "huge"])
def test_a_download_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, kind):
    path = tmp_path / "rows.json"
    path.write_text("old")
    with (
        FaultServer(lasting={"things": kind}) as server,
        Client(server.url, retries=1, **Clock().options) as client,
        pytest.raises(HttpError, match="2 tries"),
    ):
        client.download("/rows/things", path, max_bytes=MIB)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_page_of_an_error_is_no_download(tmp_path):
    with (
        serving(lambda asked: (404, {}, b"no such export")) as server,
        Client(server.url) as client,
        pytest.raises(NotFoundError, match="no such export"),
    ):
        client.download("/export", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_can_not_be_written_is_said_at_once(tmp_path, monkeypatch):
    ordinary = open

    class Full:
        """A file on a disk that is full."""

        def __init__(self, path, mode):
            self._file = ordinary(path, mode)
            self.name = str(path)

        def __enter__(self):
            return self

        def __exit__(self, *_error):
            self._file.close()

        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def __getattr__(self, name):
            return getattr(self._file, name)

    def a_full_disk(path, mode="r", **_options):
        return (Full if ".tmp" in str(path) else ordinary)(path, mode)

    with serving(lambda asked: b"some bytes") as server, Client(server.url, **Clock().options) as client:
        with pytest.raises(StorageError, match="No such file or directory"):
            client.download("/a", tmp_path / "none" / "a")
        assert server.asked == []
        monkeypatch.setattr("builtins.open", a_full_disk)
        with pytest.raises(StorageError, match="No space left on device"):
            client.download("/a", tmp_path / "a")
        assert len(server.asked) == 1
    assert list(tmp_path.iterdir()) == []


# Stopping


def test_a_run_that_is_stopped_in_the_middle_of_a_reply_leaves_nothing_held():
    """What a signal raises while a body is read comes out at once; the client works on in other threads."""

    class Stopped(BaseException):
        pass

    with (
        FaultServer(streams={"a": 100}, kinds=["stalls"], rate=1, in_a_row=1) as server,
        Client(server.url, requests_per_second=1000, pool_size=1) as client,
    ):
        reading = threading.Event()
        ordinary = socket.socket.recv_into

        def recv_into(self, *given):
            if server.faults["stalls"] and threading.current_thread() is threading.main_thread():
                reading.set()
                raise Stopped
            return ordinary(self, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket.socket, "recv_into", recv_into)
            with pytest.raises(Stopped):
                client.get("/rows/a")
        assert reading.is_set()
        found = []
        thread = threading.Thread(target=lambda: found.extend(client.json("/rows/a")), daemon=True)
        thread.start()
        thread.join(10)
        assert found == server.rows("a")


def test_what_killed_downloads_left_is_removed_by_a_later_one(tmp_path):
    old, new, other = (tmp_path / f".{name}.tmp" for name in ("a.0123456789ab", "a.0123456789ac", "b.0123456789ab"))
    for path in (old, new, other):
        path.write_bytes(b"half")
    for path in (old, other):
        os.utime(path, (1, 1))
    with serving(lambda asked: b"all") as server, Client(server.url) as client:
        client.download("/a", tmp_path / "a")
    assert {path.name for path in tmp_path.iterdir()} == {"a", new.name, other.name}


def test_a_part_that_nobody_asked_for_is_no_file(tmp_path):
    replies = iter([(206, {"Content-Range": "bytes 0-1/4"}, b"ha"), b"half"])
    with serving(lambda asked: next(replies)) as server, Client(server.url, **Clock().options) as client:
        client.download("/a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"half"


@pytest.mark.parametrize("status", [204, 205])
def test_a_reply_without_content_is_no_file(tmp_path, status):
    path = tmp_path / "a"
    path.write_text("old")
    with serving(lambda asked: status) as server, Client(server.url, **Clock().options) as client:
        with pytest.raises(HttpError, match=f"{status} .*: there is nothing to put into a file"):
            client.download("/a", path)
        assert len(server.asked) == 1
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_downloads_to_one_name_at_once_do_not_mix_and_touch_no_file_of_others(tmp_path):
    other = tmp_path / "a.part"
    other.write_text("someone's")
    path = tmp_path / "a"
    both = threading.Barrier(2, timeout=20)

    def answer(asked):
        both.wait()
        return asked.query["of"].encode() * 2_000_000

    with serving(answer) as server, Client(server.url) as client, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda of: client.download("/a", path, params={"of": of}), "xy"))
    assert path.read_bytes() in (b"x" * 2_000_000, b"y" * 2_000_000)
    assert other.read_text() == "someone's" and set(tmp_path.iterdir()) == {path, other}
