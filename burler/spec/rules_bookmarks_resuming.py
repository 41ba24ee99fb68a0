"""Rules of area B: runs that go on from a state."""

from __future__ import annotations

from burler.spec.rule import Rule
from burler.spec.rules_orders import ORDERS

RESUMING_RULES: tuple[Rule, ...] = (
    Rule(
        code="B311",
        name="resume-repeats-all",
        severity="warning",
        title="A run resumed from the last STATE reads everything again.",
        what=(
            "A run is resumed from the last STATE of the first one, and brings all its rows again, by their "
            "keys. Streams of fewer than five rows, and those whose rows all stand at the bookmark (of a burler tap: "
            "within the stream's `lookback`), are left out."
        ),
        why="The stream is incremental in name: each run costs what the first one cost.",
        mend=(
            "Use the bookmark in the request (`updated_since`), or leave rows below it out. If the source can't "
            "filter, say FULL_TABLE."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 5, "at": "2024-05-05T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 6, "at": "2024-05-06T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-06T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 5, "at": "2024-05-05T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 6, "at": "2024-05-06T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-06T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 5, "at": "2024-05-05T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 6, "at": "2024-05-06T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-06T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 6, "at": "2024-05-06T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-06T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B312",
        name="resume-skips",
        severity="error",
        title="A resumed run skips rows.",
        what=(
            "A run is resumed from a STATE of the first one: the first, a middle one, the last. Rows that the "
            "first run had behind that STATE must come again, by their keys, unless the same row had come before it as "
            "well. Rows without keys are compared as they are."
        ),
        why=(
            "That is what happens when a run breaks off there: the rows between are lost for good, and no error tells."
        ),
        mend=(
            "Go on at the bookmark and not behind it (>=, not >), with the same order, and count pages anew from "
            "there. A bookmark must cover what is out, nothing more."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B313",
        name="run-missed-rows",
        severity="error",
        title="A run misses rows that a resumed one finds.",
        what=(
            "A resumed run brings rows that the first one did not have, though their replication key is below "
            "the greatest that it had. Rows that change meanwhile get a greater one."
        ),
        why=(
            "The first run passed over them: a page was dropped, or an offset counted wrongly. Nobody asks for "
            "them again."
        ),
        mend=(
            "Look at how pages are counted, at the last and the first row of a page, and at requests that failed "
            "and were not asked again."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-01T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 4, "at": "2024-05-04T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-04T00:00:00Z"}}}}\n'
        ),
    ),
    Rule(
        code="B314",
        name="state-refused",
        severity="error",
        title="A state of an earlier version, or of streams that are gone, is refused.",
        what=(
            "The tap is run with an empty state, with one of a stream that is gone, and with those of "
            "--earlier-state. It must accept all of them."
        ),
        why=(
            "A state lives longer than a version of the tap. One that is refused stops the pipeline on the day "
            "of the upgrade, and somebody deletes it: everything is read again."
        ),
        mend="Read what is known, keep what is not, and treat a missing key as a stream that begins.",
        breaks=('def bookmark(state, stream):\n    return state["bookmarks"][stream]["updated_at"]\n'),
        keeps=(
            'def bookmark(state, stream):\n    return state.get("bookmarks", {}).get(stream, {}).get("updated_at")\n'
        ),
    ),
    Rule(
        code="B325",
        name="late-stream-without-past",
        severity="warning",
        title="A stream that is selected later never gets its past.",
        what=(
            "The tap runs from its last STATE without the entries of some streams, as it would for a user who "
            "has just selected them. Those streams must come whole. It is looked at where a state has two "
            "streams or more."
        ),
        why=(
            "Who selects a substream a year later gets what its parents change from then on, and believes that "
            "this is all."
        ),
        mend="A stream without a bookmark begins at the start date, and takes its parent back to there.",
        breaks=(
            "def comments_of(state):\n"
            '    since = state["bookmarks"]["tickets"]["updated_at"]  # the parent\'s, also for a stream that '
            "is new\n"
            "    for ticket in tickets(since):\n"
            "        yield from comments(ticket)\n"
        ),
        keeps=(
            "def comments_of(state, start_date):\n"
            '    since = state.get("bookmarks", {}).get("comments", {}).get("updated_at", start_date)\n'
            "    for ticket in tickets(since):\n"
            "        yield from comments(ticket)\n"
        ),
    ),
    Rule(
        code="B326",
        name="resume-without-boundary",
        severity="warning",
        title="A resumed run leaves out the rows that stand at its bookmark.",
        what=(
            "A run is resumed from a STATE, and of the rows whose date-time is the bookmark itself none comes. Left "
            'out are streams without keys, those that say `resume="exclusive"` (burler), and those whose entry in the '
            "STATE holds more than the bookmark: they may know which rows stand at it. It is an error where the rows "
            "spell that moment otherwise than the bookmark does (`05.000Z` and `05Z`)."
        ),
        why=(
            "Two rows may change in the same second, one before the run and one after it. The second one is then never "
            "read, and nothing tells. A source that compares text takes `05.400Z` for less than `05Z`: asked for what "
            "is at or after `05Z`, it leaves out all rows of that second."
        ),
        mend=(
            "Ask for rows at or after the bookmark (>=): a row that comes twice is known by its key. Where no two rows "
            "can share a value, leave the rule out for this stream. Keep the bookmark as the source writes it."
        ),
        breaks=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
        keeps=(
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 1, "at": "2024-05-01T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-02T00:00:00Z"}}}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
            "# resumed from STATE 1\n"
            f"{ORDERS}"
            '{"type": "RECORD", "stream": "orders", "record": {"id": 2, "at": "2024-05-02T00:00:00Z"}}\n'
            '{"type": "RECORD", "stream": "orders", "record": {"id": 3, "at": "2024-05-03T00:00:00Z"}}\n'
            '{"type": "STATE", "value": {"bookmarks": {"orders": {"at": "2024-05-03T00:00:00Z"}}}}\n'
        ),
    ),
)
