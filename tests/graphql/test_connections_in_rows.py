"""Connections in rows, rows of several streams, and connections side by side: all of them whole."""

import json

import pytest

from burler import JsonPage
from burler.errors import PagingError
from burler.graphql import Query, Rows


def ids(pages):
    return [row["id"] for page in pages for row in (json.loads(page.data) if isinstance(page, JsonPage) else page)]


def ships(count):
    return [{"id": str(n), "name": f"S{n}"} for n in range(count)]


def test_a_connection_in_a_row_becomes_a_whole_list(shipyard):
    """Crews of up to 6 in pages of 2, badges of up to 3 in pages of 1: the rest is asked for by node(id:)."""
    query = Query(
        "{ ships(first: 4) { nodes { id crew(first: 2) { nodes { id badges(first: 1) { nodes { id } } } } } } }"
    )
    rows = list(query.records(shipyard.client()))
    assert [row["id"] for row in rows] == [str(n) for n in range(7)]
    for n, row in enumerate(rows):
        assert set(row) == {"id", "crew"}
        assert [member["id"] for member in row["crew"]] == [f"{n}-{m}" for m in range(n)]
        for m, member in enumerate(row["crew"]):
            assert member == {"id": f"{n}-{m}", "badges": [{"id": f"{n}-{m}.{b}"} for b in range(m % 4)]}


def test_a_connection_behind_an_object_of_a_row(shipyard):
    query = Query("{ ships(first: 4) { nodes { id engine { parts(first: 2) { nodes { id } } } } } }")
    for n, row in enumerate(query.records(shipyard.client())):
        assert row == {"id": str(n), "engine": {"parts": [{"id": f"part {n} {m}"} for m in range(3)]}}


def test_fields_of_edges_go_into_the_row(shipyard):
    query = Query(
        "{ ships(first: 9) { nodes { id crew(first: 2) { edges { role node { id } } } } } }", rows="ships.crew"
    )
    rows = list(query.records(shipyard.client()))
    assert len(rows) == 21
    assert all(row == {"id": row["id"], "role": f"role of {row['id']}"} for row in rows)


