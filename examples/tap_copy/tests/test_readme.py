"""The README's commands, line by line."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tap_copy
from tap_copy import server

FOLDER = Path(tap_copy.__file__).parent
ROOT = FOLDER.parents[1]
LIMIT_SECONDS = 60
ORDERS = 5000


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
    """Those of the README, with another port (two runs of these tests may go on at a time) and fewer orders."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    config = folder / "config.json"
    sample = (FOLDER / "config.sample.json").read_text(encoding="utf-8")
    assert sample.count("8773") == 1
    config.write_text(sample.replace("8773", str(port)))
    for line in re.findall("^    (.+)$", text, re.MULTILINE):
        line = line.replace("tap_copy.server", f"tap_copy.server --port {port} --orders {ORDERS}")
        line = line.replace("copy.shop", f"copy.shop --url postgresql://shop:shop@127.0.0.1:{port}/shop")
        line = line.replace("examples/tap_copy/config.sample.json", str(config))
        yield re.sub(r"\bexamples/tap_copy\b", str(FOLDER), line)


def test_the_commands_of_the_readme_work(tmp_path, environment):
    try:
        server.programs()
    except server.Missing as missing:
        pytest.skip(str(missing))
    given = {"cwd": tmp_path, "env": environment, "text": True, "start_new_session": True}
    for _try in range(3):  # another may take a port that was free a moment ago
        server_line, *others = commands(server.free_port(), tmp_path)
        serving = subprocess.Popen(server_line.removesuffix(" &").split(), stdout=subprocess.PIPE, **given)
        said = serving.stdout.readline()
        if said:
            break
        serving.communicate()
    script = "\n".join(["set -ex", *others])
    shell = None
    try:
        assert "the shop is at postgresql://tap:tap@127.0.0.1:" in said
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
    first, second, records = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("first", "second", "records")
    )
    sizes = [sum(m["size"] for m in found if m.get("stream") == "public.orders" and m["type"] == "BATCH")
             for found in (first, second)]  # fmt: skip
    assert sizes == [ORDERS, 31]
    assert sum(m["type"] == "RECORD" and m["stream"] == "public.orders" for m in records) == 31
    assert second[-1]["type"] == records[-1]["type"] == "STATE"
    assert second[-1]["value"] == json.loads((tmp_path / "state.json").read_text())
