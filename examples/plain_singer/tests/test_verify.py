"""The old tap keeps the Singer rules, as a program of its own: docs/verify.md."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2]


def test_it_keeps_the_rules(tmp_path):
    shutil.copytree(EXAMPLES / "plain_singer" / "sample", tmp_path / "sample")
    shutil.copy(tmp_path / "sample" / "config.json", tmp_path)
    tap = f"'{sys.executable}' -W ignore -m plain_singer --config config.json"
    ended = subprocess.run(
        [sys.executable, "-m", "burler", "verify", "--exec", tap, "--no-behaviour", "--strict", "--format", "json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        check=False,
    )
    found = json.loads(ended.stdout)
    assert [one for one in found["findings"] if one["severity"] != "info"] == []
    assert ended.returncode == 0
    assert {"C111", "M205", "B302", "B305", "B311", "B312"} <= set(found["checked"])
    assert {name: stream["rows"] for name, stream in found["runs"][0]["streams"].items()} == {
        "orders": 5, "customers": 3
    }  # fmt: skip
    assert [run["ended"] for run in found["runs"]] == ["succeeded"] * 3
