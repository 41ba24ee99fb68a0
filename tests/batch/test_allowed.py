"""What a manifest may name: not what the machine keeps to itself, and with ``--allow`` nothing but what lies below it,
once links and redirects are followed; each way to spell it is the same."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from piped import SCHEMA, batch, config, converted, expanded, file, lines, rows

import burler
from burler.batch import read
from burler.errors import BatchError, ConfigError
from burler.testing import canary, run_tap
from support.cli import burler as command
from support.servers import Server, serving

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


COMMANDS = {
    "expand": ("batch", "expand"),
    "expand with processes": ("batch", "expand", "--processes", "2"),
    "convert": ("batch", "convert", "--storage", "new", "--format", "jsonl"),
    "lake write": ("lake", "write", "lake", "--tap-id", "tap-x"),
    "verify": ("verify", "-", "--select", "M213"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=list(COMMANDS))
def test_every_command_that_reads_batches_has_the_rule(tmp_path: Path, words: tuple[str, ...]) -> None:
    secret = canary("environment")
    for url, allow in (("file:///proc/self/environ", ()), (file(tmp_path / "a", rows(1)), ("--allow", "elsewhere"))):
        given = lines(SCHEMA, batch(url), {"type": "STATE", "value": {"at": 1}})
        done = command(*words, *allow, cwd=tmp_path, stdin=given, SOURCE_TOKEN=secret)
        said = " ".join((done.text + done.stderr).split())
        assert done.code == 1 and f"batch file '{url}' is not read: it lies" in said, said
        assert secret[:20] not in said and '"at": 1' not in done.text
    done = command(*words, "--allow", str(tmp_path), cwd=tmp_path, stdin=lines(SCHEMA, batch(url)))
    assert done.code == 0 and "is not read" not in done.text + done.stderr


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
    assert command("batch", "expand", "--allow", url).code == 2


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
def test_buckets(monkeypatch: pytest.MonkeyPatch, url: str, prefix: str, is_below: bool) -> None:
    """What is allowed is missed only when it is opened."""
    for package in ("s3fs", "gcsfs"):
        monkeypatch.setitem(sys.modules, package, None)
    error = str(expanded(SCHEMA, batch(url), allow=[prefix]).error)
    assert ("it lies below nothing" in error) is not is_below and ("needs the package" in error) is is_below


# ---- web servers ---------------------------------------------------------------------------------------------------


def two_rows(asked: Any) -> Any:
    """Below ``/to/`` it redirects to what stands behind."""
    if asked.path.startswith("/to/"):
        query = "&".join(map("=".join, asked.pairs))
        return 302, {"Location": asked.path.removeprefix("/to/") + (f"?{query}" if query else "")}, b""
    return rows(1, 2)


def keys_of(server: Server) -> list[str | None]:
    """The keys that it was sent, request by request."""
    return [asked.headers.get(KEY.lower()) for asked in server.asked]


@pytest.fixture
def webs() -> Iterator[Callable[..., Server]]:
    """Makes servers."""
    with contextlib.ExitStack() as stack:
        yield lambda address="127.0.0.1": stack.enter_context(serving(two_rows, address=address))


OUTSIDE = "http://93.184.216.34"


@pytest.fixture
def outside(webs: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server out there: what is asked of it comes to a proxy, who is one of this machine."""
    proxy = webs()
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("http_proxy", proxy.url)
    return proxy


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
def test_this_machine_however_it_is_spelt(webs: Callable[..., Server], host: str) -> None:
    web = webs()
    refused(
        expanded(SCHEMA, batch(f"http://{host}:{web.port}/a")),
        f"http://{host.lower()}:{web.port}/ is this machine".replace(host.lower(), host),
    )
    assert web.asked == []


def test_it_is_read_where_it_is_allowed(webs: Callable[..., Server]) -> None:
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


