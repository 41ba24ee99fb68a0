"""The library's file and its server, without the tap."""

import json
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from burler.testing import canary
from tap_library import change
from tap_library import server as library_server
from tap_library.data import NAMES, Library, Size, text
from tap_library.server import SAMPLE_TOKEN, Server

ROOT = Path(__file__).parents[3]
SMALL = Size(branches=3, authors=8, books=12, loans=20, events=2)
LISTS = (*NAMES, "loan_events", "overdue")


def everything(library):
    return {name: library.rows(name) for name in LISTS}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    token = canary("library-server")
    with Server(Library.make(tmp_path_factory.mktemp("server") / "library.db", SMALL), token) as server:
        session = requests.Session()
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {token}"
        server.get = lambda path, **headers: session.get(server.url + path, headers=headers, timeout=30)
        yield server
        session.close()


def test_the_same_seed_gives_the_same_rows(tmp_path):
    one, other, third = (Library.make(tmp_path / f"{n}.db", SMALL, seed) for n, seed in enumerate((5, 5, 6)))
    assert everything(one) == everything(other) != everything(third)
    assert {name: len(rows) for name, rows in everything(one).items() if name in ("authors", "books", "loans")} == {
        "authors": 8,
        "books": 12,
        "loans": 20,
    }
    assert one.now() == other.now()


@pytest.mark.parametrize("table", NAMES)
def test_a_change_changes_some_rows_and_moves_the_clock(tmp_path, table):
    library = Library.make(tmp_path / "library.db", SMALL)
    before, then = everything(library), library.now()
    changed = library.change(table, 2)
    assert len(set(changed)) == 2
    assert library.now() == then + timedelta(minutes=2)
    after = everything(library)
    differ = [row for row in after[table] if row not in before[table]]
    assert len(differ) == 2
    if table in ("books", "loans"):
        assert [row["updated_at"] for row in sorted(differ, key=lambda row: row["updated_at"])] == [
            text(then + timedelta(minutes=1)),
            text(library.now()),
        ]
        assert {row["isbn" if table == "books" else "id"] for row in differ} == set(changed)
    library.remove(table, changed[0])
    assert len(library.rows(table)) == len(after[table]) - 1
    assert library.now() == then + timedelta(minutes=3)


@pytest.mark.parametrize("table", LISTS)
def test_each_table_is_served_as_it_is(server, table):
    assert server.get(f"/library/{table}.json?_shape=array&_size=max").json() == server.library.rows(table)


