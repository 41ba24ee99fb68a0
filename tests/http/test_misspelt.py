"""Options that there are not."""

from __future__ import annotations

import inspect
import typing

import pytest

from burler.http import Client, Cursor, LinkHeader, NextUrl, Offset, PageNumber, UntilEmpty, endpoints
from support.servers import serving

client = Client("https://api.example.com")


@endpoints(notes="/contacts/{id}/notes")
class Crm(Client):
    """Of an author's."""


crm = Crm("https://api.example.com")


@pytest.mark.parametrize(
    ("call", "what", "name", "meant"),
    [
        (lambda: Client("https://x.io", tokn="a"), "burler.http.Client", "tokn", "token"),
        (lambda: Crm("https://x.io", request_per_second=1), "burler.http.Client", "request_per_second", None),
        (lambda: client.pages("/a", paginater=None), "client.pages", "paginater", "paginator"),
        (lambda: client.rows("/a", record_path="a"), "client.rows", "record_path", "records_path"),
        (lambda: client.get("/a", prams={}), "client.get", "prams", "params"),
        (lambda: client.post("/a", jsn={}), "client.post", "jsn", "json"),
        (lambda: client.request("PUT", "/a", retries=1), "client.put", "retries", "retry"),
        (lambda: client.json("/a", metod="PUT"), "client.json", "metod", "method"),
        (lambda: client.conditional("/a", sorce="a"), "client.conditional", "sorce", "source"),
        (lambda: client.download("/a", "b", max_byte=1), "client.download", "max_byte", "max_bytes"),
        (lambda: Cursor("next", parm="after"), "Cursor", "parm", "param"),
        (lambda: NextUrl("next", allow_host=["a"]), "NextUrl", "allow_host", "allow_hosts"),
        (lambda: LinkHeader(relation="next"), "LinkHeader", "relation", None),
        (lambda: PageNumber(frist_page=0), "PageNumber", "frist_page", "first_page"),
        (lambda: Offset(10, ofset_param="o"), "Offset", "ofset_param", "offset_param"),
        (lambda: UntilEmpty(paginater=None), "UntilEmpty", "paginater", "paginator"),
    ],
)
def test_a_misspelt_option_is_named_with_what_there_is(call, what, name, meant):
    with pytest.raises(TypeError) as caught:
        call()
    said = str(caught.value)
    assert said.startswith(f"{what}: there is no option '{name}'.")
    assert meant is None or f"Did you mean '{meant}'? It takes " in said
    assert "self" not in said


def test_options_of_pages_are_said_to_be_theirs():
    with pytest.raises(TypeError, match=r"client\.pages and client\.rows take it"):
        client.get("/a", paginator=Cursor("next"))


def test_a_misspelt_place_of_an_endpoint_is_named():
    with pytest.raises(
        TypeError, match=r"get_notes\(\): missing .*'id', and there is no 'idd'. Did you mean 'id'\? The path"
    ):
        crm.get_notes(idd=5)


def test_what_is_wrong_in_another_way_is_said_as_python_does():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'path'"):
        NextUrl()
    with pytest.raises(TypeError, match="multiple values for argument 'path'"):
        client.get("/a", path="/b")


def test_signatures_can_be_read():
    assert list(inspect.signature(Client).parameters)[:3] == ["base_url", "token", "auth"]
    assert list(inspect.signature(Cursor).parameters)[:2] == ["path", "param"]
    assert "to" in inspect.signature(client.download).parameters
    assert typing.get_type_hints(Cursor)["param"] is str


def test_a_subclass_may_have_options_of_its_own():
    class Shop(Client):
        def __init__(self, config, **options):
            super().__init__(config["url"], **options)

    with serving(lambda asked: [1]) as server:
        with Shop({"url": server.url}, retries=0) as shop:
            assert shop.json("/a") == [1]
        with pytest.raises(TypeError, match=r"there is no option 'retry'\. Did you mean 'retries'"):
            Shop({"url": server.url}, retry=0)
