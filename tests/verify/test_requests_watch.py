"""What is noted of requests, and what is judged: of a tap whose session asks no network."""

from __future__ import annotations

import contextlib
import io
import json
import time

import pytest
import requests
import urllib3

import burler
from burler.testing import verify_tap
from support.servers import session_of

URL = "http://127.0.0.1/"
JSON = {"Content-Type": "application/json"}
SCHEMA = {"properties": {"id": {"type": "integer"}}}
KEPT = ("requests", "statuses", "repeated")


class Seen:
    """A tap that asks what it is told to, and is verified."""

    def __init__(self):
        self.asks = []

    def ask(self, url, status=200, body=None, *, method="GET", sent=None, headers=None, more=JSON, seconds=0.0):
        """A request that will be answered, or lost (status None)."""
        body = {"id": 1} if body is None else body
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if method == "HEAD" or status in (204, 304):
            content = b""
        self.asks.append(((method, URL + url, sent, headers), (status, content, more), seconds))

    def pages(self, name, values, limit=None, rows=None):
        """Pages of a list; the codes of what is found."""
        for value in values:
            rest = "" if limit is None else f"&limit={limit}"
            self.ask(f"list?{name}={value}{rest}", body=[{}] * (limit or 1 if rows is None else rows))
        return self.codes()

    def verified(self, rows=None, *, fails=False):
        """The verification of a tap that asks all of that, and has so many rows."""
        answers = iter([answer for _asked, answer, _seconds in self.asks])

        def answer(request):
            status, content, more = next(answers)
            if status is None:
                raise requests.ConnectionError("lost")
            return urllib3.HTTPResponse(
                io.BytesIO(content), more, status, preload_content=False, request_method=request.method
            )

        tap = burler.tap("tap-seen")

        @tap.client
        def client():
            return session_of(answer)

        @tap.sync("contacts", key_properties="id", schema=SCHEMA)
        def contacts(client):
            for (method, url, sent, headers), _answer, seconds in self.asks:
                time.sleep(seconds)
                with contextlib.suppress(requests.ConnectionError):
                    client.request(method, url, data=sent, headers=headers, timeout=9, allow_redirects=False)
            yield [{"id": number} for number in range((rows or {}).get("contacts", 0))]
            if fails:
                raise RuntimeError("it did not end well")

        found = verify_tap(tap, select=["H"], resume=False)
        assert fails or [run.ended for run in found.runs] == ["succeeded"]
        return found

    def findings(self, rows=None, **more):
        """What is found."""
        return self.verified(rows, **more).findings

    def codes(self, rows=None, **more):
        """The codes of what is found."""
        return [one.code for one in self.findings(rows, **more)]

    def noted(self):
        """What was noted of each endpoint."""
        return self.verified().runs[0].streams["contacts"].requests


@pytest.fixture
def seen():
    return Seen()


# Endpoints


ENDPOINTS = [
    ("", "/"),
    ("contacts", "/contacts"),
    ("v2/contacts/17/notes", "/v2/contacts/{id}/notes"),
    ("contacts/3b241101-e2bb-4255-8caf-4136c566a962", "/contacts/{id}"),
    ("blobs/9f86d081884c7d659a2feaa0c55ad015", "/blobs/{id}"),
    ("users/ann%40example.com", "/users/{id}"),
    ("days/2024-01-31", "/days/{id}"),
    ("bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe", "/{id}/getMe"),
    ("contacts?token=abcdef", "/contacts"),
    ("login;jsessionid=F7A2?x=1", "/login;jsessionid=***"),
    ("accounts/acc-001/tickets", "/accounts/{id}/tickets"),
    ("facade/deadbeef/decade", "/facade/deadbeef/decade"),
]


def test_endpoints_have_no_ids_and_no_secrets(seen):
    for path, _endpoint in ENDPOINTS:
        seen.ask(path)
    found = {f"GET {endpoint}" for _path, endpoint in ENDPOINTS}
    assert set(seen.noted()) == found


def test_endpoints_without_end_are_put_together(seen):
    for number in range(505):
        seen.ask(f"x{number}x")
    found = seen.noted()
    assert len(found) == 501
    assert found["GET (others)"]["requests"] == 5


# Repetitions


