"""The rules of conftest.py do what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BODY = """
import pytest
import burler
from burler.testing import bind_stream

TAP = burler.tap("tap-x")
TAP.sync("left")(lambda: [])
LEFT = bind_stream(TAP, "left")

def test_skips():
    pytest.skip("no reason at all")

@pytest.mark.skipif(True, reason="by mark")
def test_marked():
    pass

def test_leaks():
    LEFT.__enter__()

def test_after_the_leak():
    with pytest.raises(burler.BurlerError):
        TAP.get_bookmark()

def test_passes():
    pass
"""


@pytest.mark.parametrize("ci", ["true", ""])
def test_skips_fail_in_ci_and_leaks_fail_everywhere(tmp_path, ci):
    (tmp_path / "conftest.py").write_text((HERE / "conftest.py").read_text())
    (tmp_path / "test_inner.py").write_text(BODY)
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module_here')\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--continue-on-collection-errors", "."],
        cwd=tmp_path,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "left [<StreamRun 'left'>] bound" in done.stdout
    if ci:
        assert "3 errors" in done.stdout
        assert "skipped" not in done.stdout.splitlines()[-1]
        for reason in ("no reason at all", "by mark", "no_such_module_here"):
            assert reason in done.stdout
    else:
        assert "3 skipped" in done.stdout
    assert "PASSED test_inner.py::test_passes" in done.stdout
