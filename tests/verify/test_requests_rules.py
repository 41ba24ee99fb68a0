"""Every rule of area H: its examples run against a real server, with the watch on."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest
import requests
from requests.adapters import BaseAdapter

import burler
from burler.spec import RULES
from burler.testing import verify_tap

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
    "H711": "GET /busy was asked again after 0 of the 1 seconds that the source's Retry-After named.",
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


REQUEST_RULES = [rule for rule in RULES.values() if rule.code[0] == "H"]
SCHEMA = {"properties": {"id": {"type": "integer"}}, "additionalProperties": True}


def run(code, source, *, fails=False):
    """The findings of a snippet, and its rows."""
    names, rows = {"BASE_URL": source.url, "time": time}, []
    exec(compile(code, "snippet", "exec"), names)
    tap = burler.tap("tap-snippet")

    @tap.client
    def client():
        session = requests.Session()
        session.trust_env = False
        for prefix in ("http://api.example.com", "https://api.example.com"):
            session.mount(prefix, FarAway())
        return session

    @tap.sync("contacts", key_properties="id", schema=SCHEMA)
    def contacts(client):
        for row in names["contacts"](client):
            rows.append(row)
            yield {"id": len(rows)}
        if fails:
            raise RuntimeError("it did not end well")

    found = verify_tap(tap, select=["H"], resume=False)
    assert not [code for code in found.unchecked if code[0] == "H"]
    return found.findings, rows


@pytest.mark.parametrize("rule", REQUEST_RULES, ids=lambda rule: rule.code)
def test_what_breaks_a_rule_is_found(rule, source):
    findings, _rows = run(rule.breaks, source)
    assert [one.code for one in findings] == [rule.code]
    assert re.sub(r"after 0\.\d+ of", "after 0 of", findings[0].message.replace(source.url, "URL")) == SAID[rule.code]
    assert findings[0].stream == "contacts"


@pytest.mark.parametrize("rule", REQUEST_RULES, ids=lambda rule: rule.code)
def test_what_keeps_a_rule_is_clean(rule, source):
    findings, rows = run(rule.keeps, source)
    assert [one.message for one in findings] == []
    assert rows


@pytest.mark.parametrize("code", ["H704", "H706", "H708", "H709", "H710"])
def test_a_stream_that_did_not_end_well_has_lost_nothing_in_silence(code, source):
    breaks = next(rule.breaks for rule in REQUEST_RULES if rule.code == code)
    assert run(breaks, source, fails=True)[0] == []


def test_a_resumed_run_may_begin_in_the_middle(source):
    tap = burler.tap("tap-resumed")

    @tap.client
    def client():
        return requests.Session()

    @tap.sync("contacts", key_properties="id", replication_key="id", schema=SCHEMA, order="asc")
    def contacts(client, stream):
        for page in (1, 2, 3) if stream.bookmark is None else (2, 3):
            rows = client.get(f"{source.url}/contacts?page={page}", timeout=9).json()
            yield [{"id": row["id"]} for row in rows]

    found = verify_tap(tap, select=["H", "B"], ignore=["B311"])
    assert len(found.runs) > 1 and found.findings == []


def test_codes_and_names_are_given_once():
    assert [rule.code for rule in REQUEST_RULES] == [f"H7{number:02d}" for number in range(1, 13)] == list(SAID)
    assert len({rule.name for rule in REQUEST_RULES}) == len(REQUEST_RULES)