def test_what_was_answered_and_is_asked_again_is_a_repetition(seen):
    seen.ask("a?x=1&y=2&api_key=SECRETSECRET")
    seen.ask("b")
    seen.ask("a?y=2&x=1&api_key=SECRETSECRET")
    (found,) = seen.findings()
    assert (found.code, found.path, found.count) == ("H702", "GET /a", 1)
    assert "api_key=***" in found.message
    assert "SECRET" not in json.dumps(found.to_json())


@pytest.mark.parametrize("status", [429, 500, 503, 401, None, 202, 304])
def test_to_try_again_is_none(status, seen):
    seen.ask("a", status)
    seen.ask("b")
    seen.ask("a")
    assert seen.codes() == []


@pytest.mark.parametrize(
    "second",
    [
        {"sent": b'{"page": 2}', "method": "POST"},
        {"headers": {"Range": "bytes=10-20"}},
        {"headers": {"Authorization": "another account"}},
        {"url": "a?x=2"},
    ],
    ids=["body", "range", "account", "parameter"],
)
def test_another_request_is_none(second, seen):
    seen.ask("a", method=second.get("method", "GET"))
    seen.ask(**{"url": "a", **second})
    assert seen.codes() == []


def test_what_can_be_sent_once_is_not_compared(seen):
    for _ in range(2):
        seen.ask("a", method="POST", sent=iter([b"x"]))
    assert seen.codes() == []


def test_to_wait_for_a_job_is_none_but_to_ask_without_a_pause_is(seen):
    for _ in range(3):
        seen.ask("jobs/1", body={"status": "running"}, seconds=0.25)
    assert seen.codes() == []
    seen.ask("jobs/1", body={"status": "done"})
    assert seen.codes() == ["H702"]


def test_a_token_may_run_out_but_not_with_each_request(seen):
    for number in range(10):
        if number in (0, 5):
            seen.ask("token", method="POST", sent=b"grant_type=client_credentials", body={"access_token": "x"})
        seen.ask(f"list?after={number}")
    assert seen.codes() == []
    for number in range(10, 15):
        seen.ask("token", method="POST", sent=b"grant_type=client_credentials", body={"access_token": "x"})
        seen.ask(f"list?after={number}")
    assert [(one.code, one.path) for one in seen.findings()] == [("H702", "POST /token")]


def test_graphqls_errors_are_no_answer(seen):
    for body in ({"errors": [{"message": "throttled"}]}, {"data": {"a": []}}):
        seen.ask("graphql", body=body, method="POST", sent=b"{}")
    assert seen.codes() == []


def test_a_page_of_html_in_place_of_json_is_no_answer(seen):
    seen.ask("a", body=b"<html>please wait</html>")
    assert seen.codes() == ["H706"]
    seen.ask("a", body=[{}])
    assert seen.codes() == []


def test_a_page_for_people_or_nothing_is_no_answer_either(seen):
    seen.ask("a", body=b"<html>please wait</html>", more={"Content-Type": "text/html"})
    seen.ask("a", body=b"")
    seen.ask("a", body=[{}])
    assert seen.codes() == []


# Requests and rows


@pytest.mark.parametrize(
    ("requests", "rows", "found"), [(30, 59, True), (30, 60, False), (19, 1, False), (30, 0, False)]
)
def test_requests_for_each_row(requests, rows, found, seen):
    for number in range(requests):
        seen.ask(f"contacts/{number}")
    assert seen.codes({"contacts": rows}) == (["H703"] if found else [])


# Pages


def test_two_lists_that_are_read_by_one_offset_may_end_apart(seen):
    assert seen.pages("offset", [0, 2, 4, 5], limit=2) == []


@pytest.mark.parametrize(
    ("name", "values", "limit", "codes"),
    [
        ("page", [1, 2, 4], None, ["H704"]),
        ("page", [4, 3, 1, 2], None, []),
        ("page", [0, 1, 2], None, []),
        ("page", [0, 2, 3], None, ["H704"]),
        ("page[number]", [1, 3, 5, 7], None, ["H704"]),
        ("page", [1, 40], None, []),  # a look at the last page
        ("page", [2, 3, 4], 100, ["H704"]),
        ("page", [0, 100, 200], 100, []),  # an offset by another name
        ("offset", [0, 100, 200], 100, []),
        ("offset", [200, 0, 100], 100, []),
        ("startAt", [1, 101, 201], 100, []),
        ("offset", [0, 100, 300], 100, ["H704"]),
        ("$skip", [0, 101, 202], 100, ["H704"]),
        ("offset", [100, 200, 300], 100, ["H704"]),
        ("offset", [0, 99, 198], 100, ["H705"]),
        ("offset", [0, 1, 2], 100, ["H705"]),
        ("offset", [5312, 5377, 5490], 100, []),  # a cursor that is a number
        ("offset", [0, 5312, 5590], 100, []),
        ("start", [1700000000, 1700003600], 100, []),  # times
        ("offset", [0, 100, 300], None, []),
    ],
    ids=str,
)
def test_pages_that_are_asked_for(name, values, limit, codes, seen):
    assert seen.pages(name, values, limit) == codes


