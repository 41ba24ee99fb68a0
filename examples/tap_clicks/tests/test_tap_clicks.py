"""tap_clicks in plain runs: what arrives, in which order, what comes again, and what Redis is told."""

import json
import logging

import pytest

import tap_clicks
from burler.testing import canary, run_tap
from tap_clicks import ids, server

GROUP = "tap-clicks"


def run(shop, state=None, **more):
    return run_tap(tap_clicks.tap, {"url": shop.url}, state=state, select=more.pop("select", "clicks"), **more)


def came(out):
    return [row["entry_id"] for row in out.records("clicks")]


@pytest.mark.parametrize(
    "rising",
    [
        ["9-0", "10-0", "1700000000000-0"],
        ["1700000000000-9", "1700000000000-10", "1700000000001-0"],
        ["0-1", "18446744073709551615-18446744073709551615"],
    ],
)
def test_ids_sort_as_numbers(rising):
    texts = [ids.sortable(one) for one in rising]
    assert texts == sorted(texts) and [ids.from_sortable(text) for text in texts] == rising


def test_the_moment_of_an_id():
    assert ids.moment("1700000000123-4") == "2023-11-14T22:13:20.123000Z"
    assert ids.moment("253402300799999-0") == "9999-12-31T23:59:59.999000Z"
    assert ids.moment("253402300800000-0") is None
    assert ids.from_sortable(None) == "0-0"


def test_what_is_there_arrives_and_the_next_run_brings_what_is_new(shop):
    first_ids = shop.add(1200)
    first = run(shop, select="*")
    assert not first.result.errors
    assert came(first) == first_ids
    assert first.records("clicks")[7] == {
        **server.click(7), "entry_id": first_ids[7], "at": ids.moment(first_ids[7]), "took_ms": 7 * 7919 % 1500
    }  # fmt: skip
    assert {row["id"]: row for row in first.records("campaigns")} == {
        name: {**values, "id": name} for name, values in server.CAMPAIGNS.items()
    }
    assert first.states[-1]["bookmarks"]["clicks"] == {"bookmark": ids.sortable(first_ids[-1])}
    second_ids = shop.add(3)
    second = run(shop, first.states[-1])
    assert came(second) == second_ids
    assert came(run(shop, second.states[-1])) == []


def test_ids_of_one_millisecond_come_in_their_order(shop):
    """The tenth of them comes after the ninth, which text would have the other way round."""
    wanted = [f"1700000000000-{number}" for number in range(1, 25)]
    with shop.client() as client:
        for one in wanted:
            client.xadd("clicks", server.click(1), id=one)
    first = run(shop)
    assert not first.result.errors and came(first) == wanted
    assert came(run(shop, first.states[-1])) == []


def test_a_run_ends_although_clicks_keep_coming(shop, monkeypatch):
    """It goes as far as the stream went when it began."""
    from tap_clicks import clicks

    monkeypatch.setattr(clicks, "_PAGE", 5)
    read = clicks.Clicks.read

    def read_while_more_come(self, **options):
        shop.add(10)
        return read(self, **options)

    monkeypatch.setattr(clicks.Clicks, "read", read_while_more_come)
    there = shop.add(12)
    first = run(shop)
    got = came(first)
    assert set(there) <= set(got) and len(got) < 20
    monkeypatch.undo()
    assert [*got, *came(run(shop, first.states[-1]))] == shop.ids


def test_clicks_are_acknowledged_once_a_state_covers_them(shop):
    shop.add(30)
    with shop.client() as client:
        client.xgroup_create("clicks", GROUP, id="0")
    assert run(shop).result.exit_code == 0
    assert shop.pending() == []
    with shop.client() as client:
        assert client.xinfo_groups("clicks")[0]["last-delivered-id"] == shop.ids[-1]


@pytest.mark.parametrize("covered", [1, 600, 700])
def test_what_a_state_does_not_cover_stays_pending(shop, covered):
    from tap_clicks.clicks import Clicks

    shop.add(700)
    client = Clicks(shop.url, group=GROUP, block_seconds=1)
    assert sum(len(page) for page in client.what_is_there(after="0-0")) == 700 == len(shop.pending())
    client.acknowledge(up_to=shop.ids[covered - 1])
    assert shop.pending() == shop.ids[covered:]
    client.close()


def test_what_a_run_without_state_has_read_stays_pending_and_comes_again(shop):
    """A limited run writes no STATE."""
    shop.add(30)
    assert len(came(run(shop, limit=10))) == 10
    assert len(shop.pending()) == 30
    assert came(run(shop)) == shop.ids and shop.pending() == []


def test_acknowledged_clicks_that_the_target_has_lost_come_again(shop):
    """The state that is given decides, not what Redis was told."""
    shop.add(10)
    first = run(shop)
    lost = shop.add(700)
    assert came(run(shop, first.states[-1])) == lost and shop.pending() == []
    shop.add(5)
    assert came(run(shop, first.states[-1])) == shop.ids[10:]


