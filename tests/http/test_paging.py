"""Pages in a tap: bytes to the typed decoder, workers, broken replies, circles."""

import gc
import json
import threading
import weakref

import pytest
import requests
import responses

import burler
from burler import JsonPage
from burler.errors import HttpError, NotFoundError, NotModified, PagingError, SourceError
from burler.http import Client, Cursor, NextUrl, Offset, PageNumber
from burler.testing import canary, run_tap
from support.servers import client_of, session_of

SCHEMA = {"properties": {"id": {"type": "integer"}, "total": {"type": "number"}}}


def three_pages(asked):
    begin = int(asked.query.get("cursor", 0))
    rows = b",".join(
        b'{"id": %d, "total": 12345678901234567890123456789}' % number for number in range(begin, begin + 2)
    )
    return b'{"result": {"items": [%s]}, "next": %s}' % (rows, b"%d" % (begin + 2) if begin < 4 else b"null")


def tap_on(read, **options):
    tap = burler.tap("tap-things")
    tap.sync("things", key_properties="id", schema=SCHEMA, **options)(read)
    return tap


# ---- bytes ----------------------------------------------------------------------------------------


def test_pages_are_the_bytes_that_came(serve):
    server = serve(three_pages)
    found = list(client_of(server).pages("/things", paginator=Cursor("next"), records_path="result.items"))
    assert [type(page) for page in found] == [JsonPage] * 3
    assert found[0].data == three_pages(server.asked[0]) and found[0].records_path == ("result", "items")


def test_numbers_keep_their_digits_on_the_way_to_the_line(serve):
    client = client_of(serve(three_pages))

    def things():
        yield from client.pages("/things", paginator=Cursor("next"), records_path="result.items")

    out = run_tap(tap_on(things))
    assert not out.result.errors
    assert [row["id"] for row in out.records("things")] == [0, 1, 2, 3, 4, 5]
    assert {row["total"] for row in out.records("things")} == {12345678901234567890123456789}


@pytest.mark.parametrize("where", ["call", "client", "stream"])
def test_the_way_to_the_rows_is_of_the_call_the_client_or_the_stream(serve, where):
    """Rows are counted there, too, wherever it was said; the call comes first, the stream last."""

    def answer(asked):
        return {"result": {"items": [{"id": 1}] if asked.query["page"] == "1" else []}}

    server = serve(answer)
    paths = {"call": None, "client": None, "stream": None}
    paths[where] = "result.items"
    for later in list(paths)[list(paths).index(where) + 1 :]:
        paths[later] = "not.there"
    client = client_of(server, records_path=paths["client"])
    options = {"records_path": paths["stream"]} if paths["stream"] else {}

    def pages():
        yield from client.pages("/things", paginator=PageNumber(), records_path=paths["call"])

    def rows():
        yield from client.rows("/things", paginator=PageNumber(), records_path=paths["call"])

    for read in (pages, rows):
        out = run_tap(tap_on(read, **options))
        assert not out.result.errors
        assert out.records("things") == [{"id": 1}]
    assert len(server.asked) == 4


def test_no_way_at_all_for_one_call(serve):
    client = client_of(serve(lambda asked: [{"id": 1}]), records_path="items")
    assert list(client.rows("/things", records_path="")) == [{"id": 1}]
    with pytest.raises(ValueError, match="records_path must be names"):
        client.pages("/things", records_path="a..b")


def test_rows_of_a_page_that_breaks_come_before_the_error(serve):
    client = client_of(serve(lambda asked: b'[{"id": 1}, 5, {"id": 2}]'))
    found = client.rows("/things")
    assert next(found) == {"id": 1}
    with pytest.raises(SourceError, match=r"GET /things, page 1: item 1 of the page is a number, not an object"):
        next(found)


# ---- replies that are no page ----------------------------------------------------------------------


@pytest.mark.parametrize("status", [204, 205])
def test_a_reply_without_content_is_no_page(serve, status):
    server = serve(lambda asked: (status, {}, b""))
    client = client_of(server, records_path="items")
    assert list(client.pages("/things")) == []
    assert list(client.pages("/things", paginator=PageNumber())) == []
    assert len(server.asked) == 2


def test_a_page_without_content_between_others_does_not_end_links(serve):
    def answer(asked):
        page = int(asked.query.get("page", 1))
        more = {"Link": f"<?page={page + 1}>; rel=next"} if page < 3 else {}
        return (204, more, b"") if page == 2 else (200, more, [{"id": page}])

    assert list(client_of(serve(answer)).rows("/things")) == [{"id": 1}, {"id": 3}]