def test_a_first_page_without_a_number_is_the_first_one(seen):
    seen.ask("list?size=100", body=[{}])
    seen.ask("list?size=100&page=2", body=[{}])
    assert seen.codes() == []


def test_a_source_that_gives_fewer_rows_is_read_by_what_came(seen):
    assert seen.pages("offset", [0, 100, 200, 300], limit=1000, rows=100) == []


def test_a_source_that_gives_fewer_rows_is_not_read_by_what_was_asked(seen):
    assert seen.pages("offset", [0, 1000, 2000], limit=1000, rows=100) == ["H708"]


def test_pages_with_rows_that_were_left_out_are_none_that_are_capped(seen):
    for offset, rows in ((0, 97), (100, 100), (200, 88), (300, 12)):
        seen.ask(f"list?offset={offset}&limit=100", body=[{}] * rows)
    assert seen.codes() == []


def test_pages_in_a_body_are_pages(seen):
    for offset in (0, 100, 300):
        body = json.dumps({"query": "{...}", "variables": {"offset": offset, "limit": 100}}).encode()
        seen.ask("graphql", body={"data": {"rows": [{}] * 100}}, method="POST", sent=body)
    (found,) = seen.findings()
    assert (found.code, found.message) == (
        "H704",
        "rows 200 to 299 were never asked for; asked for were variables.offset=0, 100, 300.",
    )


def test_other_lists_are_other_lists(seen):
    for parent, pages in ((1, (1, 2)), (2, (1,)), (3, (1, 2, 3, 4))):
        for page in pages:
            seen.ask(f"list?parent={parent}&page={page}", body=[{}])
    assert seen.codes() == []


def test_a_number_that_is_not_set_back_is_found(seen):
    seen.ask("parents/1/list?page=1", body=[{}])
    seen.ask("parents/2/list?page=2", body=[{}])
    assert [(one.code, one.path) for one in seen.findings()] == [("H704", "GET /parents/{id}/list")]


def test_a_parameter_that_is_never_the_same_hides_no_first_page(seen):
    for page in (1, 2, 3):
        seen.ask(f"list?page={page}&_={page * 7919}x", body=[{}])
    assert seen.codes() == []


@pytest.mark.parametrize("kind", ["page", "offset"])
@pytest.mark.parametrize(("pages", "limit"), [(1, 5), (7, 3), (40, 20)])
def test_a_page_that_is_left_out_is_a_hole_and_a_list_that_is_read_whole_has_none(pages, limit, kind, seen):
    step = 1 if kind == "page" else limit
    whole = [first + at * step for first in (0, 1) for at in range(pages)]
    for first in (0, 1):
        values = whole[first * pages :][:pages]
        assert Seen().pages(kind, values[::-1], limit, rows=limit) == []
    if pages > 3:
        values = [value for value in whole[pages:] if value != 1 + (pages - 2) * step]
        assert seen.pages(kind, values, limit, rows=limit) == ["H704"]
        (found,) = seen.findings()
        hole = 1 + (pages - 2) * step
        assert (f"page {hole} was" if kind == "page" else f"rows {hole} to {hole + limit - 1} were") in found.message


# Lists that are cut


