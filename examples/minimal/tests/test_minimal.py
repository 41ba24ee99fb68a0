"""The commands of the README, typed as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def commands():
    """The README's lines that are typed, in order."""
    return re.findall(r"^    (\S.*)$", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_readme_does_what_it_says(tmp_path):
    for name in ("tap_minimal.py", "expected.jsonl"):
        (tmp_path / name).write_bytes((HERE / name).read_bytes())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    typed = "set -e\n" + "\n".join(commands())
    ran = subprocess.run(
        ["bash", "-c", typed],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    said, *rest = ran.stdout.splitlines()
    assert said == "the same"
    assert [line for line in rest if '"RECORD"' in line and '"id":3' in line]
    assert len([line for line in rest if '"RECORD"' in line]) == 1
