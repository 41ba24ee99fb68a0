"""Methods for endpoints: what they send, how they look, what is refused."""

import datetime
import inspect
import itertools
import pickle
import re
import time
import typing
import uuid
from collections.abc import Iterator
from decimal import Decimal

import pytest
import requests

import burler
from burler import JsonPage
from burler.errors import DeclarationError, HttpError, NotFoundError, PagingError
from burler.http import Client, Cursor, NextUrl, PageNumber, endpoints
from burler.testing import run_tap
from support.servers import serving


@endpoints(
    contacts="/contacts",
    notes="/contacts/{id}/notes",
    verbs={"contacts": ("get", "head", "pages", "rows", "post", "put", "patch", "delete")},
    paginator=Cursor("next"),
    records_path="items",
)
class Crm(Client):
    """The client of a CRM."""


@endpoints(things="/things")
class Plain:
    """A class that says nothing of HTTP."""

    def first_thing(self):
        return self.get_things().json()[0]


@pytest.fixture
def serve():
    blocks = []

    def start(answer):
        blocks.append(serving(answer))
        return blocks[-1].__enter__()

    yield start
    for block in blocks:
        block.__exit__(None, None, None)


@pytest.fixture
def server(serve):
    def answer(asked):
        cursor = int(asked.query.get("cursor", 0))
        return {"items": [{"id": cursor}], "next": cursor + 1 if cursor < 2 else None}

    return serve(answer)


def crm_of(server, kind=Crm):
    return kind(server.url, sleep=lambda seconds: None)


# ---- what they send --------------------------------------------------------------------------------


def test_each_verb_has_a_method(server):
    crm = crm_of(server)
    crm.get_contacts(params={"q": "a"})
    crm.post_contacts(json={"name": "Ann"})
    crm.put_contacts(data=b"x")
    crm.patch_contacts(json=[1])
    crm.delete_contacts()
    crm.head_contacts()
    assert [asked.method for asked in server.asked] == ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
    assert {asked.path for asked in server.asked} == {"/contacts"}
    assert server.asked[0].query == {"q": "a"} and server.asked[1].json == {"name": "Ann"}


def test_pages_and_rows_follow_the_paginator_of_the_endpoints(server):
    crm = crm_of(server)
    assert [row["id"] for row in crm.rows_notes(7)] == [0, 1, 2]
    assert [page.records_path for page in crm.pages_notes(id=7)] == [("items",)] * 3
    assert server.paths[:3] == ["/contacts/7/notes", "/contacts/7/notes?cursor=1", "/contacts/7/notes?cursor=2"]
    assert [row["id"] for row in crm.rows_contacts(paginator=burler.http.SinglePage())] == [0]
    assert [page.records_path for page in crm.pages_contacts(records_path="other")] == [("other",)] * 3


