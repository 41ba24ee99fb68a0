"""What a manifest may name: not what the machine keeps to itself, and with ``--allow`` nothing but what lies below it,
once links and redirects are followed; each way to spell it is the same."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from piped import SCHEMA, batch, config, converted, expanded, file, lines, rows

import burler
from burler.batch import read
from burler.errors import BatchError, ConfigError
from burler.testing import canary, run_tap
from support.internals import batch_allowed as allowed

CSV = {"name": "csv", "options": {"header": False}}
KEY = "X-Api-Key"


def refused(run: Any, fact: str) -> None:
    """Nothing was read, and the error says why."""
    assert isinstance(run.error, BatchError) and f"is not read: {fact}" in str(run.error), run.error
    assert not run.ids


# ---- without --allow: what the machine keeps to itself -----------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "file:///proc/self/environ",
        "/proc/self/environ",
        "file:////proc/self/environ",
        "file:///tmp/../proc/self/environ",
        "file:///pro%63/self/environ",
        "file:///proc/self/root/etc/hostname",
        "file:///sys/kernel/mm/transparent_hugepage/enabled",
        "file:///dev/stdin",
        "file:///dev/fd/0",
        "file:///dev/zero",
    ],
)
def test_what_processes_and_devices_hold(url: str) -> None:
    run = expanded(SCHEMA, batch(url, format=CSV))
    refused(run, "it lies in one of /proc, /sys, /dev.\n  If it is to be read all the same: --allow /")


def test_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("/proc/self/environ")
    (tmp_path / "folder").symlink_to("/proc/self")
    for name in ("a.jsonl", "folder/environ"):
        refused(expanded(SCHEMA, batch(f"file://{tmp_path}/{name}")), "it lies in one of /proc, /sys, /dev")


@pytest.mark.parametrize(
    ("url", "fact"),
    [
        ("local:///etc/hostname", "it is a file of this machine under another name"),
        ("simplecache::file:///etc/hostname", "it is no plain URL"),
        ("zip://x::file:///etc/hostname", "it is no plain URL"),
        ("xy:/../../../../../../etc/hostname", "it is no plain URL"),
    ],
)
def test_files_of_this_machine_by_way_of_a_store(url: str, fact: str) -> None:
    refused(expanded(SCHEMA, batch(url, format=CSV)), fact)


def burler_says(*words: str, given: bytes, **more: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "burler", *words],
        input=given,
        capture_output=True,
        timeout=120,
        env={**os.environ, **more},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


COMMANDS = {
    "expand": ("batch", "expand"),
    "expand with processes": ("batch", "expand", "--processes", "2"),
    "convert": ("batch", "convert", "--storage", "new", "--format", "jsonl"),
    "lake write": ("lake", "write", "lake", "--tap-id", "tap-x"),
    "verify": ("verify", "-", "--select", "M213"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_batches_has_the_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = canary("environment")
    words = COMMANDS[command]
    for url, allow in (("file:///proc/self/environ", ()), (file(tmp_path / "a", rows(1)), ("--allow", "elsewhere"))):
        given = lines(SCHEMA, batch(url), {"type": "STATE", "value": {"at": 1}})
        code, out, log = burler_says(*words, *allow, given=given, SOURCE_TOKEN=secret)
        said = " ".join((out + log).split())
        assert code == 1 and f"batch file '{url}' is not read: it lies" in said, said
        assert secret[:20] not in out + log and '"at": 1' not in out
    code, out, log = burler_says(*words, "--allow", str(tmp_path), given=lines(SCHEMA, batch(url)))
    assert code == 0 and "is not read" not in out + log


# ---- with --allow: what lies below ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """``in`` with a file of row 1, and around it what is no part of it."""
    for name in ("in", "inner", "in/deeper"):
        (tmp_path / name).mkdir()
        file(tmp_path / name / "a", rows(1))
    file(tmp_path / "key.json", rows(2))
    (tmp_path / "in/link").symlink_to("../key.json")
    (tmp_path / "in/out").symlink_to(tmp_path)
    (tmp_path / "by-link").symlink_to("in")
    return tmp_path


@pytest.mark.parametrize("allow", ["in", "in/", "in/a", "by-link", ".", "file://{}/in", "FILE://{}/in", "{}/in"])
def test_what_lies_below_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch, allow: str) -> None:
    monkeypatch.chdir(folder)
    for url in (f"file://{folder}/in/a", f"{folder}/in/a", f"file://{folder}/in/deeper/../a", f"{folder}/by-link/a"):
        assert expanded(SCHEMA, batch(url), allow=["/elsewhere", allow.format(folder)]).ids == [1]


@pytest.mark.parametrize(
    "name",
    ["key.json", "inner/a", "in/../key.json", "in/%2e%2e/key.json", "in/link", "in/out/key.json", "gone", "/etc/gone"],
)
def test_what_does_not_is_refused_and_not_even_looked_at(folder: Path, name: str) -> None:
    run = expanded(SCHEMA, batch(f"file://{folder / name}"), allow=[f"{folder}/in"])
    refused(run, f"it lies below nothing that --allow names.\n  Allowed is {folder}/in.")


def test_pipes_are_refused_below_it_too(folder: Path) -> None:
    os.mkfifo(folder / "in/pipe")
    run = expanded(SCHEMA, batch(f"file://{folder}/in/pipe"), allow=[str(folder)])
    assert "is no file, but a folder, pipe or device" in str(run.error)


def test_what_is_named_may_be_read_whatever_it_is(folder: Path) -> None:
    """Who names it knows."""
    (message,) = (batch("file:///proc/self/cmdline", format={"name": "csv", "options": {"header": False}}),)
    schema = {"properties": {"line": {"type": "string"}}}
    assert len(list(read(message, schema, allow=["/proc/self"]).rows())) == 1


def test_in_python(folder: Path) -> None:
    url = f"file://{folder}/key.json"
    for run in (
        lambda: list(read(batch(url), allow=[f"{folder}/in"]).rows()),
        lambda: list(read(batch(url), allow=[]).rows()),
        lambda: list(read(batch(url), SCHEMA["schema"], allow=f"{folder}/in").arrow()),
    ):
        with pytest.raises(BatchError, match="is not read: it lies below nothing"):
            run()
    refused(converted(config(folder / "new"), SCHEMA, batch(url), allow=[f"{folder}/in"]), "it lies below nothing")
    assert [row["id"] for row in read(batch(url), allow=[str(folder)]).rows()] == [2]


def test_the_environment_says_it_for_all_that_say_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = (SCHEMA, batch(f"file://{folder}/key.json"))
    for said in (f"{folder}/in", f"/x {folder}/in", json.dumps([f"{folder}/in"])):
        monkeypatch.setenv("BURLER_ALLOW", said)
        refused(expanded(*messages), "it lies below nothing that --allow names")
        assert expanded(*messages, allow=[str(folder)]).ids == [2]
    monkeypatch.setenv("BURLER_ALLOW", f" {folder}\n")
    assert expanded(*messages).ids == [2]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3:/bucket", "--allow: 's3:/bucket' is no URL. Did you mean s3://bucket?"),
        ("", "--allow: it is empty or no path."),
        ("file://nas/x", "names no folder of this machine"),
        ("http://", "--allow: 'http://' names no host."),
        ("s3://", "--allow: 's3://' is no URL of a folder."),
        ("s3://bucket/../other", "is no URL of a folder."),
        ("https://host/x?sig=1", "--allow: 'https://host/x' is no URL of a folder."),
        ("https://me:hunter2@host/", "--allow: 'host/' has a user in it."),
    ],
)
def test_prefixes_that_can_not_be(url: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(batch("/x"), allow=[url])
    assert says in str(caught.value) and "hunter2" not in str(caught.value)
    assert burler_says("batch", "expand", "--allow", url, given=b"")[0] == 2


def test_an_environment_that_can_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("[1]", '["a"', "a s3:/b"):
        monkeypatch.setenv("BURLER_ALLOW", said)
        with pytest.raises(ConfigError, match=r"^BURLER_ALLOW"):
            read(batch("/x"))


def test_stores_by_bucket_and_folder() -> None:
    import fsspec

    for place in ("in/a", "inner/a", "in/deeper/a"):
        with fsspec.open(f"memory://allowed/{place}", "wb") as out:
            out.write(rows(1))
    for place, is_read in (("in/a", True), ("in/deeper/a", True), ("inner/a", False), ("in/../inner/a", False)):
        run = expanded(SCHEMA, batch(f"memory://allowed/{place}"), allow=["memory://allowed/in/"])
        assert run.ids == [1] if is_read else not run.ids and "it lies below nothing" in str(run.error), place


@pytest.mark.parametrize(
    ("url", "prefix", "is_below"),
    [
        ("s3://bucket/a/x", "s3://bucket", True),
        ("s3a://bucket/a/x", "s3://bucket/a", True),
        ("gcs://bucket/x", "gs://bucket", True),
        ("S3://bucket/x?versionId=1", "s3://bucket/", True),
        ("s3://bucket-2/x", "s3://bucket", False),
        ("s3://other/x", "s3://bucket", False),
        ("gs://bucket/x", "s3://bucket", False),
        ("s3://bucket/a/%2e%2e/x", "s3://bucket/a", False),
        ("s3://bucket/x", "/bucket", False),
    ],
)
def test_buckets(url: str, prefix: str, is_below: bool) -> None:
    rule = allowed.Allowed.of([prefix])
    if is_below:
        rule.store(url, {})
        return
    with pytest.raises(allowed.Refused):
        rule.store(url, {})


# ---- web servers ---------------------------------------------------------------------------------------------------


class Web:
    """A server of two rows; below ``/to/`` it redirects to what stands behind. ``asked``: paths, and who asked."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        web = self
        self.asked: list[tuple[str, str | None]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append((self.path, self.headers[KEY]))
                if self.path.startswith("/to/"):
                    self.send_response(302)
                    self.send_header("Location", self.path.removeprefix("/to/"))
                    self.end_headers()
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(rows(1, 2))

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.port = self._server.server_port
        self.url = f"http://{address}:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(30)
        self._server.server_close()


@pytest.fixture
def webs() -> Iterator[Callable[..., Web]]:
    """Makes servers."""
    made: list[Web] = []

    def make(*given: str) -> Web:
        made.append(Web(*given))
        return made[-1]

    yield make
    for web in made:
        web.close()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[::1]",
    ],
)
def test_this_machine_however_it_is_spelt(webs: Callable[..., Web], host: str) -> None:
    web = webs()
    refused(
        expanded(SCHEMA, batch(f"http://{host}:{web.port}/a")),
        f"http://{host.lower()}:{web.port}/ is this machine".replace(host.lower(), host),
    )
    assert web.asked == []


