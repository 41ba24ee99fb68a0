"""Paginators over a real server: which requests are sent, which rows come, where they end."""

import json
import time
from decimal import Decimal

import pytest
import requests

from burler.errors import NotFoundError, PagingError
from burler.http import Client, Cursor, LinkHeader, NextUrl, Offset, PageNumber, Reply, Request, SinglePage, UntilEmpty
from burler.testing import canary
from support.servers import client_of, warnings_of

ROWS = [{"id": number} for number in range(1, 8)]


def ids(client, path="/things", **options):
    return [row["id"] for row in client.rows(path, **options)]


def by_number(asked, size=3, first=1, param="page"):
    """Rows of a numbered page, as a list."""
    begin = (int(asked.query.get(param, first)) - first) * size
    return ROWS[begin : begin + size]


def by_cursor(asked, name="cursor", size=3):
    begin = int(asked.query.get(name, 0))
    after = begin + size
    return {"items": ROWS[begin:after], "meta": {"next": after if after < len(ROWS) else None}}


# ---- links ----------------------------------------------------------------------------------------


def test_link_headers_are_followed_without_a_word(serve):
    def answer(asked):
        page = int(asked.query.get("page", 1))
        more = {"Link": f'</things?page={page + 1}>; rel="next", </things?page=1>; rel="first"'} if page < 3 else {}
        return 200, more, by_number(asked)

    server = serve(answer)
    assert ids(client_of(server)) == [1, 2, 3, 4, 5, 6, 7]
    assert server.paths == ["/things", "/things?page=2", "/things?page=3"]


def test_a_reply_without_links_is_one_page(serve):
    server = serve(lambda asked: ROWS)
    assert ids(client_of(server)) == [1, 2, 3, 4, 5, 6, 7]
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "header",
    [
        '<?page=2>; rel="next"',
        "<?page=2>; rel=next",
        '<?page=2>; REL="Next"',
        '<?page=2>; title="a, b; c"; rel="last next"',
        '<https://elsewhere.example/>; rel="prev", <?page=2>; rel="next"',
        '<https://elsewhere.example/>; title="x; rel=next"; rel="prev",<?page=2> ;rel = "next"',
        ['<?page=9>; rel="last"', '<?page=2>; rel="next"'],
        "<?page=2>; crossorigin; rel=next",
    ],
)
def test_links_in_every_spelling(serve, header):
    def answer(asked):
        return 200, {} if asked.query else {"Link": header}, by_number(asked)

    server = serve(answer)
    assert ids(client_of(server)) == [1, 2, 3, 4, 5, 6]
    assert server.paths == ["/things", "/things?page=2"]


@pytest.mark.parametrize("header", ["", "nonsense", '<?page=2>; rel="previous"', "<?page=2>", "<?page=2", ";;;,,,<>"])
def test_headers_that_link_to_no_next_page(serve, header):
    server = serve(lambda asked: (200, {"Link": header}, ROWS))
    assert len(ids(client_of(server))) == 7
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "header",
    [
        "<" * 60_000,
        "<a>" + ";a" * 30_000,
        "<a>" + '; a="\\' * 12_000,
        "<a>;" + " " * 60_000 + "x",
        "<a>" + ";a=b " * 12_000,
    ],
    ids=["brackets", "names", "quotes", "spaces", "values"],
)
def test_a_hostile_header_takes_no_time(header):
    """Milliseconds; seconds where each place of it is tried against the rest."""
    begun = time.process_time()
    assert LinkHeader().following(Request("GET", "/things"), Said(Link=header)) is None
    assert time.process_time() - begun < 2


def test_another_relation_and_single_pages(serve):
    def answer(asked):
        return 200, {} if asked.query else {"Link": '<?page=2>; rel="older"; rel="next"'}, by_number(asked)

    server = serve(answer)
    client = client_of(server)
    assert ids(client, paginator=LinkHeader("older")) == [1, 2, 3, 4, 5, 6]
    assert ids(client, paginator=LinkHeader("next")) == [1, 2, 3]  # a second rel does not count
    assert ids(client, paginator=SinglePage()) == [1, 2, 3]