def test_a_tap_on_a_client_with_endpoints(server):
    tap = burler.tap("tap-crm")

    @tap.client
    def client():
        return crm_of(server)

    @tap.sync("contacts", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def contacts(client):
        return client.pages_contacts()

    out = run_tap(tap)
    assert not out.result.errors
    assert out.records("contacts") == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_metric_lines_name_the_path_as_it_was_declared(server, caplog, metrics_of_requests):
    caplog.set_level("INFO", logger="burler")
    crm = crm_of(server)
    crm.get_notes(55)
    list(crm.pages_notes(56))
    lines = [record.getMessage() for record in caplog.records if "http_request_duration" in record.getMessage()]
    assert len(lines) == 4
    assert all('"endpoint":"/contacts/{id}/notes"' in line for line in lines)


def test_an_error_names_the_path_that_was_asked_for(serve):
    crm = crm_of(serve(lambda asked: 404))
    with pytest.raises(NotFoundError, match=r"GET http://127.0.0.1:\d+/contacts/7/notes: 404"):
        crm.get_notes(7)
    assert crm.get_notes(7, allow_statuses=[404]).status_code == 404


def test_a_plain_class_becomes_a_client(serve):
    server = serve(lambda asked: [{"id": 1}])
    client = Plain(server.url)
    assert isinstance(client, Client) and isinstance(client, Plain)
    assert client.first_thing() == {"id": 1}
    assert list(client.rows_things()) == [{"id": 1}]
    assert Plain.__doc__ == "A class that says nothing of HTTP." and Plain.__name__ == Plain.__qualname__ == "Plain"
    assert Plain.__module__ == __name__


def test_generate_names_methods_by_their_paths(serve):
    server = serve(lambda asked: [{"path": asked.path}])

    @Client.generate(
        ["/contacts", "/contacts/{id}", "/contacts/{id}/notes", "/v1/sales-orders.json"], verbs=["rows", "put"]
    )
    class Generated:
        pass

    client = Generated(server.url)
    assert list(client.rows_contacts()) == [{"path": "/contacts"}]
    assert list(client.rows_contacts_by_id(5)) == [{"path": "/contacts/5"}]
    assert list(client.rows_contacts_notes(id=5)) == [{"path": "/contacts/5/notes"}]
    assert list(client.rows_v1_sales_orders_json()) == [{"path": "/v1/sales-orders.json"}]
    assert client.put_contacts().status_code == 200
    assert not hasattr(client, "get_contacts")


def test_generate_on_a_subclass_makes_subclasses_of_it():
    class Base(Client):
        pass

    @Base.generate({"people": "/contacts"})
    class Generated:
        pass

    assert issubclass(Generated, Base) and hasattr(Generated, "pages_people")


def test_decorators_stack_and_names_that_are_options_go_into_a_mapping(serve):
    server = serve(lambda asked: [])

    @endpoints({"verbs": "/verbs", "paginator": "/p"}, verbs=["get"])
    @endpoints(contacts="/contacts", verbs=["get"])
    class Two(Client):
        pass

    client = Two(server.url)
    client.get_verbs(), client.get_paginator(), client.get_contacts()
    assert server.paths == ["/verbs", "/p", "/contacts"]


def test_a_path_below_a_base_with_a_path(serve):
    server = serve(lambda asked: [])
    Plain(server.url + "/api/v2/").get_things()
    assert server.paths == ["/api/v2/things"]


# ---- places in paths -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (7, "7"),
        ("a/b", "a%2Fb"),
        ("../x", "..%2Fx"),
        ("a b?c#d%", "a%20b%3Fc%23d%25"),
        ("é", "%C3%A9"),
        ("...", "..."),
        (0, "0"),
        (Decimal("1.10"), "1.10"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        (datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), "2024-01-02T00%3A00%3A00Z"),
    ],
)
def test_values_are_escaped_and_lead_nowhere_else(server, value, path):
    crm_of(server).get_notes(value)
    assert server.paths == [f"/contacts/{path}/notes"]


@pytest.mark.parametrize("value", [None, "", ".", "..", "\ud800"])
def test_values_that_no_path_can_hold(server, value):
    with pytest.raises(ValueError, match=r"get_notes\(\): 'id' of /contacts/\{id\}/notes is|surrogates"):
        crm_of(server).get_notes(value)
    assert server.asked == []


@pytest.mark.parametrize("value", [True, b"7", ["7"], {"id": 7}, object()])
def test_values_that_are_no_text_or_number(server, value):
    with pytest.raises(TypeError, match="a path takes text and numbers"):
        crm_of(server).get_notes(value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda crm: crm.get_notes(), "missing a required argument: 'id'"),
        (lambda crm: crm.get_notes(idd=5), "missing a required argument: 'id'|unexpected keyword argument 'idd'"),
        (lambda crm: crm.get_notes(5, idd=5), "unexpected keyword argument 'idd'"),
        (lambda crm: crm.get_notes(5, 6), "too many positional arguments"),
        (lambda crm: crm.pages_contacts(id=5), "unexpected keyword argument 'id'"),
        (lambda crm: crm.get_contacts(json={}), "unexpected keyword argument 'json'"),
    ],
)
def test_a_call_that_does_not_fit_names_what_there_is(server, call, said):
    with pytest.raises(TypeError, match=said) as caught:
        call(crm_of(server))
    assert "The path /contacts" in str(caught.value) and "the method takes" in str(caught.value)
    assert server.asked == []


