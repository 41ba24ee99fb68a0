"""Verifying a burler tap in this process: runs, resumed runs, facts."""

from __future__ import annotations

import datetime as dt

import pytest

import burler
import burler.verify
from burler.errors import UsageError
from burler.spec import Limits
from burler.testing import canary, run_tap, verify_tap

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "name": {"type": ["null", "string"]},
    }
}
ROWS = [{"id": n, "at": f"2024-05-{1 + n // 2:02}T00:00:00Z", "name": "x"} for n in range(40)]


def make_tap(*, read=None, strategy="every_n(10)", order="asc", **more):
    """A tap with one incremental stream; ``read`` gives its rows from a bookmark on."""
    tap = burler.tap("tap-days")
    options = {"key_properties": "id", "replication_key": "at", "schema": SCHEMA, "order": order} | more

    @tap.sync("days", bookmark_strategy=strategy, **options)
    def days(stream):
        yield from (read or reading)(stream.bookmark)

    return tap


def reading(bookmark):
    return [row for row in ROWS if bookmark is None or row["at"] >= bookmark]


def codes(verification):
    return {one.code for one in verification.findings}


def test_a_good_tap_has_nothing():
    verification = verify_tap(make_tap())
    assert verification.findings == []
    assert verification.exit_code(strict=True) == 0
    names = [run.name for run in verification.runs]
    assert names[0] == "sync" and len(names) == 4 and names[-1].startswith("resumed from STATE ")
    assert [run.ended for run in verification.runs] == ["succeeded"] * 4
    assert {"B302", "B312", "M205", "R502"} <= set(verification.checked)
    assert verification.unchecked["O401"].startswith("no function that declares an order")
    assert verification.unchecked["B314"] == "the tap is an object in this process, and no command"


def test_the_facts_of_a_stream():
    first, *_others, last = verify_tap(make_tap()).runs
    facts = first.streams["days"]
    assert (facts.rows, facts.states, facts.key_properties, facts.replication_key) == (40, 5, ["id"], "at")
    assert facts.replication_method == "INCREMENTAL"
    assert facts.order["direction"] == "asc" and facts.order["flips"] == 0 and facts.order["map"] == [[1, 40, "asc"]]
    assert facts.bookmark["from"] is None and facts.bookmark["to"] == "2024-05-20T00:00:00Z"
    assert facts.series[-1][1:] == [40, facts.bookmark["to"]]
    assert facts.fields["name"] == {"declared": ["null", "string"], "seen": ["string"], "nulls": 0, "rows": 40}
    assert last.streams["days"].rows == 2  # those at the bookmark


def test_a_tap_that_skips_when_it_goes_on():
    def skipping(bookmark):
        return [row for row in ROWS if bookmark is None or row["at"] > bookmark][bookmark is not None :]

    found = verify_tap(make_tap(read=skipping))
    assert codes(found) == {"B312", "B326"}
    assert found.exit_code() == 1
    assert "resumed from STATE" in found.findings[0].run


def behind(bookmark):
    """Only what is greater than the bookmark."""
    return [row for row in ROWS if bookmark is None or row["at"] > bookmark]


def test_a_tap_that_goes_on_behind_its_bookmark_is_told_unless_it_says_so():
    whole = {"strategy": "every_n(100)"}  # so that no row that came is lost by it
    assert codes(verify_tap(make_tap(read=behind, **whole))) == {"B326"}
    assert codes(verify_tap(make_tap(read=behind, resume="exclusive", **whole))) == set()


def test_runs_that_are_ended_early_show_lost_rows_all_the_same():
    """Rows that rise: a resumed run that is past the last row of the first one must have had them all."""

    def skipping(bookmark):
        return reading(bookmark)[3 * (bookmark is not None) :]

    many = {"strategy": "every_n(10)", "read": skipping}
    found = verify_tap(make_tap(**many), max_records=20)
    assert found.runs[0].ended == "stopped"
    assert "B312" in codes(found)
    assert "B311" in found.unchecked


def test_a_key_that_many_rows_share_is_told():
    rows = [{"id": n % 3, "at": "2024-05-01T00:00:00Z", "name": f"n{n}"} for n in range(12)]
    (found,) = (one for one in verify_tap(make_tap(read=lambda _bookmark: rows)).findings if one.code == "M227")
    assert (found.stream, found.path, found.message[:13]) == ("days", "id", "9 of 12 rows ")


def test_a_tap_that_reads_everything_again():
    assert codes(verify_tap(make_tap(read=lambda bookmark: ROWS))) == {"B311"}
    assert codes(verify_tap(make_tap(read=lambda bookmark: ROWS), resume=False)) == set()


def test_a_tap_whose_first_run_misses_a_page():
    def missing(bookmark):
        rows = reading(bookmark)
        return [row for at, row in enumerate(rows) if not 10 <= at < 13] if bookmark is None else rows

    found = verify_tap(make_tap(read=missing))
    assert codes(found) == {"B313"}
    assert "3 rows" in found.findings[0].message


def test_a_failing_stream_is_told_and_resumed_runs_are_left_out():
    def failing(bookmark):
        yield from ROWS[:20]
        raise ValueError("the source broke")

    found = verify_tap(make_tap(read=failing))
    assert "P609" in codes(found)
    assert "the source broke" in next(one.message for one in found.findings if one.code == "P609")
    assert found.runs[0].ended == "failed"
    assert found.unchecked["B312"] == "the first run failed"


@pytest.mark.parametrize("first", [True, False])
def test_that_an_order_error_takes_the_bookmark_back_is_no_fault_of_its_own(first):
    def unsorted(bookmark):
        return [*ROWS[:20], ROWS[5], *ROWS[20:]] if first or bookmark is not None else ROWS

    found = verify_tap(make_tap(read=unsorted))
    assert codes(found) == {"P609"}
    assert "'at' went from '2024-05-10T00:00:00Z' back" in found.findings[0].message


