"""Rules of area H about lists that are read page by page."""

from __future__ import annotations

from burler.spec.rule import Rule

_PARAMETERS = (
    "Pages are told by parameters with the usual names (page, page[number], offset, $skip, startAt, limit, per_page, "
    "...), in the query, in a form or in JSON, while all others are equal."
)
_OFFSETS = (
    "def contacts(client):\n"
    "    for offset in {offsets}:\n"
    '        params = {{"offset": offset, "limit": {limit}}}\n'
    '        yield from client.get(f"{{BASE_URL}}/{path}", params=params, timeout=60).json()\n'
)

REQUEST_PAGE_RULES: tuple[Rule, ...] = (
    Rule(
        code="H704",
        name="pages-skipped",
        severity="error",
        title="Pages of a list are left out.",
        what=(
            f"{_PARAMETERS} Reported are page numbers with a hole (1, 2, 4), offsets that go on by more than the limit "
            "(0, 100, 300), and lists that begin with their second page. The order does not count: pages may be "
            "fetched in parallel."
        ),
        why=(
            "The rows of those pages never come, in no run. Nothing fails: the tables are merely too small, and mostly "
            "by a part that nobody notices."
        ),
        mend=(
            "Raise the number by one for each page, the offset by the rows that came, and begin with what the source "
            "calls its first page (0 or 1)."
        ),
        breaks=(
            "def contacts(client):\n"
            "    for page in (1, 2, 4):\n"
            '        yield from client.get(f"{BASE_URL}/contacts", params={"page": page}, timeout=60).json()\n'
        ),
        keeps=(
            "def contacts(client):\n"
            "    for page in (1, 2, 3, 4):\n"
            '        yield from client.get(f"{BASE_URL}/contacts", params={"page": page}, timeout=60).json()\n'
        ),
    ),
    Rule(
        code="H705",
        name="pages-overlap",
        severity="warning",
        title="Pages of a list overlap: rows come twice.",
        what=(
            f"{_PARAMETERS} An offset that goes on by fewer rows than the page before had is reported. Where the rows "
            "can't be counted, it is if the offset goes on by one, or by one less than the limit."
        ),
        why=(
            "Targets without a key get the rows twice. With a key they are only slow: an offset that goes on by one "
            "for pages of 100 rows makes a hundred requests of one."
        ),
        mend=(
            "Raise the offset by the rows that came. If the overlap is meant (rows move while they are read), ignore "
            "the rule for this stream."
        ),
        breaks=_OFFSETS.format(offsets="(0, 9, 18)", limit=10, path="rows"),
        keeps=_OFFSETS.format(offsets="(0, 10, 20)", limit=10, path="rows"),
    ),
    Rule(
        code="H708",
        name="pages-capped",
        severity="error",
        title="The source gives fewer rows than it is asked for, and the offset goes on by more.",
        what=(
            "All pages but the last have the same number of rows, fewer than the limit that was asked for, and the "
            "offset goes on by that limit."
        ),
        why=(
            "Sources have a greatest page, and most say nothing when more is asked for. With limit=1000 and pages of "
            "100 rows nine of ten rows are never read."
        ),
        mend="Raise the offset by the rows that came, or ask for no more than the source gives at once.",
        breaks=_OFFSETS.format(offsets="(0, 50, 100)", limit=50, path="rows"),
        keeps=_OFFSETS.format(offsets="(0, 10, 20)", limit=50, path="rows"),
    ),
    Rule(
        code="H709",
        name="more-pages-said",
        severity="error",
        title="The last page that was read says that there is more.",
        what=(
            "A reply with rows names a next page or a greater total, in its body (next, has_more, a cursor, a total) "
            "or in a header (Link, X-Next-Page, X-Total-Count, X-Total-Pages, X-Pagination, Content-Range), the stream "
            "ended well, and nothing behind that page was asked for. It is also whatever makes burler hold back a "
            "bookmark or a closing version; those are not told beside it. Runs that go on from a STATE are not looked "
            "at, nor pages that are shorter than they might be."
        ),
        why=(
            "A list that is cut to its first page looks well in tests, where it has only one, and loses all else with "
            "real data."
        ),
        mend=(
            "Follow what the reply names until it names nothing. A tap that reads the newest first and stops at its "
            "start date stops here on purpose: ignore the rule for this stream."
        ),
        breaks=('def contacts(client):\n    yield from client.get(f"{BASE_URL}/linked", timeout=60).json()["data"]\n'),
        keeps=(
            "def contacts(client):\n"
            '    url = "/linked"\n'
            "    while url:\n"
            '        reply = client.get(f"{BASE_URL}{url}", timeout=60).json()\n'
            '        yield from reply["data"]\n'
            '        url = reply["next"]\n'
        ),
    ),
)
