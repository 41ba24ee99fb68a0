"""The docs say what is true: snippets run and show what they give, exit codes and options are all there."""

import json
import re
from pathlib import Path

import pytest

from burler import errors
from support.cli import burler, script, without_times
from support.servers import serving

ROOT = Path(__file__).resolve().parent.parent


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def run_blocks(name):
    """Run a page's blocks in order in one scope, as a reader would type them; gives the scope."""
    scope = {"__name__": "snippet"}
    for block in blocks(ROOT / "docs" / name):
        exec(compile(block, f"docs/{name}", "exec"), scope)
    return scope


def test_snippets_of_the_guide_run_in_order():
    """docs/taps.md: the tap and what is added to it, then the test of it."""
    assert len(blocks(ROOT / "docs" / "taps.md")) == 7
    scope = run_blocks("taps.md")
    assert scope["out"].result.exit_code == 0
    assert scope["found"].result.exit_code == 0
    tap = scope["tap"]
    assert [row["warm"] for row in scope["out"].records("days")] == [False, False, True, True, True, True]
    assert tap.seal().streams["days"].parent == "readings"


def test_snippets_of_the_styles_run_in_order():
    """docs/styles.md: all styles in one tap, and what it gives."""
    assert len(blocks(ROOT / "docs" / "styles.md")) == 6
    out = run_blocks("styles.md")["out"]
    assert not out.result.errors
    for stream in ("contacts", "people", "companies"):
        assert out.records(stream) == [{"id": 1, "modified": "2024-05-01T00:00:00Z"}]
    assert out.records("letters") == [{"contact": 1, "text": "dear"}]


RUNS = ("bookmarks.md", "partitions.md", "substreams.md", "replication.md", "failures.md", "tail.md")


@pytest.mark.parametrize("name", RUNS)
def test_pages_on_state_show_what_their_runs_give(name, caplog):
    """Snippets run in order; a JSON block is a STATE of the run before it, a text block what stderr says of it."""
    caplog.set_level("INFO", logger="burler")
    scope = {"__name__": "snippet"}
    kinds = set()
    for kind, block in re.findall(r"```(python|json|text)\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL):
        kinds.add(kind)
        if kind == "python":
            caplog.clear()
            exec(compile(block, "tap_desk.py", "exec"), scope)
        elif kind == "json":
            for line in block.splitlines():
                assert _plain_versions(json.loads(line)) in map(_plain_versions, scope["out"].states), line
        else:
            said = script(scope["tap"]).stderr
            assert without_times(block).strip() in said, said
    assert kinds >= {"python", "json"} or kinds >= {"python", "text"}


def _plain_versions(state):
    """A STATE with the same number for each version: they are made of the clock."""
    return json.loads(re.sub(r'"version": \d+', '"version": 1', json.dumps(state)))


# The server of docs/source-state.md: by path, a header that says which version it is, and rows.
BANK = {
    "/rates": ("ETag", '"1"', [{"currency": "EUR", "rate": 1.5}, {"currency": "USD", "rate": 1.25}]),
    "/rates/europe": ("ETag", '"2"', [{"currency": "EUR", "rate": 1.5}]),
    "/rates/asia": ("Last-Modified", "Tue, 07 May 2024 09:08:07 GMT", [{"currency": "JPY", "rate": 2.5}]),
}


def bank(asked):
    name, value, rows = BANK[asked.path]
    same = value in (asked.headers.get("if-none-match"), asked.headers.get("if-modified-since"))
    return (304 if same else 200, {name: value}, b"" if same else rows)


def test_snippets_on_source_state_run_in_order():
    """A JSON block is a STATE of the run before it."""
    page = (ROOT / "docs" / "source-state.md").read_text()
    with serving(bank) as server:
        scope = {"__name__": "snippet", "server": server.url}
        shown = 0
        for kind, block in re.findall(r"```(python|json)\n(.*?)```", page, re.DOTALL):
            if kind == "python":
                exec(compile(block, "docs/source-state.md", "exec"), scope)
            else:
                assert json.loads(block) in scope["out"].states, scope["out"].states
                shown += 1
    assert shown == 1


def test_the_hooks_of_the_guide_and_the_styles_bear_fields_that_are_not_there():
    """Unselected or null: what readers copy must not break with the first catalog of a user."""
    from burler.testing import run_tap

    scope = run_blocks("taps.md")
    config = {"stations": ["a"], "since": "2024-01-01T00:00:00Z"}
    out = run_tap(scope["tap"], config, select="readings.station")
    assert not out.result.errors
    assert out.records("readings")[0] == {"station": "a", "at": "2024-05-01T00:00:00Z"}
    hook = scope["post_transform"]
    assert hook({"celsius": None}) == {"celsius": None}
    assert hook({"celsius": 1.6}) == {"celsius": 2}

    out = run_tap(run_blocks("styles.md")["tap"], select="call_notes.contact")
    assert not out.result.errors
    assert out.records("call_notes") == [{"contact": 1}, {"contact": 1}]


def test_the_readme_tap_runs_as_written(tmp_path):
    (tmp_path / "tap_contacts.py").write_text(blocks(ROOT / "README.md")[0], encoding="utf-8")
    properties = {"id": {"type": "integer"}, "updated_at": {"type": "string", "format": "date-time"}}
    properties["name"] = {"type": "string"}
    (tmp_path / "contacts.schema.json").write_text(json.dumps({"type": "object", "properties": properties}))
    with serving(lambda _asked: [{"id": 1, "updated_at": "2024-01-02T03:04:05Z", "name": "Ann"}]) as server:
        (tmp_path / "config.json").write_text(json.dumps({"base_url": server.url, "access_token": "hush-hush"}))
        done = burler("run", "tap_contacts.py", "--config", "config.json", cwd=tmp_path)
    assert done.code == 0, done.stderr
    shown = re.search(r"```json\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    assert shown == re.sub(r'(?<="time_extracted":")[^"]*', "...", done.text)
    assert done.messages[-1]["value"] == {"bookmarks": {"contacts": {"updated_at": "2024-01-02T03:04:05Z"}}}
    assert server.asked[-1].headers["authorization"] == "Bearer hush-hush"
    assert "hush-hush" not in done.stderr + done.text


def test_every_exit_code_is_documented():
    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    codes = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")}
    for code in codes | {0, 143, 130}:
        assert re.search(rf"^\| (\d+, )?{code}[ ,]", text, re.MULTILINE), code


def test_nothing_refers_to_texts_outside_the_repository():
    """Code and pages say the fact, not the number of a paragraph that a reader does not have."""
    outside = re.compile(r"\b[Ss]pecs? \d|\bstyle \d+\.\d|\bSpark facts|\bPLANNING\b(?!\.md)|/work/|\bhouse\.md")
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.py"), *(ROOT / "docs").glob("*.md")]
    for folder in ("burler", "tests", "examples", "docs"):
        files += (ROOT / folder).rglob("*.py")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if outside.search(line)
    ]
    assert found == []