def test_max_records_ends_a_run_and_says_what_was_not_looked_at():
    many = [{"id": n, "at": f"2024-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"} for n in range(50_000)]

    def pages(bookmark):
        for start in range(0, len(many), 100):
            yield [row for row in many[start : start + 100] if bookmark is None or row["at"] >= bookmark]

    found = verify_tap(make_tap(read=pages, strategy="every_n(100)"), max_records=500, resume=False)
    assert codes(found) == {"R503"}  # 'name' never came
    assert found.runs[0].ended == "stopped"
    assert 500 <= found.runs[0].streams["days"].rows < 5_000
    assert "max-records" in found.unchecked["B305"]


def test_a_secret_in_a_message_is_found_and_not_shown():
    secret = canary("token")
    tap = burler.tap("tap-leaks", config_spec=["token"])

    @tap.sync("days", key_properties="id", schema=SCHEMA)
    def days(config):
        yield {"id": 1, "name": f"for {config['token']}"}

    found = verify_tap(tap, {"token": secret})
    assert codes(found) == {"M215"}
    assert secret not in str(found.to_json())


def test_the_config_may_be_a_function_and_each_run_gets_its_own():
    seen = []
    tap = make_tap(read=lambda bookmark: reading(bookmark))

    def config():
        seen.append({})
        return seen[-1]

    assert verify_tap(tap, config).findings == []
    assert len(seen) >= 5


def test_limits_and_choice():
    lagging = make_tap(read=lambda bookmark: reading(bookmark), strategy="end_of_sync")
    assert verify_tap(lagging, limits=Limits(future_seconds=1)).findings == []
    with pytest.raises(UsageError, match="no rule is called 'B9'"):
        verify_tap(lagging, ignore=["B9"])
    again = make_tap(read=lambda bookmark: ROWS)
    assert verify_tap(again, ignore=["resume-repeats-all"]).findings == []
    assert verify_tap(again, per_stream_ignores={"days": ["B311"]}).findings == []
    assert codes(verify_tap(again, select=["B"], per_stream_ignores={"others": ["B"]})) == {"B311"}


def test_selected_streams_alone():
    tap = make_tap()

    @tap.sync("nights", key_properties="id", schema=SCHEMA)
    def nights():
        yield {"id": 1, "other": 2}

    assert codes(verify_tap(tap)) == {"R502"}
    streams = [
        {
            "tap_stream_id": message["stream"],
            "stream": message["stream"],
            "schema": message["schema"],
            "key_properties": message["key_properties"],
            "metadata": [{"breadcrumb": [], "metadata": {"selected": message["stream"] == "days"}}],
        }
        for message in run_tap(tap, schemas_only=True).messages
        if message["type"] == "SCHEMA"
    ]
    catalog = {"streams": streams}
    chosen = verify_tap(tap, catalog=catalog)
    assert codes(chosen) == set()
    assert set(chosen.runs[0].streams) == {"days"}


def make_pair(*, own_place):
    """Two streams; the first one reads from its own bookmark on, or from its sister's."""
    tap = burler.tap("tap-pair")

    @tap.sync("nights", key_properties="id", replication_key="at", schema=SCHEMA, order="asc")
    def nights(stream, state):
        sister = state.get("bookmarks", {}).get("days", {}).get("at")
        yield from reading(stream.bookmark if own_place else sister)

    @tap.sync("days", key_properties="id", replication_key="at", schema=SCHEMA, order="asc")
    def days(stream):
        yield from reading(stream.bookmark)

    return tap


def test_a_stream_that_is_selected_later_must_get_its_past():
    found = verify_tap(make_pair(own_place=False), select=["B325"])
    assert [(one.code, one.stream) for one in found.findings] == [("B325", "nights")]
    good = verify_tap(make_pair(own_place=True))
    assert good.findings == [] and "B325" in good.checked


def test_a_lookback_may_bring_all_rows_again():
    def all_of_them(_bookmark):
        return list(ROWS)

    days = dt.timedelta(days=1)
    assert codes(verify_tap(make_tap(read=all_of_them, lookback=18 * days))) == {"B311"}
    assert codes(verify_tap(make_tap(read=all_of_them, lookback=19 * days))) == set()


def test_nothing_is_acknowledged():
    """Nobody stores the rows of a verification: a queue would lose them."""
    tap, told = make_tap(), []

    @tap.acknowledge("days")
    def forget(bookmark):
        told.append(bookmark)

    assert codes(verify_tap(tap)) == set() and told == []
    run_tap(tap)
    assert told[-1] == ROWS[-1]["at"]


def test_alone_a_stream_says_nothing_of_that():
    assert "two streams" in verify_tap(make_tap()).unchecked["B325"]


def test_a_stopped_run_that_is_not_past_the_first_one_says_nothing():
    """It has not had the time to bring what is missing."""

    def late(bookmark):
        rows = reading(bookmark)
        return rows if bookmark is None else [*rows[:1] * 30, *rows]

    found = verify_tap(make_tap(read=late), max_records=20)
    assert not codes(found) & {"B312", "B326"}
    assert {"B312", "B326"} <= found.unchecked.keys()


def test_what_one_run_could_look_at_is_looked_at():
    """A resumed run that asks for nothing leaves the rules on requests to the first one; an order that was never
    declared is looked at by none."""

    @burler.verify.ensure_ordering("id", "ASC")
    def ordered(bookmark):
        return reading(bookmark) if bookmark is None else []

    found = verify_tap(make_tap(read=lambda bookmark: ordered(bookmark) if bookmark is None else reading(bookmark)))
    assert "O401" in found.checked
