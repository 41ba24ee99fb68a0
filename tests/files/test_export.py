"""``burler.files.export``: ask, wait, fetch, read; against a real server."""

from __future__ import annotations

import gzip
import hashlib
import io
import signal
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exportserver import serving
from filebox import ORDER, ids, zip_of

import burler
import burler.files
import burler.http
from burler.errors import DeclarationError, FileError, HttpError, NotFoundError
from burler.files import Part, export
from burler.testing import bind_stream, run_tap


class Clock:
    """Time that goes by only where somebody waits."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.time = 1000.0
        self.on_sleep = None

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.time += seconds
        if self.on_sleep is not None:
            self.on_sleep(len(self.waits))

    def options(self):
        return {"sleep": self.sleep, "monotonic": lambda: self.time, "now": lambda: self.time}


@pytest.fixture
def server():
    with serving() as served:
        yield served


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def client(server):
    with burler.http.Client(server[0], retries=2, sleep=lambda seconds: None) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """Files that were fetched are gone when the test is over."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert not [path for path in tmp_path.rglob("*") if "burler" in path.name]


def asked(client, clock, **options):
    given = {
        "request": lambda: client.post("/exports", json={"table": "orders"}).json()["id"],
        "ready": lambda job: client.json(f"/exports/{job}")["urls"],
        "cancel": lambda job: client.delete(f"/exports/{job}"),
        "download": client,
        **clock.options(),
        **options,
    }
    return export(**given)


def tap_for(client, clock, **options):
    tap = burler.tap("tap-export")

    @tap.sync("orders", key_properties="id", schema=ORDER)
    def orders(stream):
        yield from asked(client, clock, stream=stream, what="all orders", **options)

    return tap


