"""The docs say what is true: snippets run, settings and exit codes are all there, links lead somewhere."""

import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from burler import errors
from burler.settings import markdown_table

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def test_snippets_of_the_guide_run_in_order():
    """docs/taps.md: the tap, then the test of it, as a reader would type them."""
    scope = {"__name__": "snippet"}
    found = blocks(ROOT / "docs" / "taps.md")
    assert len(found) == 2
    for block in found:
        exec(compile(block, "docs/taps.md", "exec"), scope)
    assert scope["out"].result.exit_code == 0


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
    assert [m["type"] for m in messages] == ["SCHEMA", "RECORD", "STATE"]
    assert messages[-1]["value"] == {"bookmarks": {"contacts": {"updated_at": "2024-01-02T03:04:05Z"}}}
    assert _Contacts.seen[-1][1] == "Bearer hush-hush" and "hush-hush" not in done.stderr + done.stdout


def test_settings_table_is_current():
    assert markdown_table() in (ROOT / "docs" / "running.md").read_text(encoding="utf-8")


def test_every_exit_code_is_documented():
    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    codes = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")}
    for code in codes | {0, 143, 130}:
        assert re.search(rf"^\| (\d+, )?{code}[ ,]", text, re.MULTILINE), code


def test_every_option_of_run_is_documented():
    from burler.cli.main import cli

    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    for option in cli.commands["run"].params:
        for name in option.opts:
            if name.startswith("--"):
                assert name in text, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