def test_heads_alone_are_no_pages(serve):
    server = serve(lambda asked: [{"id": 1}])
    assert list(client_of(server).pages("/things", method="HEAD")) == []
    assert server.asked[0].method == "HEAD"


@pytest.mark.parametrize(
    ("kind", "requests"),
    [
        ("application/json", 2),
        ("Application/HAL+JSON; charset=utf-8", 2),
        ("text/plain", 2),
        (None, 2),
        ("application/x-ndjson", 1),
    ],
)
def test_nothing_at_all_is_asked_for_again_unless_lines_may_be_none(serve, kind, requests):
    """With the body its links may be lost, too; and a full table would be taken for an empty one."""
    first = [(200, {"Content-Type": kind} if kind else {}, b"")]
    server = serve(lambda asked: first.pop() if first else [{"id": 1}])
    assert list(client_of(server).rows("/things")) == ([{"id": 1}] if requests == 2 else [])
    assert len(server.asked) == requests


def test_an_empty_table_in_lines_can_be_asked_for(serve):
    """Of a source that does not say that it has lines."""
    server = serve(lambda asked: (200, {"Content-Type": "text/plain"}, b""))
    asking = {"headers": {"Accept": "application/x-ndjson"}}
    assert list(client_of(server).rows("/things", **asking)) == []
    assert len(server.asked) == 1
    with pytest.raises(HttpError, match="its body is empty, after 6 tries") as caught:
        list(client_of(server).rows("/things"))
    assert "application/x-ndjson" in str(caught.value)
    server = serve(lambda asked: (200, {"Content-Type": "application/json"}, b""))
    with pytest.raises(HttpError, match="its body is empty"):
        list(client_of(server).rows("/things", **asking))


@pytest.mark.parametrize("body", [b"<html>Maintenance</html>", b'{"items": [{"id": 1}, {"i', b"[1, 2", b"oops"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_body_that_is_no_json_is_asked_for_again(serve, body, times):
    """A proxy's maintenance page comes with status 200, a body breaks off: rows are not lost by it."""
    replies = [body] * times

    def answer(asked):
        return replies.pop() if replies and asked.query.get("cursor") == "2" else three_pages(asked)

    client = client_of(serve(answer))
    found = client.rows("/things", paginator=Cursor("next"), records_path="result.items")
    assert [row["id"] for row in found] == [0, 1, 2, 3, 4, 5]


def test_a_body_that_stays_no_json_is_one_error(serve):
    server = serve(lambda asked: b"<html>Sign in</html>")
    with pytest.raises(HttpError, match="no JSON") as caught:
        list(client_of(server, retries=2).pages("/things"))
    assert len(server.asked) == 3 and caught.value.attempts == 3
    assert "Sign in" in str(caught.value) and str(caught.value).count("\n") < 3


def test_a_search_by_post_is_sent_again_only_if_that_is_said(serve):
    replies = [503, 503]
    server = serve(lambda asked: replies.pop() if replies else [{"id": 1}])
    client = client_of(server)
    with pytest.raises(HttpError, match="retry=True"):
        list(client.pages("/search", method="POST", json={}))
    assert len(server.asked) == 1
    assert list(client.rows("/search", method="POST", json={}, retry=True)) == [{"id": 1}]


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": 1}\n{"id": 2}\n',
        b'[{"id": 1, "x": NaN}, {"id": 2, "y": "\\ud83d"}]',
        b'{"id": 1, "x": NaN}\n{"id": 2}',
        b" [ ] ",
    ],
)
def test_lines_and_what_burler_bears_are_json(serve, body):
    server = serve(lambda asked: body)
    assert len(list(client_of(server).rows("/things"))) == (0 if body == b" [ ] " else 2)
    assert len(server.asked) == 1


def test_an_error_on_a_later_page_comes_behind_the_rows_before_it(serve):
    server = serve(lambda asked: 500 if asked.query.get("cursor") == "2" else three_pages(asked))
    client = client_of(server, records_path="result.items", retries=1)

    def things():
        yield from client.pages("/things", paginator=Cursor("next"))

    out = run_tap(tap_on(things))
    assert "/things" in str(out.result.errors["things"]) and "500" in str(out.result.errors["things"])
    assert [row["id"] for row in out.records("things")] == [0, 1]