def test_next_urls_in_the_body_whole_or_relative(serve):
    def answer(asked):
        page = int(asked.query.get("page", 1))
        target = {1: f"{server.url}/things?page=2", 2: "?page=3"}.get(page)
        return {"items": by_number(asked), "paging": {"next": target} if page < 3 else None}

    server = serve(answer)
    client = client_of(server, records_path="items")
    assert ids(client, paginator=NextUrl("paging.next")) == [1, 2, 3, 4, 5, 6, 7]
    # The next URL says everything: what the first request carried is not added to it.
    assert ids(client, paginator=NextUrl("paging.next"), params={"filter": "a"}) == [1, 2, 3, 4, 5, 6, 7]
    assert server.paths[3:] == ["/things?filter=a", "/things?page=2", "/things?page=3"]


def test_params_that_next_urls_lose_are_kept_for_all_pages(serve):
    def answer(asked):
        page = int(asked.query.get("page", 1))
        query = {1: "?page=2&filter=a", 2: "?page=3"}.get(page)
        return {"items": by_number(asked), "next": query}

    server = serve(answer)
    options = {"records_path": "items", "params": {"filter": "a", "other": 1}}
    assert len(ids(client_of(server), paginator=NextUrl("next", keep_params=["filter"]), **options)) == 7
    assert server.paths == ["/things?filter=a&other=1", "/things?page=2&filter=a", "/things?page=3&filter=a"]


@pytest.mark.parametrize("value", [None, "", False])
def test_values_that_are_no_next_url(serve, value):
    server = serve(lambda asked: {"items": ROWS, "next": value})
    assert len(ids(client_of(server), paginator=NextUrl("next"), records_path="items")) == 7


@pytest.mark.parametrize(
    "target",
    [
        "https://elsewhere.example/things",
        "//elsewhere.example/x",
        "file:///etc/passwd",
        "javascript:x",
        "http://[::1",
        5,
    ],
)
def test_a_next_url_that_leads_elsewhere_is_an_error_behind_the_rows(serve, target):
    server = serve(lambda asked: {"items": ROWS, "next": target})
    found = client_of(server).rows("/things", paginator=NextUrl("next"), records_path="items")
    assert len([next(found) for _ in ROWS]) == 7
    with pytest.raises(PagingError, match=r"GET /things, page 1: the next URL") as caught:
        next(found)
    assert str(caught.value).count("\n") < 3
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "trick", ["http://elsewhere.example\\@{host}/things?page=2", "http://user:word@{host}/things?page=2"]
)
def test_user_names_in_next_urls_go_nowhere(serve, trick):
    def answer(asked):
        target = None if asked.query else trick.format(host=server.url.removeprefix("http://"))
        return {"items": by_number(asked), "next": target}

    server = serve(answer)
    assert ids(client_of(server), paginator=NextUrl("next"), records_path="items") == [1, 2, 3, 4, 5, 6]
    assert all("authorization" not in asked.headers for asked in server.asked)


def test_an_allowed_host_is_asked_without_credentials(serve):
    token = canary("token")
    other = serve(lambda asked: {"items": ROWS[3:], "next": None})
    first = serve(lambda asked: {"items": ROWS[:3], "next": f"{other.url}/more"})
    client = client_of(first, token=token, records_path="items")
    with pytest.raises(PagingError, match="allow_hosts"):
        ids(client, paginator=NextUrl("next"))
    assert other.asked == []
    host = other.url.removeprefix("http://")
    assert ids(client, paginator=NextUrl("next", allow_hosts=[host])) == [1, 2, 3, 4, 5, 6, 7]
    assert first.asked[-1].headers["authorization"] == f"Bearer {token}"
    assert "authorization" not in other.asked[0].headers