# ---- how they look ---------------------------------------------------------------------------------


def test_signatures_name_the_places_of_the_path():
    signature = inspect.signature(Crm.get_notes)
    assert list(signature.parameters)[:4] == ["self", "id", "params", "headers"]
    assert signature.parameters["id"].annotation == "str | int"
    assert signature.return_annotation == "requests.Response"
    assert next(iter(inspect.signature(Crm("http://127.0.0.1:1").rows_notes).parameters)) == "id"
    assert inspect.signature(Crm.pages_notes).return_annotation == "Iterator[JsonPage]"
    assert "json" in inspect.signature(Crm.post_notes).parameters
    assert Crm.get_notes.__annotations__["return"] == "requests.Response"


VERBS = ("get", "head", "pages", "rows", "post", "put", "patch", "delete")


@pytest.mark.parametrize("verb", VERBS)
def test_types_can_be_resolved_by_other_tools(verb):
    """As pydantic and typer do."""
    every = declare(notes="/contacts/{id}/notes", verbs=VERBS)
    hints = typing.get_type_hints(getattr(every, f"{verb}_notes"))
    assert hints["id"] == str | int
    gives = {"pages": Iterator[JsonPage], "rows": Iterator[dict[str, typing.Any]]}
    assert hints["return"] == gives.get(verb, requests.Response)


def test_help_reads_well():
    import pydoc

    text = pydoc.plain(pydoc.render_doc(Crm))
    shown = re.sub(r"[\s|]+", " ", text).replace("( ", "(")  # Python 3.13 gives each parameter a line
    assert "get_notes(self, id: 'str int', *, params" in shown
    assert "``GET /contacts/{id}/notes``" in text and "id: goes into the path, escaped." in text
    assert Crm.get_notes.__qualname__ == "Crm.get_notes" and Crm.get_notes.__module__ == __name__
    for name in ("get", "pages", "rows", "post", "put", "patch", "delete"):
        assert inspect.getdoc(getattr(Crm, f"{name}_notes"))
    assert not hasattr(Crm, "head_notes")


def test_classes_and_their_clients_stay_what_they_were():
    assert Crm.__doc__ == "The client of a CRM." and Crm.__bases__ == (Client,)
    assert pickle.loads(pickle.dumps(Plain)) is Plain


# ---- a request method of the author's own ----------------------------------------------------------


class Answer:
    """What an author's ``request`` may give: like a requests.Response."""

    def __init__(self, content, status=200, url="", headers=None):
        self.content, self.status_code, self.url, self.headers = content, status, url, headers or {}
        self.request = None


def test_an_authors_request_is_used_and_gives_what_it_likes():
    @endpoints(notes="/contacts/{id}/notes", verbs=["get", "post"])
    class Own:
        """With an __init__ of its own."""

        def __init__(self, name):
            self.seen = []

        def request(self, method: str, path: str, *, params=None, json=None, endpoint=None) -> dict:
            self.seen.append((method, path, params, json, endpoint))
            return {"any": "thing"}

    own = Own("x")
    assert own.get_notes("a/b", params={"q": 1}) == {"any": "thing"}
    own.post_notes(5, json=[1])
    assert own.seen == [
        ("GET", "/contacts/a%2Fb/notes", {"q": 1}, None, "/contacts/{id}/notes"),
        ("POST", "/contacts/5/notes", None, [1], "/contacts/{id}/notes"),
    ]
    assert not isinstance(own, Client)
    assert list(inspect.signature(Own.get_notes).parameters) == ["self", "id", "params", "json"]
    assert inspect.signature(Own.get_notes).return_annotation is dict
    with pytest.raises(TypeError, match="unexpected keyword argument 'data'"):
        own.get_notes(5, data=b"")


