"""The helpdesk's server and the tap's client, without the tap."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import requests

from burler.errors import HttpError, NoAnswerError, NotFoundError
from tap_helpdesk.api import Api
from tap_helpdesk.data import MONTHS, Data, Size
from tap_helpdesk.faults import Faults
from tap_helpdesk.server import Helpdesk

ROOT = Path(__file__).parents[3]


@pytest.fixture
def serve(monkeypatch):
    """Start servers that end with the test; each gives (server, client)."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = []

    def start(size=None, faults=None, timeout_seconds=30.0, **more):
        server = Helpdesk(Data(size or Size(accounts=2, tickets=5)), faults, **more)
        block = server.running()
        api = Api(block.__enter__().url, timeout_seconds=timeout_seconds, retries=0)
        running.append((block, api))
        return server, api

    yield start
    for block, api in running:
        api.close()
        block.__exit__(None, None, None)


def test_the_same_seed_gives_the_same_rows():
    one, other, third = Data(seed=5), Data(seed=5), Data(seed=6)
    assert (one.accounts, one.tickets, one.comments, one.events, one.agents) == (
        other.accounts,
        other.tickets,
        other.comments,
        other.events,
        other.agents,
    )
    assert one.tickets != third.tickets


def test_lists_come_whole_in_pages_and_in_order(serve):
    server, api = serve(Size(accounts=3, tickets=250, even=True, events=101))
    assert list(api.rows_accounts()) == server.data.accounts
    for account, rows in server.data.tickets.items():
        pages = [json.loads(page.data) for page in api.pages_tickets(account)]
        assert [len(page) for page in pages] == [100, 100, 50]
        assert (
            [row for page in pages for row in page]
            == rows
            == sorted(rows, key=lambda row: (row["updated_at"], row["id"]))
        )
    assert [row["month"] for row in api.rows_months()] == list(MONTHS)
    for month in MONTHS:
        assert list(api.rows_events(params={"month": month})) == server.data.events[month]
        assert len(server.data.events[month]) == 101
        assert {row["at"][:7] for row in server.data.events[month]} == {month}
    for ticket, rows in server.data.comments.items():
        assert list(api.rows_comments(ticket)) == rows


def test_a_list_of_exactly_one_page_names_no_next_one(serve):
    server, api = serve(Size(accounts=1, tickets=100, even=True))
    before = server.requests
    assert len(list(api.rows_tickets("acc-001"))) == 100
    assert server.requests - before == 1


def test_from_a_time_on_that_time_included(serve):
    server, api = serve(Size(accounts=1, tickets=300, even=True))
    rows = server.data.tickets["acc-001"]
    for since in (rows[0]["updated_at"], rows[150]["updated_at"], rows[-1]["updated_at"], "2023", "2025"):
        expected = [row for row in rows if row["updated_at"] >= since]
        assert list(api.rows_tickets("acc-001", params={"updated_since": since})) == expected
    at = server.data.events["2024-03"][7]["at"]
    assert next(iter(api.rows_events(params={"month": "2024-03", "since": at})))["at"] == at


def test_changed_while_it_is_read_no_other_row_is_missed(serve):
    server, api = serve(Size(accounts=1, tickets=300, even=True))
    before = [row["id"] for row in server.data.tickets["acc-001"]]
    pages = api.pages_tickets("acc-001")
    got = [row["id"] for row in json.loads(next(pages).data)]
    changed = server.data.change(20)
    for page in pages:
        got += [row["id"] for row in json.loads(page.data)]
    assert set(got) == set(before)
    in_order = list(dict.fromkeys(reversed(changed)))[::-1]  # one may have changed twice
    assert got[-len(in_order) :] == in_order


def test_changes_come_last_with_a_comment_more_each(serve):
    server, api = serve()
    latest = max(rows[-1]["updated_at"] for rows in server.data.tickets.values())
    etag = api.get_agents().headers["ETag"]
    changed = requests.post(f"{server.url}/changes?count=4", timeout=10).json()
    now = {row["id"]: row for rows in server.data.tickets.values() for row in rows}
    assert len(changed) == 4
    for ticket in changed:
        assert now[ticket]["updated_at"] > latest
        assert now[ticket]["comment_count"] == len(list(api.rows_comments(ticket)))
    assert api.get_agents(headers={"If-None-Match": etag}).status_code == 200