@pytest.mark.parametrize(
    ("url", "body", "headers"),
    [
        ("list", {"data": [{}], "next": "/list?page=2"}, {}),
        ("list", [{}], {"Link": f'<{URL}list?page=2>; rel="next"'}),
        ("list", [{}], {"X-Total-Count": "238"}),
        ("list?per_page=100", [{}], {"X-Total": "238"}),
        ("list", [{}], {"X-Total-Pages": "3", "X-Page": "1"}),
        ("list?page=2", [{}], {"X-Next-Page": "3"}),
        ("list", [{}], {"Content-Range": "items 0-0/238"}),
        ("list", {"items": [{}], "has_more": True}, {}),
        ("list", {"items": [{}], "meta": {"next_cursor": "abc"}}, {}),
        ("list", {"items": [{}], "total_count": 250}, {}),
        ("list", {"items": [{}], "total": 250}, {}),
        ("list?api_key=0123456789abcdef", {"items": [{}], "recordsTotal": 250}, {}),
        ("list", {"hits": {"total": {"value": 250, "relation": "eq"}, "hits": [{}]}}, {}),
        ("list", {"Items": [{}], "LastEvaluatedKey": {"id": {"S": "o-1"}}}, {}),
        ("list", [{}], {"X-Pagination": '{"CurrentPage": 1, "TotalPages": 3}'}),
        ("list?page=3&limit=1", {"items": [{}], "total_pages": 4}, {}),
        ("list?offset=100&limit=1", {"items": [{}], "total_count": 250}, {}),
    ],
    ids=[
        "next",
        "Link",
        "X-Total-Count",
        "X-Total",
        "X-Total-Pages",
        "X-Next-Page",
        "Content-Range",
        "has_more",
        "cursor",
        "total_count",
        "total",
        "a key",
        "hits.total.value",
        "LastEvaluatedKey",
        "X-Pagination",
        "pages",
        "offset",
    ],
)
def test_a_last_page_that_says_there_is_more(url, body, headers, seen):
    if "?" in url:
        seen.ask("list", body=[{}])
    seen.ask(url, body=body, more={**JSON, **headers})
    assert [one.code for one in seen.findings() if one.code != "H704"] == ["H709"]
    seen.ask("list?page=4", body={"data": [], "next": None})
    assert "H709" not in seen.codes()


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("list?page=3&limit=1", {"items": [{}], "total_pages": 3}),
        ("list?page=3&limit=2", {"items": [{}], "has_more": True}),  # not full: taps stop there
        ("list?offset=249&limit=1", {"items": [{}], "total_count": 250}),
        ("list?cursor=abc", {"items": [{}], "cursor": "abc"}),
        ("list", {"items": [{}], "total_count": 1}),
        ("list", {"items": [{}], "total": 1}),
        ("list?status=open&api_key=0123456789abcdef", {"items": [{}], "total": 250}),
        ("list", {"hits": {"total": {"value": 1, "relation": "eq"}, "hits": [{}]}}),
        ("list", {"items": [], "next": "/list?page=2"}),
        ("list", {"items": [{}], "has_more": False, "next": "/list?page=2"}),
        ("list?since=1", {"items": [{}], "total_count": 250}),
    ],
    ids=[
        "pages",
        "short",
        "offset",
        "repeated cursor",
        "total_count",
        "total",
        "a key",
        "hits",
        "empty",
        "both",
        "a total of what",
    ],
)
def test_a_last_page_that_is_the_last(url, body, seen):
    seen.ask("list", body=[])
    seen.ask(url, body=body)
    assert "H709" not in seen.codes()


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("list?page=3", {"X-Total-Pages": "3", "X-Next-Page": "", "X-Page": "3"}),
        ("list?limit=1", {"X-Total-Count": "238"}),
        ("list?status=open", {"X-Total-Count": "238"}),
        ("list?offset=237&limit=1", {"X-Total-Count": "238"}),
        ("list", {"Content-Range": "items 0-99/*", "X-Total": "many"}),
        ("list", {"X-Has-More": "false", "X-Total-Count": "238"}),
    ],
    ids=["pages", "one", "a total of what", "offset", "unknown", "a clear word"],
)
def test_headers_of_a_last_page_that_is_the_last(url, headers, seen):
    seen.ask("list", body=[])
    seen.ask(url, body=[{}], more={**JSON, **headers})
    assert "H709" not in seen.codes()


def test_totals_are_held_against_all_that_came_from_a_place(seen):
    """Pages that are asked for by a cursor in the body of a POST."""
    for count in (100, 100, 38):
        seen.ask("search", method="POST", body=[{}] * count, more={**JSON, "X-Total-Count": "238"})
    assert "H709" not in seen.codes()


@pytest.mark.parametrize("address", ["http://[::1", "http://[x]/", "//", "?"])
def test_a_next_page_that_is_none_harms_nobody(address, seen):
    seen.ask("list", body={"data": [{}], "next": address})
    seen.codes()


