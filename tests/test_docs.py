"""The docs say what is true: snippets run and show what they give, exit codes and options are all there."""

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from burler import errors
from support.internals import cli_process

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
    assert tap.seal()["days"].parent == "readings"


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
            cli_process.report_errors(scope["out"].result)
            said = [f"2026-01-07T12:00:01.234Z {record.levelname} {record.getMessage()}" for record in caplog.records]
            assert block.strip() in "\n".join(said), said
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


class _Bank(BaseHTTPRequestHandler):
    def do_GET(self):
        name, value, rows = BANK[self.path]
        same = value in (self.headers["If-None-Match"], self.headers["If-Modified-Since"])
        content = b"" if same else json.dumps(rows).encode()
        self.send_response(304 if same else 200)
        self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_args):
        pass


def test_snippets_on_source_state_run_in_order():
    """A JSON block is a STATE of the run before it."""
    page = (ROOT / "docs" / "source-state.md").read_text()
    with HTTPServer(("127.0.0.1", 0), _Bank) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        scope = {"__name__": "snippet", "server": f"http://127.0.0.1:{server.server_port}"}
        shown = 0
        for kind, block in re.findall(r"```(python|json)\n(.*?)```", page, re.DOTALL):
            if kind == "python":
                exec(compile(block, "docs/source-state.md", "exec"), scope)
            else:
                assert json.loads(block) in scope["out"].states, scope["out"].states
                shown += 1
        server.shutdown()
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


def test_options_of_the_styles_page_are_all_there_are():
    from support.internals import declare_options

    text = (ROOT / "docs" / "styles.md").read_text(encoding="utf-8")
    for option in declare_options.OPTION_NAMES:
        assert f"`{option}`" in text, option


class _Contacts(BaseHTTPRequestHandler):
    seen = []  # noqa: RUF012

    def do_GET(self):
        self.seen.append((self.path, self.headers["Authorization"]))
        body = json.dumps([{"id": 1, "updated_at": "2024-01-02T03:04:05Z", "name": "Ann"}]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with HTTPServer(("127.0.0.1", 0), _Contacts) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_the_readme_is_a_page():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 90
    assert "user function -> pull -> shape -> bookmark -> sink" in readme
    assert len(blocks(ROOT / "README.md")[0].splitlines()) <= 20
    links = re.findall(r"\]\(([^)#\s]+)", readme)
    assert len(links) == 8 and all((ROOT / link).is_file() for link in links)


def test_the_readme_tap_runs_as_written(tmp_path, server):
    (tmp_path / "tap_contacts.py").write_text(blocks(ROOT / "README.md")[0], encoding="utf-8")
    properties = {"id": {"type": "integer"}, "updated_at": {"type": "string", "format": "date-time"}}
    properties["name"] = {"type": "string"}
    (tmp_path / "contacts.schema.json").write_text(json.dumps({"type": "object", "properties": properties}))
    (tmp_path / "config.json").write_text(json.dumps({"base_url": server, "access_token": "hush-hush"}))
    command = [sys.executable, "-m", "burler", "run", "tap_contacts.py", "--config", "config.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    shown = re.search(r"```json\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    assert shown == re.sub(r'(?<="time_extracted":")[^"]*', "...", done.stdout)
    assert messages[-1]["value"] == {"bookmarks": {"contacts": {"updated_at": "2024-01-02T03:04:05Z"}}}
    assert _Contacts.seen[-1][1] == "Bearer hush-hush" and "hush-hush" not in done.stderr + done.stdout


def test_every_exit_code_is_documented():
    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    codes = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")}
    for code in codes | {0, 143, 130}:
        assert re.search(rf"^\| (\d+)?{code}[ ,]", text, re.MULTILINE), code


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
