"""docs/mistakes.md: each mistake there is made, and burler's words on it are those in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cli import burler

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mistakes.md"
MISTAKES = re.findall(
    r"^## (.+?)\n\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)
TEN = (
    "A misspelt parameter",
    "A misspelt stream",
    "A misspelt strategy",
    "A key property that is not in the schema",
    "A schema file that is missing",
    "Two bookmarks",
    "A parent that is unknown",
    "Parents that go round in a circle",
    "Metadata for a field that is not there",
    "A stream without a schema",
)


def test_the_ten_typical_mistakes_are_there():
    titles = [title for title, _code, _text in MISTAKES]
    assert set(TEN) <= set(titles)
    assert titles == re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("title", "code", "text"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_a_mistake_is_answered_as_the_docs_say(tmp_path, title, code, text):
    (tmp_path / "tap_crm.py").write_text(code, encoding="utf-8")
    code, out, err = burler("discover", "tap_crm.py", cwd=tmp_path)
    assert (code, out) == (2, b"")
    # The level in front of the message is the log's; the folder is a temporary one.
    said = err.partition("CRITICAL ")[2].replace(str(tmp_path.resolve()), "/path/to")
    assert said == text
    assert "Traceback" not in said


@pytest.mark.parametrize(("title", "code", "text"), MISTAKES, ids=[mistake[0] for mistake in MISTAKES])
def test_each_line_names_place_fact_and_cure(title, code, text):
    for line in text.splitlines():
        place = re.search(r"tap_crm\.py:(\d+)", line)
        assert place is not None
        assert code.splitlines()[int(place[1]) - 1].strip(), "the place is a line of the code"
        assert re.search(
            r"Did you mean|Known:|Options:|Add |Keep one|Say of which|Leave out|must stand alone|Is the path right"
            r"|needs |declare all|no function|Yield |such as|Set (?:the|it|them) ",
            line,
        )
    assert title in TEN or "'" in text or "the tap is running" in text


def test_every_ten_mistakes_text_names_its_stream():
    for title, _code, text in MISTAKES:
        if title in TEN:
            assert all(re.search(r"'(contacts|contcats|notes)'", line) for line in text.splitlines()), title
