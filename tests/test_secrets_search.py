"""The search for secrets over a test run finds what it should, wherever it stands, and shows none itself."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from burler.testing import canaries_in, canary

HERE = Path(__file__).parent
BODY = """
import base64, gzip, json, logging, subprocess, sys, urllib.parse
import pytest
import burler
from burler.errors import BurlerError
from burler.testing import canary, run_tap

SECRET = canary("token")

def test_stdout():
    print("the token is", SECRET)

def test_stderr_of_setup(shows):
    pass

@pytest.fixture
def shows():
    print(SECRET, file=sys.stderr)

def test_log():
    logging.getLogger("x").warning("now %s", SECRET)

def test_log_that_the_test_clears(caplog):
    logging.getLogger("x").warning("now %s", SECRET)
    caplog.clear()

def test_output_that_the_test_reads(capsys):
    print(urllib.parse.quote(SECRET + "/"))
    assert capsys.readouterr().out

def test_output_of_a_process():
    done = subprocess.run([sys.executable, "-c", f"print({SECRET!r})"], capture_output=True, check=True)
    assert done.stdout

def test_header():
    print("Authorization: Basic " + base64.b64encode(f"ann:{SECRET}".encode()).decode())

def test_error():
    with pytest.raises(BurlerError):
        raise BurlerError(f"refused: {SECRET}")

def tap_of(row, position):
    tap = burler.tap("tap-x")

    @tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "string"}}, "type": "object"})
    def rows(stream):
        yield {"id": row}
        stream.state["position"] = position

    return tap

def test_state():
    assert run_tap(tap_of("a", SECRET)).records("rows")

def test_record():
    assert run_tap(tap_of(SECRET, 1)).records("rows")

def test_nothing_to_see():
    assert run_tap(tap_of("a", 1)).records("rows")
    print("the token is ***")

def test_fails_by_itself():
    assert SECRET == 1

def test_files(tmp_path, may_hold_secrets):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "state.json").write_text(json.dumps({"bookmarks": {"cursor": SECRET}}))
    with gzip.open(tmp_path / "rows.singer.gz", "wb") as file:
        file.write(b"x" * 1000)
    with gzip.open(tmp_path / "rows.singer.gz", "ab") as file:
        file.write(SECRET.encode())
    torn = gzip.compress(b"x" * 1000 + SECRET.encode() + bytes(range(256)) * 40)[:-20]
    (tmp_path / "torn.gz").write_bytes(torn)
    (tmp_path / "no.gz").write_bytes(b"\\x1f\\x8b nothing of the kind")
    (tmp_path / "config.json").write_text(SECRET)
    (tmp_path / "config-2.json").write_text(SECRET)
    may_hold_secrets(tmp_path / "server.db").write_text(SECRET)
    folder = may_hold_secrets(tmp_path / "server")
    folder.mkdir()
    (folder / "any").write_text(SECRET)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "pack").write_text(SECRET)
    (tmp_path / "link").symlink_to(tmp_path / "config.json")
"""


def inner_run(folder, body, *more):
    (folder / "conftest.py").write_text((HERE / "conftest.py").read_text())
    (folder / "test_inner.py").write_text(body)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", f"--basetemp={folder / 'base'}", *more],
        cwd=folder,
        env={**os.environ, "CI": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_shows_a_secret_fails(tmp_path, may_hold_secrets):
    may_hold_secrets(tmp_path)
    done = inner_run(tmp_path, BODY, "--deselect=test_inner.py::test_fails_by_itself", ".")
    lines = done.stdout.splitlines()
    results = {
        line.split("::")[1].split(" ")[0]: line.split(" ")[0]
        for line in lines
        if line.startswith(("PASSED", "FAILED", "ERROR"))
    }
    passed = {"test_nothing_to_see", "test_files"}
    assert {name for name, result in results.items() if result == "PASSED"} == passed
    assert results.pop("test_stderr_of_setup") == "ERROR"
    assert len(results) == 11 and done.returncode == 1
    for place in ("Captured stdout call: the token is <secret token>", "Captured stderr setup: <secret token>",
                  "the log: ", "stdout of output: <secret token>", "stdout of a process: <secret token>",
                  "Authorization: Basic YW5uO", "<secret in base64>", "an error: refused: <secret token>",
                  "messages of run_tap: "):  # fmt: skip
        assert place in done.stdout, (place, done.stdout)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_stands_in_files_fails_the_session(tmp_path, may_hold_secrets, processes):
    may_hold_secrets(tmp_path)
    done = inner_run(tmp_path, BODY, "test_inner.py::test_files", "-n", processes)
    assert done.returncode == 1, "though every test has passed"
    assert "1 passed" in done.stdout
    found = [line.partition(": ")[0] for line in done.stdout.splitlines() if "<secret token>" in line]
    names = sorted(Path(path).name for path in found)
    assert names == ["rows.singer.gz", "state.json", "torn.gz"]


def test_a_test_that_fails_by_itself_is_left_as_it_is(tmp_path, may_hold_secrets):
    may_hold_secrets(tmp_path)
    shown = inner_run(tmp_path, BODY.replace('canary("token")', '"plain"'), "test_inner.py::test_fails_by_itself")
    assert shown.returncode == 1 and "assert 'plain' == 1" in shown.stdout


@pytest.mark.parametrize("processes", ["0", "2"])
def test_without_secrets_nothing_happens(tmp_path, may_hold_secrets, processes):
    may_hold_secrets(tmp_path)
    body = (
        BODY
        + """
def test_allowed(may_hold_secrets, tmp_path):
    may_hold_secrets(tmp_path / "any").write_text(SECRET)
"""
    )
    names = ("test_nothing_to_see", "test_allowed")
    done = inner_run(tmp_path, body, *(f"test_inner.py::{name}" for name in names), "-n", processes)
    assert done.returncode == 0 and "secret" not in done.stdout


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_canary_is_found_in_every_form(before):
    secret = canary("my-key")
    assert secret != canary("my-key")
    assert list(canaries_in(f"{before} {secret} and on")) == [f"{before} <secret my-key> and on".strip()]
    assert list(canaries_in(quote(f"{before}{secret}&", safe="")))
    assert list(canaries_in(secret.replace("-", "%2d")))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        [shown] = canaries_in(encode(f"{before}{secret}".encode()))
        assert "<secret in base64>" in shown
    assert list(canaries_in(b"\xff\xfe" + secret.encode() + b"\x00"))


def test_what_is_shown_of_a_find_shows_no_other_secret():
    one, other = canary("one"), canary("other")
    for find in canaries_in(f"{one} beside {other}"):
        assert not list(canaries_in(find))
    cut = one[:-3]
    assert list(canaries_in(f"a {cut} b")) == ["a <secret cut> b"]


def test_other_texts_hold_none():
    assert not list(canaries_in("a canary, a s3cr3t, canary-secret-token " + "x" * 1000))
