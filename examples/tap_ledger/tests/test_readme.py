"""The README's commands, line by line."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from tap_ledger import server
from tap_ledger.tests.follow import FOLDER, LIMIT_SECONDS, Copy

ROOT = FOLDER.parents[1]


@pytest.fixture
def environment(tmp_path):
    """`python` and `burler` are those that run the tests."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, module in {"python": "", "burler": "-m burler"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def commands(port, folder):
    """Those of the README, with another port: two runs of these tests may go on at a time."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    config = folder / "config.json"
    sample = (FOLDER / "config.sample.json").read_text(encoding="utf-8")
    assert sample.count("8771") == 1
    config.write_text(sample.replace("8771", str(port)))
    for line in re.findall("^    (.+)$", text, re.MULTILINE):
        line = line.replace("tap_ledger.server", f"tap_ledger.server --port {port}")
        line = line.replace("ledger work", f"ledger work --url postgresql://ledger:ledger@127.0.0.1:{port}/ledger")
        line = line.replace("examples/tap_ledger/config.sample.json", str(config))
        yield re.sub(r"\bexamples/tap_ledger\b", str(FOLDER), line)


def test_the_commands_of_the_readme_work(tmp_path, environment):
    try:
        server.programs()
    except server.Missing as missing:
        pytest.skip(str(missing))
    server_line, *others = commands(server.free_port(), tmp_path)
    given = {"cwd": tmp_path, "env": environment, "text": True, "start_new_session": True}
    serving = subprocess.Popen(server_line.removesuffix(" &").split(), stdout=subprocess.PIPE, **given)
    script = "\n".join(["set -ex", "sleep 600 &", *others, "kill %1"])  # the server would be the first job
    shell = None
    try:
        assert "the ledger is at postgresql://tap:tap@127.0.0.1:" in serving.stdout.readline()
        with open(tmp_path / "said.txt", "wb") as said:
            shell = subprocess.Popen(["bash", "-c", script], stdout=said, stderr=said, **given)
        assert shell.wait(2 * LIMIT_SECONDS) == 0, (tmp_path / "said.txt").read_text()
    finally:
        if shell is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        serving.send_signal(signal.SIGTERM)
        serving.wait(LIMIT_SECONDS)
        serving.stdout.close()
    files = [tmp_path / f"{name}.jsonl" for name in ("first", "second", "live")]
    first, second, live = ([json.loads(line) for line in file.read_text().splitlines()] for file in files)
    entries = [
        sum(m["type"] == "RECORD" and m["stream"] == "entries" for m in found) for found in (first, second, live)
    ]
    assert entries[0] == 1000 and entries[1] > 10 and entries[2] > 10
    assert live[-1]["type"] == "STATE" and live[-1]["value"] == json.loads((tmp_path / "state.json").read_text())
    assert len(Copy("accounts").take(first).take(second).take(live).rows) == 20
