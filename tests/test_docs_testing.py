"""docs/testing.md: its snippets run in order, as a reader would type them, and what they show is so."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "testing.md"


@pytest.fixture(scope="module")
def scope():
    """The names that all snippets together have made."""
    found = {"__name__": "snippet"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, "docs/testing.md", "exec"), found)
    return found


def test_the_snippets_run_in_order(scope):
    assert [row["id"] for row in scope["rows"]] == [1]
    assert scope["second"].types == ["SCHEMA", "STATE"]
    assert set(scope["out"].result.errors) == {"shops"}
    assert len(scope["messages"]) == 5


def test_all_names_of_burler_testing_are_on_the_page():
    from burler import testing

    text = PAGE.read_text(encoding="utf-8")
    public = [
        name
        for name, value in vars(testing).items()
        if callable(value) and not name.startswith("_") and value.__module__.startswith("burler.testing")
    ]
    assert {"run_tap", "bind_stream", "without_times"} <= set(public)
    for name in public:
        assert name in text or name == "TapRun", name


def test_the_table_has_all_that_a_run_gives():
    from burler.testing import TapRun

    text = PAGE.read_text(encoding="utf-8")
    for name in ("messages", "result.errors", "states", "types", "records("):
        assert f"`{name}" in text
    given = {name for name in vars(TapRun) if not name.startswith("_")}
    assert given == {"messages", "result", "records", "states", "types"}, "say it in docs/testing.md"


def test_what_the_page_names_is_there():
    for name in re.findall(r"`(examples/\w+)`", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent.parent / name).is_dir()


def test_the_search_of_the_page_finds_what_it_says_and_nothing_else(scope):
    from burler.testing import canaries_in

    said = str(scope["out"].result.errors)
    assert "401" in said and list(canaries_in(said)) == []
