"""What `make demo` runs, on a small repository, in a folder of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tap_git.tests.gitbox import Git

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.py"

pytestmark = pytest.mark.spark


def test_demo_from_history_to_an_answer(tmp_path):
    git = Git(tmp_path / "r").init()
    for n in range(5):
        git.commit(f"c{n}", {"f": "x\n" * (n + 1)}, GIT_AUTHOR_NAME=("Ann", "Bo")[n % 2])
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TAP_GIT")}
    environment["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1"  # the quick compiler alone: a third less CPU
    done = subprocess.run(
        [sys.executable, DEMO, str(git.path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout
    first, second = re.findall(r"tap-git/commits +(\d+) read +(\d+) written", shown)
    assert first == ("5", "5") and second[0] == "1"
    assert re.search(r"\|2023-11\| +Bo\| +2\|", shown), shown
    state = json.loads((tmp_path / "demo" / "lake/raw/tap-git/state.json").read_text())["value"]
    assert git("rev-parse", "HEAD") in state["bookmarks"]["commits"]["stream_state"]["tips"]
    assert git("for-each-ref").count("burler-demo") == 0  # the repository itself is only read


@pytest.mark.parametrize("source", ["nothing", "plain"])
def test_demo_without_a_repository_says_what_to_do(tmp_path, source):
    (tmp_path / "plain").mkdir()
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, DEMO, source], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "REPO=/path/to/repo make demo" in done.stderr and "Traceback" not in done.stderr
