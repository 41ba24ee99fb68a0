"""Bugs of bookmarks, STATE and resuming."""

from __future__ import annotations

from bugs import Bug

_ADVANCE = """\
            write_rows(name, chosen[name], rows)
            latest = max(since[name], due[-1]["updated_at"], key=moment)
            state["bookmarks"][name] = {STREAMS[name]["replication_key"]: latest}
"""
_LATEST = '            latest = max(since[name], due[-1]["updated_at"], key=moment)\n'
_KEEP = '            state["bookmarks"][name] = {STREAMS[name]["replication_key"]: latest}\n'
_READ = '    return state["bookmarks"].get(name, {}).get(STREAMS[name]["replication_key"]) or start\n'
_WALK = '    for orders in shop.pages("/orders", updated_since=min(since.values(), key=moment), sort="updated_at"):\n'
_SINCE = "    since = {name: bookmark(state, name, start) for name in names}\n"
_TERM = "    signal.signal(signal.SIGTERM, lambda number, _frame: STOP.append(number))\n"
_AMERICAN = '"%m/%d/%Y %H:%M:%S"'

STATE_BUGS = (
    Bug(
        "early_bookmark",
        "STATE with the page's bookmark goes out before the page's records",
        (
            (
                _ADVANCE,
                _LATEST
                + _KEEP
                + "            write_state(state)\n"
                + "            write_rows(name, chosen[name], rows)\n",
            ),
        ),
        subtle=True,
    ),
    Bug(
        "bookmark_now",
        "the bookmark is the time of the run, not that of the rows",
        ((_LATEST, '            latest = datetime.now(UTC).isoformat().replace("+00:00", "Z")\n'),),
        subtle=True,
    ),
    Bug(
        "unsorted_walk",
        "the API's own order (by id) is taken for one by time: the page's last row gives the bookmark",
        ((_WALK, _WALK.replace('sort="updated_at"', 'sort="id"')),),
        subtle=True,
    ),
    Bug(
        "newest_first",
        "orders come newest first, the bookmark is the greatest so far: the first page puts it behind all the others",
        (
            (_WALK, _WALK.replace('sort="updated_at"', 'sort="-updated_at"')),
            (_LATEST, '            latest = max(bookmark(state, name, start), due[0]["updated_at"], key=moment)\n'),
        ),
        subtle=True,
    ),
    Bug("bookmark_never_written", "no bookmark gets into STATE", ((_LATEST + _KEEP, ""),)),
    Bug(
        "bookmark_stuck",
        "the bookmark stays where the run began",
        ((_LATEST, "            latest = since[name]\n"),),
        subtle=True,
    ),
    Bug(
        "bookmark_of_another_stream",
        "the lines' bookmark is kept as that of orders",
        ((_KEEP, _KEEP.replace("[name] =", "[names[0]] =")),),
        subtle=True,
    ),
    Bug(
        "child_reads_parents_bookmark",
        "the lines are read from the orders' bookmark: their own counts for nothing",
        ((_READ, _READ.replace(".get(name, {}).get(STREAMS[name]", '.get("orders", {}).get(STREAMS["orders"]')),),
        subtle=True,
    ),
    Bug(
        "bookmark_compared_as_text",
        "bookmarks are kept as month/day/year and the greatest text wins: December stays behind January",
        (
            (
                _READ,
                '    kept = state["bookmarks"].get(name, {}).get(STREAMS[name]["replication_key"])\n'
                f'    return datetime.strptime(kept, {_AMERICAN}).isoformat() + "Z" if kept else start\n',
            ),
            (
                _LATEST,
                '            kept = state["bookmarks"].get(name, {}).get(STREAMS[name]["replication_key"], "")\n'
                f'            latest = max(kept, moment(due[-1]["updated_at"]).strftime({_AMERICAN}))\n',
            ),
        ),
        subtle=True,
    ),
    Bug(
        "state_wiped_by_second_stream",
        "each stream begins a STATE of its own",
        ((_KEEP, '            state["bookmarks"] = {name: {STREAMS[name]["replication_key"]: latest}}\n'),),
        subtle=True,
    ),
    Bug(
        "currently_syncing_left",
        "currently_syncing stays in the last STATE",
        (('    state.pop("currently_syncing", None)\n', ""),),
    ),
    Bug(
        "state_is_text",
        "the value of STATE is JSON in a text, not an object",
        (
            (
                '    write({"type": "STATE", "value": state})\n',
                '    write({"type": "STATE", "value": json.dumps(state)})\n',
            ),
            (
                "    if not isinstance(content, dict):\n",
                "    content = json.loads(content) if isinstance(content, str) else content\n"
                "    if not isinstance(content, dict):\n",
            ),
        ),
    ),
    Bug(
        "state_grows",
        "STATE holds the id of every row that was ever seen",
        (
            (
                _ADVANCE,
                _ADVANCE
                + '            state.setdefault("seen", {}).setdefault(name, []).extend(one["id"] for one in due)\n',
            ),
        ),
    ),
    Bug(
        "strict_resume",
        "rows of the bookmark's very time are left out: those of the next page are lost",
        ((">= moment(since[name])]", "> moment(since[name])]"),),
        subtle=True,
    ),
    Bug(
        "state_ignored",
        "the state that was given is not used",
        (('read_json(flags.state, "state") if flags.state else {})\n', "{})\n"),),
        subtle=True,
    ),
    Bug(
        "state_reset_at_start",
        "a run begins with a STATE that has the start date as the bookmark",
        (
            (
                _WALK,
                "    for name in names:\n"
                '        state["bookmarks"][name] = {STREAMS[name]["replication_key"]: start}\n'
                "    write_state(state)\n" + _WALK,
            ),
        ),
        subtle=True,
    ),
    Bug(
        "last_page_without_bookmark",
        "only full pages move the bookmark: the last one is read again by every run",
        (
            (
                _KEEP,
                "            if len(orders) == PER_PAGE:\n    " + _KEEP,
            ),
        ),
        subtle=True,
    ),
    Bug(
        "zone_shifted",
        "the bookmark is the time in another zone, written with a Z: two hours ahead",
        (
            ("from datetime import UTC, datetime\n", "from datetime import UTC, datetime, timedelta, timezone\n"),
            (
                _LATEST,
                _LATEST + "            local = moment(latest).astimezone(timezone(timedelta(hours=2)))\n"
                '            latest = local.strftime("%Y-%m-%dT%H:%M:%SZ")\n',
            ),
        ),
        subtle=True,
    ),
    Bug(
        "empty_page_fails",
        "a page without rows has no last row: a run that finds nothing ends with a traceback",
        (("            if not due:\n                continue\n", ""),),
        subtle=True,
    ),
    Bug(
        "state_without_bookmarks_fails",
        "a state of {} is a KeyError",
        (
            ('dict(state.get("bookmarks") or {})}', 'dict(state["bookmarks"])}'),
            (
                'read_json(flags.state, "state") if flags.state else {})',
                'read_json(flags.state, "state") if flags.state else {"bookmarks": {}})',
            ),
        ),
        subtle=True,
    ),
    Bug(
        "interrupted_version_activated",
        "after SIGTERM half of the products are declared to be the table",
        (
            (
                "        write_state(state)\n        if STOP:\n            return\n    write({",
                "        write_state(state)\n        if STOP:\n            break\n    write({",
            ),
        ),
        subtle=True,
    ),
    Bug(
        "sigterm_ignored",
        "SIGTERM changes nothing",
        ((_TERM, "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"),),
        subtle=True,
    ),
)