@pytest.mark.parametrize("table", ["branches", "holidays"])
def test_an_etag_is_that_of_the_rows(server, table):
    path = f"/library/{table}.json?_shape=array"
    first = server.get(path)
    assert re.fullmatch(r'W/"[0-9a-f]{16}"', first.headers["ETag"]) and "Last-Modified" not in first.headers
    for asked in (first.headers["ETag"], f'"other", {first.headers["ETag"]}'):
        same = server.get(path, **{"If-None-Match": asked})
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert server.get(path, **{"If-None-Match": '"other"'}).content == first.content
    server.library.change(table)
    changed = server.get(path, **{"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200 and changed.content != first.content
    assert changed.headers["ETag"] != first.headers["ETag"]
    assert "ETag" not in server.get(f"/library/{table}.json?_shape=objects").headers  # that says how long it took


@pytest.mark.parametrize("table", ["opening_hours", "closings"])
def test_last_modified_is_the_time_of_the_last_change(server, table):
    path = f"/library/{table}.json?_shape=array"
    first = server.get(path)
    assert first.headers["Last-Modified"].endswith(" GMT") and "ETag" not in first.headers
    same = server.get(path, **{"If-Modified-Since": first.headers["Last-Modified"]})
    assert (same.status_code, same.content) == (304, b"")
    for other in ("Thu, 01 Jan 1970 00:00:00 GMT", "yesterday", first.headers["Last-Modified"].replace("GMT", "+0000")):
        assert server.get(path, **{"If-Modified-Since": other}).content == first.content, other
    server.library.change(table)
    changed = server.get(path, **{"If-Modified-Since": first.headers["Last-Modified"]})
    assert changed.status_code == 200 and changed.headers["Last-Modified"] != first.headers["Last-Modified"]


@pytest.mark.parametrize("said", ["", "Bearer", f"Bearer {SAMPLE_TOKEN}", "Basic x"])
def test_without_the_token_nobody_is_let_in(server, said):
    for path in ("/", "/library.json", "/library/branches.json?_shape=array", "/-/versions.json"):
        reply = server.get(path, Authorization=said)
        assert (reply.status_code, reply.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert b"Central" not in reply.content


def test_more_requests_than_allowed_are_told_to_wait(tmp_path):
    library = Library.make(tmp_path / "library.db", Size(1, 1, 1, 1, 1))
    token = canary("library-limit")
    with Server(library, token, requests=3, seconds=60) as server, requests.Session() as session:
        session.trust_env = False
        replies = [
            session.get(server.url + "/-/versions.json", headers={"Authorization": f"Bearer {token}"}) for _ in range(5)
        ]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429]
    assert [reply.headers["X-RateLimit-Remaining"] for reply in replies] == ["2", "1", "0", "0", "0"]
    assert {reply.headers["X-RateLimit-Limit"] for reply in replies} == {"3"}
    assert all(0 < int(reply.headers["X-RateLimit-Reset"]) <= 61 for reply in replies)
    assert all(0 < int(reply.headers["Retry-After"]) <= 61 for reply in replies[3:])
    log = [json.loads(line) for line in server.log_path.read_text().splitlines()]
    assert [line["status"] for line in log] == [200, 200, 200, 429, 429]
    assert token not in server.log_path.read_text()


def test_a_server_that_can_not_start_says_why(tmp_path):
    library = Library(tmp_path / "library.db")
    library.path.write_text("this is no database, whatever it is called")
    with pytest.raises(RuntimeError, match="datasette did not start"):
        Server(library).start()


def test_started_again_it_has_the_same_address(tmp_path):
    server = Server(Library.make(tmp_path / "library.db", Size(1, 1, 1, 1, 1)))
    with server:
        url = server.url
        server.stop()
        with pytest.raises(requests.ConnectionError):
            requests.get(url, timeout=5)
        server.start()
        assert server.url == url and requests.get(url, timeout=30).status_code == 401


def test_the_commands_of_the_readme_make_serve_and_change_a_library(tmp_path):
    database = tmp_path / "library.db"
    line = [sys.executable, "-m", "examples.tap_library.server", "--port=0", f"--database={database}"]
    more = ["--books=5", "--loans=7", "--authors=2", "--branches=2"]
    with subprocess.Popen([*line, *more], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = next(found[0] for found in (re.findall(r"http://[\d.:]+", said) for said in process.stderr) if found)
            reply = requests.get(
                f"{url}/library/books.json?_shape=array",
                headers={"Authorization": f"Bearer {SAMPLE_TOKEN}"},
                timeout=30,
            )
            assert len(reply.json()) == 5
            before = Library(database).rows("loans")
            change = [sys.executable, "-m", "examples.tap_library.change", f"--database={database}", "loans=2", "books"]
            said = subprocess.run(change, cwd=ROOT, capture_output=True, text=True, check=True).stdout
            assert re.fullmatch(r"loans: \d, \d\nbooks: 978-\d+\n", said)
            assert len([row for row in Library(database).rows("loans") if row not in before]) == 2
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
    assert "Traceback" not in rest


def test_wrong_commands_say_what_is_right(tmp_path, monkeypatch, capsys):
    Library.make(tmp_path / "library.db", Size(1, 1, 1, 1, 1))
    monkeypatch.chdir(tmp_path)
    for program, arguments, says in (
        (change, ["--database=nowhere.db", "loans"], "start the server once"),
        (change, ["loan"], "say TABLE=COUNT"),
        (change, ["loans=x"], "say TABLE=COUNT"),
        (library_server, ["--database=other.db"], "must be called library.db"),
    ):
        monkeypatch.setattr(sys, "argv", ["it", *arguments])
        with pytest.raises(SystemExit) as ended:
            program.main()
        assert ended.value.code == 2 and says in capsys.readouterr().err