def parquet(**columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def test_it_is_asked_for_once_waited_for_longer_and_longer_and_read(server, client, clock):
    exports = server[1]
    exports.files = {
        "a.csv.gz": gzip.compress(b"id,total\n1,1.50\n2,\n"),
        "b.parquet": parquet(id=[3]),
        "c.jsonl": b'{"id": 4}\n',
        "d.zip": zip_of({"x.csv": "id\n5\n"}),
    }
    exports.looks_needed = 5
    out = run_tap(tap_for(client, clock, poll_seconds=1, backoff=2, longest_poll_seconds=5))
    assert not out.result.errors and ids(out) == [1, 2, 3, 4, 5]
    assert clock.waits == [1, 2, 4, 5]
    assert exports.log[0] == "ask job-1" and exports.log.count("get /exports/job-1") == 5
    assert "cancel job-1" not in exports.log


def test_what_the_file_is_may_stand_in_the_reply_or_in_the_part(server, client, clock):
    exports = server[1]
    exports.files = {"download": b"id;total\n1;2\n"}
    exports.headers = {"Content-Type": "text/csv; charset=utf-8"}
    options = {"csv": burler.files.Csv(delimiter=";")}
    assert ids(run_tap(tap_for(client, clock, **options))) == [1]
    exports.headers = {}
    said = str(run_tap(tap_for(client, clock, **options)).result.errors["orders"])
    assert "does not say what it holds" in said
    named = {"ready": lambda job: Part("/files/download", name="orders.csv"), **options}
    assert ids(run_tap(tap_for(client, clock, **named))) == [1]
    assert ids(run_tap(tap_for(client, clock, format="csv", **options))) == [1]


def test_an_export_without_files_is_no_rows(server, client, clock):
    out = run_tap(tap_for(client, clock))
    assert not out.result.errors and ids(out) == []


def test_one_that_is_never_ready_is_an_error_and_is_cancelled(server, client, clock):
    server[1].looks_needed = 10**9
    out = run_tap(tap_for(client, clock, limit_seconds=100, poll_seconds=30, longest_poll_seconds=30))
    said = str(out.result.errors["orders"])
    assert isinstance(out.result.errors["orders"], FileError)
    assert "all orders was not ready after 100 seconds" in said and "5 looks" in said
    assert clock.waits == [30, 30, 30, 10], "the last look is when the time is up"
    assert server[1].log[-1] == "cancel job-1"


def test_a_cancel_that_fails_does_not_hide_the_error(server, client, clock, caplog):
    server[1].looks_needed = 10**9

    def broken(job):
        raise OSError("no way")

    out = run_tap(tap_for(client, clock, limit_seconds=1, cancel=broken))
    assert "was not ready" in str(out.result.errors["orders"]) and "could not be cancelled: no way" in caplog.text


def test_a_job_that_failed_is_the_error_that_ready_raises(server, client, clock):
    def failed(job):
        raise FileError("the server says: out of memory")

    out = run_tap(tap_for(client, clock, ready=failed))
    assert str(out.result.errors["orders"]) == "the server says: out of memory"
    assert server[1].log[-1] == "cancel job-1"


def test_a_download_that_breaks_off_is_fetched_again(server, client, clock):
    exports = server[1]
    exports.files = {"a.csv": b"id\n" + b"".join(b"%d\n" % i for i in range(50_000))}
    exports.broken_downloads = 2
    assert ids(run_tap(tap_for(client, clock))) == list(range(50_000))
    exports.broken_downloads = 10
    out = run_tap(tap_for(client, clock))
    assert isinstance(out.result.errors["orders"], HttpError) and ids(out) == []


@pytest.mark.parametrize(
    ("wrong", "fact"),
    [
        ({"size_bytes": 8}, "came with 7 bytes, and should have 8"),
        ({"sha256": "0" * 64}, "came damaged: its sha256 is"),
        ({"md5": "0" * 32}, "came damaged: its md5 is"),
    ],
)
def test_size_and_checksums_are_held_against_what_came(server, client, clock, wrong, fact):
    data = b"id\n1\n2\n"
    server[1].files = {"a.csv": data}
    right = {
        "size_bytes": 7,
        "sha256": hashlib.sha256(data).hexdigest().upper(),
        "md5": hashlib.md5(data).hexdigest(),
    }
    out = run_tap(tap_for(client, clock, ready=lambda job: [Part("/files/a.csv", **right)]))
    assert ids(out) == [1, 2]
    out = run_tap(tap_for(client, clock, ready=lambda job: [Part("/files/a.csv", **{**right, **wrong})]))
    assert fact in str(out.result.errors["orders"]) and ids(out) == []


def test_errors_name_the_part_and_not_the_temporary_file(server, client, clock):
    server[1].files = {"orders.csv": b"id,name\n1\n"}
    said = str(run_tap(tap_for(client, clock)).result.errors["orders"])
    assert "file 'orders.csv', row 2" in said and "burler-export" not in said


def test_more_than_allowed_is_not_fetched(server, client, clock):
    server[1].files = {"a.csv": b"id\n" + b"1\n" * 100_000}
    out = run_tap(tap_for(client, clock, max_download_bytes=10_000))
    assert "10,000" in str(out.result.errors["orders"])


def test_a_function_may_fetch_the_parts(clock, tmp_path):
    def fetch(part, path):
        path.write_text(f"id\n{part.url}\n")

    pages = export(request=lambda: 1, ready=lambda job: ["5", "6"], download=fetch, format="csv", **clock.options())
    assert [page.to_pylist() for page in pages] == [[{"id": "5"}], [{"id": "6"}]]
    with pytest.raises(FileError, match="wrote no file"):
        list(export(request=lambda: 1, ready=lambda job: "x", download=lambda part, path: None, format="csv"))


def test_a_file_is_removed_when_nobody_reads_on(server, client, clock, tmp_path):
    server[1].files = {"a.csv": b"id\n" + b"".join(b"%d\n" % i for i in range(500_000))}
    pages = asked(client, clock)
    next(pages)
    assert [path for path in tmp_path.rglob("*") if "burler-export" in path.name]
    pages.close()
    assert not [path for path in tmp_path.rglob("*") if "burler-export" in path.name]


def test_whoever_stops_waiting_cancels(server, client, clock):
    server[1].looks_needed = 10**9

    def interrupted(_count):
        raise KeyboardInterrupt

    clock.on_sleep = interrupted
    with pytest.raises(KeyboardInterrupt):
        next(asked(client, clock))
    assert server[1].log[-1] == "cancel job-1"


# ---- jobs that are kept ------------------------------------------------------------------------------


def stopped_run(client, clock, **options):
    """A run that is stopped while it waits for the third look; gives its last state."""

    def stop(count):
        if count == 2:
            signal.raise_signal(signal.SIGTERM)

    clock.on_sleep = stop
    tap = tap_for(client, clock, keep_job=True, **options)
    out = run_tap(tap)
    clock.on_sleep = None
    return tap, out


def test_a_run_that_ended_while_it_waited_is_followed_by_one_that_waits_for_the_same_job(server, client, clock):
    exports = server[1]
    exports.files, exports.looks_needed = {"a.csv": b"id\n1\n"}, 4
    tap, first = stopped_run(client, clock)
    assert ids(first) == [] and "cancel job-1" not in exports.log
    kept = first.states[-1]["bookmarks"]["orders"]["stream_state"]["burler/exports"]
    assert kept == {"all orders": {"job": "job-1", "at": 1000}}
    second = run_tap(tap, state=first.states[-1])
    assert ids(second) == [1] and [line for line in exports.log if line.startswith("ask")] == ["ask job-1"]
    assert "stream_state" not in second.states[-1]["bookmarks"]["orders"]


def test_a_job_is_kept_in_a_state_that_is_out_before_the_wait(server, client, clock):
    """A kill leaves no time to write one."""
    server[1].looks_needed = 10**9
    tap = tap_for(client, clock)
    with bind_stream(tap, "orders") as stream:
        seen, saved = [], []
        stream._call.channel.save_bookmark = lambda _stream, value, given: saved.append(value)
        clock.on_sleep = lambda count: seen.append((dict(stream.state), list(saved)))
        server[1].looks_needed, server[1].files = 2, {"a.csv": b"id\n1\n"}
        pages = list(asked(client, clock, stream=stream, keep_job=True, what="w"))
        assert seen[0] == ({"burler/exports": {"w": {"job": "job-1", "at": 1000}}}, [None]), "a STATE was due"
        assert [page.num_rows for page in pages] == [1], "nothing stands among the pages that is none"
        assert stream.state == {}


def test_a_kept_job_that_is_gone_is_asked_for_anew(server, client, clock, caplog):
    exports = server[1]
    exports.files = {"a.csv": b"id\n1\n"}
    tap, first = stopped_run(client, clock)
    exports.jobs["other"] = 0
    exports.jobs.pop("job-1")
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors and ids(second) == [1]
    assert "is gone; it is asked for anew" in caplog.text


def test_a_job_that_was_asked_for_otherwise_or_long_ago_is_not_taken_up(server, client, clock):
    exports = server[1]
    exports.files = {"a.csv": b"id\n1\n"}
    tap, first = stopped_run(client, clock)
    clock.time += 100_000
    second = run_tap(tap, state=first.states[-1])
    assert ids(second) == [1] and exports.log.count("ask job-2") == 1
    tap = burler.tap("tap-export")

    @tap.sync("orders", key_properties="id", schema=ORDER)
    def orders(stream):
        yield from asked(client, clock, stream=stream, what="orders of another account", keep_job=True)

    clock.time = 1000.0
    third = run_tap(tap, state=first.states[-1])
    assert ids(third) == [1] and exports.log.count("ask job-3") == 1


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (FileError("it failed"), False),
        (NotFoundError("gone", status=404, url="u", method="GET", body=b"", attempts=1), False),
        (HttpError("slower", status=429, url="u", method="GET", body=b"", attempts=1), True),
        (HttpError("busy", status=503, url="u", method="GET", body=b"", attempts=1), True),
        (HttpError("nobody", status=None, url="u", method="GET", body=b"", attempts=1), True),
    ],
)
def test_a_job_that_failed_is_forgotten_and_one_whose_server_was_away_is_not(server, client, clock, error, stays):
    def failed(job):
        raise error

    out = run_tap(tap_for(client, clock, keep_job=True, ready=failed))
    assert out.result.errors
    last = out.states[-1].get("bookmarks", {}).get("orders", {})
    assert ("burler/exports" in last.get("stream_state", {})) is stays


