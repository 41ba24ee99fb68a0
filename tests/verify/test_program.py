"""Any tap's command as a process: found, listened to, disturbed, and never left behind."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from burler.errors import ConfigError, UsageError
from burler.verify import Program

SECRET = "n0b0dy-reads-this"


def python(code: str, **fields) -> Program:
    """A program of a few lines."""
    return Program((sys.executable, "-S", "-E", "-c", code), **fields)


def outcome(program: Program, **options):
    blocks: list[bytes] = []
    ended = program.run(take=blocks.append, **options)
    return ended, b"".join(blocks)


def gone(pid: int) -> bool:
    """Whether a process has ended, within a few seconds."""
    for _ in range(300):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def tool(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH with the program tap-contacts."""
    tool(tmp_path, "tap-contacts")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_command_is_split_as_a_shell_would(on_path: Path):
    program = Program.of_command("LEVEL=debug tap-contacts --name 'a b | c' $HOME '; touch x' http://x.test/?q=1")
    assert program.words == ("tap-contacts", "--name", "a b | c", "$HOME", "; touch x", "http://x.test/?q=1")
    assert program.environment == {"LEVEL": "debug"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("LEVEL=debug", "is empty"),
        ("tap-contacts 'x", "Close its quotes"),
        ("tap-contacts | target-x", r"'\|' is for a shell"),
        ("tap-contacts > out", "'>' is for a shell"),
        ("cd x && tap-contacts", "'&&' is for a shell"),
        ("tap-contcts --config c.json", "Did you mean 'tap-contacts'"),
        ("qqq", "Install the tap"),
        ("./plain.py", "can't be executed"),
    ],
    ids=["empty", "no-program", "quotes", "pipe", "redirection", "and", "near", "far", "no-executable"],
)
def test_what_is_no_command_is_refused_with_the_cure(
    on_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
):
    (on_path / "plain.py").write_text("")
    monkeypatch.chdir(on_path)
    with pytest.raises(UsageError, match=said):
        Program.of_command(text)


def test_a_program_beside_this_python_is_found_without_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    program = Program.of_command(f"{Path(sys.executable).name} -c 'import sys; print(sys.executable)'")
    assert outcome(program)[1].decode().strip() == sys.executable


def test_secrets_are_those_of_config_environment_and_flags(on_path: Path):
    config = on_path / "config.json"
    config.write_text(json.dumps({"db": {"password": "from-config"}, "user": "shop", "api_key": "shop"}))
    program = Program.of_command(f"API_TOKEN=from-env tap-contacts --config {config} --client-secret from-flag")
    assert program.secret_keys == {"from-env": "API_TOKEN", "from-flag": "--client-secret", "from-config": "db"}
    assert program.shown == f"tap-contacts --config {config} --client-secret ***"
    assert not any(secret in repr(program) for secret in program.secrets)


def test_a_config_that_is_not_there_is_an_error(on_path: Path):
    with pytest.raises(ConfigError, match="does not exist"):
        Program.of_command("tap-contacts --config nowhere.json")
    assert Program.of_command("tap-contacts --config ENV").has_config


@pytest.mark.parametrize("form", ["--config {}", "--config={}", "-c {}"])
def test_the_config_is_taken_out_or_changed(on_path: Path, form: str):
    config = on_path / "config.json"
    config.write_text("{}")
    words = form.format(config).split()
    program = Program(("tap", *words, "--verbose"))
    assert program.has_config
    assert program.with_config(None).words == ("tap", "--verbose")
    assert program.with_config(Path("other")).words == ("tap", "--config", "other", "--verbose")


def test_code_behind_python_c_is_no_config():
    assert not python("pass").has_config


def test_catalog_and_state_come_in_files_that_are_gone_afterwards(tmp_path: Path):
    code = "import sys; print(sys.argv[1:]); [print(open(file).read()) for file in sys.argv[2::2]]"
    ended, text = outcome(python(code, folder=tmp_path), catalog={"streams": []}, state={})
    words, catalog, state = text.decode().splitlines()
    assert ended.well
    assert ("--catalog" in words, "--properties" in words, "--state" in words) == (True, False, True)
    assert (json.loads(catalog), state) == ({"streams": []}, "{}")
    assert list(tmp_path.iterdir()) == []