def test_it_is_read_where_it_is_allowed(webs: Callable[..., Web]) -> None:
    web = webs()
    message = batch(f"{web.url}/in/a")
    for allow in (f"{web.url}/", web.url, f"{web.url}/in", f"{web.url}/%69n", f"{web.url}/in/a", web.url.upper()):
        assert expanded(SCHEMA, message, allow=[allow]).ids == [1, 2], allow
    web.asked.clear()
    for url in ("inner/a", "in/../a", "in/%2e%2e/a", "in/..%2fa", "in/%252e%252e/a", "in%2fa"):
        refused(
            expanded(SCHEMA, batch(f"{web.url}/{url}"), allow=[f"{web.url}/in"]), "it lies below nothing that --allow"
        )
    other = f"http://localhost:{web.port}/in/a"
    refused(expanded(SCHEMA, batch(other), allow=[web.url]), "it lies below nothing that --allow names")
    assert web.asked == []


@pytest.mark.parametrize(
    ("address", "is_inner"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("::", True),
        ("169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.169.254", True),
        ("fd00:ec2::254", True),
        ("100.100.100.200", True),
        ("93.184.216.34", False),
        ("2606:2800:220:1::1", False),
    ],
)
def test_addresses(address: str, is_inner: bool) -> None:
    assert allowed.is_inner(address) is is_inner


