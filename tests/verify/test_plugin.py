"""The rules as tests of pytest: a class in a test module, and the plugin without a line of code."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TAP = """
import burler

tap = burler.tap("tap-days", config_spec=["name"])
SCHEMA = {"properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}

@tap.sync("good", key_properties="id", schema=SCHEMA)
def good(config):
    yield {"id": 1, "name": config["name"]}

@tap.sync("twice", key_properties="id", schema=SCHEMA)
def twice():
    yield [{"id": 1, "name": "x"}, {"id": 1, "name": "y"}]
"""
MODULE = """
from burler.testing import verify_class
from tap_days import tap

TestRules = verify_class(tap, config={"name": "x"}, select=["M", "O"])
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a tap and a config."""
    (tmp_path / "tap_days.py").write_text(TAP)
    (tmp_path / "config.json").write_text('{"name": "x"}')
    return tmp_path


def run_pytest(folder, *words):
    """Its exit code and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", "-p", "no:xdist", *words]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**clean, "PYTHONPATH": str(folder)}
    )
    return done.returncode, done.stdout + done.stderr


def test_a_class_of_tests(project):
    (project / "test_rules.py").write_text(MODULE)
    code, said = run_pytest(project, "test_rules.py")
    assert code == 1
    assert "test_rule[M208-duplicate-key-twice]" in said
    assert "1 failed" in said and "a full table has two rows of one key" in said
    assert "burler verify --explain M208" in said


def test_the_plugin_needs_no_code(project):
    """What is given once stands in pytest's own settings, or on the command line."""
    (project / "pytest.ini").write_text("[pytest]\nburler_app = tap_days.py\nburler_config = config.json\n")
    code, said = run_pytest(project, "--burler-select", "M")
    assert code == 1, said
    assert "M208-duplicate-key-twice" in said
    assert "Traceback" not in said
    code, said = run_pytest(project, "--burler-select=M", "--burler-ignore=M208")
    assert code == 0, said


def test_what_is_wrong_is_one_line(project):
    words = ["--burler-app", "tap_days.py", "--burler-config", "config.json", "--burler-select", "Z"]
    code, said = run_pytest(project, *words)
    assert code == 4
    assert "no rule" in said
    assert "Traceback" not in said


def test_without_its_options_the_plugin_does_nothing(project):
    (project / "test_one.py").write_text("def test_one(): pass\n")
    code, said = run_pytest(project)
    assert code == 0 and "1 passed" in said