# ---- circles ---------------------------------------------------------------------------------------


def test_a_cursor_that_came_before_is_an_error_that_names_it(serve):
    server = serve(
        lambda asked: {"items": [{"id": 1}], "next": {None: "a", "a": "b", "b": "a"}[asked.query.get("cursor")]}
    )
    found = client_of(server).rows("/things/5", paginator=Cursor("next"), records_path="items", endpoint="/things/{id}")
    with pytest.raises(PagingError) as caught:
        list(found)
    assert str(caught.value).startswith(
        "GET /things/{id}, page 4: the pages go in a circle: cursor=a was asked for before"
    )
    assert len(server.asked) == 3


def test_a_cursor_that_stays_the_same(serve):
    server = serve(lambda asked: {"items": [{"id": 1}], "next": "same"})
    with pytest.raises(PagingError, match=r"page 3: .*cursor=same"):
        list(client_of(server).rows("/things", paginator=Cursor("next"), records_path="items"))


@pytest.mark.parametrize("second", ["/things?b=2&a=1", "{url}/things?a=1&b=2", "things?a=1&b=2#top"])
def test_a_url_that_differs_by_the_order_of_its_params_is_the_same(serve, second):
    def answer(asked):
        return 200, {"Link": f"<{second.format(url=server.url)}>; rel=next"}, [{"id": 1}]

    server = serve(answer)
    with pytest.raises(PagingError, match=r"page 2: the pages go in a circle: .*/?things"):
        list(client_of(server).rows("/things", params={"a": 1, "b": 2}))
    assert len(server.asked) == 1


def test_the_same_body_twice_is_a_circle_and_another_is_none(serve):
    server = serve(
        lambda asked: {"items": [], "next": (asked.json.get("n") or 0) + 1 if (asked.json.get("n") or 0) < 3 else 1}
    )
    with pytest.raises(PagingError, match=r'the body \{"n":1\}'):
        list(client_of(server).pages("/things", method="POST", json={}, paginator=Cursor("next", "n", into="json")))
    assert len(server.asked) == 4


def test_an_error_about_a_circle_holds_no_secret(serve):
    key = canary("key")
    server = serve(lambda asked: (200, {"Link": f"<?api_key={key}>; rel=next"}, [{"id": 1}]))
    with pytest.raises(PagingError, match="circle") as caught:
        list(client_of(server).pages("/things"))
    assert key not in str(caught.value)
    with pytest.raises(PagingError, match="circle") as caught:
        list(client_of(server).pages("/things", paginator=lambda request, reply: {"api_key": key}))
    assert key not in str(caught.value)


def test_hundreds_of_pages_leave_little_behind():
    """What is kept of each page is a number, not its URL."""
    import tracemalloc

    def answer(request):
        number = int(request.url.rpartition("=")[2].partition("-")[0]) if "cursor" in request.url else 0
        if number in (100, 500):
            sizes.append(tracemalloc.get_traced_memory()[0])
        following = None if number == 500 else f"{number + 1}-" + "x" * 2000
        return json.dumps({"next": following, "items": [{"id": number}]}).encode()

    sizes = []
    with Client("https://api.example.com", session=session_of(answer)) as client:
        tracemalloc.start()
        try:
            count = sum(1 for _page in client.pages("/things", paginator=Cursor("next"), records_path="items"))
        finally:
            tracemalloc.stop()
    assert count == 501
    assert sizes[1] - sizes[0] < 400 * 500  # a URL has 2000 signs


# ---- threads, endings ------------------------------------------------------------------------------


def test_one_paginator_and_one_client_serve_many_threads(serve):
    def answer(asked):
        begin, account = int(asked.query["offset"]), int(asked.path.split("/")[2])
        return [{"id": account * 100 + number} for number in range(begin, min(begin + 3, account))]

    client, paginator = client_of(serve(answer)), Offset(3)
    tap = burler.tap("tap-things")

    @tap.partitions("things")
    def accounts():
        return [{"account": number} for number in range(1, 25)]

    @tap.sync("things", key_properties="id", schema=SCHEMA, workers=8)
    def things(partition):
        return client.pages(f"/accounts/{partition['account']}/things", paginator=paginator)

    out = run_tap(tap)
    assert not out.result.errors
    assert sorted(row["id"] for row in out.records("things")) == [
        account * 100 + number for account in range(1, 25) for number in range(account)
    ]