def test_the_addresses_of_this_machines_own_interfaces() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no way out")
        own = probe.getsockname()[0]
    assert allowed.is_inner(own)


@pytest.fixture
def one_is_inner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the addresses of this machine all but one pass for others' servers."""
    monkeypatch.setattr(allowed, "is_inner", lambda address: address == "127.0.0.2")


@pytest.mark.usefixtures("one_is_inner")
def test_a_redirect_to_this_machine(webs: Callable[..., Web]) -> None:
    outside, inside = webs(), webs("127.0.0.2")
    for way in ("/to/", f"/to//to/{outside.url}/to/"):
        message = batch(f"{outside.url}{way}{inside.url}/secret?sig=x")
        fact = f"it redirects to '{inside.url}/secret': {inside.url}/ is this machine itself or a link-local address"
        refused(expanded(SCHEMA, message), fact)
        assert outside.asked and inside.asked == []
    assert expanded(SCHEMA, batch(f"{outside.url}/to/../a")).ids == [1, 2]


def test_a_redirect_to_what_is_not_allowed(webs: Callable[..., Web]) -> None:
    one, other = webs(), webs()
    message = batch(f"{one.url}/to/{other.url}/a")
    refused(expanded(SCHEMA, message, allow=[one.url]), f"it redirects to '{other.url}/a': it lies below nothing")
    assert one.asked and other.asked == []
    assert expanded(SCHEMA, message, allow=[one.url, other.url]).ids == [1, 2]


