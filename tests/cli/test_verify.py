"""``burler verify`` as a user runs it."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time

import pytest
from terminals import Terminal

from support.cli import burler
from support.clocks import until

TAP = """
import burler

tap = burler.tap("tap-days", config_spec={"token": "x"})
SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}

@tap.sync("days", key_properties="id", replication_key="at", schema=SCHEMA, order="asc", bookmark_strategy="every_n(2)")
def days(stream):
    for n in range(1, 7):
        row = {"id": n, "at": f"2024-05-0{n}T00:00:00Z"}
        if stream.bookmark is None or row["at"] >= stream.bookmark:
            yield row
"""
SCHEMA_LINE = (
    b'{"type":"SCHEMA","stream":"a","schema":{"properties":{"id":{"type":"integer"}}},"key_properties":["id"]}\n'
)
GOOD = SCHEMA_LINE + b'{"type":"RECORD","stream":"a","record":{"id":1}}\n{"type":"STATE","value":{}}\n'
BAD = SCHEMA_LINE + b'{"type":"RECORD","stream":"a","record":{"id":1.0}}\n{"type":"STATE","value":{}}\n'
WARNED = SCHEMA_LINE + GOOD


@pytest.fixture
def project(tmp_path):
    """A folder with a tap and a config."""
    (tmp_path / "tap_days.py").write_text(TAP)
    (tmp_path / "config.json").write_text('{"token": "a-secret-of-some-length"}')
    return tmp_path


def verify(folder, *words, given=b""):
    """The command to its end, as a process would have ended."""
    code, out, err = burler("verify", *words, cwd=folder, stdin=given)
    return subprocess.CompletedProcess(words, code, out, err.encode())


def codes(done):
    return [one["code"] for one in json.loads(done.stdout)["findings"]]


BIG_TAP = """
import burler

tap = burler.tap("tap-shop", config_spec=["token"])
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "pad": {"type": "string"}}}

def rows(first):
    return [{"id": i, "pad": "x" * 150 + str(i)} for i in range(first, 401)]

@tap.sync("people", key_properties="id", replication_key="id", schema=SCHEMA, bookmark_strategy="every_n(50)")
def people(stream):
    yield from rows(stream.bookmark or 1)

@tap.sync("orders", key_properties="id", schema=SCHEMA)
def orders():
    yield from rows(1)
