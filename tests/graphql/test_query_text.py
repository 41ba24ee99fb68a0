"""What burler makes of the text of a query, and what it says of one that can't work."""

import pytest

from burler.errors import DeclarationError
from burler.graphql import Cursor, Offset, PageNumber, Query, Rows


def text_of(query):
    return " ".join(query._plan.text.split())


def test_a_connection_gets_its_cursor_and_page_info():
    query = Query("query Q { ships(first: 3) { nodes { id } } }")
    assert text_of(query) == (
        "query Q($burlerAfterShips: String) { ships(first: 3, after: $burlerAfterShips) { nodes { id } "
        "burler_page: pageInfo { burler_more: hasNextPage burler_cursor: endCursor } } }"
    )


def test_what_the_author_wrote_of_paging_stays():
    text = "query Q($c: ShipCursor) { ships(after: $c) { nodes { id } pageInfo { hasNextPage endCursor } } }"
    assert text_of(Query(text)) == text


def test_page_info_that_says_too_little_gets_the_rest():
    query = Query("query ($c: String) { ships(after: $c) { edges { node { id } } ...Page } } "
                  "fragment Page on ShipConnection { pageInfo { end: endCursor } }")  # fmt: skip
    assert "pageInfo { end: endCursor burler_more: hasNextPage }" in text_of(query)


def test_pages_may_go_backwards():
    query = Query("query ($b: String) { ships(last: 3, before: $b) { nodes { id } } }")
    assert "burler_more: hasPreviousPage burler_cursor: startCursor" in text_of(query)


def test_fragments_stand_where_they_were_spread_with_their_directives():
    query = Query(
        "query Q($all: Boolean!) { ships { nodes { ...A @include(if: $all) } } } "
        "fragment A on Ship { id ...B } fragment B on Ship { name }"
    )
    assert "nodes { ... on Ship @include(if: $all) { id ... on Ship { name } } }" in text_of(query)


def test_nodes_without_any_argument_are_a_connection_too():
    """Rows beyond the server's own page size would be missing without a word."""
    assert "after: $burlerAfterShips" in text_of(Query("{ ships { nodes { id } } }"))
    assert "after" not in text_of(Query("{ cluster { nodes { id } name } }", rows="cluster.nodes"))
    assert "after" not in text_of(Query("{ graph { nodes { id } } }", rows="graph.nodes", connections=False))


def test_paths_may_name_what_is_inside_of_connections():
    text = "{ fleet { ships { edges { node { crew { nodes { id } } } } } } }"
    for path in ("fleet.ships.crew", "fleet.ships.edges.node.crew", "fleet.ships.edges.node.crew.nodes"):
        assert Query(text, rows=path)._plan.streams[0].path == ("fleet", "ships", "crew")


@pytest.mark.parametrize(
    ("text", "options", "fact"),
    [
        ("", {}, "its text is empty"),
        ("query {", {}, "line 1 of its text: Syntax Error"),
        ("{\n  ships {\n nodes { ! } } }", {}, "line 3 of its text: Syntax Error"),
        ("mutation { dropShips { id } }", {}, "is a mutation; a tap reads"),
        ("subscription { ships { id } }", {}, "is a subscription"),
        ("fragment F on T { id }", {}, "holds no operation"),
        ("query A { a { id } } query B { b { id } }", {}, r"several operations (A, B); say operation="),
        ("query A { a { id } }", {"operation": "B"}, "holds no operation 'B'. There are: A"),
        ("{ ships { nodes { ...F } } }", {}, "no fragment 'F'. There are: none"),
        ("{ s { nodes { ...F } } } fragment F on T { id t { ...F } }", {}, "the fragment 'F' holds itself"),
        ("{ a { nodes { id } } b { nodes { id } } }", {}, "where are the rows? Say rows="),
        ("{ viewer }", {}, "where are the rows?"),
        ("{ ships { nodes { id } } }", {"rows": "shops"}, "'shops' is no field of the query that holds rows. Did you"),
        ("{ ships { nodes { id } } }", {"rows": "ships.id"}, "'id' has no fields of its own under 'ships'"),
        ("{ ships { nodes { id } } }", {"rows": ""}, "rows: '' is no field"),
        ("{ ships(after: \"x\") { nodes { id } } }", {}, "'ships' always begins at the same 'after'"),
        ("query ($c: ID) { a(after: $c) { nodes { id } } b(after: $c) { nodes { id } } }",
         {"rows": "a", "streams": {"b": "b"}}, "$c pages two connections"),
        ("{ ships { nodes { crew { nodes { id } } } } }",
         {"streams": {"crew": Rows("ships.crew", add={"ship": "id"})}}, "rows of 'crew' get 'id', which no object"),
        ("{ ships { nodes { id } } }", {"streams": {"a": "ships", "b": "ships"}}, "two streams have their rows"),
        ("{ ships { nodes { id } } }", {"on_error": "ignore"}, "on_error is 'ignore'"),
        ("{ ships { nodes { id } } }", {"method": "PUT"}, "method is 'PUT'"),
        ("{ ships { nodes { id } } }", {"page_size": 0}, "page_size is 0"),
        ("{ ships { nodes { id } } }", {"page_size": 5}, "page_size has no effect"),
        ("{ ships { nodes { id } } }", {"keep": "id"}, "keep is a list of names"),
        ("{ ships { nodes { id } } }", {"paging": "offset"}, "paging is 'offset'"),
        ("{ ships { id } }", {"paging": Offset()}, "paging sets the variable $offset, which the query does"),
        ("{ ships { nodes { id } } }", {"follow": {"shop": "{ a { nodes { id } } }"}}, "follow: 'shop' is no field"),
        ("{ ships { id } }", {"follow": {"ships": "{ a { nodes { id } } }"}}, "'ships' is no connection"),
    ],
)  # fmt: skip
def test_what_can_not_work_is_said_when_it_is_declared(text, options, fact):
    with pytest.raises(DeclarationError) as caught:
        Query(text, **options)
    assert fact in str(caught.value)
    assert "test_query_text.py:" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def test_ways_to_page_that_can_not_work_are_refused():
    with pytest.raises(DeclarationError, match="until is 'never'"):
        Offset(until="never")
    with pytest.raises(DeclarationError, match="needs size="):
        PageNumber(until="short")
    for number in (1.5, "1", True, -1):
        with pytest.raises(DeclarationError, match="it is a whole number, 0 or more"):
            PageNumber(first_page=number)
    assert Cursor("a.b").names() == ("cursor",)


def test_a_text_that_is_nested_too_deep_is_one_error():
    with pytest.raises(DeclarationError, match=r"nested too deep|Syntax Error"):
        Query("{ a " * 5_000)