def test_a_loop_that_ends_early_leaves_no_connection_behind(serve):
    """The body was read before its page was given: the next request goes over the same connection."""
    server = serve(three_pages)
    client = client_of(server)
    for _ in range(3):
        found = client.pages("/things", paginator=Cursor("next"), records_path="result.items")
        next(found)
        found.close()
    assert len(server.asked) == 3
    adapter = client.session.get_adapter(server.url)
    assert [pool.num_connections for pool in map(adapter.poolmanager.pools.get, adapter.poolmanager.pools.keys())] == [
        1
    ]


def test_nothing_is_asked_for_before_the_first_page_is_wanted(serve):
    server = serve(three_pages)
    client_of(server).pages("/things")
    assert server.asked == []


def test_a_page_is_let_go_before_the_next_one_is_asked_for(serve):
    """Two bodies at a time would double what big pages take."""
    alive = []

    def answer(asked):
        alive.append(sum(one() is not None for one in seen))
        return three_pages(asked)

    seen = []

    class Noting(Client):
        def send(self, request, *, check=None):
            response = super().send(request, check=check)
            seen.append(weakref.ref(response))
            return response

    client = Noting(serve(answer).url)
    for _page in client.pages("/things", paginator=Cursor("next"), records_path="result.items"):
        pass
    gc.collect()
    assert len(alive) == 3 and alive[0] == alive[1] == alive[2] == 0


def test_a_list_that_has_not_changed_gives_nothing(serve):
    """``source_state=True``: the first reply's ETag is sent by the next run; a list of several pages is refused."""

    def answer(asked):
        if asked.headers.get("if-none-match") == '"1"':
            return 304
        return 200, {"ETag": '"1"', **links}, [{"id": 1}]

    links = {}
    client = client_of(serve(answer))
    tap = tap_on(lambda: client.pages("/things"), source_state=True)
    first = run_tap(tap)
    assert first.records("things") == [{"id": 1}]
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors and second.records("things") == []
    assert [message["type"] for message in second.messages][:1] == ["SCHEMA"]
    assert "ACTIVATE_VERSION" not in second.types
    links["Link"] = "<?page=2>; rel=next"
    third = run_tap(tap)
    assert "one resource" in str(third.result.errors["things"])
    assert third.records("things") == [{"id": 1}]


def test_not_modified_behind_the_first_page_is_no_end(serve):
    """Rows of further pages must not be passed over in silence."""

    class Source(Client):
        def send(self, request, *, check=None):
            if request.path != "/things":
                raise NotModified("304")
            return super().send(request, check=check)

    server = serve(lambda asked: (200, {"Link": "</more>; rel=next"}, []))
    with Source(server.url) as client, pytest.raises(NotModified):
        list(client.pages("/things"))


@responses.activate
def test_replies_that_no_server_of_ours_gives():
    """A link header in Latin-1, and a body whose bytes are no text."""
    responses.get(
        "https://api.example.com/things", body=b'[{"id": 1}]', headers={"Link": '<?page=2>; title="caf\xe9"; rel=next'}
    )
    responses.get("https://api.example.com/things?page=2", body=b'[{"id": 2, "name": "\xff"}]')
    found = Client("https://api.example.com", sleep=lambda seconds: None).pages("/things")
    assert [page.data for page in found] == [b'[{"id": 1}]', b'[{"id": 2, "name": "\xff"}]']


def test_pages_of_several_threads_do_not_mix(serve):
    server = serve(
        lambda asked: {
            "items": [{"id": int(asked.query.get("cursor", 0))}],
            "next": int(asked.query.get("cursor", 0)) + 1 if int(asked.query.get("cursor", 0)) < 9 else None,
        }
    )
    client, got = client_of(server), {}

    def read(name):
        got[name] = [row["id"] for row in client.rows("/things", paginator=Cursor("next"), records_path="items")]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(map(tuple, got.values())) == {tuple(range(10))} and len(got) == 4
    assert isinstance(client.session, requests.Session)


def test_an_error_behind_the_first_page_names_its_page(serve):
    server = serve(lambda asked: 404 if asked.path == "/c5" else {"items": [{"id": 1}], "next": "c5"})
    with pytest.raises(NotFoundError) as caught:
        list(client_of(server).rows("/things", paginator=NextUrl("next"), records_path="items"))
    assert str(caught.value).splitlines()[0] == (
        f"GET {server.url}/c5: 404 Not Found (page 2, to which the page before it led)."
    )
    assert caught.value.status == 404
