"""Every rule of area H: its examples run against a real server, with the watch on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import requests
from requests.adapters import BaseAdapter

from burler.spec import Findings, Limits
from support.internals import requests_check, requests_clients, requests_watch, rules_requests

sys.path.insert(0, str(Path(__file__).parent))

SAID = {
    "H701": "1 of 1 requests to GET /contacts had no timeout.",
    "H702": "a request that had been answered was sent 9 times more, such as URL/labels.",
    "H703": "30 requests for 30 rows (1 a row); most of them: GET /contacts/{id}.",
    "H704": "page 3 was never asked for; asked for were page=1, 2, 4.",
    "H705": "rows 9 came twice: offset=0, 9, 18 with a limit of 10.",
    "H706": "the source answered 503 (URL/flaky?page=2), and no later try went well: its rows may be missing.",
    "H707": "GET /contacts sent the header Authorization to api.example.com over http, which everybody on the way can "
    "read.",
    "H708": "pages have 10 rows, however many are asked for, and offset goes on by 50: offset=0, 50, 100.",
    "H709": "the last page had 10 rows, and its 'next' says that there is more; nobody asked for it.",
    "H710": "the source answered 403 (URL/forbidden), and the stream ended well all the same: its rows may be missing.",
    "H711": "GET /busy was asked again after 0 of the 60 seconds that the source's Retry-After named.",
    "H712": "GET /contacts went to api.example.com without a look at its certificate (verify=False).",
}


@pytest.fixture(scope="module")
def server():
    from requests_server import serving

    with serving() as found:
        yield found


@pytest.fixture
def source(server):
    server.forget()
    return server


class FarAway(BaseAdapter):
    """Answers in place of a host on the network."""

    def send(self, request, **_settings):
        reply = requests.Response()
        reply.status_code, reply.request, reply.url = 200, request, request.url
        reply._content = json.dumps([{"id": 1}]).encode()
        return reply

    def close(self):
        pass


class Time:
    """Time that passes when somebody sleeps."""

    def __init__(self):
        self.seconds = 0.0

    def sleep(self, seconds):
        self.seconds += seconds

    def now(self):
        return self.seconds


def run(code, source, **more):
    """The findings of a snippet, and its rows."""
    clock = Time()
    names = {"BASE_URL": source.url, "time": clock}
    exec(compile(code, "snippet", "exec"), names)
    watch = requests_watch.RequestWatch(lambda: "contacts", clock=clock.now)
    with requests.Session() as client:
        client.trust_env = False
        for prefix in ("http://api.example.com", "https://api.example.com"):
            client.mount(prefix, FarAway())
        requests_clients.watch_client(client, watch)
        rows = list(names["contacts"](client))
    findings = Findings({rule.code: rule for rule in rules_requests.REQUEST_RULES})
    unchecked = requests_check.check_requests(watch, {"contacts": len(rows)}, findings, Limits(), **more)
    assert unchecked == {}
    return list(findings), rows


@pytest.mark.parametrize("rule", rules_requests.REQUEST_RULES, ids=lambda rule: rule.code)
def test_what_breaks_a_rule_is_found(rule, source):
    findings, _rows = run(rule.breaks, source)
    assert [one.code for one in findings] == [rule.code]
    assert findings[0].message.replace(source.url, "URL") == SAID[rule.code]
    assert findings[0].stream == "contacts"


@pytest.mark.parametrize("rule", rules_requests.REQUEST_RULES, ids=lambda rule: rule.code)
def test_what_keeps_a_rule_is_clean(rule, source):
    findings, rows = run(rule.keeps, source)
    assert [one.message for one in findings] == []
    assert rows


@pytest.mark.parametrize("code", ["H704", "H706", "H708", "H709", "H710"])
def test_a_stream_that_did_not_end_well_has_lost_nothing_in_silence(code, source):
    breaks = next(rule.breaks for rule in rules_requests.REQUEST_RULES if rule.code == code)
    assert run(breaks, source, ended_well=lambda stream: stream != "contacts")[0] == []


def test_a_resumed_run_may_begin_in_the_middle(source):
    late = (
        'def contacts(c):\n    for page in (2, 3):\n        yield c.get(f"{BASE_URL}/contacts?page={page}", timeout=9)'
    )
    assert [one.code for one in run(late, source)[0]] == ["H704"]
    assert run(late, source, resumed=True)[0] == []


def test_codes_and_names_are_given_once():
    assert (
        [rule.code for rule in rules_requests.REQUEST_RULES]
        == [f"H7{number:02d}" for number in range(1, 13)]
        == list(SAID)
    )
    assert len({rule.name for rule in rules_requests.REQUEST_RULES}) == len(rules_requests.REQUEST_RULES)
