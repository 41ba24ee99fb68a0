"""Taps of databases, as their authors write them."""

import burler
from burler.testing import run_tap

NAMES = [
    'Upper Case', 'with "quotes"', "with 'single'", "per%cent", "100%s", "%(x)s", "semi;colon", "dot.ted", "col:on",
    ":name", "back\\slash", "ünïcödé", "日本語", "😀", "select", "a" * 60, "tab\there", "line\nbreak", "$1", "?", "{x}",
    "--", "/*",
]  # fmt: skip


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def table_tap(url, *, adbc=None, discover=None, name="tap-shop", database=None, **options):
    """A tap of all tables that discovery finds."""
    tap = burler.tap(name)

    @tap.client
    def client():
        return burler.sql.Database(url, adbc=adbc, **(database or {}))

    @tap.discover
    def find(client):
        return client.discover(**(discover or {}))

    @tap.sync("*", **options)
    def rows(client, stream):
        return client.pages(stream)

    return tap


def rows_of(url, stream, *, config=None, state=None, catalog=None, select=None, **more):
    """The records of one table; an error of the run is raised."""
    out = run_tap(table_tap(url, **more), config or {}, state=state, catalog=catalog, select=select)
    for error in out.result.errors.values():
        raise error
    return out.records(stream)