def test_an_authors_request_may_take_anything():
    @endpoints(things="/things", verbs=["get"])
    class Own:
        def request(self, method, path, **options):
            return options

    assert Own().get_things(stream=True, options=5) == {"stream": True, "options": 5}


def test_a_client_with_its_own_request(server):
    @endpoints(things="/things", paginator=Cursor("next"), records_path="items")
    class Own(Client):
        def request(self, method, path, **options):
            options["headers"] = {**(options.get("headers") or {}), "X-Mine": "1"}
            return super().request(method, path, **options)

    own = crm_of(server, Own)
    own.get_things()
    assert [row["id"] for row in own.rows_things()] == [0, 1, 2]
    assert [asked.headers.get("x-mine") for asked in server.asked] == ["1"] * 4


@pytest.mark.parametrize("form", ["bytes", "text", "read", "response"])
def test_pages_of_what_an_authors_request_gives(form):
    @endpoints(things="/things", paginator=PageNumber(), verbs=["pages", "rows"])
    class Own:
        def request(self, method, path, params=None):
            rows = [{"id": params["page"]}] if params["page"] < 3 else []
            if form == "read":
                return rows
            content = str(rows).replace("'", '"').encode()
            return {"bytes": content, "text": content.decode(), "response": Answer(content)}[form]

    assert list(Own().rows_things()) == [{"id": 1}, {"id": 2}]
    assert b"".join(page.data for page in Own().pages_things()).replace(b" ", b"") == b'[{"id":1}][{"id":2}][]'


def test_next_urls_come_to_an_authors_request_as_it_knows_paths():
    asked = []

    @endpoints(things="/things", verbs=["rows"])
    class Own:
        def request(self, method, path):
            asked.append(path)
            more = {"Link": "<https://h.example/api/things?page=2>; rel=next"} if len(asked) == 1 else {}
            return Answer(b'[{"id": 1}]', url="https://h.example/api" + path, headers=more)

    assert len(list(Own().rows_things())) == 2
    assert asked == ["/things", "/things?page=2"]


def test_next_urls_in_what_an_authors_request_has_read():
    """Without a URL of its own nobody can tell whether a whole one leads to the source."""
    asked = []

    @endpoints(things="/things", verbs=["rows"], paginator=NextUrl("next"), records_path="items")
    class Own:
        following = "/things?page=2"

        def request(self, method, path):
            asked.append(path)
            return {"items": [{"id": 1}], "next": self.following if len(asked) == 1 else None}

    assert len(list(Own().rows_things())) == 2
    assert asked == ["/things", "/things?page=2"]
    asked.clear()
    Own.following = "https://h.example/things?page=2"
    with pytest.raises(PagingError, match=r"leads to https://h.example:443, the source has no base_url"):
        list(Own().rows_things())
    asked.clear()
    Own.base_url = "https://h.example"
    assert len(list(Own().rows_things())) == 2
    assert asked == ["/things", "/things?page=2"]
    asked.clear()
    Own.base_url, Own.following = "https://h.example/api", "https://h.example/apiary?page=2"
    assert len(list(Own().rows_things())) == 2
    assert asked == ["/things", "https://h.example/apiary?page=2"]  # not below the base


def test_what_is_no_page_of_an_authors_request():
    @endpoints(things="/things", verbs=["pages"])
    class Own:
        given = None

        def request(self, method, path):
            return self.given

    own = Own()
    with pytest.raises(burler.errors.SourceError, match=r"GET /things: request\(\) gave a value of type NoneType"):
        list(own.pages_things())
    own.given = Answer(b"<html>")
    with pytest.raises(burler.errors.SourceError, match="GET /things: its body is no JSON"):
        list(own.pages_things())
    own.given = Answer(b"[]", status=500)
    with pytest.raises(HttpError, match="GET /things: status 500") as caught:
        list(own.pages_things())
    assert caught.value.status == 500


