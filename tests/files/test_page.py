"""docs/files.md says what is true."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")


def test_snippets_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "snippet"}
    found = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == 6
    for block in found:
        exec(compile(block, "docs/files.md", "exec"), scope)
    assert scope["second"].result.exit_code == 0


def test_the_errors_on_the_page_are_those_that_are_said(box, monkeypatch):
    from filebox import error

    monkeypatch.chdir(box.folder)
    box.put("in/orders-07.csv.gz", "id,total\n" + "1,2\n" * 1000)
    path = box.folder / "in/orders-07.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    box.put("in/orders-08.csv", "id,total\n2,5\n3\n")
    box.put("in/orders-09.csv", "id;total\n2;5\n")
    box.put("in/events.jsonl", '{"id": 1}\n' * 200_000 + '{"id": 20000')
    shown = re.sub(r"^    ", "", re.search(r"says where:\n\n((?:    .*\n)+)", PAGE)[1], flags=re.MULTILINE)
    for name in ("orders-07.csv.gz", "orders-08.csv", "orders-09.csv", "events.jsonl"):
        said = error(f"in/{name}").replace(f"{box.folder}/", "")
        assert said in shown, said


def test_all_options_of_read_and_export_and_csv_are_on_the_page():
    import inspect

    from burler.files import Csv, export, read

    own = {"stream", "pattern", "now", "monotonic", "sleep", "block_bytes", "folder", "max_download_bytes"}
    for function in (read, export, Csv):
        for name in set(inspect.signature(function).parameters) - own:
            assert name in PAGE, name