def test_a_source_behind_a_proxy_that_names_itself_wrongly(serve):
    def answer(asked):
        more = {} if asked.query else {"Link": '<http://internal:99/things?page=2>; rel="next"'}
        return 200, more, by_number(asked)

    server = serve(answer)
    client = client_of(server, token=canary("token"))
    assert ids(client, paginator=LinkHeader(keep_origin=True)) == [1, 2, 3, 4, 5, 6]
    assert "authorization" in server.asked[1].headers


class Said:
    """A reply that says no more than where it came from."""

    origin = "https://api.example.com"
    url = "https://api.example.com/things?page=1"

    def __init__(self, **headers):
        self.headers = headers


@pytest.mark.parametrize(
    ("target", "options", "found"),
    [
        ("?page=2", {}, "https://api.example.com/things?page=2"),
        ("https://API.example.com:443/things?page=2#top", {}, "https://API.example.com:443/things?page=2"),
        ("http://api.example.com/things?page=2", {}, None),  # what was safe must not be asked for in the open
        ("https://api.example.com:8443/things", {}, None),
        ("http://api.example.com/things?page=2", {"keep_origin": True}, "https://api.example.com/things?page=2"),
        ("https://files.example.com/1", {"allow_hosts": ["files.example.com"]}, "https://files.example.com/1"),
        ("https://FILES.example.com/1", {"allow_hosts": ["Files.Example.com"]}, "https://FILES.example.com/1"),
        ("http://files.example.com/1", {"allow_hosts": ["files.example.com"]}, None),
        ("https://files.example.com:99/1", {"allow_hosts": ["files.example.com"]}, None),
        ("https://files.example.com:99/1", {"allow_hosts": ["files.example.com:99"]}, "https://files.example.com:99/1"),
        ("https://api.example.com.elsewhere.example/", {}, None),
        ("https://api.example.com\\.elsewhere.example/", {}, None),
        ("https://elsewhere.example\\@api.example.com/", {}, "https://api.example.com/"),
        ("https:///things", {}, "https://api.example.com/things"),
        ("ftp://api.example.com/", {"keep_origin": True}, None),
        ("https://api.example.com:99999/", {}, None),
    ],
)
def test_which_next_urls_are_the_source(target, options, found):
    reply = Said(Link=f"<{target}>; rel=next")
    request = Request("GET", "/things", params={"page": 1})
    if found is None:
        with pytest.raises(PagingError, match="the next URL"):
            LinkHeader(**options).following(request, reply)
    else:
        following = LinkHeader(**options).following(request, reply)
        assert (following.path, following.params) == (found, None)


def test_kept_params_stand_once():
    keeping = LinkHeader(keep_params=["a", "b"])
    request = Request("GET", "/things", params={"a": 1, "b": 2, "c": 3})
    assert keeping.following(request, Said(Link="<?a=5>; rel=next")).params == {"b": 2}


# ---- cursors --------------------------------------------------------------------------------------


def test_cursors_go_into_the_query_beside_what_is_there(serve):
    server = serve(by_cursor)
    paginator = Cursor("meta.next", param="cursor")
    assert ids(client_of(server, records_path="items"), paginator=paginator, params={"size": 3}) == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    assert server.paths == ["/things?size=3", "/things?size=3&cursor=3", "/things?size=3&cursor=6"]


@pytest.mark.parametrize("value", [None, "", False, "absent", -1])
def test_what_is_no_cursor(serve, value):
    meta = {} if value == "absent" else {"next": value}
    server = serve(lambda asked: {"items": ROWS, "meta": meta})
    paginator = Cursor("meta.next", end_values=[-1])
    assert len(ids(client_of(server), paginator=paginator, records_path="items")) == 7
    assert len(server.asked) == 1