def test_several_streams_of_one_query(shipyard):
    """Rows of the others come first, so that no bookmark of the stream says more than what is out."""
    query = Query(
        "query Q($first: Int!) { ships(first: $first) { nodes { number: id crew(first: 2) "
        "{ nodes { id badges(first: 1) { nodes { id } } } } id } } }",
        rows="ships",
        streams={
            "crew": Rows("ships.crew", add={"ship": "number"}),
            "badges": Rows("ships.crew.badges", add={"member": "id", "ship": "number"}),
        },
        page_size=4,
    )
    pages = list(query.pages(shipyard.client()))
    main = [n for n, page in enumerate(pages) if not isinstance(page, tuple)]
    assert [len(pages[n]) for n in main] == [4, 3]
    rows = {"crew": [], "badges": []}
    for n, page in enumerate(pages):
        if isinstance(page, tuple):
            rows[page[0]] += [(row, n) for row in page[1]]
    expected = {f"{ship}-{m}": ship for ship in range(7) for m in range(ship)}
    assert {row["id"]: int(row["ship"]) for row, _n in rows["crew"]} == expected
    assert len(rows["crew"]) == len(expected)
    assert all(set(row) == {"id", "ship"} for row, _n in rows["crew"])
    for row, n in rows["crew"]:
        assert n < main[int(row["ship"]) // 4]
    badges = sorted((row["ship"], row["member"], row["id"]) for row, _n in rows["badges"])
    assert badges == sorted(
        (str(s), f"{s}-{m}", f"{s}-{m}.{b}") for s in range(7) for m in range(s) for b in range(m % 4)
    )


def test_two_connections_of_one_query_each_to_its_end(shipyard):
    query = Query(
        "query Q { a: ships(first: 2) { nodes { id } } b: ships(first: 5) { nodes { id name } } all: list { id } }",
        rows="a",
        streams={"b": "b", "all": "all"},
    )
    found = {None: [], "b": [], "all": []}
    for page in query.pages(shipyard.client()):
        name, rows = page if isinstance(page, tuple) else (None, page)
        found[name] += json.loads(rows.data)
    everything = [str(n) for n in range(7)]
    assert {name: [row["id"] for row in rows] for name, rows in found.items()} == dict.fromkeys(found, everything)
    assert len(shipyard.asked) == 5  # b to its end, then a: rows of the stream come last
    assert "all: list" in shipyard.texts[0] and "all: list" not in shipyard.texts[1]
    assert ["a: ships" in one for one in shipyard.texts] == [True, False, True, True, True]
    assert ["b: ships" in one for one in shipyard.texts] == [True, True, False, False, False]


def test_connections_in_a_list_are_each_read_to_their_end(server, paged):
    fleets = {"f1": ships(3), "f2": ships(5)}

    def answer(query, variables):
        def fleet(name):
            found = paged(fleets[name], 2, variables.get("burlerAfter"))
            info = {"burler_more": found["pageInfo"]["hasNextPage"], "burler_cursor": found["pageInfo"]["endCursor"]}
            return {"id": name, "burler_type": "Fleet", "ships": {"nodes": found["nodes"], "burler_page": info}}

        if "burlerId" in variables:
            return {"data": {"node": fleet(variables["burlerId"])}}
        return {"data": {"fleets": [fleet("f1"), fleet("f2")]}}

    server.answer = answer
    query = Query("{ fleets { id ships(first: 2) { nodes { id } } } }", rows="fleets.ships")
    assert ids(query.pages(server.client())) == ["0", "1", "0", "1", "2", "2", "3", "4"]


def test_a_connection_in_a_row_that_can_not_be_followed_is_an_error(shipyard):
    query = Query("{ ships(first: 9) { nodes { name crew(first: 2) { nodes { id } } } } }")
    with pytest.raises(PagingError) as caught:
        list(query.records(shipyard.client()))
    assert "'ships.crew' has more rows" in str(caught.value) and "follow={'ships.crew': a query}" in str(caught.value)


def test_lists_without_ids_in_between_can_not_be_followed(server):
    """node(id:) of the ship would give the crews of all of its decks."""
    crew = {"nodes": [{"name": "x"}], "burler_page": {"burler_more": True, "burler_cursor": "c"}}
    ship = {"id": 1, "burler_type": "Ship", "decks": [{"crew": crew}, {"crew": crew}]}
    page = {"nodes": [ship], "burler_page": {"burler_more": False}}
    server.answer = lambda query, variables: {"data": {"ships": page, "node": ship}}
    text = "{ ships { nodes { id decks { crew { nodes { name } } } } } }"
    for options in ({"rows": "ships"}, {"rows": "ships.decks"}):
        with pytest.raises(PagingError, match=r"'ships.decks.crew' has more rows"):
            list(Query(text, **options).records(server.client()))
    assert len(server.asked) == 2


def test_the_author_says_how_a_connection_goes_on(shipyard):
    more = (
        "query More($id: ID!, $after: String) "
        "{ member(shipId: $id, first: 3, after: $after) { nodes { id badges(first: 9) { nodes { id } } } } }"
    )
    text = "{ ships(first: 9) { nodes { id crew(first: 2) { nodes { id badges(first: 9) { nodes { id } } } } } } }"
    rows = list(Query(text, follow={"ships.crew": more}).records(shipyard.client()))
    assert [[one["id"] for one in row["crew"]] for row in rows] == [[f"{n}-{m}" for m in range(n)] for n in range(7)]
    assert any(one["query"].startswith("query More") for one in shipyard.asked)
    # The row's own id counts, not the variable of the same name that the query around it has.
    same = text.replace("{ ships(first: 9)", "query ($id: String) { ships(first: 9, named: $id)")
    assert list(Query(same, follow={"ships.crew": more}).records(shipyard.client(), id="x")) == rows
    named = Query(
        text, follow={"ships.crew": more}, rows="ships", streams={"crew": Rows("ships.crew", add={"ship": "id"})}
    )
    found = [row for page in named.pages(shipyard.client()) if isinstance(page, tuple) for row in page[1]]
    assert sorted((row["ship"], row["id"]) for row in found) == [
        (str(n), f"{n}-{m}") for n in range(7) for m in range(n)
    ]