def test_agents_that_are_known_are_not_sent_again(serve):
    _server, api = serve()
    reply = api.get_agents(headers={"If-None-Match": None})
    assert len(reply.json()) == 30
    again = api.get_agents(headers={"If-None-Match": reply.headers["ETag"]}, allow_statuses=[304])
    assert (again.status_code, again.content) == (304, b"")
    assert len(api.get_agents().json()) == 30  # the connection is still good


def test_what_is_not_there_is_404(serve):
    server, api = serve()
    for path in ("/nothing", "/accounts/none/tickets", "/tickets/999999/comments"):
        with pytest.raises(NotFoundError, match=f"{path}: 404"):
            list(api.rows(path))
    with pytest.raises(HttpError, match="400"):
        list(api.rows_accounts(params={"after": "rubbish"}))
    assert requests.post(f"{server.url}/other", timeout=10).status_code == 404
    assert list(api.rows_events(params={"month": "1999-01"})) == []


def test_lasting_faults_are_always_the_same(serve):
    faults = Faults(seed=3, not_found=0.2, errors=0.2, broken_accounts=0.3)
    server, api = serve(Size(accounts=20, tickets=10), faults)
    kinds = {"": 0, "not found": 0, "error": 0}
    for path in [f"/accounts/{name}/tickets" for name in server.data.tickets] + [
        f"/tickets/{ticket}/comments" for ticket in server.data.comments
    ]:
        fault = faults.lasting(path)
        kinds[fault] += 1
        for _ in range(2):
            if fault:
                with pytest.raises(NotFoundError if fault == "not found" else HttpError, match=r"404|500"):
                    list(api.rows(path))
            else:
                list(api.rows(path))
    assert all(count > 5 for count in kinds.values()), kinds
    assert list(api.rows_accounts()) == server.data.accounts  # no other lists fail
    server.faults = Faults()
    assert all(list(api.rows_comments(t)) == rows for t, rows in server.data.comments.items())


def test_busy_paths_are_well_the_second_time(serve):
    server, api = serve(Size(accounts=20, tickets=3), Faults(busy=0.5))
    failed = 0
    for name in server.data.tickets:
        try:
            list(api.rows_tickets(name))
        except HttpError as error:
            assert error.status == 503
            failed += 1
        assert list(api.rows_tickets(name)) == server.data.tickets[name]
    assert 0 < failed < 20


def test_a_reply_that_takes_too_long_and_a_server_that_is_gone_are_no_answer(serve):
    server, api = serve(faults=Faults(slow=1.0, slow_seconds=60), timeout_seconds=0.3)
    ticket = next(iter(server.data.comments))
    with pytest.raises(NoAnswerError, match=r"nothing came for 0\.3 seconds"):
        list(api.rows_comments(ticket))
    gone = Helpdesk(Data(Size(accounts=1, tickets=1)))
    gone.server_close()
    with pytest.raises(NoAnswerError, match="refused"):
        Api(gone.url, retries=0).get_accounts()


def test_one_client_serves_several_threads(serve):
    server, api = serve()
    got = []

    def ask():
        got.append(list(api.rows_accounts()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [server.data.accounts] * 8


def test_the_server_as_a_command(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    command = [
        sys.executable,
        "-m",
        "examples.tap_helpdesk.server",
        "--port=0",
        "--accounts=3",
        "--tickets=2",
        "--even",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0]
            names = [row["id"] for row in requests.get(f"{url}/accounts", timeout=10).json()]
            assert names == ["acc-001", "acc-002", "acc-003"]
            assert len(requests.get(f"{url}/accounts/acc-003/tickets", timeout=10).json()) == 2
        finally:
            process.terminate()


def test_the_speed_table_has_a_row_for_each_number_of_workers(monkeypatch):
    """That it runs, not how fast."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    command = [sys.executable, "-m", "examples.tap_helpdesk.speed", "--accounts=3", "--tickets=5", "--latency-ms=1"]
    done = subprocess.run([*command, "--workers", "1", "2"], cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [(row[0], row[2]) for row in rows] == [("1", "15"), ("2", "15")]