def test_a_cursor_behind_the_end_that_answers_410(serve):
    server = serve(lambda asked: 410 if asked.query else {"items": ROWS, "next": "a"})
    paginator = Cursor("next", end_statuses=[410])
    assert len(ids(client_of(server), paginator=paginator, records_path="items")) == 7
    with pytest.raises(NotFoundError):
        ids(client_of(server), paginator=paginator, records_path="items", params={"cursor": "b"})


def test_statuses_that_were_allowed_stay_so():
    reply = Reply(_response(b'{"next": "a"}'))
    following = Cursor("next", end_statuses=[410]).following(Request("GET", "/", allow_statuses=[409]), reply)
    assert set(following.allow_statuses) == {409, 410}


def _response(content):
    response = requests.Response()
    response.status_code, response._content = 200, content
    return response


def test_zero_and_numbers_of_any_size_are_cursors(serve):
    cursors = {None: 0, "0": 12345678901234567890123, "12345678901234567890123": 1.10, "1.1": "", "1.10": ""}

    def answer(asked):
        text = {1.10: "1.10"}.get(cursors[asked.query.get("cursor")], json.dumps(cursors[asked.query.get("cursor")]))
        return b'{"items": [{"id": 1}], "next": %s}' % text.encode()

    server = serve(answer)
    assert len(ids(client_of(server), paginator=Cursor("next"), records_path="items")) == 4
    assert [asked.query.get("cursor") for asked in server.asked] == [None, "0", "12345678901234567890123", "1.10"]


def test_the_key_of_the_last_row_as_cursor(serve):
    def answer(asked):
        begin = int(asked.query.get("starting_after", 0))
        return {"data": ROWS[begin : begin + 3], "has_more": begin + 3 < len(ROWS)}

    server = serve(answer)
    paginator = Cursor("data.-1.id", param="starting_after", more="has_more")
    assert ids(client_of(server, records_path="data"), paginator=paginator) == [1, 2, 3, 4, 5, 6, 7]
    assert len(server.asked) == 3


def test_more_pages_without_a_cursor_are_an_error(serve):
    server = serve(lambda asked: {"items": ROWS, "more": True, "next": None})
    with pytest.raises(PagingError, match=r"'more' says that there is a next page, and 'next' names no cursor: None"):
        ids(client_of(server), paginator=Cursor("next", more="more"), records_path="items")


@pytest.mark.parametrize(
    ("more", "requests"), [(True, 2), ("true", 2), (1, 2), (None, 2), ("", 2), (False, 1), ("False", 1), (0, 1)]
)
def test_how_more_may_be_spelled(serve, more, requests):
    """Where a reply says nothing, the cursor decides: rows that are there must not be left out."""
    server = serve(lambda asked: {"items": ROWS, "more": False if asked.query else more, "next": "a"})
    ids(client_of(server), paginator=Cursor("next", more="more"), records_path="items")
    assert len(server.asked) == requests


@pytest.mark.parametrize("value", [{"a": 1}, ["a"], True])
def test_what_can_be_no_cursor_of_a_query(serve, value):
    server = serve(lambda asked: {"items": ROWS, "next": value})
    with pytest.raises(PagingError, match="should be text or a number"):
        ids(client_of(server), paginator=Cursor("next"), records_path="items")


def test_more_that_is_neither_true_nor_false(serve):
    server = serve(lambda asked: {"items": ROWS, "next": "a", "more": "perhaps"})
    with pytest.raises(PagingError, match="'more' should be true or false; the reply has 'perhaps' there"):
        ids(client_of(server), paginator=Cursor("next", more="more"), records_path="items")


def test_cursors_in_the_body_of_a_post(serve):
    def answer(asked):
        begin = asked.json["page"].get("cursor", 0)
        return {"items": ROWS[begin : begin + 3], "end": begin + 3 if begin + 3 < len(ROWS) else None}

    server = serve(answer)
    body = {"query": "all", "page": {"size": 3}}
    paginator = Cursor("end", param="page.cursor", into="json")
    client = client_of(server, records_path="items")
    assert ids(client, paginator=paginator, method="POST", json=body) == [1, 2, 3, 4, 5, 6, 7]
    assert body == {"query": "all", "page": {"size": 3}}  # the author's own is left alone
    assert [asked.json["page"] for asked in server.asked] == [
        {"size": 3},
        {"size": 3, "cursor": 3},
        {"size": 3, "cursor": 6},
    ]
    assert {asked.method for asked in server.asked} == {"POST"}


