"""verify finds bugs that were put into a correct tap by script. Here are some of them; `mutants/run.py` runs all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "mutants"))

import judging
import mutate

# What each needs of verify: the rest is left out, since it takes most of the time.
ONE_RUN = ("--no-resume", "--no-behaviour")
RESUMED = ("--no-behaviour",)
SAMPLE = {
    "early_bookmark": ONE_RUN,
    "strict_resume": RESUMED,
    "number_as_text": ONE_RUN,
    "stream_twice": ONE_RUN,
    "pages_overlap": ONE_RUN,
    "sigterm_ignored": ("--no-resume", "--select", "P"),
}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """The config for a shop that serves."""
    with judging.place(tmp_path_factory.mktemp("shop")) as config:
        yield config


@pytest.fixture(scope="module")
def correct(config):
    """What verify says of the tap without a bug."""
    return judging.verify(mutate.CORRECT, config)


def test_the_correct_tap_has_no_finding(correct):
    assert correct.problem == ""
    assert correct.faults() == set()
    assert correct.is_clean()


@pytest.mark.parametrize("name", SAMPLE)
def test_a_bug_is_found(name, config, correct, tmp_path):
    bugs = tuple(bug for bug in mutate.BUGS if bug.name == name)
    verdict = judging.verify(mutate.write(tmp_path, bugs)[name], config, *SAMPLE[name])
    assert verdict.problem == ""
    assert verdict.finds(correct), verdict.findings


@pytest.mark.parametrize("bug", mutate.BUGS, ids=lambda bug: bug.name)
def test_each_piece_is_there_once_and_the_tap_with_the_bug_is_python(bug):
    assert mutate.mutant(bug) != mutate.CORRECT.read_text(encoding="utf-8")


def test_there_are_enough_bugs_and_each_has_a_name_of_its_own():
    names = [bug.name for bug in mutate.BUGS]
    assert len(set(names)) == len(names) >= 40
    assert sum(bug.subtle for bug in mutate.BUGS) >= 10