def test_much_on_both_pipes_blocks_nothing_and_stderr_is_kept_in_part():
    code = """
import sys
sys.stderr.write("begin\\n")
for i in range(3000):
    sys.stderr.write("e" * 300 + "\\n")
    sys.stdout.write("o" * 300 + "\\n")
sys.stderr.write("end\\n")
"""
    ended, text = outcome(python(code))
    assert len(text) == 3000 * 301
    assert ended.stderr.startswith(b"begin\n")
    assert ended.stderr.endswith(b"end\n")
    assert b"[...]" in ended.stderr
    assert len(ended.stderr) < 300_000


def test_it_reads_nothing_and_has_its_environment():
    code = "import os, sys; print(repr(sys.stdin.read()), os.environ['SHOP'], os.getsid(0) == os.getpid())"
    _, text = outcome(python(code, environment={"SHOP": "x"}))
    assert text == b"'' x True\n"


def test_a_run_that_is_no_longer_wanted_is_ended():
    ended, text = outcome(python("while True: print('x' * 1000)"), stop=lambda: True)
    assert text
    assert (ended.stopped, ended.timed_out, ended.well) == (True, False, False)


def test_a_run_has_a_deadline_even_if_it_ignores_sigterm():
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    ended, _ = outcome(python(code), deadline_seconds=0.3)
    assert ended.timed_out
    assert ended.seconds < 5


def test_what_a_failing_callback_raises_comes_out_and_the_tap_is_gone():
    pids: list[int] = []

    def take(block: bytes) -> None:
        pids.append(int(block))
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        python("import os, time; print(os.getpid(), flush=True); time.sleep(600)").run(take=take)
    assert gone(pids[0])


def test_processes_that_are_left_are_named_and_ended():
    code = """
import subprocess
child = subprocess.Popen(["sleep", "600"])
print(child.pid)
"""
    ended, text = outcome(python(code))
    assert ended.well
    assert ended.left == ("sleep",)
    assert ended.seconds < 5  # though the child holds both pipes
    assert gone(int(text))


def test_what_cannot_be_started_is_a_usage_error(tmp_path: Path):
    script = tmp_path / "tap"
    script.write_bytes(b"\x7fELF nothing")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="can't be started"):
        Program((str(script),)).run(take=lambda block: None)


def test_a_secret_on_stderr_is_told_by_its_key_also_across_two_pieces():
    code = f"""
import sys, time
sys.stderr.write("the token is {SECRET[:5]}")
sys.stderr.flush()
time.sleep(0.2)
sys.stderr.write("{SECRET[5:]}")
"""
    ended, _ = outcome(python(code, secrets=(SECRET,), secret_keys={SECRET: "token"}))
    assert ended.told == ("token",)


def test_last_words_show_no_secret_no_colour_and_no_control_characters():
    code = f"import sys; sys.stderr.write('first\\n\\x1b[31m{SECRET} \\x07!\\x1b[0m\\n\\n')"
    program = python(code, secrets=(SECRET,), secret_keys={SECRET: "token"})
    ended, _ = outcome(program)
    assert ended.told == ("token",)
    assert program.last_words(ended) == "*** \\x07!"


def test_a_command_of_its_own_discovers():
    discovers = (sys.executable, "-S", "-E", "-c", "print('here')")
    assert python("pass", discover_words=discovers).discover(5.0)[1] == b"here\n"


def test_a_line_of_megabytes_on_stderr_is_no_work():
    """A progress bar: dots, and no line ends."""
    words = "import sys; sys.stderr.write('.' * 3_000_000 + ' burler-tap-x1/catalog.json'); sys.exit(1)"
    program = Program((sys.executable, "-c", words))
    ended = program.run(take=lambda _block: None, deadline_seconds=60)
    assert program.last_words(ended) == "." * 300 + "..."