def test_a_name_that_leads_elsewhere_once_it_was_looked_at(
    webs: Callable[..., Web], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has answered is looked at before anything is asked."""
    web = webs()
    real, found = socket.getaddrinfo, iter(["93.184.216.34"])

    def look_up(host: str, *given: Any, **more: Any) -> Any:
        return real(next(found, "127.0.0.1") if host == "rebound.test" else host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    refused(expanded(SCHEMA, batch(f"http://rebound.test:{web.port}/a")), "http://rebound.test/ is this machine itself")
    assert web.asked == []


def test_redirects_in_a_circle(webs: Callable[..., Web]) -> None:
    web = webs()
    run = expanded(SCHEMA, batch(f"{web.url}/to/?x"), allow=[web.url])
    assert "more than 10 redirects" in str(run.error) and len(web.asked) == 11


# ---- headers among the storage options -----------------------------------------------------------------------------


@pytest.mark.usefixtures("one_is_inner")
def test_headers_go_to_no_host_that_a_message_alone_names(webs: Callable[..., Web]) -> None:
    web, key = webs(), canary("header")
    message, options = batch(f"{web.url}/a"), {"headers": {KEY: key}}
    run = expanded(SCHEMA, message, options=options)
    refused(run, "the headers of the storage options would go to a host that the message alone names.\n")
    assert f"If it may see them, name it: --allow {web.url}/ (" in str(run.error)
    assert web.asked == []
    assert expanded(SCHEMA, message, options=options, allow=[web.url]).ids == [1, 2]
    assert web.asked == [("/a", key)]


def test_headers_go_to_one_origin_and_across_no_redirect(webs: Callable[..., Web]) -> None:
    one, other = webs(), webs()
    options = {"headers": {KEY: "k"}}
    run = expanded(
        SCHEMA,
        batch(f"{one.url}/to/{other.url}/to/{one.url}/a"),
        batch(f"{other.url}/b"),
        options=options,
        allow=["/data", one.url, other.url],
    )
    assert run.ids == [1, 2, 1, 2]
    assert [key for _, key in one.asked] == ["k", "k"] and [key for _, key in other.asked] == [None, None]


def test_headers_of_files_that_the_tap_itself_names(webs: Callable[..., Web]) -> None:
    """It may read from anywhere; a redirect still leads its headers nowhere else."""
    one, other = webs(), webs()
    tap = burler.tap("tap-own")

    @tap.sync("users", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def users() -> Iterator[Any]:
        yield burler.batch_files(
            f"{one.url}/to/{other.url}/a.jsonl", format="jsonl", storage_options={"headers": {KEY: "k"}}
        )

    assert [row["id"] for row in run_tap(tap).records("users")] == [1, 2]
    assert {key for _, key in one.asked} == {"k"} and {key for _, key in other.asked} == {None}


def test_options_of_stores_whose_urls_name_a_server(webs: Callable[..., Web]) -> None:
    """A password for FTP goes to whom a message names no more than a header."""
    web, options = webs(), {"username": "me", "password": canary("ftp")}
    run = expanded(SCHEMA, batch(f"ftp://127.0.0.1:{web.port}/a"), options=options)
    refused(run, "the storage options would go to a host that the message alone names.\n")
    assert f"name it: --allow ftp://127.0.0.1:{web.port}/ (" in str(run.error)
