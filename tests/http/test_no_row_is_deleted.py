"""A newcomer's tap on a source of 238 rows, 100 a page, whose next page it does not see: two runs of the command, and a
target that obeys ACTIVATE_VERSION. No row that the target has is deleted."""

from __future__ import annotations

import json

import pytest

from support.cli import burler

ROWS = [{"id": number} for number in range(238)]
TAP = """
import burler
from burler.http import Client, Cursor

tap = burler.tap("tap-shop", config_spec=["base_url"])


@tap.client
def client(config):
    return Client(config["base_url"])


@tap.sync("orders", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
def orders(client):
    READ
"""


class Target:
    """Rows by their key, with the version that they came with; ACTIVATE_VERSION deletes those of all others."""

    def __init__(self):
        self.rows, self.deleted, self.state = {}, [], None

    def load(self, messages):
        for message in messages:
            if message["type"] == "RECORD":
                self.rows[message["record"]["id"]] = message["version"]
            elif message["type"] == "STATE":
                self.state = message["value"]
            elif message["type"] == "ACTIVATE_VERSION":
                self.deleted += [key for key, version in self.rows.items() if version != message["version"]]
                self.rows = {key: version for key, version in self.rows.items() if version == message["version"]}


LINK, TOTAL = (
    "the header 'Link' says that there are more",
    "the header 'X-Total-Count' says that there are more: 100 of",
)


@pytest.mark.parametrize(
    ("before", "path", "read", "says"),
    [
        ("whole", "/linked", 'return client.pages("/linked", paginator=Cursor("next"))', LINK),
        ("whole", "/counted", 'yield from client.pages("/counted")', TOTAL),
        ("whole", "/counted", 'return client.json("/counted")', TOTAL),
        ("whole", "/linked", 'yield from client.get("/linked").json()', LINK),
        ("nothing", "/counted", 'return client.json("/counted")', TOTAL),
    ],
    ids=["Link beside a cursor", "X-Total-Count alone", "client.json", "client.get", "cut from the first run on"],
)
def test_no_row_is_deleted(serve, tmp_path, before, path, read, says):
    size = [1000]

    def answer(asked):
        begin = int(asked.query.get("offset", 0))
        end = begin + size[0]
        link = {"Link": f'<{path}?offset={end}>; rel="next"'} if end < len(ROWS) else {}
        return 200, link if path == "/linked" else {"X-Total-Count": str(len(ROWS))}, ROWS[begin:end]

    tap, target = tmp_path / "tap_shop.py", Target()
    tap.write_text(TAP.replace("READ", read))
    (tmp_path / "config.json").write_text(json.dumps({"base_url": serve(answer).url}))

    def run():
        (tmp_path / "state.json").write_text(json.dumps(target.state or {}))
        done = burler("run", tap, "--config", "config.json", "--state", "state.json", cwd=tmp_path)
        assert done.code == 0, done.stderr
        target.load(done.messages)
        return done.stderr

    if before == "whole":  # the source has had more rows on a page, and was read whole
        assert "says that there are more" not in run()
        assert len(target.rows) == 238
    size[0] = 100
    for _ in range(2):
        log = run()
        assert f"WARNING GET {path}: one page" in log and says in log
        assert "WARNING stream 'orders': may be incomplete" in log
        assert "No ACTIVATE_VERSION of orders follows" in log
    assert target.deleted == []
    assert len(target.rows) == (238 if before == "whole" else 100)