"""


def test_a_tap_is_verified_whole(project):
    """A burler tap keeps all rules, those of behaviour as well, and few are left open."""
    (project / "tap_shop.py").write_text(BIG_TAP)
    done = verify(project, "tap_shop.py", "-c", "config.json", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["findings"] == [] and found["subject"] == "tap_shop.py"
    assert {"B312", "B314", "B325", "C101", "P601", "P604", "P605", "P606", "P607", "P608"} <= set(found["checked"])
    assert [run["name"].partition(" ")[0] for run in found["runs"]] == ["sync", *["resumed"] * 3, "as", "as"]
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("given", "words", "code"),
    [(GOOD, [], 0), (BAD, [], 1), (WARNED, [], 0), (WARNED, ["--strict"], 1), (BAD, ["--ignore", "M218"], 0)],
    ids=["good", "bad", "warned", "strict", "ignored"],
)
def test_messages_and_exit_codes(tmp_path, given, words, code):
    done = verify(tmp_path, "-", "--format", "json", *words, given=given)
    assert done.returncode == code, done.stderr
    assert done.stderr == b""


def test_no_message_at_all_is_no_clean_run(tmp_path):
    """A tap that fails at its start leaves an empty pipe, and its exit code behind."""
    done = verify(tmp_path, "-", given=b"")
    assert done.returncode == 2
    assert b"not one message came" in done.stderr and b"pipefail" in done.stderr


def test_a_catalog_alone(tmp_path):
    (tmp_path / "catalog.json").write_text('{"streams": [{"tap_stream_id": "a", "schema": {"type": "object"}}]}')
    done = verify(tmp_path, "--catalog", "catalog.json", "--format", "json")
    assert set(codes(done)) and all(code[0] == "C" for code in codes(done))


def test_the_projects_own_word_and_the_command_lines(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.burler.verify]\nignore = ["M218"]\nstrict = true\n')
    assert verify(tmp_path, "-", "--format", "json", given=BAD).returncode == 0
    assert verify(tmp_path, "-", "--format", "json", given=WARNED).returncode == 1
    assert verify(tmp_path, "-", "--format", "json", "--ignore", "M209", given=WARNED).returncode == 0


def test_a_baseline_takes_what_is_known_out(tmp_path):
    assert verify(tmp_path, "-", "--write-baseline", "known.json", given=BAD).returncode == 0
    done = verify(tmp_path, "-", "--baseline", "known.json", "--format", "json", given=BAD)
    assert (done.returncode, codes(done), json.loads(done.stdout)["baselined"]) == (0, [], 1)
    more = BAD.replace(b'{"id":1.0}', b'{"id":1.0,"x":1}')
    assert codes(verify(tmp_path, "-", "--baseline", "known.json", "--format", "json", given=more)) == ["R501"]
    gone = verify(tmp_path, "-", "--baseline", "known.json", given=GOOD)
    assert b"M218" in gone.stderr  # it may go from the baseline
    for option in ("--ignore=M218", "--select=B"):  # what was not looked at may still be there
        assert b"M218" not in verify(tmp_path, "-", "--baseline", "known.json", option, given=GOOD).stderr


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "html"])
def test_forms(tmp_path, form):
    done = verify(tmp_path, "-", "--format", form, given=BAD)
    assert done.returncode == 1
    assert b"M218" in done.stdout


def test_reports_by_their_names(tmp_path):
    names = [f"found{suffix}" for suffix in (".json", ".xml", ".sarif", ".html", ".txt")]
    done = verify(tmp_path, "-", *(word for name in names for word in ("--report", name)), given=BAD)
    assert done.returncode == 1
    assert all("M218" in (tmp_path / name).read_text() for name in names)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "what is to be verified"),
        (["tap_days.py", "--exec", "x"], "both given"),
        (["--exec", "true", "-c", "config.json"], "belongs into the command"),
        (["--exec", "no-such-program-at-all"], "no-such-program-at-all"),
        (["no_such.py"], "there is no file"),
        (["tap_days.py", "-c", "none.json"], "none.json"),
        (["-", "--select", "Q"], "no rule is called 'Q'"),
        (["-", "--report", "x.docx"], "must end with"),
        (["-", "--report", "no/such/folder/x.json"], "does not exist"),
        (["--catalog", "none.json"], "can't be read"),
        (["-", "--baseline", "none.json"], "none.json"),
        (["--explain", "B399"], "no rule is called 'B399'"),
        (["-", "--max-records", "0"], "--max-records"),
    ],
    ids=lambda value: "-".join(value).replace("/", "_") if isinstance(value, list) else "",
)
def test_what_is_wrong_is_one_line_and_exit_code_2(project, words, told):
    done = verify(project, *words)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr.decode()
    assert done.stdout == b"" and b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_rules_and_one_of_them(tmp_path):
    done = verify(tmp_path, "--rules")
    assert done.returncode == 0 and b"B302" in done.stdout and b"state-ahead" in done.stdout
    for name in ("B302", "b302", "state-ahead"):
        done = verify(tmp_path, "--explain", name)
        assert done.returncode == 0 and b"A STATE comes before the rows that it covers" in done.stdout


def test_a_reader_that_goes_away(tmp_path):
    """stdout is closed from the beginning: exit code 4, and no traceback."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "burler", "verify", "-", "--format", "html"]
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(command, cwd=tmp_path, input=GOOD, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr


def test_secrets_of_the_config_are_looked_for_and_not_shown(project):
    leaking = GOOD.replace(b'{"id":1}', b'{"id":1,"note":"a-secret-of-some-length"}')
    done = verify(project, "-", "-c", "config.json", "--format", "json", "--ignore", "R501", given=leaking)
    assert codes(done) == ["M215"]
    assert b"a-secret-of-some-length" not in done.stdout + done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
@pytest.mark.parametrize("how", ["exec", "app"])
def test_a_signal_ends_it_and_the_tap(tmp_path, how, number, code):
    """A tap that waits; nothing of it lives on."""
    body = "open('began', 'w').close(); time.sleep(600)"
    if how == "exec":
        (tmp_path / "tap.py").write_text(f"import time; {body}\n")
        words = ["--exec", f"{sys.executable} tap.py"]
    else:
        (tmp_path / "tap.py").write_text(
            "import burler, time\ntap = burler.tap('tap-waits')\n@tap.sync('a', schema={'properties': {}})\n"
            f"def a():\n    {body}\n    yield {{}}\n"
        )
        words = ["tap.py"]
    command = [sys.executable, "-m", "burler", "verify", *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until((tmp_path / "began").exists, "the tap runs")
        process.send_signal(number)
        _out, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert b"Traceback" not in said
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in left


def test_states_of_other_taps_are_taken_as_they_are(tmp_path):
    (tmp_path / "state.json").write_text('{"a": 5, "days": "2024-01-01"}')
    done = verify(tmp_path, "-", "--state", "state.json", "--format", "json", given=GOOD)
    assert done.returncode in (0, 1) and json.loads(done.stdout)["runs"]
    (tmp_path / "list.json").write_text("[1]")
    assert verify(tmp_path, "-", "--state", "list.json", given=GOOD).returncode == 2


def test_an_earlier_state_that_is_refused_is_found(tmp_path):
    (tmp_path / "tap.py").write_text(
        "import json, sys\n"
        "if '--discover' in sys.argv:\n    print('{\"streams\": []}')\n    sys.exit()\n"
        "if '--state' in sys.argv and 'old' in open(sys.argv[sys.argv.index('--state') + 1]).read():\n"
        "    sys.exit('this state is too old')\n"
        "print(json.dumps({'type': 'STATE', 'value': {}}))\n"
    )
    (tmp_path / "old.json").write_text('{"old": 1}')
    words = ["--exec", f"{sys.executable} tap.py", "--select", "B314", "--format", "json"]
    assert codes(verify(tmp_path, *words)) == []
    assert codes(verify(tmp_path, *words, "--earlier-state", "old.json")) == ["B314"]


def test_nothing_to_look_at_is_said(tmp_path):
    found = json.loads(verify(tmp_path, "-", "--format", "json", given=GOOD).stdout)
    assert found["unchecked"]["B302"] == "no stream names a replication key"
    cut = json.loads(verify(tmp_path, "-", "--format", "json", "--max-records", "1", given=GOOD).stdout)
    assert "max-records" in cut["unchecked"]["B310"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
def test_a_signal_ends_the_reading_of_messages(tmp_path, number, code):
    """What came until then is told; the exit code is no "clean"."""
    (tmp_path / "known.json").write_text("what was known")
    words = ["--format", "json", "--report", "r.txt", "--write-baseline", "known.json"]
    command = [sys.executable, "-m", "burler", "verify", "-", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(BAD)
        process.stdin.flush()
        unread = array.array("i", [1])

        def is_read():
            fcntl.ioctl(process.stdin, termios.FIONREAD, unread)
            return not unread[0]

        until(is_read, "what was written is read")
        time.sleep(0.5)
        process.send_signal(number)
        out, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert [one["code"] for one in json.loads(out)["findings"]] == ["M218"]
    assert (tmp_path / "r.txt").exists() and b"Traceback" not in said
    assert (tmp_path / "known.json").read_text() == "what was known"
    assert b"WARNING it was stopped: the baseline known.json is left as it is" in said


def test_a_report_that_can_not_be_written_keeps_no_other_back(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir(mode=0o700)
    replace = os.replace

    def full(old, new, **more):
        if "gone" in str(new):
            raise OSError(28, "No space left on device")
        replace(old, new, **more)

    monkeypatch.setattr(os, "replace", full)
    done = verify(tmp_path, "-", "--report", "gone/r.html", "--report", "ok.json", given=BAD)
    assert done.returncode == 1
    assert b"gone/r.html can't be written: No space left on device" in done.stderr
    assert b"M218" in done.stdout
    assert json.loads((tmp_path / "ok.json").read_text())["findings"]


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "html"])
def test_a_secret_that_is_the_name_of_a_stream_or_a_field_is_not_shown(project, form):
    """As a tap has it that takes the token for an account's name."""
    secret = "a-secret-of-some-length"
    named = {"type": "SCHEMA", "stream": secret, "schema": {"properties": {secret: {"type": "integer"}}}}
    rows = [{"type": "RECORD", "stream": secret, "record": {secret: 1.0, f"x{secret}": 1}}]
    text = b"".join(json.dumps(one).encode() + b"\n" for one in (named | {"key_properties": [secret]}, *rows))
    words = ["-", "-c", "config.json", "--format", form, "--report", "all.json"]
    done = verify(project, *words, given=text)
    assert b"***" in done.stdout
    assert secret.encode() not in done.stdout + done.stderr + (project / "all.json").read_bytes()
    done = verify(project, "-", "-c", "config.json", "--write-baseline", "known.json", given=text)
    assert secret.encode() not in done.stdout + done.stderr + (project / "known.json").read_bytes()


@pytest.mark.parametrize(("value", "coloured"), [(None, True), ("", True), ("1", False)])
def test_colours_on_a_terminal_unless_somebody_wants_none(project, value, coloured):
    """Of ``NO_COLOR``; empty is as not set."""
    (project / "messages.jsonl").write_bytes(BAD)
    env = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    terminal = Terminal()
    with (project / "messages.jsonl").open("rb") as given:
        command = [sys.executable, "-m", "burler", "verify", "-"]
        subprocess.run(
            command, stdin=given, stdout=terminal.theirs, stderr=subprocess.DEVNULL, check=False,
            env={**env, **({} if value is None else {"NO_COLOR": value})},
        )  # fmt: skip
    terminal.over()
    terminal.close()
    assert (b"\x1b[" in bytes(terminal.raw)) is coloured
    assert b"C1" in terminal.raw or b"M2" in terminal.raw
