"""Texts are read as UTF-8, whatever the database holds them in and whatever the environment says."""

import pytest
from shops import rows_of

from burler.errors import SqlError


@pytest.fixture
def encoded(server):
    """Makes a database of an encoding, with a table whose texts and column have letters with accents."""
    import psycopg

    made = []

    def make(encoding):
        name = f"encoded_{encoding.lower()}"
        how = f"encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0"
        server.execute(f"drop database if exists {name}", f"create database {name} {how}")
        made.append(name)
        with psycopg.connect(server.url(name), autocommit=True, client_encoding="utf8") as connection:
            connection.execute('create table t (id int primary key, "na\u00efve" text)')
            connection.execute("insert into t values (1, '\u00e9'), (2, 'caf\u00e9'), (3, '\u00c3\u00a9')")
        return server.url(name)

    yield make
    for name in made:
        server.execute(f"drop database {name} with (force)")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_texts_of_a_database_that_is_not_in_utf_8(encoded, adbc, encoding):
    rows = rows_of(encoded(encoding), "public.t", adbc=adbc)
    assert [row["na\u00efve"] for row in rows] == ["\u00e9", "caf\u00e9", "\u00c3\u00a9"]


@pytest.mark.parametrize("way", ["environment", "url"])
def test_another_encoding_that_is_asked_for_does_no_harm(pg, adbc, monkeypatch, way):
    pg.execute("create table t (id int primary key, n text)", "insert into t values (1, '\u65e5\u672c \u00e9')")
    if way == "environment":
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    url = pg.url + ("?client_encoding=latin1" if way == "url" else "")
    assert rows_of(url, "public.t", adbc=adbc) == [{"id": 1, "n": "\u65e5\u672c \u00e9"}]


def test_bytes_that_are_no_text_are_one_clear_error(encoded, server, adbc):
    url = encoded("SQL_ASCII")
    server.execute(r"insert into t values (4, E'caf\xe9')", database="encoded_sql_ascii")
    with pytest.raises(SqlError, match='invalid byte sequence for encoding "UTF8"'):
        rows_of(url, "public.t", adbc=adbc)