def test_a_list_of_values_as_cursor_of_a_body(serve):
    """As search engines have it: the sort values of the last row, numbers digit for digit."""

    def answer(asked):
        if b"search_after" in asked.body:
            return {"hits": []}
        return b'{"hits": [{"id": 1, "sort": [1.10, "a"]}]}'

    server = serve(answer)
    paginator = Cursor("hits.-1.sort", param="search_after", into="json")
    assert ids(client_of(server), paginator=paginator, method="POST", json={}, records_path="hits") == [1]
    assert b"[1.10," in server.asked[1].body.replace(b" ", b"")


def test_a_body_that_is_no_object_there(serve):
    server = serve(lambda asked: {"items": ROWS, "next": "a"})
    with pytest.raises(PagingError, match=r"no object where 'page.cursor' should go, but 5"):
        paginator = Cursor("next", param="page.cursor", into="json")
        ids(client_of(server), paginator=paginator, method="POST", json={"page": 5}, records_path="items")


def test_cursors_in_headers_both_ways(serve):
    def answer(asked):
        begin = int(asked.headers.get("x-continue", 0))
        return 200, {"X-Next": str(begin + 3) if begin + 3 < len(ROWS) else ""}, ROWS[begin : begin + 3]

    server = serve(answer)
    paginator = Cursor("header:X-Next", param="X-Continue", into="headers")
    assert ids(client_of(server), paginator=paginator, headers={"X-Mine": "1"}) == [1, 2, 3, 4, 5, 6, 7]
    assert [asked.headers.get("x-mine") for asked in server.asked] == ["1"] * 3


# ---- page numbers and offsets ---------------------------------------------------------------------


def test_page_numbers_up_to_the_first_empty_page(serve):
    server = serve(by_number)
    assert ids(client_of(server), paginator=PageNumber()) == [1, 2, 3, 4, 5, 6, 7]
    assert server.paths == ["/things?page=1", "/things?page=2", "/things?page=3", "/things?page=4"]


def test_page_numbers_from_zero_with_a_size(serve):
    server = serve(lambda asked: by_number(asked, first=0, param="p"))
    paginator = PageNumber("p", first_page=0, size=3, size_param="per_page", until="short")
    assert ids(client_of(server), paginator=paginator) == [1, 2, 3, 4, 5, 6, 7]
    assert server.paths == ["/things?per_page=3&p=0", "/things?per_page=3&p=1", "/things?per_page=3&p=2"]


def test_a_page_number_of_the_call_is_where_it_begins(serve):
    server = serve(by_number)
    assert ids(client_of(server), paginator=PageNumber(), params={"page": "3"}) == [7]
    with pytest.raises(PagingError, match="the request's 'page' is 'last'; it must be a whole number"):
        ids(client_of(server), paginator=PageNumber(), params={"page": "last"})
    with pytest.raises(PagingError, match="must be a whole number"):
        ids(client_of(server), paginator=Offset(3), params={"offset": True})


@pytest.mark.parametrize("where", ["body", "text", "header"])
def test_a_total_of_pages_that_grows(serve, where):
    """Page 2 tells of a page that was not there when page 1 was read; empty pages between are no end."""

    def answer(asked):
        number = int(asked.query["page"])
        total = 3 if number == 1 else 4
        items = [] if number == 2 else [{"id": number}]
        if where == "header":
            return 200, {"X-Pages": str(total)}, {"items": items}
        return {"items": items, "meta": {"pages": str(total) if where == "text" else total}}

    server = serve(answer)
    paginator = PageNumber(total_pages="header:X-Pages" if where == "header" else "meta.pages")
    assert ids(client_of(server, records_path="items"), paginator=paginator) == [1, 3, 4]
    assert len(server.asked) == 4


