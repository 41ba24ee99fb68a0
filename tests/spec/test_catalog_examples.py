"""No false alarm: all that is found in the catalogs of the examples was looked at, and is so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from burler.spec import check_catalog
from support.cli import burler

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "tap_clicks": ({}, []),
    "tap_git": ({"TAP_GIT_REPO": "."}, [("C134", "file_changes")]),
    "tap_helpdesk": ({"TAP_HELPDESK_BASE_URL": "http://127.0.0.1:9"}, [("C134", "comments")]),
    "tap_library": ({}, [("C134", "loan_events"), ("C134", "summaries")]),
    "tap_bookshop": (
        {},
        # A view without a key, a column of computed values, and one of JSON.
        [("C113", "bestsellers"), ("C124", "bestsellers"), ("C124", "books")],
    ),
}


def run(*args, cwd):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "examples")}
    done = subprocess.run([sys.executable, *args], cwd=cwd, env=env, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def found(text):
    return sorted((finding.code, finding.stream) for finding in check_catalog(json.loads(text)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_found_in_an_example(name, tmp_path):
    env, expected = EXAMPLES[name]
    if name == "tap_bookshop":
        run("-m", f"{name}.shop", "make", cwd=tmp_path)
    folder = ROOT / "examples" / name
    config = next(
        (str(path) for path in (folder / "config.json", folder / "config.sample.json") if path.exists()), "ENV"
    )
    done = burler("discover", folder, "--config", config, cwd=tmp_path, PYTHONPATH=str(ROOT / "examples"), **env)
    assert done.code == 0, done.stderr
    assert found(done.stdout) == expected


def test_an_old_tap_of_singer_python_has_no_findings():
    """Its catalog is singer-python's own work."""
    config = "plain_singer/sample/config.json"
    text = run("-W", "ignore", "-m", "plain_singer", "--config", config, "--discover", cwd=ROOT / "examples")
    assert found(text) == []
