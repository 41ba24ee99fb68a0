"""docs/table-types.md says what is true: its snippet runs, and its line of a quarantine file is of that form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from burler.errors import ExportError
from burler.spark import export

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "table-types.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("packages")
def test_the_snippet_runs():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(compile(block, "docs/table-types.md", "exec"), {})


def test_a_quarantined_row_is_written_as_the_page_shows(lake, tmp_path):
    (shown,) = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
    wanted = json.loads(shown)
    schema = {"properties": {"id": {"type": "integer"}, wanted["field"]: {"type": "number", "multipleOf": 0.01}}}
    lake.commit(wanted["stream"], [b'{"id":0}', wanted["record"].encode()], schema=schema)

    with pytest.raises(ExportError, match=f"line 3, field '{wanted['field']}': its value can't be held exactly"):
        export(None, str(lake.root), tmp_path / "out")

    (place,) = (tmp_path / "out" / "_quarantine" / "tap-x" / wanted["stream"]).iterdir()
    (line,) = place.read_text().splitlines()
    row = json.loads(line)
    assert list(row) == list(wanted)
    for name in set(wanted) - {"tap", "file"}:
        assert row[name] == wanted[name]
