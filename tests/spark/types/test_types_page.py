"""docs/table-types.md says what is true: its snippet runs, and its line of a quarantine file is of that form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.internals import quarantine

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "table-types.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("packages")
def test_the_snippet_runs():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(compile(block, "docs/table-types.md", "exec"), {})


def test_a_quarantined_row_is_written_as_the_page_shows(tmp_path):
    (shown,) = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
    wanted = json.loads(shown)
    row = quarantine.bad_row(
        wanted["file"], wanted["line"], (wanted["field"],), wanted["value"], wanted["wanted"], wanted["record"].encode()
    )
    quarantine.write_bad([row], tmp_path / "staging" / "bad.jsonl")
    quarantine.write_bad([row], tmp_path / "staging" / "bad.jsonl")

    place = quarantine.publish(
        tmp_path / "staging" / "bad.jsonl", tmp_path / "q", tap_id="tap-shop", stream="orders", export_id="e1"
    )

    assert place == tmp_path / "q" / "e1.jsonl"
    assert place.read_text().splitlines() == [shown, shown]
    assert (
        row.fault == f"{wanted['file']} line 3, field 'price': its value can't be held exactly; wanted: decimal(38,2)"
    )
    assert [one.name for one in place.parent.iterdir()] == ["e1.jsonl"]
