"""Full tables that are interrupted and go on: by a key of one column and of several."""

import pytest

import burler
from burler.testing import run_tap


class Broken(Exception):
    """What stands for a lost network."""


FILLER = "repeat('x', 700000)"
"""Of each row: some of them fill a page."""
PAGE = {True: 2, False: 3}
"""Rows of a page, of ADBC and of psycopg."""


def parts_tap(url, adbc, *, pages=None, resumable_by="a"):
    """A tap of one table that is resumable, and breaks off after some pages."""
    tap = burler.tap("tap-parts")

    @tap.client
    def client():
        return burler.sql.Database(url, adbc=adbc)

    @tap.discover
    def find(client):
        return client.discover(tables="parts")

    @tap.sync("public.*", resumable_by=resumable_by, bookmark_strategy="every_n(1)")
    def parts(client, stream):
        for number, page in enumerate(client.pages(stream)):
            if number == pages:
                raise Broken("gone away")
            yield page

    return tap


def ids(out):
    return [(row["a"], row.get("b")) for row in out.records("public.parts")]


@pytest.mark.parametrize("kind", ["bigint", "text", 'text collate "en-x-icu"', "uuid", "timestamptz", "numeric(20,4)"])
def test_a_table_goes_on_at_its_key(pg, adbc, kind):
    value = {
        'text collate "en-x-icu"': "chr(64 + i)",
        "bigint": "i", "text": "chr(64 + i)", "timestamptz": "'2024-01-01'::timestamptz + i * interval '1 min'",
        "uuid": "('0000000' || to_hex(i / 16) || '-0000-0000-0000-00000000000' || to_hex(i % 16))::uuid",
        "numeric(20,4)": "i / 3.0",
    }[kind]  # fmt: skip
    pg.execute(f"create table parts (a {kind} primary key, b int, filler text)")
    pg.execute(f"insert into parts select {value}, i, {FILLER} from generate_series(1, 9) i order by random()")
    first = run_tap(parts_tap(pg.url, adbc, pages=2))
    assert first.result.errors
    assert [b for _a, b in ids(first)] == list(range(1, 2 * PAGE[adbc] + 1))
    second = run_tap(parts_tap(pg.url, adbc), state=first.states[-1])
    assert not second.result.errors
    assert [b for _a, b in ids(second)] == list(range(2 * PAGE[adbc], 10))
    versions = {m["version"] for out in (first, second) for m in out.messages if m["type"] == "RECORD"}
    assert len(versions) == 1
    assert second.types[-2:] == ["ACTIVATE_VERSION", "STATE"]
    assert "full_table" not in second.states[-1]["bookmarks"]["public.parts"]


def test_a_key_of_several_columns_goes_on_at_the_whole_key(pg, adbc):
    """Else all rows of an account would come again, and there may be millions."""
    pg.execute("create table parts (a int, b int, c text, primary key (a, b))")
    pg.execute(f"insert into parts select i / 4, i, {FILLER} from generate_series(0, 14) i order by random()")
    first = run_tap(parts_tap(pg.url, adbc, pages=4))
    assert ids(first) == [(i // 4, i) for i in range(4 * PAGE[adbc])]
    second = run_tap(parts_tap(pg.url, adbc), state=first.states[-1])
    assert not second.result.errors
    at = 3 * PAGE[adbc] - 1
    assert ids(second)[0] == (at // 4, at)  # what the last page but one ended with: its rows are surely out
    assert sorted({*ids(first), *ids(second)}) == [(i // 4, i) for i in range(15)]
    assert "stream_state" not in second.states[-1]["bookmarks"]["public.parts"]


def test_a_place_of_an_older_table_is_not_gone_on_with(pg, adbc):
    """A fresh run that breaks off at once must not leave behind the place of the one before it."""
    pg.execute("create table parts (a int, b int, filler text, primary key (a, b))")
    pg.execute(f"insert into parts select 1, i, {FILLER} from generate_series(0, 11) i")
    first = run_tap(parts_tap(pg.url, adbc, pages=3))
    state = first.states[-1]
    assert state["bookmarks"]["public.parts"]["stream_state"]
    del state["bookmarks"]["public.parts"]["full_table"]
    again = run_tap(parts_tap(pg.url, adbc, pages=1), state=state)
    assert ids(again) == [(1, i) for i in range(PAGE[adbc])]
    whole = run_tap(parts_tap(pg.url, adbc), state=again.states[-1])
    assert set(ids(again)) | set(ids(whole)) == {(1, i) for i in range(12)}


def test_a_place_in_a_table_that_has_another_key_now_is_not_gone_on_with(pg, adbc):
    """The place says which columns it is of; the first one still holds."""
    pg.execute("create table parts (a int, b int, c int, filler text, primary key (a, b))")
    pg.execute(f"insert into parts select i / 4, i, 14 - i, {FILLER} from generate_series(0, 14) i")
    first = run_tap(parts_tap(pg.url, adbc, pages=3))
    pg.execute("alter table parts drop constraint parts_pkey", "alter table parts add primary key (a, c)")
    second = run_tap(parts_tap(pg.url, adbc), state=first.states[-1])
    assert not second.result.errors
    assert {*ids(first), *ids(second)} == {(i // 4, i) for i in range(15)}


def test_a_place_elsewhere_than_the_bookmark_is_not_gone_on_with(pg, adbc):
    pg.execute("create table parts (a int, b int, filler text, primary key (a, b))")
    pg.execute(f"insert into parts select i / 4, i, {FILLER} from generate_series(0, 14) i")
    state = run_tap(parts_tap(pg.url, adbc, pages=4)).states[-1]
    entry = state["bookmarks"]["public.parts"]
    at = 3 * PAGE[adbc] - 1
    assert entry["stream_state"] == {"burler.sql": {"key": ["a", "b"], "at": [at // 4, at]}}
    entry["full_table"]["a"] = 0
    second = run_tap(parts_tap(pg.url, adbc), state=state)
    assert ids(second) == [(i // 4, i) for i in range(15)]


@pytest.mark.parametrize(
    "kind, value",
    [
        ("bytea", "decode(md5(i::text), 'hex')"),
        ("inet", "'10.0.0.0'::inet + i"),
        ("timetz", "'10:00+02'::timetz + i * interval '1 s'"),
        ("char(4)", "chr(96 + i)"),
        ("mood", "('m' || i)::mood"),
        ("date", "'2024-01-01'::date + i"),
        ("oid", "(2999999990 + i)::oid"),
    ],
)
def test_keys_of_types_without_an_order_of_their_own_rise_by_their_text(pg, adbc, kind, value):
    labels = ", ".join(f"'m{i}'" for i in range(1, 13))
    pg.execute(f"create type mood as enum ({labels})", f"create table parts (a {kind} primary key, b int, filler text)")
    pg.execute(f"insert into parts select {value}, i, {FILLER} from generate_series(1, 12) i order by random()")
    first = run_tap(parts_tap(pg.url, adbc, pages=2, resumable_by="*"))
    assert "gone away" in str(first.result.errors)
    second = run_tap(parts_tap(pg.url, adbc, resumable_by="*"), state=first.states[-1])
    assert not second.result.errors
    assert len(ids(first)) == 2 * PAGE[adbc] and len(ids(second)) == 13 - 2 * PAGE[adbc]
    assert sorted(b for _a, b in {*ids(first), *ids(second)}) == list(range(1, 13))