def test_a_total_of_pages_that_count_from_zero(serve):
    server = serve(lambda asked: {"items": [{"id": int(asked.query["page"])}], "pages": 3})
    paginator = PageNumber(first_page=0, total_pages="pages")
    assert ids(client_of(server, records_path="items"), paginator=paginator) == [0, 1, 2]


def test_a_total_that_is_not_there_leaves_it_to_the_rows(serve):
    server = serve(lambda asked: {"items": by_number(asked), "pages": None})
    assert len(ids(client_of(server), paginator=PageNumber(total_pages="pages"), records_path="items")) == 7


def test_a_total_that_is_none(serve):
    server = serve(lambda asked: {"items": by_number(asked), "pages": "many"})
    with pytest.raises(PagingError, match="'pages' should be a total; the reply has 'many' there"):
        ids(client_of(server), paginator=PageNumber(total_pages="pages"), records_path="items")


def test_a_page_behind_the_end_that_answers_404(serve):
    server = serve(lambda asked: by_number(asked) or 404)
    client = client_of(server)
    with pytest.raises(NotFoundError):
        ids(client, paginator=PageNumber())
    assert ids(client, paginator=PageNumber(end_statuses=[404])) == [1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(NotFoundError):  # the first page must be there
        ids(client, paginator=PageNumber(end_statuses=[404]), params={"page": 9})


def test_a_source_that_does_not_look_at_the_number(serve):
    server = serve(lambda asked: {"number": asked.query["page"], "items": ROWS})
    with pytest.raises(PagingError, match=r"GET /things, page 2: it holds the same rows as page 1.*may_repeat=True"):
        ids(client_of(server), paginator=PageNumber(), records_path="items")
    assert len(server.asked) == 2
    with pytest.raises(PagingError, match=r"more than 5 pages \(most_pages\)"):
        ids(client_of(server), paginator=PageNumber(may_repeat=True, most_pages=5), records_path="items")
    assert len(server.asked) == 7


def test_a_source_that_begins_anew_behind_its_end(serve):
    server = serve(lambda asked: by_number(asked) or ROWS[:3])
    with pytest.raises(PagingError, match="page 4: it holds the same rows as page 1"):
        ids(client_of(server), paginator=PageNumber())


def test_page_numbers_in_a_body(serve):
    server = serve(lambda asked: ROWS[(asked.json["page"]["n"] - 1) * 3 : asked.json["page"]["n"] * 3])
    paginator = PageNumber("page.n", size=3, size_param="page.size", into="json")
    assert len(ids(client_of(server), paginator=paginator, method="POST", json={"all": True})) == 7
    assert server.asked[0].json == {"all": True, "page": {"n": 1, "size": 3}}


def test_offsets_begin_behind_the_rows_that_came(serve):
    """The source gives two at a time although three are asked for."""

    def answer(asked):
        begin = int(asked.query["offset"])
        return ROWS[begin : begin + 2]

    server = serve(answer)
    assert ids(client_of(server), paginator=Offset(3)) == [1, 2, 3, 4, 5, 6, 7]
    assert [asked.query["offset"] for asked in server.asked] == ["0", "2", "4", "6", "7"]
    assert {asked.query["limit"] for asked in server.asked} == {"3"}


def test_offsets_with_a_total_that_grows_and_names_of_their_own(serve):
    def answer(asked):
        begin = int(asked.query["skip"])
        return {"items": ROWS[begin : begin + 3], "total": 4 if begin == 0 else 7}

    server = serve(answer)
    paginator = Offset(3, offset_param="skip", limit_param=None, total="total")
    assert len(ids(client_of(server), paginator=paginator, records_path="items")) == 7
    assert server.paths == ["/things?skip=0", "/things?skip=3", "/things?skip=6"]


def test_a_total_that_promises_more_than_comes_is_a_warning(serve, caplog):
    server = serve(lambda asked: {"items": ROWS[int(asked.query["offset"]) :], "total": 10})
    assert len(ids(client_of(server), paginator=Offset(10, total="total"), records_path="items")) == 7
    said = "GET /things: 2 pages were read, though 'total' of the reply says that there are more: 7 of 10 rows came"
    assert said in caplog.text


def test_a_page_without_content_where_others_said_a_total_is_told(serve, caplog):
    def answer(asked):
        number = int(asked.query["page"])
        return 204 if number == 3 else {"items": [{"id": number}], "pages": 5}

    client = client_of(serve(answer), records_path="items")
    found = list(client.rows("/things", paginator=PageNumber(total_pages="pages")))
    assert found == [{"id": 1}, {"id": 2}]
    assert "/things: page 3 is taken for the end: it has no rows, and nothing at 'pages'" in caplog.text
    caplog.clear()
    assert list(client_of(serve(lambda asked: 204)).rows("/things", paginator=PageNumber(total_pages="pages"))) == []
    assert warnings_of(caplog) == []


def test_until_short_saves_a_request(serve):
    server = serve(lambda asked: ROWS[int(asked.query["offset"]) :][:3])
    assert len(ids(client_of(server), paginator=Offset(3, until="short"))) == 7
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("body", "path", "count"),
    [
        ({"a": {"b": ROWS}}, "a.b", 7),
        ({"a": None}, "a", 0),
        (None, "", 0),
        (b'{"id": 1}\n{"id": 2}\n', "", 2),
        (b'[{"id": 1, "x": NaN}]', "", 1),
        (b'{"items": [{"id": 1, "x": "\\ud800"}]}', "items", 1),
        (b'\xef\xbb\xbf [{"id": 1}, {"id": 2}]', "", 2),
    ],
)
def test_rows_are_counted_wherever_they_are(serve, body, path, count):
    empty = [] if not path else {"a": {"b": []}, "items": []}
    server = serve(lambda asked: (200, {}, body if asked.query["page"] == "1" else empty))
    found = list(client_of(server).pages("/things", paginator=PageNumber(), records_path=path))
    assert len(server.asked) == (2 if count else 1)
    assert len(found) == len(server.asked)
    counted = Reply(client_of(server).get("/things", params={"page": 1}), [name for name in path.split(".") if name])
    assert counted.rows_found() == count