def test_pending_clicks_that_the_state_covers_are_acknowledged_with_the_next_one(shop):
    """A process was killed between its last STATE and XACK."""
    shop.add(1200)
    with shop.client() as client:
        client.xgroup_create("clicks", GROUP, id="0")
        client.xreadgroup(GROUP, "another-consumer", {"clicks": ">"}, count=1100)
    covered = {"bookmarks": {"clicks": {"bookmark": ids.sortable(shop.ids[999])}}}
    assert came(run(shop, covered)) == shop.ids[1000:]
    assert shop.pending() == []


def test_pending_clicks_that_were_deleted_are_not_waited_for(shop):
    shop.add(5)
    with shop.client() as client:
        client.xgroup_create("clicks", GROUP, id="0")
        client.xreadgroup(GROUP, GROUP, {"clicks": ">"}, count=3)
        client.xdel("clicks", *shop.ids[:2])
    assert came(run(shop)) == shop.ids[2:] and shop.pending() == []


def test_a_stream_that_was_made_anew_comes_as_a_whole(shop, caplog):
    """Its ids are before the bookmark: nothing is passed over in silence."""
    shop.add(3)
    old = run(shop).states[-1]
    with shop.client() as client:
        client.delete("clicks")
        new = [client.xadd("clicks", server.click(number), id=f"5-{number}") for number in range(1, 4)]
        client.xgroup_create("clicks", GROUP, id="0")
        client.xreadgroup(GROUP, GROUP, {"clicks": ">"}, count=1)  # by a process that died with it
    with caplog.at_level(logging.WARNING):
        again = run(shop, old)
    assert "ends at 5-3, before the bookmark" in caplog.text
    assert came(again) == new
    shop.ids.clear()
    shop.add(2)
    assert came(run(shop, again.states[-1] if again.states else old)) == shop.ids and shop.pending() == []


def test_a_stream_that_is_not_there_yet_is_empty(shop):
    out = run(shop)
    assert not out.result.errors and came(out) == []
    shop.add(2)
    assert came(run(shop, out.states[-1] if out.states else None)) == shop.ids


def test_odd_clicks_do_not_stop_the_others(shop):
    """Not UTF-8, no number, unknown and missing fields: what does not fit its schema, `on_bad_record` decides about."""
    with shop.client() as client:
        odd = [
            client.xadd("clicks", {"user": b"\xff\xfe", "took_ms": "12", "colour": "red"}),
            client.xadd("clicks", {"user": "u1", "took_ms": "soon"}),
            client.xadd("clicks", {"page": "/" + "x" * 300_000, "at": "never", "took_ms": "9" * 30}),
        ]
    out = run_tap(tap_clicks.tap, {"url": shop.url, "on_bad_record": "null"}, select="clicks")
    assert not out.result.errors
    rows = out.records("clicks")
    assert [row["entry_id"] for row in rows] == odd
    assert rows[0] == {"user": "\\xff\\xfe", "took_ms": 12, "entry_id": odd[0], "at": ids.moment(odd[0])}
    assert rows[1]["took_ms"] is None and rows[1]["user"] == "u1"
    assert len(rows[2]["page"]) == 300_001 and rows[2]["at"] == ids.moment(odd[2])
    failed = run_tap(tap_clicks.tap, {"url": shop.url}, select="clicks")
    assert "took_ms" in str(failed.result.errors["clicks"])


def test_a_campaign_that_is_gone_is_dropped_and_a_broken_one_fails_alone(shop):
    first = run(shop, select="*")
    with shop.client() as client:
        client.hdel("campaigns", "c2")
    second = run(shop, first.states[-1], select="*")
    assert {row["id"] for row in second.records("campaigns")} == {"c1", "c3"}
    assert [m["type"] for m in second.messages if m.get("stream") == "campaigns"][-1] == "ACTIVATE_VERSION"
    shop.add(1)
    with shop.client() as client:
        client.hset("campaigns", "c4", "{")
    third = run(shop, second.states[-1], select="*")
    assert set(third.result.errors) == {"campaigns"} and came(third) == shop.ids
    assert [m for m in third.messages if m["type"] == "ACTIVATE_VERSION"] == []


def test_a_wrong_password_is_one_error_and_is_not_shown(make_shop, start):
    right, wrong = canary("redis"), canary("redis-wrong")
    shop = make_shop(password=right)
    tap = start(url=shop.url.replace(right, wrong))
    assert tap.process.wait(30) == 1
    assert tap.messages == [] and wrong not in tap.said and right not in tap.said
    assert len([line for line in tap.said.splitlines() if " CRITICAL " in line]) == 1, tap.said
    shop.add(2)
    tap = start(url=shop.url)
    assert tap.process.wait(30) == 0, tap.said
    assert tap.ids == shop.ids and right not in tap.said + json.dumps(tap.messages)


def test_a_server_that_is_away_is_said_by_name_of_the_place(shop, start):
    shop.stop()
    tap = start()
    assert tap.process.wait(30) == 1
    assert f"127.0.0.1:{shop.port}" in tap.said and "Traceback" not in tap.said
    assert tap.rows() == []