def test_a_next_page_elsewhere_that_was_read_is_no_cut(seen):
    seen.ask("list", body={"data": [{}], "next": {"href": "/more/abc"}})
    assert seen.codes() == ["H709"]
    seen.ask("more/abc", body={"data": [{}], "next": None})
    assert seen.codes() == []


# Failures


@pytest.mark.parametrize(
    ("status", "code"), [(500, "H706"), (429, "H706"), (401, "H706"), (None, "H706"), (403, "H710"), (422, "H710")]
)
def test_a_failure_that_nobody_minds(status, code, seen):
    seen.ask("a?token=SECRETSECRET", status)
    (found,) = seen.findings()
    assert found.code == code
    assert "SECRET" not in json.dumps(found.to_json())
    assert seen.codes(fails=True) == []


@pytest.mark.parametrize("status", [404, 410, 304, 301])
def test_what_is_gone_is_no_failure(status, seen):
    seen.ask("a", status)
    assert seen.codes() == []


def test_an_error_behind_the_last_page_is_its_end(seen):
    for page, status in ((1, 200), (2, 200), (3, 400)):
        seen.ask(f"list?page={page}", status, body=[{}] if status == 200 else None)
    assert seen.codes() == []


def test_a_page_that_is_too_big_may_be_asked_for_in_smaller_ones(seen):
    seen.ask("list?limit=100&after=x", 502)
    assert seen.codes() == ["H706"]
    seen.ask("list?limit=50&after=x")
    assert seen.codes() == []


def test_a_server_need_not_describe_itself(seen):
    body = b'{"query": "query IntrospectionQuery { __schema { types { name } } }"}'
    seen.ask("graphql", 400, method="POST", sent=body)
    assert seen.codes() == []


def test_new_credentials_may_answer_an_old_request(seen):
    seen.ask("a", 401, headers={"Authorization": "old"})
    seen.ask("a", 200, headers={"Authorization": "new"})
    assert seen.codes() == []


def test_a_head_is_only_a_question(seen):
    seen.ask("a", 405, method="HEAD")
    seen.ask("b", 200, method="HEAD", more={"Content-Length": "100"})
    assert seen.codes() == []


# Times and credentials


@pytest.mark.parametrize(("seconds", "codes"), [(0.0, ["H711"]), (0.5, ["H711"]), (0.95, [])])
def test_retry_after(seconds, codes, seen):
    seen.ask("a", 429, more={"Retry-After": "1"})
    seen.ask("a", seconds=seconds)
    assert seen.codes() == codes


@pytest.mark.parametrize(
    ("url", "headers", "what"),
    [
        ("http://api.example.com/a", {"authorization": "Basic abc"}, "the header authorization"),
        ("http://api.example.com/a", {"X-Api-Key": "abc"}, "the header X-Api-Key"),
        ("http://api.example.com/a?access_token=abc", {}, "the parameter access_token"),
        ("http://ann:abc@api.example.com/a", {}, "the header Authorization"),
        ("http://api.example.com/a?page=1", {"Accept": "*/*", "Cookie": "theme=dark"}, ""),
    ],
)
def test_what_shows_credentials(url, headers, what, seen):
    seen.ask("", headers=headers)
    (asked, *rest) = seen.asks[0]
    seen.asks[0] = ((asked[0], url, *asked[2:]), *rest)
    found = seen.findings()
    assert [one.code for one in found] == (["H707"] if what else [])
    assert not what or f"sent {what} to api.example.com over http" in found[0].message


def test_this_machine_may_be_told(seen):
    for host in ("localhost", "LOCALHOST.", "app.localhost", "127.0.0.1", "127.1.2.3", "[::1]", "192.168.1.4"):
        asked = ("GET", f"http://{host}/a?of={len(seen.asks)}", None, {"X-Api-Key": "abc"})
        seen.asks.append((asked, (200, b"[]", JSON), 0))
    (found,) = seen.findings()
    assert (found.code, found.count) == ("H707", 1) and "192.168.1.4" in found.message


# What can't be looked at


def test_a_run_in_which_no_request_was_seen_says_so(seen):
    found = seen.verified()
    codes = {f"H7{number:02d}" for number in range(1, 13)}
    assert found.findings == [] and {code: found.unchecked.get(code) for code in codes} == dict.fromkeys(
        codes, "no request was seen"
    )
