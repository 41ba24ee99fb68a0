"""``[tool.burler.verify]``."""

from __future__ import annotations

import pytest

from burler.errors import ConfigError, UsageError
from burler.spec import RULES
from support.internals import pyproject

GOOD = """
[tool.burler.verify]
select = ["B", "C101"]
ignore = ["B306"]
baseline = "known.json"
max-records = 100
max-seconds = 2.5
strict = true
per-stream-ignores = { audits = ["B305"] }
limits = { min-advance-ratio = 10, keys-in-memory = 5 }
"""


def project(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    return pyproject.find_project(tmp_path)


def test_all_of_it(tmp_path):
    found = project(tmp_path, GOOD)
    assert found.choice.wants(RULES["B302"]) and found.choice.wants(RULES["C101"])
    assert not found.choice.wants(RULES["B306"]) and not found.choice.wants(RULES["C102"])
    assert found.choice.wants(RULES["B305"], "orders") and not found.choice.wants(RULES["B305"], "audits")
    assert (found.limits.min_advance_ratio, found.limits.keys_in_memory) == (10, 5)
    assert (found.baseline, found.max_records, found.max_seconds, found.strict) == (
        tmp_path / "known.json",
        100,
        2.5,
        True,
    )


def test_the_nearest_file_with_the_table_counts(tmp_path):
    project(tmp_path, GOOD)
    below = tmp_path / "taps" / "crm"
    below.mkdir(parents=True)
    (below / "pyproject.toml").write_text("[project]\nname = 'crm'\n")
    assert pyproject.find_project(below).max_records == 100
    (below / "pyproject.toml").write_text("[tool.burler.verify]\nmax-records = 7\n")
    assert pyproject.find_project(below).max_records == 7


def test_none_is_all_rules(tmp_path):
    assert pyproject.find_project(tmp_path).choice.wants(RULES["M201"])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("selct = ['B']", "Did you mean select"),
        ("select = 'B'", "a list of codes"),
        ("select = ['Z1']", "no rule is called 'Z1'"),
        ("ignore = [1]", "a list of codes"),
        ("max-records = 0", "above 0"),
        ("max-records = true", "wrong kind"),
        ("max-records = 1.5", "wrong kind"),
        ("strict = 1", "wrong kind"),
        ("baseline = 3", "wrong kind"),
        ("per-stream-ignores = ['B']", "wrong kind"),
        ("per-stream-ignores = { a = 'B' }", "a list of codes"),
        ("limits = { future = 1 }", "Did you mean limits.future-seconds"),
        ("limits = { future-seconds = -1 }", "a number above 0"),
        ("limits = { state-bytes = 1.5 }", "a whole number above 0"),
        ("limits = { state-bytes = true }", "a whole number above 0"),
    ],
    ids=lambda text: text.partition(" =")[0],
)
def test_what_it_cannot_say_is_told_with_the_file(tmp_path, line, told):
    with pytest.raises((ConfigError, UsageError), match=told):
        project(tmp_path, f"[tool.burler.verify]\n{line}\n")


@pytest.mark.parametrize(
    "text", ["[tool.burler", "[tool.burler]\nverify = 3\n", "\xff"], ids=["broken", "no-table", "odd"]
)
def test_a_broken_file_is_told(tmp_path, text):
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="pyproject"):
        pyproject.find_project(tmp_path)
