"""``burler.graphql.Query``: what an author writes to read rows from a GraphQL server."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burler.call import caller, callers_folder
from burler.context import running
from burler.errors import DeclarationError, GraphQLError
from burler.graphql.adding import with_additions
from burler.graphql.asking import Asker, How
from burler.graphql.checks import check_added, check_edges, check_follow, followed
from burler.graphql.document import read_operation
from burler.graphql.introspection import types_in, types_of
from burler.graphql.json_schema import JsonSchema, SchemaOfRows, check
from burler.graphql.paging import WAYS, Own, Paging
from burler.graphql.plan import Plan
from burler.graphql.pruning import Wanted, pruned, wanted_by
from burler.graphql.reading import Reading
from burler.graphql.replies import THROTTLED, TOO_COMPLEX
from burler.graphql.spots import Emitted, Rows, Spot, only_rows, resolve, spots_of
from burler.numbers import is_count
from burler.suggest import did_you_mean

if TYPE_CHECKING:
    from graphql import GraphQLSchema

    from burler.http.client import Client


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Query:
    """A query whose pages burler follows.

    ``CONTACTS = Query("query ($since: DateTime) { contacts(updatedSince: $since) { nodes { id name } } }")``, and in
    the sync function ``yield from CONTACTS.pages(client, since=stream.bookmark)``.

    Connections (``edges { node {...} }`` or ``nodes {...}``) are followed to their end: ``pageInfo`` and the cursor's
    variable are added to the text where they are missing. A connection inside of a row becomes a list in the row; what
    it does not give at once is asked for by the server's ``node(id:)``, or by ``follow``.

    Attributes:
        text: one query in GraphQL, with its fragments.
        rows: the way to the rows of the stream that runs, names of the reply with dots between them, without ``edges``,
            ``node`` and ``nodes``. Not needed where there is only one connection.
        streams: rows of other streams: name -> path, or ``Rows(path, add=...)``. They come as ``(name, page)``, before
            the rows of the stream that runs; declare them by ``tap.stream(name, emitted_by=...)``.
        endpoint: path below the client's ``base_url``, "" if that is the server's URL.
        operation: the name of the query, if the text has several.
        page_size: rows of a page, for the variable of ``first``, ``last`` or the limit. Default: the text's own, or
            100.
        paging: ``Cursor``, ``Offset``, ``PageNumber`` or a function of (variables, page) that gives the variables of
            the next page or None, where the server has no connections.
        keep: fields of the rows that are asked for although nobody selected them.
        prune: leave fields out of the request that nobody selected. Default: where nobody but the target sees the rows
            (no substream, no bookmark function).
        follow: a connection in a row -> the query that reads more of it; variables named like fields of the rows around
            it get their values.
        connections: False if ``edges`` and ``nodes`` are no connections of this server's, but fields like others.
        on_error: what to do with a reply that has rows and errors: "fail", or "warn" and let the rows go out.
        retry_codes: ``extensions.code`` of errors that pass. too_complex_codes: of those that ask for smaller pages.
        method: "POST", or "GET" for servers behind a cache.
        persisted: send the text's digest first, and the text only if the server does not know it.
    """

    text: str = field(kw_only=False)
    rows: str | Sequence[str] | None = None
    streams: Mapping[str, str | Rows] = field(default_factory=dict)
    endpoint: str = ""
    operation: str | None = None
    page_size: int | None = None
    paging: Paging | Own | None = None
    keep: Sequence[str] = ()
    prune: bool | None = None
    follow: Mapping[str, str | Query] = field(default_factory=dict)
    connections: bool = True
    on_error: str = "fail"
    retry_codes: Collection[str] = THROTTLED
    too_complex_codes: Collection[str] = TOO_COMPLEX
    method: str = "POST"
    persisted: bool = False
    where: str = field(init=False, default="")
    _plan: Plan = field(init=False, default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", f"GraphQL query ({caller().place})")
        self._check()
        operation = read_operation(self.text, self.operation, where=self.where)
        if operation.name is not None:
            object.__setattr__(self, "where", f"GraphQL query '{operation.name.value}' ({caller().place})")
        root = spots_of(operation, connections=self.connections)
        check_edges(root, where=self.where)
        streams = self._emitted(root)
        root = spots_of(operation, streams, connections=self.connections)
        operation = with_additions(operation, root, paged=self.paging is None, where=self.where)
        plan = Plan(operation, streams, self._follow_plans(root), self.paging is None, self.connections)
        self._check_variables(plan)
        object.__setattr__(self, "_plan", plan)

    def __repr__(self) -> str:
        return f"<{self.where}>"

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of: a tap of a notebook travels to other processes with its queries."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "_plan"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()
        object.__setattr__(self, "where", state["where"])

    # ---- declaring ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise DeclarationError(f"{self.where}: its text is empty; write a query.")
        if self.on_error not in ("fail", "warn"):
            raise DeclarationError(f"{self.where}: on_error is {self.on_error!r:.40}; it is 'fail' or 'warn'.")
        if self.method not in ("POST", "GET"):
            raise DeclarationError(f"{self.where}: method is {self.method!r:.40}; it is 'POST' or 'GET'.")
        if self.page_size is not None and not is_count(self.page_size, 1):
            raise DeclarationError(f"{self.where}: page_size is {self.page_size!r:.40}; it is 1 or more.")
        if self.paging is not None and not isinstance(self.paging, WAYS) and not callable(self.paging):
            raise DeclarationError(
                f"{self.where}: paging is {self.paging!r:.60}; it is a Cursor, an Offset, a PageNumber or a function."
            )
        for name in ("keep", "retry_codes", "too_complex_codes"):
            if isinstance(getattr(self, name), str):
                raise DeclarationError(f"{self.where}: {name} is a list of names, not text.")

    def _emitted(self, root: Spot) -> tuple[Emitted, ...]:
        found = []
        if self.rows is not None:
            found.append(Emitted(None, resolve(root, self.rows, what="rows", where=self.where), {}))
        elif not self.streams:
            found.append(Emitted(None, only_rows(root, where=self.where), {}))
        for name, given in self.streams.items():
            rows = given if isinstance(given, Rows) else Rows(given)
            path = resolve(root, rows.path, what=f"the path of '{name}'", where=self.where)
            check_added(root, path, rows.add, name, where=self.where)
            found.append(Emitted(name, path, dict(rows.add)))
        paths = [one.path for one in found]
        if len(set(paths)) < len(paths):
            raise DeclarationError(f"{self.where}: two streams have their rows at the same path. Use aliases.")
        if self.rows is None and self.streams:
            main = self._main(root, found)
            found = found if main is None else [main, *found]
        return tuple(found)

    def _main(self, root: Spot, others: list[Emitted]) -> Emitted | None:
        """The rows of the stream that runs, where only those of others are named: what stands around them, if that is
        a connection."""
        taken = {one.path for one in others}
        for n in range(1, len(others[0].path)):
            spot = root.find(others[0].path[:n])
            if spot is not None and spot.connection is not None and spot.path not in taken:
                return Emitted(None, spot.path, {})
        return None

    def _follow_plans(self, root: Spot) -> dict[tuple[str, ...], Plan]:
        plans = {}
        for path, given in self.follow.items():
            at = resolve(root, path, what="follow", where=self.where)
            spot = root.find(at)
            if spot is None or spot.connection is None:
                raise DeclarationError(f"{self.where}: follow: '{path}' is no connection.")
            query = given if isinstance(given, Query) else Query(given)
            check_follow(query._plan, query.paging, path, spot.connection, where=self.where)
            plans[at] = followed(query._plan, spot, path, where=self.where)
        return plans

    def _check_variables(self, plan: Plan) -> None:
        sized = [one for one in plan.outer if one.connection is not None and one.connection.size]
        if self.page_size is not None and not (sized or plan.inner_sizes or self.paging is not None):
            raise DeclarationError(
                f"{self.where}: page_size has no effect: no connection has its number of rows in a variable. "
                "Write 'first: $first', and '$first: Int' in the query's head."
            )
        if isinstance(self.paging, WAYS):
            for name in self.paging.names():
                if name not in plan.variables:
                    raise DeclarationError(
                        f"{self.where}: paging sets the variable ${name}, which the query does not have. "
                        f"It has: {_named(plan)}."
                    )

    # ---- reading -----------------------------------------------------------------------------------------

    def pages(self, client: Client, /, variables: Mapping[str, Any] | None = None, **named: Any) -> Iterator[Any]:
        """The pages, as a sync function yields them: pages of the stream that runs, and ``(stream, page)``.

        Args:
            client: a ``burler.http.Client``.
            variables: by name; the same as ``named``, for names that Python does not take. None leaves one out.

        Raises:
            GraphQLError: the server gives errors; a variable is missing, or the query does not have it; a stream of the
                query is not declared. HttpError: there is no answer.
            PagingError: the pages go in a circle, or can't be followed.
        """
        reading, wanted = self._reading(client, variables, named)
        yield from _yielded(reading.pages(), wanted)

    def page(
        self, client: Client, /, variables: Mapping[str, Any] | None = None, **named: Any
    ) -> tuple[Iterator[Any], Any, bool]:
        """One page, the cursor of the next one, and whether there is one: what ``burler.patterns.cursor_pages`` asks
        for. The query has one connection, whose cursor is a variable of the author's.

        Raises:
            GraphQLError: it has none, or several; what ``pages`` raises.
        """
        if len(self._plan.outer) != 1:
            raise GraphQLError(
                f"{self.where}: page() is for queries with one connection; it has {len(self._plan.outer)}."
            )
        reading, wanted = self._reading(client, variables, named)
        items, info = reading.page()
        return _yielded(items, wanted), info.cursor if info else None, bool(info and info.more)

    def records(self, client: Client, /, variables: Mapping[str, Any] | None = None, **named: Any) -> Iterator[Any]:
        """The rows as dicts, one by one, all of their fields; those of other streams as ``(stream, row)``. For
        partitions, for tests and for programs without a tap."""
        given = self._given(variables, named)
        for name, page in self._read(client, self._plan, given, as_dicts=True).pages():
            yield from page if name is None else ((name, row) for row in page)

    def ask(self, client: Client, /, variables: Mapping[str, Any] | None = None, **named: Any) -> dict[str, Any]:
        """One reply's ``data``, as the server sent it; numbers with a fraction are Decimals. No paging."""
        given = self._given(variables, named)
        return self._read(client, self._plan, given).one()

    def _reading(
        self, client: Client, variables: Mapping[str, Any] | None, named: Mapping[str, Any]
    ) -> tuple[Reading, Wanted | None]:
        """What reads for the stream that runs, and what is wanted of it; None outside of a run."""
        run = running()
        wanted = None if run is None else wanted_by(run, self.streams, self.prune, self.keep, where=self.where)
        plan = self._plan if wanted is None else pruned(self._plan, wanted)
        return self._read(client, plan, self._given(variables, named)), wanted

    def _read(self, client: Client, plan: Plan, given: Mapping[str, Any], *, as_dicts: bool = False) -> Reading:
        asker = Asker(client, self._how())
        return Reading(plan, asker, given, paging=self.paging, page_size=self.page_size, as_dicts=as_dicts)

    def _how(self) -> How:
        return How(
            self.where,
            self.endpoint,
            self.method,
            self.persisted,
            self.on_error,
            frozenset(code.upper() for code in self.retry_codes),
            frozenset(code.upper() for code in self.too_complex_codes),
        )

    def _given(self, variables: Mapping[str, Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
        given = {**(variables or {}), **named}
        known = set(self._plan.variables).union(*(one.variables for one in self._plan.follow.values()))
        for name in given:
            if name not in known:
                hint = did_you_mean(name, known) or f" It has: {_named(self._plan)}."
                raise GraphQLError(f"{self.where}: has no variable '{name}'.{hint}")
        return given

    # ---- schema ------------------------------------------------------------------------------------------

    def schema(self, stream: str | None = None, **options: Any) -> QuerySchema:
        """The JSON Schema of the rows, for ``tap.schema(...)``: what ``burler.graphql.schema(query, stream)`` is."""
        return schema(self, stream, **options)


def _yielded(items: Iterator[Any], wanted: Wanted | None) -> Iterator[Any]:
    """Items as a sync function yields them, those of streams that are wanted."""
    for name, page in items:
        if wanted is None or name in wanted.schemas:
            yield page if name is None else (name, page)


def _named(plan: Plan) -> str:
    return ", ".join(f"${name}" for name in plan.variables) or "none"


@dataclass(frozen=True)
class QuerySchema:
    """A source of a schema: ``tap.schema("contacts", burler.graphql.schema(CONTACTS))``. See ``schema``."""

    query: Query
    stream: str | None
    client: Client | None = None
    file: Path | None = None
    scalars: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    enums: bool = True

    def load(self, *, where: str = "", config: Mapping[str, Any] | None = None) -> JsonSchema:
        """The schema. Without ``client`` and ``file`` the running tap's client asks the server.

        Raises:
            DeclarationError: the query does not fit the server's types, or these can't be had.
        """
        where = f"{where}: {self.query.where}" if where else self.query.where
        types = self._types(where)
        emitted = next((one for one in self.query._plan.streams if one.name == self.stream), None)
        if emitted is None:
            names = ", ".join(repr(one.name) for one in self.query._plan.streams if one.name) or "none"
            raise DeclarationError(
                f"{where}: has no rows of "
                f"{'the stream that runs; say rows=' if self.stream is None else f'a stream {self.stream!r}'}. "
                f"Its other streams: {names}."
            )
        check(self.query._plan, types, where=where)
        return SchemaOfRows(self.query._plan, types, self.scalars, self.enums).rows(emitted)

    def _types(self, where: str) -> GraphQLSchema:
        if self.file is not None:
            return types_in(self.file, where=where)
        client = self.client
        if client is None:
            run = running()
            if run is None:
                raise DeclarationError(f"{where}: which server? Say client=..., or file='schema.graphql'.")
            client = run.client
        return types_of(client, self.query.endpoint, where=where, method=self.query.method)


def schema(
    query: Query,
    stream: str | None = None,
    *,
    client: Client | None = None,
    file: str | Path | None = None,
    scalars: Mapping[str, Mapping[str, Any]] | None = None,
    enums: bool = True,
) -> QuerySchema:
    """A schema from a query and from what the server says of its types.

    Args:
        stream: one of the query's other ``streams``; None for the rows of the stream that runs.
        client: whom to ask. Default: the client of the tap.
        file: the server's schema in a file, for servers that do not describe themselves: GraphQL's own language
            (``schema.graphql``) or the JSON of an introspection. Relative paths count from the calling module's folder.
        scalars: custom scalar -> JSON Schema; comes before ``burler.graphql.SCALARS``.
        enums: list the values of enums. A value that the list does not have ends the stream.
    """
    path = None if file is None else callers_folder() / file
    return QuerySchema(query, stream, client, path, dict(scalars or {}), enums)


def schemas(query: Query, main: str, *, client: Client | None = None, **options: Any) -> dict[str, JsonSchema]:
    """The schemas of all streams of a query, by name: for ``@tap.discover`` and for ``@tap.schema`` functions.

    Args:
        main: the name of the stream that runs. ``options``: see ``schema``.
    """
    found = {}
    for one in query._plan.streams:
        name = main if one.name is None else one.name
        found[name] = schema(query, one.name, client=client, **options).load()
    return found
