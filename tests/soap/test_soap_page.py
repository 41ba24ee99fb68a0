"""docs/soap.md: its snippets run, with the values beside them, and its tap reads contacts."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from soapserver import DATA, envelope

import burler
from burler.testing import canary, run_tap

PAGE = (Path(__file__).parents[2] / "docs" / "soap.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def contact(number):
    return (
        f'<Contact xmlns="urn:crm:types" version="1"><Id>{number}</Id><Name>Ann</Name>'
        "<Modified>2024-01-02T03:04:05Z</Modified><Closes/><CreatedBy>me</CreatedBy></Contact>"
    )


def answer(path, body):
    if b"GetContact" in body:
        found = contact(1).replace("<Contact ", "<GetContactResult ").replace("</Contact>", "</GetContactResult>")
        return envelope(f'<GetContactResponse xmlns="urn:crm">{found}</GetContactResponse>')
    asked = re.search(rb"Page>(\d+)<", body)
    rows = contact(int(asked[1])) if int(asked[1]) < 3 else ""
    return envelope(
        f'<ListContactsResponse xmlns="urn:crm"><ListContactsResult><Contacts>{rows}</Contacts>'
        f"<NextPage>{int(asked[1]) + 1 if rows else ''}</NextPage></ListContactsResult></ListContactsResponse>"
    )


@pytest.fixture
def scope(web, tmp_path, monkeypatch):
    """The names of the page, after all its snippets ran beside the WSDL, against a server."""
    server = web()
    server.serve_crm()
    server.pages["/soap"] = answer
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "snippet", "server": server.url}
    for block in BLOCKS:
        exec(compile(local(block, server.url), "docs/soap.md", "exec", dont_inherit=True), scope)
    return scope


def local(block, url):
    return block.replace("https://crm.example.com", url)


def test_the_values_beside_the_snippets_are_true(scope):
    seen = 0
    for block in BLOCKS:
        lines = block.splitlines()
        for node in ast.parse(block).body:
            comment = lines[node.end_lineno] if node.end_lineno < len(lines) else ""
            if isinstance(node, ast.Expr) and comment.startswith("# "):
                code = compile(local(ast.unparse(node), scope["server"]), "docs/soap.md", "eval")
                assert eval(code, scope) == ast.literal_eval(comment.removeprefix("# ")), comment
                seen += 1
    assert seen == 5


def test_the_tap_of_the_page_reads_contacts(scope):
    token = canary("soap-page")
    out = run_tap(scope["tap"], {"base_url": scope["server"], "token": token, "retries": 0})
    assert not out.result.errors
    assert [row["Id"] for row in out.records("contacts")] == [1, 2]
    assert out.states[-1] == {"bookmarks": {"contacts": {"Modified": "2024-01-02T03:04:05Z"}}}


def test_all_sources_of_the_page_give_a_contact(scope):
    names = None
    for source in ("by_element", "by_operation", "by_name", "by_config"):
        config = {"base_url": scope["server"]}
        found = scope[source].load(where="stream 'contacts' (tap_x.py:3)", config=config)["properties"]
        names = names or list(found)
        assert list(found) == names and "Balance" in names


def test_the_page_has_every_option():
    import dataclasses
    import inspect

    from burler.schema import WsdlSource

    for name in inspect.signature(burler.wsdl).parameters:
        assert f"`{name}`" in PAGE, name
    for name in inspect.signature(burler.soap.Client).parameters:
        assert f"`{name}`" in PAGE or name == "wsdl", name
    for name in inspect.signature(burler.soap.Client.pages).parameters:
        assert f"`{name}`" in PAGE or f"{name}=" in PAGE or name in ("self", "operation", "params"), name
    assert len(dataclasses.fields(WsdlSource)) == len(inspect.signature(burler.wsdl).parameters)