def constant():
    while True:
        yield 0.002


@pytest.mark.parametrize("kind", ["status", "raised", "lost", "http error"])
def test_backoff_around_an_authors_request(kind):
    import requests

    tries = []

    @endpoints(things="/things", backoff_strategy=constant)
    class Own:
        def request(self, method, path):
            tries.append(method)
            answer = Answer(b"[]", status=503 if len(tries) < 3 else 200)
            if answer.status_code == 200 or kind == "status":
                return answer
            if kind == "raised":
                raise requests.HTTPError("503", response=answer)
            if kind == "lost":
                raise requests.ConnectionError("gone")
            raise HttpError("503", status=503, url="", method="GET", body=b"", attempts=1)

    assert Own().get_things().status_code == 200
    assert len(tries) == 3


def test_backoff_ends_and_never_sends_a_post_twice():
    tries = []

    @endpoints(things="/things", backoff_strategy=constant)
    class Own:
        error = ConnectionError("gone")

        def request(self, method, path, json=None):
            tries.append(method)
            raise self.error

    with pytest.raises(ConnectionError, match="gone"):
        Own().post_things(json={})
    assert tries == ["POST"]
    with pytest.raises(ConnectionError, match="gone"):
        Own().get_things()
    assert len(tries) == 7
    Own.error = KeyError("a mistake of the author's")
    with pytest.raises(KeyError):
        Own().get_things()
    assert len(tries) == 8


def test_backoff_waits_as_long_as_the_source_says_and_not_for_ever():
    headers = [{"Retry-After": "0.3"}, {"Retry-After": "9999"}]

    @endpoints(things="/things", backoff_strategy=constant)
    class Own:
        def request(self, method, path):
            return Answer(b"", status=429, headers=headers.pop(0))

    began = time.monotonic()
    assert Own().get_things().status_code == 429
    assert 0.3 <= time.monotonic() - began < 30 and not headers


def test_retries_of_an_authors_request_are_counted():
    @endpoints(things="/things", backoff_strategy=constant)
    class Own:
        statuses = [503, 429, 503, 200]  # noqa: RUF012

        def request(self, method, path):
            return Answer(b'[{"id": 1}]', status=self.statuses.pop(0))

    own, counts = Own(), []
    tap = burler.tap("tap-things")

    @tap.sync("things", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})
    def things(stream):
        yield own.get_things().content
        counts.append(stream.tally.to_json())

    assert not run_tap(tap).result.errors
    assert counts == [{"retries": {"429": 1, "503": 2}}]


def test_backoff_of_a_client_is_the_clients_own(serve):
    waited = []
    replies = [503, 503]
    server = serve(lambda asked: replies.pop() if replies else [])

    def waits():
        waited.append("made")
        while True:
            yield 0.0

    @endpoints(things="/things", backoff_strategy=waits)
    class Own(Client):
        pass

    Own(server.url).get_things()
    assert waited == ["made"] and len(server.asked) == 3


# ---- what is refused -------------------------------------------------------------------------------


def declare(given=(), kind=Client, **options):
    @endpoints(*given, **options)
    class Made(kind):
        pass

    return Made


class Clashing(Client):
    def get_contacts(self):
        return 1


class NeedsMore:
    def request(self, method, path, account):
        return None


class TakesLittle:
    def request(self, method):
        return None


class WithInit:
    def __init__(self, config):
        pass


