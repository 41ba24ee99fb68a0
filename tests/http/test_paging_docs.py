"""docs/paging.md and docs/endpoints.md: their snippets run in order, against a server."""

import re
from pathlib import Path

import pytest

from burler import http
from burler.testing import canary
from support.servers import serving

DOCS = Path(__file__).parents[2] / "docs"
PUBLIC = ("LinkHeader", "NextUrl", "Cursor", "PageNumber", "Offset", "UntilEmpty", "SinglePage")


def run_blocks(name, **scope):
    text = (DOCS / name).read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert found
    scope["__name__"] = "snippet"
    for block in found:
        exec(compile(block, f"docs/{name}", "exec"), scope)
    return scope


def orders(asked):
    """Five orders by cursor, by offset or by page number."""
    rows = [{"id": number, "total": number * 1.5} for number in range(1, 6)]
    query = asked.query
    if "offset" in query:
        begin, size = int(query["offset"]), int(query["limit"])
    elif "page" in query:
        size = int(query["size"])
        begin = (int(query["page"]) - 1) * size
    else:
        begin, size = int(query.get("cursor", "c0")[1:]), int(query["size"])
    after = begin + size
    return {"items": rows[begin:after], "meta": {"next": f"c{after}" if after < len(rows) else None}}


def test_snippets_on_paging():
    with serving(orders) as server:
        run_blocks("paging.md", server=server.url)
        assert server.paths[:3] == ["/orders?size=2", "/orders?size=2&cursor=c2", "/orders?size=2&cursor=c4"]


def test_snippets_on_endpoints():
    token = canary("token")

    def crm(asked):
        if asked.headers.get("authorization") != f"Bearer {token}":
            return 401
        if asked.path == "/contacts":
            begin = int(asked.query.get("cursor", 0))
            return {"items": [{"id": begin + 1}], "meta": {"next": 1 if begin == 0 else None}}
        _, _, contact, *rest = asked.path.split("/")
        if rest:
            return {"items": [{"id": int(contact) * 10 + number} for number in (1, 2)]}
        return {"id": int(contact)}

    with serving(crm) as server:
        run_blocks("endpoints.md", server=server.url, token=token)
        assert "/contacts" in server.paths and any(path.endswith("/notes") for path in server.paths), server.paths


@pytest.mark.parametrize("name", PUBLIC)
def test_every_option_of_a_paginator_is_in_its_table(name):
    import dataclasses

    text = (DOCS / "paging.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
    for field in dataclasses.fields(getattr(http, name)):
        assert f"`{field.name}" in row or name == "UntilEmpty", field.name