def test_rows_that_can_not_be_counted(serve):
    server = serve(lambda asked: {"items": ROWS})
    with pytest.raises(
        PagingError, match=r"PageNumber counts rows, and there is no list of rows in the body. Say records_path"
    ):
        list(client_of(server).pages("/things", paginator=PageNumber()))


def test_until_empty_ends_what_names_a_next_page_for_ever(serve):
    def answer(asked):
        begin = int(asked.query.get("cursor", 0))
        return {"items": ROWS[begin : begin + 3], "next": begin + 3}

    server = serve(answer)
    assert len(ids(client_of(server, records_path="items"), paginator=UntilEmpty(Cursor("next")))) == 7
    assert len(server.asked) == 4
    numbered = serve(by_number)
    assert len(ids(client_of(numbered), paginator=UntilEmpty())) == 7


# ---- functions ------------------------------------------------------------------------------------


def test_a_function_may_give_a_request_a_url_or_params(serve):
    def following(request, reply):
        number = reply.find("n")
        if number == 1:
            return {"page": 2}
        if number == 2:
            return "/things?page=3"
        return request.replace(path="/things", params={"page": 4}) if number == 3 else None

    server = serve(lambda asked: {"n": int(asked.query.get("page", 1)), "items": []})
    assert list(client_of(server).rows("/things", paginator=following, records_path="items", params={"a": 1})) == []
    assert server.paths == ["/things?a=1", "/things?a=1&page=2", "/things?page=3", "/things?page=4"]


