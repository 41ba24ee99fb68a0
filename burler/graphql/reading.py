"""Page after page of a query, until the server has no more."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from burler.context import running
from burler.errors import GraphQLError, PagingError
from burler.graphql.asking import Asker, Decode, TooComplex, hide_secrets
from burler.graphql.paged import Page, Paged, check_page, paged_in
from burler.graphql.paging import WAYS, Own, Paging
from burler.graphql.plan import ID_VARIABLE, Plan
from burler.graphql.raw import Found, PageInfo, decoder_of, found_in
from burler.graphql.replies import Envelope, errors_of, read_whole, told
from burler.graphql.sizes import Sizes
from burler.graphql.spots import Path, Spot
from burler.graphql.unwrapping import Chain, Rest, lost, silent, unwrap
from burler.http.paging_signs import more_said, rows_in
from burler.http.reply import Reply
from burler.words import counted

logger = logging.getLogger("burler")

Item = tuple[str | None, Any]
_encode = msgspec.json.Encoder(order="deterministic").encode


class Reading:
    """Reads the pages of a plan.

    Args:
        given: the author's variables.
        paging: the author's way to page; None for Relay's connections, or one page.
        page_size: the author's; None: as the text says, else 100.
        chain: objects around the rows, for a connection in a connection.
        cursor: where its rows go on.
        as_dicts: give rows as lists of dicts in any case.
    """

    def __init__(
        self,
        plan: Plan,
        asker: Asker,
        given: Mapping[str, Any],
        *,
        paging: Paging | Own | None = None,
        page_size: int | None = None,
        chain: Chain = (),
        cursor: Any = None,
        as_dicts: bool = False,
    ) -> None:
        self._plan = plan
        self._asker = asker
        self._given = dict(given)
        self._paging = paging
        self._page_size = page_size
        self._chain = chain
        self._cursor = cursor
        self._as_dicts = as_dicts
        self._where = asker.how.where
        self._sizes = Sizes(plan, paging, given, page_size)
        if not chain:
            own = {one.connection.cursor for one in plan.outer if one.connection is not None}
            hide_secrets(given, but={*own, *(paging.names() if isinstance(paging, WAYS) else ())})
        self._nulls = 0
        self._number = 0
        self._sent: dict[str, Any] = {}
        self._paged: Paged | None = None

    def pages(self) -> Iterator[Item]:
        """``(stream, page)``: a page is a ``JsonPage`` or a list of rows. The rows of other streams come before those
        of the stream that runs (None), so that no bookmark says more than what is out.

        Raises:
            GraphQLError, HttpError: no answer. PagingError: pages go in a circle, or can't be followed.
        """
        steps = self._relay() if self._paging is None else self._by_variables(self._paging)
        for page in steps:
            yield from self._items(page)
        if self._nulls:
            logger.warning("%s: %s left out, null at the server.", self._where, counted(self._nulls, "row"))

    def page(self) -> tuple[Iterator[Item], PageInfo | None]:
        """One page, and what its only outer connection says of the next one."""
        page = self._ask(self._plan, {})
        path = self._plan.outer[0].path
        info = page.infos.get(path)
        self._check_info(self._plan.outer[0], info)
        return self._items(page), info

    def one(self) -> dict[str, Any]:
        """``data`` of one reply, whole."""
        reply = self._reply(self._plan, {}, read_whole)
        return reply.data if isinstance(reply.data, dict) else {}

    # ---- which page is next ------------------------------------------------------------------------------

    def _relay(self) -> Iterator[Page]:
        plan, cursors = self._plan, {}
        spots = {one.path: one for one in plan.outer}
        names = {one.path: one.connection.cursor for one in plan.outer if one.connection is not None}
        if self._cursor is not None:
            cursors = dict.fromkeys(names, self._cursor)
        seen: dict[Path, set[Any]] = {path: {cursors.get(path)} for path in names}
        left = frozenset(names)
        beside = plan.beside
        held: list[Page] = []
        waiting: dict[Path, Any] = {}
        while True:
            page = self._ask(plan, {str(names[path]): cursors[path] for path in left if path in cursors})
            if not names and not self._chain:
                self._judge(page)
            if beside:
                page, own = page.parted()
                held.append(own)
            yield page
            following: dict[Path, Any] = {}
            for path in left:
                info = page.infos.get(path)
                self._check_info(spots[path], info)
                cursor = self._next_cursor(path, info, seen[path])
                if cursor is not None:
                    following[path] = cursor
            if beside.isdisjoint(following):
                yield from held
                following, waiting, held = {**waiting, **following}, {}, []
            else:  # What stands beside the rows is read to its end before they go out.
                waiting |= {path: cursor for path, cursor in following.items() if path not in beside}
                following = {path: cursor for path, cursor in following.items() if path in beside}
            if not following:
                return
            cursors, left = following, frozenset(following)
            plan = self._plan.only(left)

    def _check_info(self, spot: Spot, info: PageInfo | None) -> None:
        """A connection is whole, or says that it goes on. Null is no page of one that the server said goes on.

        Raises:
            PagingError: it does not.
        """
        name = ".".join(spot.path)
        if info is not None and info.silent:
            raise PagingError(silent(self._where, name))
        cursor = self._sent.get(spot.connection.cursor or "") if spot.connection is not None else None
        behind = cursor is not None and cursor != ""
        if (behind and (info is None or info.absent)) or (info is not None and info.absent and info.more):
            raise PagingError(lost(self._where, name, self._sent.get(ID_VARIABLE)))

    def _next_cursor(self, path: Path, info: PageInfo | None, seen: set[Any]) -> Any:
        name = ".".join(path)
        if info is None or not info.more:
            return None
        if info.cursor is None or info.cursor == "":
            raise PagingError(f"{self._where}: '{name}' says that there is another page, and not where it begins.")
        if info.cursor in seen:
            raise PagingError(
                f"{self._where}: page {self._number} of '{name}' leads to the cursor {info.cursor!r:.60} a second "
                "time: its pages go in a circle. Ask for another order, or tell those who run the server."
            )
        seen.add(info.cursor)
        return info.cursor

    def _by_variables(self, paging: Paging | Own) -> Iterator[Page]:
        own = paging.first(self._given, self._sizes.size) if isinstance(paging, WAYS) else {}
        seen: set[bytes] = set()
        held: list[Page] = []
        while True:
            said = _encode(own)
            if said in seen:
                raise PagingError(
                    f"{self._where}: page {self._number} leads to variables that were sent before "
                    f"({said.decode():.120}): its pages go in a circle."
                )
            seen.add(said)
            self._paged = paged_in(self._plan, paging, own)
            page = self._ask(self._plan, own)
            sent = self._sent
            if self._plan.has_beside:  # nobody can ask for the one without the other: they are kept
                page, own_rows = page.parted()
                held.append(own_rows)
            yield page
            check_page(paging, page, self._number, where=self._where)
            try:
                if isinstance(paging, WAYS):
                    new: Any = paging.following(sent, page, self._sizes.size)
                else:
                    new = paging(sent, page)
            except PagingError as error:
                raise PagingError(f"{self._where}: page {self._number}: {error}.") from None
            if new is None:
                more = [".".join(path) for path, info in page.infos.items() if info is not None and info.more]
                if more:
                    self._ends_early(f"'{more[0]}' says that it has more rows", own=not isinstance(paging, WAYS))
                yield from held
                return
            if not isinstance(new, Mapping):
                raise PagingError(
                    f"{self._where}: paging gives the variables of the next page, or None; not {type(new).__name__}."
                )
            own = {**own, **new}

    def _judge(self, page: Page) -> None:
        """Lists that are no connections have one page, where nobody pages them. The author may ask beside them whether
        there is more."""
        for one in self._plan.streams:
            reply = Reply.of_body(page.content, ("data", *one.path))
            sign = more_said(reply, rows=rows_in(reply) or 0, pages=1)
            if sign is not None:
                self._ends_early(f"'{'.'.join(sign.place[1:])}' says that there are more; say paging=")

    def _ends_early(self, why: str, *, own: bool = False) -> None:
        """Say that there is more than was read. An author's ``own`` way may stop on purpose."""
        logger.warning("%s: reading ends, and %s.", self._where, why)
        run = running()
        if run is not None and (run._reads_all or not own):
            run.may_be_incomplete(f"{self._where}: {why}")

    # ---- one page ----------------------------------------------------------------------------------------

    def _ask(self, plan: Plan, own: Mapping[str, Any]) -> Page:
        self._number += 1
        plain = plan.plain and not self._as_dicts and (self._paged is None or self._paged.whole(plan))
        decode = decoder_of(plan) if plain else read_whole
        held: list[bytes] = []

        def keep(content: bytes) -> Any:
            held[:] = [content]
            return decode(content)

        reply = self._reply(plan, own, keep)
        return self._read(plan, reply, held[0])

    def _reply(self, plan: Plan, own: Mapping[str, Any], decode: Decode) -> Any:
        """The reply to a page that may have been made smaller."""
        while True:
            self._sent = self._values(plan, own)
            try:
                reply = self._asker.ask(plan.text, plan.name, self._sent, decode)
            except TooComplex as error:
                if not self._sizes.shrink():
                    raise GraphQLError(f"{self._where}: {error}.\n{self._sizes.cure}") from None
                continue
            self._sizes.fitted()
            return reply

    def _read(self, plan: Plan, reply: Any, content: bytes) -> Page:
        streams, paged = {one.name for one in plan.streams}, self._paged
        if isinstance(reply, Envelope):
            fields = paged.fields if paged is not None else ()
            made = unwrap(plan, reply.data, self._chain, self._further, where=self._where, paged=fields)
            self._whole(reply, made.missing)
            self._nulls += made.nulls
            entries = paged.entries(plan.root, reply.data) if paged is not None else 0
            return Page(content, list(made.rows.items()), made.infos, entries, made.missing == streams, made)
        found, infos = found_in(plan, reply.data)
        missing = streams - {one.stream for one in found if not one.missing}
        self._whole(reply, missing)
        self._nulls += sum(one.nulls for one in found)
        items: list[Item] = [(one.stream, one) for one in found]
        counted = {path for path, _ in paged.ways} if paged is not None else set()
        paths = {one.name: one.path for one in plan.streams}
        lengths = [one.rows + one.nulls for one in found if paths[one.stream] in counted]
        return Page(content, items, infos, max(lengths, default=0), missing == streams)

    def _whole(self, reply: Any, missing: set[str | None]) -> None:
        """With errors, null in place of a page is no empty page, whatever ``on_error`` says."""
        errors = errors_of(reply.errors)
        if errors and missing:
            raise GraphQLError(f"{self._where}: {told(errors)}.\nNo rows came along with it.", errors)

    def _items(self, page: Page) -> Iterator[Item]:
        items = [
            (name, found.page() if isinstance(found, Found) else found) for name, found in page.items if _any(found)
        ]
        yield from (one for one in items if one[0] is not None)
        left = page.unwrapped.rest if page.unwrapped is not None else []
        yield from self._left(rest for rest in left if rest.stream is not None)
        yield from (one for one in items if one[0] is None)
        yield from self._left(rest for rest in left if rest.stream is None)

    def _left(self, left: Iterable[Rest]) -> Iterator[Item]:
        """What connections in rows did not give at once, where it is rows of a stream."""
        for rest in left:
            for name, rows in self._further(rest.plan, rest.values, rest.cursor, rest.chain):
                if rows:
                    yield name, rows

    def _further(
        self, plan: Plan, values: Mapping[str, Any], cursor: Any, chain: Chain
    ) -> Iterator[tuple[str | None, list[Any]]]:
        given = {**self._given, **values}
        return Reading(
            plan, self._asker, given, page_size=self._page_size, chain=chain, cursor=cursor, as_dicts=True
        ).pages()

    def _values(self, plan: Plan, own: Mapping[str, Any]) -> dict[str, Any]:
        """The variables of a request: those of the plan that have a value."""
        values = {**self._given, **self._sizes.values(), **own, **self._sizes.fixed(own)}
        sent = {name: value for name, value in values.items() if name in plan.variables and value is not None}
        for name, one in plan.variables.items():
            if one.type.kind == "non_null_type" and one.default_value is None and name not in sent:
                raise GraphQLError(
                    f"{self._where}: the variable ${name} must have a value. Give it: pages(client, {name}=...)."
                )
        return sent


def _any(found: Any) -> bool:
    return bool(found.rows if isinstance(found, Found) else found)
