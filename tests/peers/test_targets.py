"""A target that others built on the Singer SDK loads what tap_git writes: the counts are those of git.

By night: the same target loads tap_library on each push (test_library_target.py).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tap_git
from tap_git.tests.gitbox import Git


def history(path, commits=120):
    git = Git(path).init()
    for n in range(commits):
        git.commit(f'c{n} \u00fc\U0001f600 "quoted"', {f"d{n % 7}/f{n % 11}": f"{n}\n", "same": f"{n}\n"})
        if n % 10 == 5:
            git("tag", "-a", f"t{n}", "-m", f"tag {n}")
    return git


def pipe(git, peers, config, state=None):
    """tap | target, as an operator runs them; the target's last STATE."""
    tap = [
        sys.executable,
        "-m",
        "burler",
        "run",
        str(Path(tap_git.__file__).parent),
        *(["--state", state] if state else []),
    ]
    environment = {**os.environ, "TAP_GIT_REPO": str(git.path)}
    with subprocess.Popen(tap, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as source:
        target = [peers / "target-postgres", "--config", config]
        done = subprocess.run(target, stdin=source.stdout, capture_output=True, check=False)
        said = source.stderr.read().decode()
    assert source.returncode == 0, said
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()[-1]


@pytest.mark.nightly
def test_sdk_target_loads_tap_git(tmp_path, peers, postgres):
    git = history(tmp_path / "r")
    config = tmp_path / "config-target.json"
    config.write_text(json.dumps({**postgres.settings, "default_target_schema": "git", "hard_delete": True}))

    def count(table):
        [(number,)] = postgres.ask(f"select count(*) from git.{table}")
        return number

    state = tmp_path / "state.json"
    state.write_text(pipe(git, peers, str(config)))
    changes = len([line for line in git("log", "--all", "--numstat", "--format=").splitlines() if line])
    assert (count("commits"), count("file_changes"), count("refs"), count("authors")) == (120, changes, 14, 1)

    git.commit("one more", {"new": "1"})
    git("tag", "-d", "t5")
    pipe(git, peers, str(config), str(state))
    assert (count("commits"), count("file_changes")) == (121, changes + 1)
    assert count("refs") == 13  # ACTIVATE_VERSION took the tag that is gone