def test_a_function_that_gives_something_else(serve):
    server = serve(lambda asked: ROWS)
    with pytest.raises(PagingError, match="the paginator wrong gave 5"):

        def wrong(request, reply):
            return 5

        ids(client_of(server), paginator=wrong)


def test_a_paginator_of_ones_own(serve):
    class Twice:
        def first(self, request):
            return request.replace(params={"n": "first"})

        def following(self, request, reply):
            return None if request.params["n"] == "second" else request.replace(params={"n": "second"})

    server = serve(lambda asked: [{"id": asked.query["n"]}])
    assert ids(client_of(server), paginator=Twice()) == ["first", "second"]


# ---- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Cursor(""), "Cursor: '' is no place in a reply"),
        (lambda: Cursor("a..b"), "no place in a reply"),
        (lambda: Cursor("a", more=""), "no place"),
        (lambda: Cursor("a", into="body"), "into='body' must be"),
        (lambda: Cursor("a", param=""), "param='' must be the name"),
        (lambda: NextUrl(None), "NextUrl: None is no place"),
        (lambda: PageNumber(until="last"), "until='last' must be 'empty' or 'short'"),
        (lambda: PageNumber(until="short"), "need size="),
        (lambda: PageNumber(size_param="n"), "need size="),
        (lambda: PageNumber(size=0), "size=0 must be"),
        (lambda: PageNumber(first_page=-1), "first_page=-1 must be"),
        (lambda: PageNumber(most_pages=0), "most_pages=0 must be"),
        (lambda: PageNumber(total_pages=""), "no place"),
        (lambda: Offset(0), "limit=0 must be"),
        (lambda: Offset(True), "limit=True must be"),
        (lambda: Offset(5, total=""), "no place"),
        (lambda: Offset(5, end_statuses=404), r"end_statuses=404 must be a list: end_statuses=\[404\]"),
        (lambda: Cursor("a", end_values="0"), r"end_values='0' must be a list"),
        (lambda: NextUrl("a", allow_hosts="x.example"), r"NextUrl: allow_hosts='x.example' must be a list"),
        (lambda: LinkHeader(keep_params="a"), "LinkHeader: keep_params='a' must be a list"),
        (lambda: LinkHeader(""), "rel='' must be the name"),
    ],
)
def test_options_that_can_not_work_are_refused_at_once(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("given", "said"),
    [(5, "paginator=5 is none"), (Cursor, r"is a class: write paginator=Cursor\(...\)"), ("next", "is none")],
)
def test_what_is_no_paginator_is_refused_at_the_call(given, said):
    with pytest.raises(TypeError, match=said):
        Client("http://127.0.0.1:1").pages("/things", paginator=given)
    with pytest.raises(TypeError, match=said):
        UntilEmpty(given)


def test_paginators_are_frozen_and_alike():
    assert Cursor("a") == Cursor("a") and hash(Cursor("a")) == hash(Cursor("a"))
    for paginator in (Cursor("a"), LinkHeader(), NextUrl("a"), PageNumber(), Offset(1), UntilEmpty(), SinglePage()):
        with pytest.raises((AttributeError, TypeError)):
            paginator.param = "other"
        assert not hasattr(paginator, "__dict__")


def test_numbers_found_in_replies_are_exact(serve):
    seen = []

    def look(request, reply):
        seen.extend(
            [reply.find("a.b"), reply.find("a.0"), reply.find("list.0"), reply.find("list.9"), reply.find("header:x-a")]
        )

    server = serve(
        lambda asked: (200, {"X-A": "1"}, b'{"a": {"b": 1.10, "0": "name"}, "list": [10000000000000000000001]}')
    )
    list(client_of(server).pages("/things", paginator=look))
    assert seen == [Decimal("1.10"), "name", 10000000000000000000001, None, "1"]
    assert str(seen[0]) == "1.10"