def test_one_that_is_late_stays_for_the_next_run(server, client, clock):
    server[1].looks_needed, server[1].files = 6, {"a.csv": b"id\n1\n"}
    tap = tap_for(client, clock, keep_job=True, limit_seconds=5, poll_seconds=2)
    first = run_tap(tap)
    assert "was not ready" in str(first.result.errors["orders"]) and "cancel job-1" not in server[1].log
    second = run_tap(tap, state=first.states[-1])
    assert ids(second) == [1]


@pytest.mark.parametrize(
    "options",
    [
        {"poll_seconds": 0},
        {"limit_seconds": -1},
        {"longest_poll_seconds": 0},
        {"backoff": 0.5},
        {"format": "x"},
        {"add": "x"},
    ],
)
def test_options_that_can_not_be_are_refused_at_once(options):
    given = {"request": lambda: 1, "ready": lambda job: None, "download": lambda part, path: None, **options}
    with pytest.raises(DeclarationError):
        export(**given)


def test_functions_that_give_something_else(clock):
    def fetch(part, path):
        path.write_text("id\n1\n")

    with pytest.raises(DeclarationError, match="request"):
        list(export(request=lambda: None, ready=lambda job: [], download=fetch))
    for found in (5, [None], {"url": "x"}, [""]):
        with pytest.raises(DeclarationError, match="ready"):
            list(export(request=lambda: 1, ready=lambda job, found=found: found, download=fetch))
    with pytest.raises(DeclarationError, match="keep_job needs a running stream"):
        list(export(request=lambda: 1, ready=lambda job: [], download=fetch, keep_job=True, what="w"))