def test_addresses_of_this_machine_and_of_clouds(outside: Server) -> None:
    inner = ["127.0.0.1", "127.8.8.8", "[::1]", "0.0.0.0", "[::]", "169.254.169.254", "[::ffff:169.254.169.254]"]
    inner += ["[fe80::1]", "[fd00:ec2::254]", "100.100.100.200"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # of its own interfaces; nothing is sent
        inner.append(probe.getsockname()[0])
    for address in inner:
        refused(expanded(SCHEMA, batch(f"http://{address}:1/a")), f"http://{address}:1/ is this machine itself or a ")
    assert outside.asked == []
    for address in ("93.184.216.34", "[2606:2800:220:1::1]"):
        assert expanded(SCHEMA, batch(f"http://{address}/a")).ids == [1, 2]


def test_a_redirect_to_this_machine(outside: Server, webs: Callable[..., Server]) -> None:
    inside = webs("127.0.0.2")
    for way in ("/to/", f"/to//to/{OUTSIDE}/to/"):
        message = batch(f"{OUTSIDE}{way}{inside.url}/secret?sig=x")
        fact = f"it redirects to '{inside.url}/secret': {inside.url}/ is this machine itself or a link-local address"
        refused(expanded(SCHEMA, message), fact)
        assert outside.asked and inside.asked == []
    assert expanded(SCHEMA, batch(f"{OUTSIDE}/to/../a")).ids == [1, 2]


def test_a_redirect_to_what_is_not_allowed(webs: Callable[..., Server]) -> None:
    one, other = webs(), webs()
    message = batch(f"{one.url}/to/{other.url}/a")
    refused(expanded(SCHEMA, message, allow=[one.url]), f"it redirects to '{other.url}/a': it lies below nothing")
    assert one.asked and other.asked == []
    assert expanded(SCHEMA, message, allow=[one.url, other.url]).ids == [1, 2]


def test_a_name_that_leads_elsewhere_once_it_was_looked_at(
    webs: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has answered is looked at before anything is asked."""
    web = webs()
    real, found = socket.getaddrinfo, iter(["93.184.216.34"])

    def look_up(host: str, *given: Any, **more: Any) -> Any:
        return real(next(found, "127.0.0.1") if host == "rebound.test" else host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    refused(expanded(SCHEMA, batch(f"http://rebound.test:{web.port}/a")), "http://rebound.test/ is this machine itself")
    assert web.asked == []


def test_redirects_in_a_circle(webs: Callable[..., Server]) -> None:
    web = webs()
    web.answer = lambda asked: (302, {"Location": "?x"}, b"")
    run = expanded(SCHEMA, batch(f"{web.url}/to"), allow=[web.url])
    assert "more than 10 redirects" in str(run.error) and len(web.asked) == 11


# ---- headers among the storage options -----------------------------------------------------------------------------


def test_headers_go_to_no_host_that_a_message_alone_names(outside: Server) -> None:
    key = canary("header")
    message, options = batch(f"{OUTSIDE}/a"), {"headers": {KEY: key}}
    run = expanded(SCHEMA, message, options=options)
    refused(run, "the headers of the storage options would go to a host that the message alone names.\n")
    assert f"If it may see them, name it: --allow {OUTSIDE}/ (" in str(run.error)
    assert outside.asked == []
    assert expanded(SCHEMA, message, options=options, allow=[OUTSIDE]).ids == [1, 2]
    assert keys_of(outside) == [key]


def test_headers_go_to_one_origin_and_across_no_redirect(webs: Callable[..., Server]) -> None:
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
    assert keys_of(one) == ["k", "k"] and keys_of(other) == [None, None]


def test_headers_of_files_that_the_tap_itself_names(webs: Callable[..., Server]) -> None:
    """It may read from anywhere; a redirect still leads its headers nowhere else."""
    one, other = webs(), webs()
    tap = burler.tap("tap-own")

    @tap.sync("users", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def users() -> Iterator[Any]:
        yield burler.batch_files(
            f"{one.url}/to/{other.url}/a.jsonl", format="jsonl", storage_options={"headers": {KEY: "k"}}
        )

    assert [row["id"] for row in run_tap(tap).records("users")] == [1, 2]
    assert set(keys_of(one)) == {"k"} and set(keys_of(other)) == {None}


def test_options_of_stores_whose_urls_name_a_server(webs: Callable[..., Server]) -> None:
    """A password for FTP goes to whom a message names no more than a header."""
    web, options = webs(), {"username": "me", "password": canary("ftp")}
    run = expanded(SCHEMA, batch(f"ftp://127.0.0.1:{web.port}/a"), options=options)
    refused(run, "the storage options would go to a host that the message alone names.\n")
    assert f"name it: --allow ftp://127.0.0.1:{web.port}/ (" in str(run.error)