class NoMethod:
    request = "GET"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: declare(), "no endpoint was given"),
        (
            lambda: declare(contacts="/contacts", verbs=["gett"]),
            "unknown verb 'gett' of 'contacts'. Did you mean 'get'?",
        ),
        (lambda: declare(contacts="/contacts", verbs="get"), "verbs of 'contacts' must be a list"),
        (lambda: declare(contacts="/contacts", verbs={"contact": ["get"]}), "no endpoint. Did you mean 'contacts'?"),
        (lambda: declare(contacts="/contacts", verbs={"contacts": [5]}), "unknown verb 5 of 'contacts'"),
        (lambda: declare(contacts="https://x.example/contacts"), "is a whole URL; the path stands behind base_url"),
        (lambda: declare(contacts="//x.example/contacts"), "is a whole URL"),
        (lambda: declare(contacts=""), "'' is no path"),
        (lambda: declare(contacts=None), "None is no path"),
        (lambda: declare(contacts="/con tacts"), "is no path"),
        (lambda: declare(contacts="/contacts/{id"), "a brace that is no place"),
        (lambda: declare(contacts="/contacts/{{id}}"), "a brace that is no place"),
        (lambda: declare(contacts="/contacts/{}"), "can't be the name of a parameter"),
        (lambda: declare(contacts="/contacts/{account-id}"), "write letters, digits and '_': {account_id}"),
        (lambda: declare(contacts="/contacts/{class}"), "{class_}"),
        (lambda: declare(contacts="/contacts/{self}"), "can't be the name of a parameter"),
        (lambda: declare(contacts="/contacts?id={id}"), "a place in the query"),
        (lambda: declare(contacts="/contacts/{params}"), "duplicate parameter name: 'params'"),
        (lambda: declare([{"con tacts": "/contacts"}]), "can't be part of a method's name"),
        (lambda: declare([{"contacts": "/a"}], contacts="/b"), "endpoint 'contacts' stands twice, for '/a' and '/b'"),
        (lambda: declare(contacts="/contacts", kind=Clashing), "Made has a method get_contacts already"),
        (lambda: declare(contacts="/contacts", kind=Crm), "Made has an endpoint get_contacts already"),
        (lambda: declare(contacts="/contacts", kind=NeedsMore), "needs account beside a method and a path"),
        (lambda: declare(contacts="/contacts", kind=TakesLittle), "must take a method and a path"),
        (lambda: declare(contacts="/contacts", kind=WithInit), "has an __init__ and is no client"),
        (lambda: declare(contacts="/contacts", kind=NoMethod), "request can't be used: it is no method"),
        (lambda: declare(contacts="/contacts", paginator=5), "paginator=5 is none"),
        (lambda: declare(contacts="/contacts", records_path="a..b"), "records_path must be names"),
        (lambda: declare(contacts="/contacts", backoff_strategy=iter(())), "backoff_strategy must be a function"),
        (lambda: endpoints(contacts="/contacts")(lambda: None), "stands above a class"),
        (lambda: Client.generate("/contacts"), 'takes a list of paths: ["/contacts"]'),
        (lambda: Client.generate([]), "no endpoint was given"),
        (lambda: Client.generate(["/a/b", "/a/{x}/b"]), "endpoint 'a_b' stands twice, for '/a/b' and '/a/{x}/b'"),
        (lambda: Client.generate([5]), "5 is no path"),
    ],
)
def test_what_can_not_work_is_refused_with_its_place(make, said):
    with pytest.raises(DeclarationError) as caught:
        make()
    assert said in str(caught.value)
    assert "test_endpoints.py:" in str(caught.value).split(" ")[0]
    assert str(caught.value).count("\n") < 3


def test_a_client_with_a_request_of_its_own_tries_as_often_as_any():
    """It calls the Client's, which has tried again already."""

    @endpoints(things="/things", backoff_strategy=lambda: itertools.repeat(0))
    class Named(Client):
        def request(self, method, path, **options):
            return super().request(method, path, headers={"X-Name": "me"}, **options)

    with serving(lambda asked: 503) as server, pytest.raises(HttpError):
        Named(server.url).get_things()
    assert len(server.asked) == 6


def test_a_misspelt_method_is_answered_with_the_nearest_one():
    @endpoints(planets="/planets")
    class Stars:
        pass

    client = Stars("http://127.0.0.1:1")
    with pytest.raises(AttributeError, match=r"no attribute 'pages_planet'\. Did you mean 'pages_planets'\?"):
        client.pages_planet()
    assert not hasattr(client, "nothing_of_the_kind")
    client.close()
