"""The wheel, installed with no extra and with some: works, and says what it lacks. All extras, really downloaded:
``make test-extras``."""

from __future__ import annotations

import subprocess
import tomllib

import pytest

from tests.packaging.artifacts import ROOT
from tests.packaging.borrowed import environment, pip_check
from tests.packaging.checks import FOR_DEVELOPERS, LACKS, WORKS, Step, lacking, run

NIGHT = pytest.mark.nightly
"""An environment of its own for each: some ten seconds. The one with no extra says what all others lack."""
SOME = ("", pytest.param("sql", marks=NIGHT), pytest.param("files", marks=NIGHT))


def _extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


def test_each_extra_is_tried_and_its_absence_as_well():
    extras = _extras()
    assert set(WORKS) - {""} == set(extras) - set(FOR_DEVELOPERS)
    silent = {"pipelines", "all"}  # for a command of pyspark's; the sum of others
    assert {extra for lacks in LACKS.values() for extra in lacks} == set(extras) - set(FOR_DEVELOPERS) - silent


@pytest.mark.parametrize("extra", SOME, ids=["none", "sql", "files"])
def test_an_install_works_and_says_what_it_lacks(extra, tmp_path, wheel, version):
    programs = environment(tmp_path / "env", wheel, *([extra] if extra else []))
    assert pip_check(tmp_path / "env").strip() == "No broken requirements found."
    steps = [step for step in (*WORKS[extra], *lacking(extra)) if not step.by_hand]
    wrong = [run(step, programs, tmp_path / f"work{number}", version) for number, step in enumerate(steps)]
    assert not list(filter(None, wrong)), "\n\n".join(filter(None, wrong))


def test_a_step_that_fails_is_told(tmp_path):
    assert run(Step("echo yes", "yes"), tmp_path, tmp_path / "a", "1") is None
    for number, step in enumerate(
        (Step("echo no", "yes"), Step("exit 3"), Step("echo Traceback"), Step("true", code=2))
    ):
        assert "exit code" in (run(step, tmp_path, tmp_path / str(number), "1") or "")
    with pytest.raises(subprocess.TimeoutExpired):
        run(Step("sleep 9", seconds=1), tmp_path, tmp_path / "late", "1")
